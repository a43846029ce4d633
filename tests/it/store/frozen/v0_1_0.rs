//! The data directory of version 0.1.0. It holds four people of all roles, tokens and
//! sessions, conversations of every channel and two that were imported, turns in
//! every state, approvals with every verdict and one that waits, memories,
//! schedules, callbacks in every state, a summary, idempotency keys, a machine
//! that registered and a relay identity.

use std::fs;

use serde_json::{Value, json};

use super::{Frozen, SECRET, client, holds, settle, sign_in, wait_for_link};
use crate::scenarios::{check_integrity, count, look_into};
use support::eventually;
use support::http::post;
use support::program::printed;

/// The rows that 0.1.0 answered a request with.
fn rows_of(frozen: &Frozen, request: &Value, key: &str) -> Vec<Value> {
    let answers = frozen.known["answers"].as_array().unwrap();
    let known = answers.iter().find(|known| known["request"] == *request);
    known.expect("it was asked")["data"][key]
        .as_array()
        .unwrap()
        .clone()
}

/// What `hearth doctor` finds, which is nothing that fails.
fn checks_of(frozen: &Frozen) -> Value {
    let doctor = frozen.run(&["doctor", "--json"]);
    let checks: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(doctor.status.code(), Some(0), "{checks:#}");
    checks
}

/// A webhook account, and a guest, reach less than in 0.1.0: log and doctor name them, with
/// the command that gives it back.
#[test]
fn who_reaches_less_than_in_0_1_0_is_named() {
    let frozen = Frozen::copy("0.1.0");
    let program = frozen.serve();
    let log = || fs::read_to_string(frozen.folder.path().join("hearth.log")).unwrap();
    let narrowed = "channels[2].accounts.cellar\" has no \"tools\"";
    for part in [narrowed, "guest viktor sees no conversation"] {
        eventually(part, || log().contains(part).then_some(()));
    }
    assert!(!log().contains("accounts.doorbell"), "its tools never ran");
    let found = checks_of(&frozen).to_string();
    let command = "hearth config set 'channels[2].accounts.cellar.tools' '[\\\"*\\\"]'";
    assert!(found.contains(command), "{found}");
    assert!(found.contains("hearth user role viktor user"), "{found}");

    let given = [
        "config",
        "set",
        "channels[2].accounts.cellar.tools",
        "[\"*\"]",
    ];
    assert!(frozen.run(&given).status.success());
    assert!(
        frozen
            .run(&["user", "role", "viktor", "user"])
            .status
            .success()
    );
    let found = checks_of(&frozen).to_string();
    assert!(!found.contains("no longer offered"), "{found}");
    assert!(!found.contains("guests see no"), "{found}");
    assert_eq!(program.signal("TERM"), Some(0));
}

/// What works on the configuration alone leaves the upgrade to the server.
#[test]
fn commands_of_the_configuration_upgrade_no_database() {
    let frozen = Frozen::copy("0.1.0");
    let database = frozen.folder.path().join("hearth.db");
    let before = fs::read(&database).unwrap();
    for words in [
        &["config", "check"][..],
        &["config", "get", "model"],
        &["config", "set", "limits.turn_seconds", "300"],
    ] {
        let output = frozen.run(words);
        assert!(output.status.success(), "{}", printed(&output));
    }
    assert!(fs::read(&database).unwrap() == before, "it was written to");
}

#[test]
fn everything_of_0_1_0_is_still_there() {
    let frozen = Frozen::copy("0.1.0");
    let program = frozen.serve();
    let mut admin = client(&program, frozen.token("admin"));
    settle(&mut admin);
    wait_for_link(&mut admin);
    let answers = frozen.known["answers"].as_array().unwrap();
    assert!(answers.len() > 70);
    for known in answers {
        let mut request = known["request"].clone();
        if request["type"] == "search_messages" {
            request["order"] = json!("newest");
            eventually("the index of old messages", || {
                let found = admin.ask(request.clone());
                (found["indexing"] == false).then_some(())
            });
        }
        let mut data = known["data"].clone();
        // What waits is asked in the words of today.
        let approvals = data.get_mut("approvals").and_then(Value::as_array_mut);
        for approval in approvals.into_iter().flatten() {
            if approval["decision"].is_null() {
                approval.as_object_mut().unwrap().remove("reason");
            }
        }
        let found = admin.ask(request);
        assert!(holds(&found, &data), "{found:#}, not {known:#}");
    }

    // The turn that a tool was running in, and the one behind it.
    let found = admin.ask(json!({ "type": "search_messages", "query": "pump" }));
    let conversation = &found["messages"][0]["conversation_id"];
    let request = json!({ "type": "get_messages", "conversation_id": conversation });
    let messages = admin.ask(request)["messages"].clone();
    let texts: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert_eq!(texts[0], "run the pump in the greenhouse");
    assert_eq!(texts[1], "is the pump still on?");
    assert!(texts[2].contains("the server was interrupted"), "{texts:?}");
    assert_eq!(program.signal("TERM"), Some(0));

    // What no interface shows.
    let database = look_into(frozen.folder.path());
    check_integrity(&database);
    for (table, rows) in [
        ("machines", 1),
        ("grants", 0),
        ("conversation_summaries", 1),
        ("retold_conversations", 1),
        ("idempotency", 2),
        ("approvals", 5),
    ] {
        let found = count(&database, &format!("SELECT count(*) FROM {table}"));
        assert_eq!(found, rows, "{table}");
    }
    drop(database);
    let list = frozen.folder.path().join("files/list.txt");
    assert_eq!(fs::read_to_string(list).unwrap(), "bread\n");
    let usage = frozen.run(&["usage", "--json"]);
    let usage: Value = serde_json::from_slice(&usage.stdout).unwrap();
    assert!(holds(&usage, &frozen.known["usage"]), "{usage:#}");
    let checks = checks_of(&frozen);
    for check in ["data directory", "database"] {
        let well = json!({ "checks": [{ "check": check, "level": "ok" }] });
        assert!(holds(&checks, &well), "{check}: {checks:#}");
    }

    // What the upgrade narrowed is said once, with the command that gives it back.
    let configuration = |checks: &Value| -> Vec<Value> {
        let checks = checks["checks"].as_array().unwrap().iter();
        checks
            .filter(|check| check["check"] == "configuration")
            .cloned()
            .collect()
    };
    let narrowed = configuration(&checks);
    assert_eq!(narrowed.len(), 1, "{checks:#}");
    assert_eq!(narrowed[0]["level"], "warning", "{checks:#}");
    let (key, tools) = ("channels[2].accounts.cellar.tools", "[\"*\"]");
    let text = narrowed[0]["text"].as_str().unwrap();
    let command = format!("config set '{key}' '{tools}'");
    assert!(text.contains(&command), "{text}");
    let set = frozen.run(&["config", "set", key, tools]);
    assert_eq!(set.status.code(), Some(0), "{set:?}");
    let checks = checks_of(&frozen);
    let given_back = configuration(&checks);
    assert_eq!(given_back.len(), 1, "{checks:#}");
    assert_eq!(given_back[0]["level"], "ok", "{checks:#}");
    assert!(frozen.receiver.callbacks().is_empty(), "nothing was due");
}

#[test]
fn everybody_of_0_1_0_may_do_what_they_could() {
    let frozen = Frozen::copy("0.1.0");
    let program = frozen.serve();
    for (user, password) in frozen.known["passwords"].as_object().unwrap() {
        let answer = sign_in(&program, user, password.as_str().unwrap());
        assert_eq!(answer.status, 200, "{user}: {answer:?}");
    }
    assert_eq!(sign_in(&program, "anna", "something else").status, 401);
    let client = |token| client(&program, token);
    let list_users = || json!({ "type": "list_users" });
    assert!(client(frozen.token("admin")).ask(list_users())["users"].is_array());
    let mut viewer = client(frozen.token("viktor"));
    let chat = json!({ "type": "chat", "message": "hello" });
    assert_eq!(viewer.refused(chat), "unauthorized");
    let mut anna = client(frozen.known["session"].as_str().unwrap());
    assert_eq!(anna.refused(list_users()), "unauthorized");

    // A repeated key joins the turn that it began.
    let mut anna = client(frozen.token("anna"));
    let conversations = anna.ask(json!({ "type": "list_conversations" }))["conversations"].clone();
    let of_title = |title: &str| {
        let rows = conversations.as_array().unwrap();
        let found = rows.iter().find(|row| row["title"] == title);
        found.expect("it is listed")["id"].clone()
    };
    let greeting = of_title("Grüße aus dem Garten 🌱, is the greenhouse closed?");
    let repeated = anna.ask(json!({
        "type": "chat", "message": "and the shed?", "conversation_id": greeting,
        "idempotency_key": "anna-1",
    }));
    assert_eq!(repeated["response"], "You said: and the shed?");

    // A program that sends the past with its message goes on where it was.
    let well = of_title("how deep is the well?");
    let bearer = format!("Bearer {}", frozen.token("anna"));
    let said = [
        ("user", "how deep is the well?"),
        ("assistant", "You said: how deep is the well?"),
        ("user", "and how wide?"),
        ("assistant", "You said: and how wide?"),
        ("user", "and how old?"),
    ];
    let messages: Vec<Value> = said
        .iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect();
    let answer = post(
        program.address,
        "/v1/chat/completions",
        &[("authorization", &bearer)],
        &json!({ "model": "hearth", "messages": messages }),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = anna.ask(json!({ "type": "get_messages", "conversation_id": well }));
    assert_eq!(told["messages"].as_array().unwrap().len(), 6, "{told:#}");

    // The question that waited is answered, and its turn goes on.
    let mut admin = client(frozen.token("admin"));
    let approvals = admin.ask(json!({ "type": "list_approvals" }))["approvals"].clone();
    let (approval, turn) = (&approvals[0]["approval_id"], &approvals[0]["turn_id"]);
    admin.ask(json!({ "type": "approve", "approval_id": approval }));
    eventually("the turn is done", || {
        let view = admin.ask(json!({ "type": "get_turn", "turn_id": turn }));
        (view["state"] == "done").then_some(())
    });
}

#[test]
fn callbacks_of_0_1_0_go_out_in_their_order_and_under_their_ids() {
    let frozen = Frozen::copy("0.1.0");
    let program = frozen.serve();
    let mut admin = client(&program, frozen.token("admin"));
    let ids = ["pending", "held", "dead"].map(|state| {
        let request = json!({ "type": "list_deliveries", "state": state });
        let rows = rows_of(&frozen, &request, "deliveries");
        assert_eq!(rows.len(), 1, "{state}");
        rows[0]["delivery_id"].as_str().unwrap().to_owned()
    });
    for (sent_again, expected) in [(&ids[0], &ids[..2]), (&ids[2], &ids[..])] {
        admin.ask(json!({ "type": "retry_delivery", "delivery_id": sent_again }));
        let callbacks = frozen.receiver.wait_for(expected.len());
        let came: Vec<&str> = callbacks
            .iter()
            .map(|callback| callback.header("webhook-id").unwrap())
            .collect();
        assert_eq!(came, expected);
    }
    let callbacks = frozen.receiver.callbacks();
    assert_eq!(
        callbacks[0].body["message"],
        "Heard: [door] somebody rang again"
    );
    assert_eq!(callbacks[2].body["conversation_id"], "water");
    eventually("all are delivered", || {
        let delivered = json!({ "type": "list_deliveries", "state": "delivered" });
        let rows = admin.ask(delivered)["deliveries"].clone();
        (rows.as_array().unwrap().len() == 4).then_some(())
    });

    // A repeated key begins no second turn; a new message is answered.
    let ring = |key: &str, message: &str| {
        let headers = [SECRET, ("idempotency-key", key)];
        let body = json!({
            "message": message, "user_id": "door", "conversation_id": "front-door",
        });
        let answer = post(program.address, "/webhook/doorbell", &headers, &body);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["data"]["turn_id"].clone()
    };
    let request = json!({ "type": "list_deliveries", "state": "delivered" });
    let first = &rows_of(&frozen, &request, "deliveries")[0];
    assert_eq!(ring("ring-1", "somebody rang"), first["turn_id"]);
    ring("ring-2", "somebody is still there");
    let callbacks = frozen.receiver.wait_for(4);
    assert_eq!(callbacks[3].body["conversation_id"], "front-door");
}

#[test]
fn everything_of_0_1_0_is_the_household_s() {
    let frozen = Frozen::copy("0.1.0");
    let program = frozen.serve();
    let client = |token| client(&program, token);
    let mut admin = client(frozen.token("admin"));
    settle(&mut admin);
    let lists = ["list_conversations", "list_memories", "list_schedules"];
    let mut anna = client(frozen.token("anna"));
    for list in lists {
        let request = json!({ "type": list });
        let (of_admin, of_anna) = (admin.ask(request.clone()), anna.ask(request.clone()));
        let key = list.trim_start_matches("list_");
        assert!(!of_admin[key].as_array().unwrap().is_empty(), "{list}");
        assert_eq!(of_admin, of_anna, "{list}");
        let known = frozen.known["answers"].as_array().unwrap();
        let known = known.iter().find(|known| known["request"] == request);
        if let Some(known) = known {
            assert!(holds(&of_anna, &known["data"]), "{list}");
        }
    }
    // A guest sees what names them, which nothing did.
    let mut viktor = client(frozen.token("viktor"));
    let none = viktor.ask(json!({ "type": "list_conversations" }));
    assert_eq!(none["conversations"], json!([]));
    assert_eq!(program.signal("TERM"), Some(0));

    // Who began a conversation is its owner, unless a webhook's caller only said so.
    let database = look_into(frozen.folder.path());
    for (sql, expected) in [
        (
            "SELECT count(*) FROM conversations WHERE audience_id <> 1",
            0,
        ),
        ("SELECT count(*) FROM memories WHERE audience_id <> 1", 0),
        ("SELECT count(*) FROM schedules WHERE audience_id <> 1", 0),
        (
            "SELECT count(*) FROM conversations
             WHERE channel LIKE 'webhook:%' AND owner_id IS NOT NULL",
            0,
        ),
        (
            "SELECT count(*) FROM conversations c WHERE channel = 'websocket' AND NOT EXISTS (
                 SELECT 1 FROM messages m JOIN users u ON u.name = m.speaker
                 WHERE m.conversation_id = c.id AND u.id = c.owner_id)",
            0,
        ),
    ] {
        assert_eq!(count(&database, sql), expected, "{sql}");
    }
    let owned = "SELECT count(*) FROM conversations WHERE owner_id IS NOT NULL";
    assert!(count(&database, owned) > 0);
}

//! The data directory of the program as it was at commit e301328e, with schema 32. It holds
//! an admin, two users, a child, a guest and one who is invited; tokens with each narrowing;
//! conversations that are private, the household's, shared by name, a webhook account's and
//! imported, with versions, attachments, marks, a model and instructions of their own;
//! memories, also forgotten and from a webhook; lists, schedules of each kind, a skill and files
//! of tools; turns, approvals, callbacks and notifications in every state; a long result that
//! was kept, a summary, vectors, a browser that is told, a machine that registered and a
//! relay identity.
//!
//! `schema-32.json` beside it says of each thing what it is, and of each credential (`seen`)
//! which of them it finds.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Map, Value, json};

use super::{Frozen, SECRET, client, holds, settle, sign_in, wait_for_link};
use crate::scenarios::{check_integrity, look_into};
use support::client::Client;
use support::eventually;
use support::http::{exchange, post};

/// What a person may have noted on a conversation, for themselves alone.
const MARKS: [&str; 3] = ["pinned", "archived", "unread"];

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// The rows that a request brings, or the code with which it is refused.
fn rows(client: &mut Client, request: &Value, key: &str) -> Value {
    client.send(request);
    let mut response = client.response();
    if response["status"] == "ok" {
        response["data"][key].take()
    } else {
        response["code"].take()
    }
}

/// Checks that these rows, or this refusal, are what is known: `known` is what the
/// credential finds, by ids, and `things` what each of them is.
fn check_rows(who: &str, found: &Value, id: &str, known: &Value, things: &Value) {
    let (Some(found_rows), Some(known_ids)) = (found.as_array(), known.as_array()) else {
        assert_eq!(found, known, "{who}");
        return;
    };
    let found_ids: BTreeSet<&str> = found_rows
        .iter()
        .map(|row| row[id].as_str().unwrap())
        .collect();
    let known_ids: BTreeSet<&str> = known_ids.iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(found_ids, known_ids, "{who}");
    for row in found_rows {
        let thing = &things[row[id].as_str().unwrap()];
        assert!(holds(row, thing), "{who}: {row:#}, not {thing:#}");
    }
}

/// Checks which conversations somebody finds, with their messages, and that all others are
/// not there for them.
fn check_conversations(who: &str, client: &mut Client, known: &Value) {
    let mine = object(&known["seen"][who]["conversations"]);
    let mut found = Vec::new();
    for archived in [false, true] {
        let request = json!({ "type": "list_conversations", "limit": 500, "archived": archived });
        for row in array(&client.ask(request)["conversations"]) {
            if !found.contains(row) {
                found.push(row.clone());
            }
        }
    }
    assert_eq!(found.len(), mine.len(), "{who}");
    for row in &found {
        let marks = &mine[row["id"].as_str().unwrap()];
        for mark in MARKS {
            assert_eq!(row.get(mark), marks.get(mark), "{who}: {mark} of {row:#}");
        }
    }
    for (id, conversation) in object(&known["conversations"]) {
        let row = found.iter().find(|row| row["id"] == **id);
        let mut about = conversation.clone();
        let about = about.as_object_mut().unwrap();
        let shown = about.remove("messages").unwrap();
        let hidden = about.remove("hidden");
        for (messages, is_hidden) in [(Some(shown), false), (hidden, true)] {
            let request = json!({
                "type": "get_messages", "conversation_id": id, "limit": 500, "hidden": is_hidden,
            });
            if !mine.contains_key(id) {
                assert_eq!(client.refused(request), "not_found", "{who}: {id}");
            } else if let Some(messages) = messages {
                let found = client.ask(request)["messages"].take();
                assert!(
                    holds(&found, &messages),
                    "{who}: {found:#}, not {messages:#}"
                );
            }
        }
        if mine.contains_key(id) {
            let (row, about) = (row.expect("it is listed"), Value::Object(about.clone()));
            assert!(holds(row, &about), "{who}: {row:#}, not {about:#}");
        }
    }
}

/// The same for what lies in conversations and is asked for by its id.
fn check_parts(who: &str, client: &mut Client, known: &Value) {
    let mine = object(&known["seen"][who]["conversations"]);
    for (kind, command, id) in [
        ("turns", "get_turn", "turn_id"),
        ("attachments", "get_attachment", "attachment_id"),
    ] {
        for (part, about) in object(&known[kind]) {
            let mut request = json!({ "type": command });
            request[id] = json!(part);
            if !mine.contains_key(about["conversation_id"].as_str().unwrap()) {
                assert_eq!(client.refused(request), "not_found", "{who}: {part}");
                continue;
            }
            let found = client.ask(request);
            match kind {
                "turns" => assert!(holds(&found, about), "{who}: {found:#}, not {about:#}"),
                _ => assert_eq!(found["data"], about["content"], "{who}: {part}"),
            }
        }
    }
}

#[test]
fn who_may_see_a_thing_finds_it_and_nobody_else_does() {
    let frozen = Frozen::copy("schema-32");
    let known = &frozen.known;
    let program = frozen.serve();
    let mut admin = client(&program, frozen.token("admin"));
    settle(&mut admin);
    wait_for_link(&mut admin);

    assert_eq!(object(&known["seen"]).len(), 10);
    assert!(object(&known["conversations"]).len() > 40);
    for (who, seen) in object(&known["seen"]) {
        let mut client = client(&program, frozen.token(who));
        check_conversations(who, &mut client, known);
        check_parts(who, &mut client, known);
        for (kind, id) in [("memories", "id"), ("schedules", "schedule_id")] {
            let request = json!({ "type": format!("list_{kind}") });
            let found = rows(&mut client, &request, kind);
            check_rows(who, &found, id, &seen[kind], &known[kind]);
        }
        let found = rows(
            &mut client,
            &json!({ "type": "list_approvals" }),
            "approvals",
        );
        assert_eq!(
            found.as_array().map(Vec::len),
            seen["approvals"].as_array().map(Vec::len)
        );
        let mut asked = seen["approvals"].clone();
        for one in asked.as_array_mut().into_iter().flatten() {
            // It is said in other words since.
            one.as_object_mut().unwrap().remove("reason");
        }
        assert!(holds(&found, &asked), "{who}: {found:#}");
        let found = rows(&mut client, &json!({ "type": "list_skills" }), "skills");
        assert_eq!(found, seen["skills"], "{who}");
        let found = rows(&mut client, &json!({ "type": "list_lists" }), "lists");
        let Some(lists) = found.as_array() else {
            assert_eq!(found, seen["lists"], "{who}");
            continue;
        };
        for list in lists {
            let items = client.ask(json!({ "type": "get_list", "list": list["list"] }));
            assert_eq!(
                items["items"],
                known["lists"][list["list"].as_str().unwrap()]
            );
        }
        assert_eq!(lists.len(), array(&seen["lists"]).len());
        let found = client.ask(json!({ "type": "search_messages", "query": "no", "limit": 500 }));
        assert!(!array(&found["messages"]).is_empty(), "{who}");
        for message in array(&found["messages"]) {
            let conversation = message["conversation_id"].as_str().unwrap();
            assert!(
                object(&seen["conversations"]).contains_key(conversation),
                "{who}"
            );
        }
    }

    // What is the whole household's.
    for (command, data) in object(&known["household"]) {
        let mut request = json!({ "type": command });
        if command == "list_tokens" {
            request["sessions"] = json!(true);
        }
        let found = admin.ask(request);
        assert!(holds(&found, data), "{found:#}, not {data:#}");
    }
    let found = admin.ask(json!({ "type": "list_deliveries", "limit": 200 }));
    assert!(
        holds(&found["deliveries"], &known["deliveries"]),
        "{found:#}"
    );
    let found = admin.ask(json!({ "type": "server_info" }));
    assert!(holds(&found, &known["server"]), "{found:#}");
    assert_eq!(program.signal("TERM"), Some(0));
    check_integrity(&look_into(frozen.folder.path()));

    // What the tools wrote, and what the terminal says.
    let file = fs::read_to_string(frozen.folder.path().join("files/tools.txt"));
    assert_eq!(file.unwrap(), "spade\nrake\n");
    let usage = frozen.run(&["usage", "--json"]);
    let usage: Value = serde_json::from_slice(&usage.stdout).unwrap();
    assert!(holds(&usage, &known["usage"]), "{usage:#}");
    for (what, kind) in [("memory", "memories"), ("schedule", "schedules")] {
        let listed = frozen.run(&[what, "list"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        for id in object(&known[kind]).keys() {
            assert!(listed.contains(id), "{id}: {listed}");
        }
    }
    assert!(frozen.receiver.callbacks().is_empty(), "nothing was due");
}

#[test]
fn everybody_of_schema_32_may_do_what_they_could() {
    let frozen = Frozen::copy("schema-32");
    let known = &frozen.known;
    let program = frozen.serve();
    for (user, password) in object(&known["passwords"]) {
        let answer = sign_in(&program, user, password.as_str().unwrap());
        assert_eq!(answer.status, 200, "{user}: {answer:?}");
    }
    for (user, session) in object(&known["sessions"]) {
        let mut client = client(&program, session.as_str().unwrap());
        assert_eq!(
            client.refused(json!({ "type": "list_users" })),
            "unauthorized",
            "{user}"
        );
    }
    for (user, invitation) in object(&known["invitations"]) {
        let body = json!({ "invitation": invitation, "password": "chosen after the upgrade" });
        let answer = post(program.address, "/auth", &[], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["data"]["user"], **user);
    }

    // A repeated key joins the turn that it began.
    let mut anna = client(&program, frozen.token("anna"));
    let greeting = "hello from the garden 🌱, grüß Gott";
    let repeated = anna.ask(json!({
        "type": "chat", "message": greeting, "audience": "private", "surface": "page",
        "idempotency_key": "anna-1",
    }));
    assert_eq!(repeated["response"], format!("Noted: {greeting}"));

    // A token that is narrowed stays so.
    let chat = |audience: &str| json!({ "type": "chat", "message": "hello", "audience": audience });
    let mut kitchen = client(&program, frozen.token("anna, household"));
    assert_eq!(kitchen.refused(chat("private")), "unauthorized");
    kitchen.ask(chat("household"));
    let mut display = client(&program, frozen.token("ben, viewer"));
    assert_eq!(display.refused(chat("household")), "unauthorized");
    let mut lights = client(&program, frozen.token("anna, tools"));
    let tools = lights.ask(json!({ "type": "list_tools" }))["tools"].take();
    let names: BTreeSet<&str> = array(&tools)
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(["current_time", "lists"]));
    let asked_for = |person: &str| {
        let bearer = format!("Bearer {}", frozen.token("admin, for others"));
        let headers = [("authorization", &*bearer), ("x-hearth-user", person)];
        let messages = json!([{ "role": "user", "content": "hello" }]);
        let body = json!({ "model": "hearth", "messages": messages });
        post(program.address, "/v1/chat/completions", &headers, &body).status
    };
    assert_eq!([asked_for("leo"), asked_for("ben")], [200, 403]);

    // The questions that waited are answered, and their turns go on.
    let mut admin = client(&program, frozen.token("admin"));
    let approvals = admin.ask(json!({ "type": "list_approvals" }))["approvals"].take();
    assert_eq!(array(&approvals).len(), 2);
    for (approval, answer) in array(&approvals).iter().zip(["approve", "deny"]) {
        admin.ask(json!({ "type": answer, "approval_id": approval["approval_id"] }));
        let who = approval["requested_by"].as_str().unwrap();
        let mut asker = client(&program, frozen.token(who));
        eventually("the turn is done", || {
            let view = asker.ask(json!({ "type": "get_turn", "turn_id": approval["turn_id"] }));
            (view["state"] == "done").then_some(())
        });
    }
}

#[test]
fn callbacks_of_schema_32_go_out_in_their_order_and_under_their_ids() {
    let frozen = Frozen::copy("schema-32");
    let program = frozen.serve();
    let mut admin = client(&program, frozen.token("admin"));
    let ids_of = |state: &str| -> Vec<&str> {
        let rows = array(&frozen.known["deliveries"]).iter().rev();
        rows.filter(|row| row["state"] == state)
            .map(|row| row["delivery_id"].as_str().unwrap())
            .collect()
    };
    let (pending, held, dead) = (ids_of("pending"), ids_of("held"), ids_of("dead"));
    assert_eq!([pending.len(), held.len(), dead.len()], [1, 2, 1]);
    let expected = [pending[0], held[0], held[1], dead[0]];
    for (sent_again, count) in [(pending[0], 3), (dead[0], 4)] {
        admin.ask(json!({ "type": "retry_delivery", "delivery_id": sent_again }));
        let callbacks = frozen.receiver.wait_for(count);
        let came: Vec<&str> = callbacks
            .iter()
            .map(|callback| callback.header("webhook-id").unwrap())
            .collect();
        assert_eq!(came, expected[..count]);
    }

    // A repeated key begins no second turn. It is a repeat where each byte is the same.
    let headers = [
        SECRET,
        ("idempotency-key", "ring-1"),
        ("content-type", "application/json"),
    ];
    let body = br#"{"message": "remember that the postman rings twice", "user_id": "door", "conversation_id": "front-door"}"#;
    let answer = exchange(program.address, "POST", "/webhook/doorbell", &headers, body);
    assert_eq!(answer.status, 202);
    let turn = answer.json()["data"]["turn_id"].take();
    assert!(object(&frozen.known["turns"]).contains_key(turn.as_str().unwrap()));
}

//! A turn that waits for permission holds up nobody: the messages after it are
//! answered, and its own reply comes when it is decided, naming its question.

use std::time::Duration;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::Home;
use support::http::post;
use support::model::{Act, Model};
use support::program::{printed, run};
use support::receiver::Receiver;

/// A model that calls the tool `switch` when it is asked to switch something, says
/// that it did or did not, and answers anything else at once.
fn switching() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        match last["role"] == "tool" {
            true if text.contains("switched") => Act::say("It is switched."),
            true => Act::say("I may not switch it."),
            false if text.contains("switch") => Act::call("switch", json!({})),
            false => Act::say("At once."),
        }
    })
}

fn with_switch(model: &Model, more: Value) -> Value {
    let mut config = model.config_with(json!({
        "permission_mode": "ask",
        "tools": { "custom": [{
            "name": "switch", "description": "Switches the light.", "parameters": {},
            "command": ["/bin/sh", "-c", "echo switched >> switched; echo switched"],
        }] },
    }));
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// With a webhook account `ci`, too.
fn with_account(model: &Model, receiver: &Receiver, limits: Value) -> Value {
    with_switch(
        model,
        json!({
            "limits": limits,
            "channels": [
                { "name": "lan", "type": "tcp", "port": 0 },
                { "name": "hooks", "type": "webhook", "accounts": {
                    "ci": { "incoming_path": "/webhook/ci", "outgoing_url": receiver.url() },
                } },
            ],
        }),
    )
}

/// How often the tool has taken effect.
fn switched(home: &Home) -> usize {
    let path = home.folder.path().join("files/switched");
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// The approvals that wait, once there are this many.
fn waiting(client: &mut Client, count: usize) -> Vec<Value> {
    eventually("approvals wait", || {
        let list = client.ask(json!({ "type": "list_approvals" }));
        let list = list["approvals"].as_array().unwrap().clone();
        (list.len() == count).then_some(list)
    })
}

fn approve(client: &mut Client, approval: &Value) {
    let id = &approval["approval_id"];
    client.ask(json!({ "type": "approve", "approval_id": id, "remember": "once" }));
}

/// The turn, once it has ended.
fn ended(client: &mut Client, turn: &Value) -> Value {
    eventually("the turn has ended", || {
        let view = client.ask(json!({ "type": "get_turn", "turn_id": turn }));
        ["done", "failed", "cancelled"]
            .contains(&view["state"].as_str().unwrap())
            .then_some(view)
    })
}

fn messages(client: &mut Client, conversation: &Value) -> Vec<Value> {
    let page = client.ask(json!({ "type": "get_messages", "conversation_id": conversation }));
    page["messages"].as_array().unwrap().clone()
}

/// The texts of messages, with a star before those that name their question.
fn texts(messages: &[Value]) -> Vec<String> {
    let text = |message: &Value| {
        let star = if message["in_reply_to"].is_null() {
            ""
        } else {
            "*"
        };
        format!("{star}{}", message["content"].as_str().unwrap())
    };
    messages.iter().map(text).collect()
}

/// A conversation and a message in it that waits for permission.
fn wait_in_conversation(client: &mut Client, id: &str) -> Value {
    let conversation = client.chat("hello")["conversation_id"].clone();
    client.send(&json!({
        "type": "chat", "message": "switch it", "conversation_id": conversation, "id": id,
    }));
    conversation
}

#[test]
fn the_messages_after_one_that_waits_are_answered_and_its_reply_comes_late() {
    let model = switching();
    let home = Home::start(with_switch(&model, json!({})));
    let (mut admin, mut client) = (home.admin(), home.admin());
    let conversation = wait_in_conversation(&mut client, "first");
    let asked = waiting(&mut admin, 1).remove(0);
    let question = messages(&mut admin, &conversation).pop().unwrap();
    admin.ask(json!({ "type": "subscribe", "events": ["chat.done", "message.created"] }));

    let chat = json!({ "type": "chat", "message": "and?", "conversation_id": conversation });
    let second = client.ask(chat.clone());
    assert_eq!(second["response"], "At once.");
    assert!(second.get("in_reply_to").is_none(), "{second}");
    assert!(admin.event("chat.done").get("in_reply_to").is_none());
    assert_eq!(switched(&home), 0);

    admin.send(&json!({
        "type": "approve", "approval_id": asked["approval_id"], "remember": "once", "id": "a",
    }));
    let first = client.response();
    assert_eq!(
        (&first["id"], &first["status"]),
        (&json!("first"), &json!("ok"))
    );
    let first = &first["data"];
    assert_eq!(first["response"], "It is switched.");
    assert_eq!(first["in_reply_to"], question["id"], "{first}");
    let created = admin.event("message.created");
    assert_eq!(
        created["message"]["in_reply_to"], question["id"],
        "{created}"
    );
    let done = admin.event("chat.done");
    assert_eq!(done["in_reply_to"], question["id"], "{done}");
    let turn = client.ask(json!({ "type": "get_turn", "turn_id": first["turn_id"] }));
    assert_eq!(turn["in_reply_to"], question["id"], "{turn}");
    assert_eq!(switched(&home), 1);
    assert_eq!(
        texts(&messages(&mut client, &conversation)),
        [
            "hello",
            "At once.",
            "switch it",
            "and?",
            "At once.",
            "*It is switched."
        ]
    );

    // What the model was shown: nothing of the call that waited, and each request
    // begins as the one before it.
    client.ask(chat);
    let requests = model.requests();
    let shown: Vec<&Vec<Value>> = requests
        .iter()
        .map(|request| request["messages"].as_array().unwrap())
        .collect();
    let [_, _, meanwhile, resumed, last] = shown[..] else {
        panic!("{} requests", shown.len());
    };
    assert!(!json!(meanwhile).to_string().contains("tool_calls"));
    let note = meanwhile.last().unwrap()["content"].as_str().unwrap();
    assert!(note.contains("wait for permission"), "{note}");
    // The first exchange. The prompt explains the tool's text, once there is one.
    assert_eq!(resumed[1..3], meanwhile[1..3]);
    assert_eq!(last[..resumed.len()], resumed[..], "the cached beginning");
    assert_eq!(last.len(), resumed.len() + 2);
}

#[test]
fn a_client_without_ids_gets_its_answers_in_order() {
    for open in [Client::websocket, Client::lines] {
        let model = switching();
        let home = Home::start(with_switch(&model, json!({})));
        let (mut admin, mut client) = (home.admin(), open(home.address()));
        client.authenticate(&home.tokens.admin);
        let conversation = client.chat("hello")["conversation_id"].clone();
        admin.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));
        for message in ["switch it", "and?"] {
            client.send(&json!({
                "type": "chat", "message": message, "conversation_id": conversation,
            }));
        }
        client.send(&json!({ "type": "ping" }));
        let second = admin.event("chat.done");
        assert!(second.get("in_reply_to").is_none(), "{second}");
        let asked = waiting(&mut admin, 1).remove(0);
        approve(&mut admin, &asked);
        let answers: Vec<Value> = (0..3).map(|_| client.response()["data"].clone()).collect();
        assert_eq!(answers[0]["response"], "It is switched.", "{answers:?}");
        assert_eq!(answers[0]["turn_id"], asked["turn_id"]);
        assert_eq!(answers[1]["response"], "At once.", "{answers:?}");
        assert!(answers[2]["time"].is_string(), "{answers:?}");
    }
}

#[test]
fn callbacks_go_out_as_the_replies_come_and_name_what_was_overtaken() {
    let (model, receiver) = (switching(), Receiver::start());
    let mut home = Home::start(with_account(&model, &receiver, json!({})));
    let send = |home: &Home, message: &str, headers: &[(&str, &str)]| {
        let body = json!({ "message": message, "conversation_id": "hall" });
        post(home.address(), "/webhook/ci", headers, &body)
    };
    let first = send(&home, "switch it", &[]);
    assert_eq!(first.status, 202);
    let first = first.json()["data"].clone();
    assert_eq!(send(&home, "and?", &[]).status, 202);
    let second = receiver.wait_for(1).remove(0);
    assert_eq!(
        second.body,
        json!({ "message": "At once.", "conversation_id": "hall" })
    );
    // Whoever waits for an answer gets it, too.
    let answered = send(&home, "now?", &[("prefer", "wait=30")]);
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(answered.json()["data"]["message"], "At once.");

    home.restart();
    let mut admin = home.admin();
    let asked = waiting(&mut admin, 1).remove(0);
    assert_eq!(asked["turn_id"], first["turn_id"]);
    assert_eq!(send(&home, "later?", &[]).status, 202);
    receiver.wait_for(2);
    let question = messages(&mut admin, &asked["conversation_id"]).remove(0);
    approve(&mut admin, &asked);
    let late = receiver.wait_for(3).pop().unwrap();
    assert_eq!(
        late.body,
        json!({
            "message": "It is switched.", "conversation_id": "hall",
            "in_reply_to": question["id"], "turn_id": first["turn_id"],
        })
    );
    assert_eq!(switched(&home), 1);
}

#[test]
fn several_wait_across_a_restart_and_continue_as_they_are_decided() {
    let model = switching();
    let mut home = Home::start(with_switch(&model, json!({})));
    let mut client = home.admin();
    let conversation = wait_in_conversation(&mut client, "1");
    for number in 2..4 {
        client.send(&json!({
            "type": "chat", "message": "switch it", "conversation_id": conversation,
            "id": number, "idempotency_key": format!("key {number}"),
        }));
    }
    waiting(&mut home.admin(), 3);
    home.restart();
    let (mut client, mut admin) = (home.admin(), home.admin());
    let asked = waiting(&mut admin, 3);
    let chat = json!({ "type": "chat", "message": "and?", "conversation_id": conversation });
    assert_eq!(client.ask(chat)["response"], "At once.");
    // The repeat of a request joins the turn that waits.
    client.send(&json!({
        "type": "chat", "message": "switch it", "conversation_id": conversation,
        "id": "again", "idempotency_key": "key 2",
    }));
    approve(&mut admin, &asked[2]);
    ended(&mut admin, &asked[2]["turn_id"]);
    admin.ask(json!({ "type": "deny", "approval_id": asked[0]["approval_id"] }));
    ended(&mut admin, &asked[0]["turn_id"]);
    approve(&mut admin, &asked[1]);
    let again = client.response();
    assert_eq!(again["id"], "again");
    assert_eq!(again["data"]["turn_id"], asked[1]["turn_id"], "{again}");
    let shown = messages(&mut client, &conversation);
    let late = [
        "*It is switched.",
        "*I may not switch it.",
        "*It is switched.",
    ];
    assert_eq!(texts(&shown)[7..], late);
    for (reply, question) in [(7, 4), (8, 2), (9, 3)] {
        assert_eq!(
            shown[reply]["in_reply_to"], shown[question]["id"],
            "{reply}"
        );
        assert_eq!(
            shown[reply]["turn_id"], shown[question]["turn_id"],
            "{reply}"
        );
    }
    assert_eq!(switched(&home), 2);
}

#[test]
fn a_turn_that_waits_can_be_cancelled_and_expires() {
    let model = switching();
    let home = Home::start(with_switch(&model, json!({})));
    let (mut admin, mut client) = (home.admin(), home.admin());
    let conversation = wait_in_conversation(&mut client, "1");
    waiting(&mut admin, 1);
    client.send(&json!({
        "type": "chat", "message": "switch it", "conversation_id": conversation, "id": "2",
    }));
    let asked = waiting(&mut admin, 2);
    let delete = json!({ "type": "delete_conversation", "conversation_id": conversation });
    assert_eq!(admin.refused(delete.clone()), "invalid_request");
    let cancelled = admin.ask(json!({ "type": "cancel", "turn_id": asked[0]["turn_id"] }));
    assert_eq!(cancelled["state"], "cancelled");
    let response = client.response();
    assert_eq!(response["id"], "1");
    assert_eq!(response["data"]["state"], "cancelled");
    // Nobody can answer for it any more, and the other one still waits.
    let late = json!({
        "type": "approve", "approval_id": asked[0]["approval_id"], "remember": "once",
    });
    assert_eq!(admin.refused(late), "invalid_request");
    assert_eq!(admin.refused(delete.clone()), "invalid_request");
    waiting(&mut admin, 1);
    home.server()
        .advance_clock(Duration::from_secs(24 * 3600 + 1));
    let response = client.response();
    assert_eq!(response["id"], "2");
    assert_eq!(response["data"]["response"], "I may not switch it.");
    assert_eq!(switched(&home), 0);
    admin.ask(delete);
}

#[test]
fn too_many_that_wait_are_refused_and_repeats_are_not() {
    let (model, receiver) = (switching(), Receiver::start());
    let limits = json!({ "waiting_turns_per_conversation": 2 });
    let home = Home::start(with_account(&model, &receiver, limits));
    let (mut admin, mut client) = (home.admin(), home.admin());
    let conversation = client.chat("hello")["conversation_id"].clone();
    let chat = |number: u32| {
        json!({
            "type": "chat", "message": "switch it", "conversation_id": conversation,
            "id": number, "idempotency_key": format!("key {number}"),
        })
    };
    for number in 1..=2 {
        client.send(&chat(number));
        waiting(&mut admin, number as usize);
    }
    let third = json!({ "type": "chat", "message": "and?", "conversation_id": conversation });
    // The second's question is asked before its turn gives up its place.
    let refused = eventually("the second waits, too", || {
        client.send(&third);
        Some(client.response()).filter(|response| response["code"] == "rate_limited")
    });
    let why = refused["error"].as_str().unwrap();
    assert!(
        why.contains("2 messages wait in this conversation for permission"),
        "{why}"
    );
    assert!(refused["retry_after"].as_u64().is_some(), "{refused}");
    client.send(&chat(1));
    let asked = waiting(&mut admin, 2);
    approve(&mut admin, &asked[0]);
    // The first and its repeat.
    for _ in 0..2 {
        let response = client.response();
        assert_eq!(response["id"], 1, "{response}");
        assert_eq!(response["data"]["turn_id"], asked[0]["turn_id"]);
    }
    assert_eq!(client.ask(third)["response"], "At once.");

    let send = |message: &str| {
        let body = json!({ "message": message, "conversation_id": "hall" });
        post(home.address(), "/webhook/ci", &[], &body)
    };
    for number in 2..=3 {
        assert_eq!(send("switch it").status, 202);
        waiting(&mut admin, number);
    }
    let refused = eventually("the second waits, too", || {
        Some(send("and?")).filter(|response| response.status == 429)
    });
    assert!(refused.header("retry-after").is_some());
}

#[test]
fn a_late_reply_is_exported_and_imported_as_one() {
    let model = switching();
    let mut home = Home::start(with_switch(&model, json!({})));
    let (mut admin, mut client) = (home.admin(), home.admin());
    let conversation = wait_in_conversation(&mut client, "first");
    let asked = waiting(&mut admin, 1).remove(0);
    let chat = json!({ "type": "chat", "message": "and?", "conversation_id": conversation });
    admin.ask(chat.clone());
    approve(&mut admin, &asked);
    client.response();
    let expected = [
        "hello",
        "At once.",
        "switch it",
        "and?",
        "At once.",
        "*It is switched.",
    ];
    let before = messages(&mut admin, &conversation);
    assert_eq!(texts(&before), expected);
    let by_client = run(
        home.folder.path(),
        &["account", "export", "--token", &home.tokens.admin],
    );
    drop((admin, client));
    home.stop();
    let exported = run(home.folder.path(), &["export", "--all"]);
    for output in [exported, by_client] {
        assert!(output.status.success(), "{}", printed(&output));
        let mut other = Home::start(with_switch(&model, json!({})));
        let file = other.folder.path().join("export.jsonl");
        std::fs::write(&file, output.stdout).unwrap();
        other.stop();
        let imported = run(other.folder.path(), &["import", file.to_str().unwrap()]);
        assert!(imported.status.success(), "{}", printed(&imported));
        other.restart();
        let after = messages(&mut other.admin(), &conversation);
        assert_eq!(texts(&after), expected);
        assert_eq!(after[5]["in_reply_to"], after[2]["id"]);
        // The model is shown the reply with its question, too.
        other.admin().ask(chat.clone());
        let request = model.requests().pop().unwrap();
        let shown = request["messages"].as_array().unwrap();
        let shown: Vec<&str> = shown
            .iter()
            .map(|message| message["content"].as_str().unwrap_or_default())
            .collect();
        let late = shown
            .iter()
            .position(|text| *text == "It is switched.")
            .unwrap();
        assert!(shown[late - 1].ends_with("switch it"), "{shown:?}");
    }
}

#[test]
fn questions_are_answered_when_their_conversation_goes_with_its_owner() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        match last["role"] != "tool" && text.contains("switch") {
            true => Act::call("switch", json!({})),
            false if text.contains("think") => Act::Stall("Well.".to_owned()),
            false => Act::say("At once."),
        }
    });
    let home = Home::start(with_switch(&model, json!({})));
    let cleo = home.add_person("cleo", store::UserRole::User);
    let (mut owner, mut reader) = (home.websocket(&home.tokens.user), home.websocket(&cleo));
    let began = owner.ask(json!({
        "type": "chat", "message": "hello", "audience": ["cleo"],
    }));
    let id = began["conversation_id"].clone();
    let chat = |message: &str| json!({ "type": "chat", "message": message, "conversation_id": id, "id": message });
    // One that waits for permission, of a client without ids.
    let mut waits = Client::lines(home.address());
    waits.authenticate(&cleo);
    let mut nameless = chat("switch it");
    nameless.as_object_mut().unwrap().remove("id");
    waits.send(&nameless);
    waiting(&mut home.admin(), 1);
    waits.send(&json!({ "type": "ping" }));
    // One that runs, and one that is queued.
    let before = model.requests().len();
    reader.send(&chat("think"));
    model.wait_for_requests(before + 1);
    reader.send(&chat("and?"));
    reader.send(&json!({ "type": "ping", "id": "p" }));
    assert_eq!(reader.response()["id"], "p");
    owner.ask(json!({ "type": "delete_account", "password": support::home::PASSWORD }));
    let lost = |response: Value| {
        assert_eq!(response["code"], "not_found", "{response}");
        let words = format!("there is no conversation {}", id.as_str().unwrap());
        assert_eq!(response["error"], words);
        response["id"].clone()
    };
    lost(waits.response());
    assert!(waits.response()["data"]["time"].is_string());
    let mut answered = [lost(reader.response()), lost(reader.response())].map(|id| id.to_string());
    answered.sort();
    assert_eq!(answered, ["\"and?\"", "\"think\""]);
    model.release();
}

#[test]
fn later_messages_can_be_changed_meanwhile_and_its_reply_stays_with_it() {
    let model = switching();
    let home = Home::start(with_switch(&model, json!({})));
    let (mut admin, mut client) = (home.admin(), home.admin());
    let conversation = wait_in_conversation(&mut client, "first");
    let asked = waiting(&mut admin, 1).remove(0);
    let say = |client: &mut Client, text: &str, replaces: Value| {
        client.ask(json!({
            "type": "chat", "message": text, "conversation_id": conversation, "replaces": replaces,
        }))
    };
    say(&mut admin, "two", Value::Null);
    let find = |client: &mut Client, text: &str| {
        let messages = messages(client, &conversation);
        let found = messages.iter().find(|message| message["content"] == text);
        found.unwrap()["id"].clone()
    };
    let two = find(&mut admin, "two");
    let three = say(&mut admin, "three", two.clone());
    assert_eq!(three["response"], "At once.");
    // Not the one that waits itself, nor what is before it.
    for text in ["switch it", "hello"] {
        let message = find(&mut admin, text);
        admin.send(&json!({ "type": "delete_message", "message_id": message }));
        let refused = admin.response()["error"].to_string();
        assert!(refused.contains("unfinished turn"), "{text}: {refused}");
    }
    approve(&mut admin, &asked);
    client.response();
    let all = [
        "hello",
        "At once.",
        "switch it",
        "three",
        "At once.",
        "*It is switched.",
    ];
    assert_eq!(texts(&messages(&mut admin, &conversation)), all);
    // The late reply is not the other version's.
    let three = find(&mut admin, "three");
    admin.ask(json!({ "type": "select_version", "message_id": two }));
    let shown = texts(&messages(&mut admin, &conversation));
    assert!(shown.contains(&"*It is switched.".to_owned()), "{shown:?}");
    admin.ask(json!({ "type": "delete_message", "message_id": three }));
    admin.ask(json!({ "type": "delete_message", "message_id": two }));
    let left = ["hello", "At once.", "switch it", "*It is switched."];
    let mut shown = texts(&messages(&mut admin, &conversation));
    shown.retain(|text| text != "*At once.");
    assert_eq!(shown, left);
}

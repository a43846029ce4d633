//! What the owner is asked, who hears of it, what is remembered, and what a
//! webhook account may not do.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::Home;
use support::http::post;
use support::model::{Act, Model, whole};
use support::receiver::Receiver;

fn asking(model: &Model, more: Value) -> Home {
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    Home::start(config)
}

/// A model that makes this call once in every turn, and then says "done".
fn calling(tool: &'static str, arguments: Value) -> Model {
    Model::start(move |request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("done"),
            false => Act::call(tool, arguments.clone()),
        }
    })
}

fn watch(client: &mut Client) {
    client.ask(json!({
        "type": "subscribe", "events": ["approval.requested", "approval.resolved"],
    }));
}

#[test]
fn a_question_says_in_words_what_would_run() {
    let tools = json!({ "run_command": { "enabled": true } });
    for (tool, arguments, says) in [
        (
            "write_file",
            json!({ "path": "notes.txt", "content": "hello" }),
            "The assistant wants to write the file notes.txt (5 bytes): hello",
        ),
        (
            "web_fetch",
            json!({ "url": "https://example.org/a" }),
            "The assistant wants to fetch https://example.org/a",
        ),
        (
            "run_command",
            json!({ "command": "ls -l\nrm x" }),
            "The assistant wants to run the command: ls -l‹↵›rm x",
        ),
        (
            "remember",
            json!({ "content": "The cat is Ada." }),
            "The assistant wants to remember: The cat is Ada.",
        ),
    ] {
        let model = calling(tool, arguments.clone());
        let home = asking(&model, json!({ "tools": tools }));
        let mut client = home.admin();
        watch(&mut client);
        client.send(&json!({ "type": "chat", "message": "go", "id": 1 }));
        let asked = client.event("approval.requested");
        assert_eq!(asked["reason"], says);
        assert_eq!(asked["arguments"], arguments);
        client.send(&json!({ "type": "deny", "approval_id": asked["approval_id"], "id": 2 }));
        while client.response()["id"] != 1 {}
        let result = model.requests()[1]["messages"].to_string();
        assert!(
            result.contains("the owner did not allow this (denied by admin)"),
            "{result}"
        );
    }
}

#[test]
fn what_is_remembered_holds_as_long_as_it_says() {
    let model = calling("remember", json!({ "content": "x" }));
    let home = asking(&model, json!({}));
    let mut client = home.admin();
    watch(&mut client);
    let mut conversation: Option<Value> = None;
    // Says something and returns whether the owner was asked, answering so.
    let mut turn = |client: &mut Client, fresh: bool, remember: &str| {
        let mut chat = json!({ "type": "chat", "message": "remember x", "id": "chat" });
        if let Some(known) = conversation.as_ref().filter(|_| !fresh) {
            chat["conversation_id"] = known.clone();
        }
        client.send(&chat);
        let mut asked = false;
        loop {
            let message = client.receive();
            if message["event"] == "approval.requested" {
                asked = true;
                client.send(&json!({
                    "type": "approve", "approval_id": message["approval_id"], "remember": remember,
                    "id": "yes",
                }));
            } else if message["id"] == "chat" {
                assert_eq!(message["data"]["response"], "done", "{message}");
                conversation = Some(message["data"]["conversation_id"].clone());
                return asked;
            }
        }
    };
    assert!(turn(&mut client, true, "once"));
    assert!(turn(&mut client, false, "conversation"), "once was once");
    assert!(
        !turn(&mut client, false, "-"),
        "for the rest of the conversation"
    );
    assert!(turn(&mut client, true, "always"), "another conversation");
    assert!(!turn(&mut client, true, "-"), "always");
    let shown = client.ask(json!({ "type": "get_config" }));
    assert_eq!(shown["tool_permissions"], json!({ "remember": "allow" }));
    let saved = fs::read_to_string(home.folder.path().join("config.json")).unwrap();
    let saved: Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(saved["tool_permissions"]["remember"], "allow");
}

/// A server with one account, narrowed by `account`.
fn webhook_home(model: &Model, receiver: &Receiver, account: Value, mode: &str) -> Home {
    let mut ci = json!({ "incoming_path": "/webhook/ci", "outgoing_url": receiver.url() });
    for (key, value) in account.as_object().unwrap() {
        ci[key] = value.clone();
    }
    let mut config = model.config();
    config["permission_mode"] = json!(mode);
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "ci": ci } },
    ]);
    Home::start(config)
}

fn send(home: &Home, message: &str) {
    let answer = post(
        home.address(),
        "/webhook/ci",
        &[],
        &json!({ "message": message }),
    );
    assert_eq!(answer.status, 202, "{answer:?}");
}

#[test]
fn a_webhook_s_question_reaches_every_owner_and_its_answer_the_caller() {
    let model = calling("remember", json!({ "content": "x" }));
    let receiver = Receiver::start();
    let home = webhook_home(&model, &receiver, json!({}), "ask");
    let (mut one, mut two) = (home.admin(), home.websocket(&home.tokens.admin));
    let mut lines = Client::lines(home.address());
    lines.authenticate(&home.tokens.admin);
    for client in [&mut one, &mut two, &mut lines] {
        watch(client);
    }
    send(&home, "remember x");
    let asked = one.event("approval.requested");
    for client in [&mut two, &mut lines] {
        assert_eq!(client.event("approval.requested"), asked);
    }
    assert!(receiver.callbacks().is_empty());
    // Whoever comes later finds it in the list.
    let listed = home.admin().ask(json!({ "type": "list_approvals" }));
    assert_eq!(listed["approvals"][0]["approval_id"], asked["approval_id"]);
    two.send(&json!({ "type": "approve", "approval_id": asked["approval_id"] }));
    for client in [&mut one, &mut lines] {
        assert_eq!(client.event("approval.resolved")["decision"], "approved");
    }
    assert_eq!(receiver.wait_for(1)[0].body["message"], "done");
    assert!(
        model.requests()[1]["messages"]
            .to_string()
            .contains("Remembered as")
    );
}

#[test]
fn a_webhook_s_question_that_nobody_answers_is_denied() {
    let model = calling("remember", json!({ "content": "x" }));
    let receiver = Receiver::start();
    let home = webhook_home(&model, &receiver, json!({}), "ask");
    let mut client = home.admin();
    watch(&mut client);
    send(&home, "remember x");
    client.event("approval.requested");
    home.server()
        .advance_clock(Duration::from_secs(24 * 3600 + 1));
    assert_eq!(client.event("approval.resolved")["decision"], "expired");
    receiver.wait_for(1);
    let told = model.requests()[1]["messages"].to_string();
    assert!(
        told.contains("the owner did not allow this (expired by timeout)"),
        "{told}"
    );
}

#[test]
fn a_webhook_account_narrows_what_may_be_done() {
    let offered = |model: &Model| -> Vec<String> {
        let request = model.requests()[0].clone();
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    };
    let receiver = Receiver::start();

    // Only what is listed exists, whatever else is allowed.
    let model = calling("remember", json!({ "content": "x" }));
    let account = json!({ "tools": ["recall", "current_time"] });
    let home = webhook_home(&model, &receiver, account, "allow");
    send(&home, "remember x");
    receiver.wait_for(1);
    assert_eq!(offered(&model), ["current_time", "recall"]);
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("not permitted here"), "{told}");
    assert_eq!(
        home.admin().ask(json!({ "type": "list_memories" }))["memories"],
        json!([])
    );

    // Nothing runs, and nothing is offered.
    let model = calling("remember", json!({ "content": "x" }));
    let home = webhook_home(
        &model,
        &receiver,
        json!({ "permission_mode": "deny" }),
        "allow",
    );
    send(&home, "remember x");
    receiver.wait_for(2);
    assert!(offered(&model).is_empty());

    // What the household need not ask for, the account must.
    let model = calling("remember", json!({ "content": "x" }));
    let home = webhook_home(
        &model,
        &receiver,
        json!({ "permission_mode": "ask" }),
        "allow",
    );
    send(&home, "remember x");
    let mut admin = home.admin();
    let waiting = eventually("the question is asked", || {
        let listed = admin.ask(json!({ "type": "list_approvals" }));
        listed["approvals"].get(0).cloned()
    });
    assert_eq!(waiting["tool"], "remember");
    // And the household itself is not asked.
    assert_eq!(admin.chat("remember x")["response"], "done");
}

/// What was allowed for one call holds for no other, whatever ids the model gives:
/// these once made the second call look like the first.
#[test]
fn a_decision_holds_for_one_call() {
    let model = Model::start(|_, number| {
        let calls = match number {
            0 => json!([
                { "id": "q", "function": { "name": "current_time", "arguments": "{}" } },
                { "id": "q_3_0", "function": {
                    "name": "web_fetch", "arguments": "{\"url\":\"http://127.0.0.1:1/\"}",
                } },
            ]),
            1 => json!([
                { "id": "q", "function": {
                    "name": "run_command", "arguments": "{\"command\":\"echo ran\"}",
                } },
            ]),
            _ => return Act::say("done"),
        };
        Act::Raw(whole(
            &json!({ "role": "assistant", "content": "", "tool_calls": calls }),
            "tool_calls",
        ))
    });
    let more = json!({
        "tools": { "run_command": { "enabled": true } },
        "tool_permissions": { "current_time": "allow" },
    });
    let home = asking(&model, more);
    let mut client = home.admin();
    client.ask(json!({
        "type": "subscribe",
        "events": ["approval.requested", "chat.tool_call", "chat.tool_result"],
    }));
    client.send(&json!({ "type": "chat", "message": "go", "id": 1 }));
    let called: Vec<Value> = (0..2)
        .map(|_| client.event("chat.tool_call")["call_id"].clone())
        .collect();
    let first = client.event("approval.requested");
    assert_eq!(first["tool"], "web_fetch");
    client.send(&json!({ "type": "approve", "approval_id": first["approval_id"], "id": 2 }));
    assert_eq!(client.event("chat.tool_result")["call_id"], called[1]);
    let command = client.event("chat.tool_call");
    assert_eq!(command["tool"], "run_command");
    assert!(!called.contains(&command["call_id"]));
    let second = client.event("approval.requested");
    assert_eq!(second["tool"], "run_command");
    client.send(&json!({ "type": "deny", "approval_id": second["approval_id"], "id": 3 }));
    assert_eq!(client.event("chat.tool_result")["ok"], false);
    while client.response()["id"] != 1 {}
    // The model gets its own ids back, each with its own result.
    let messages = model.requests()[2]["messages"].to_string();
    for id in ["\"q\"", "\"q_3_0\""] {
        assert_eq!(messages.matches(id).count(), 2, "{messages}");
    }
}

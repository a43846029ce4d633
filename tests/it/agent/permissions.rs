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
    for (tool, arguments, says, beneath) in [
        (
            "write_file",
            json!({ "path": "notes.txt", "content": "hello" }),
            "The assistant wants to write notes.txt",
            json!([{ "label": "Text", "text": "hello" }]),
        ),
        (
            "web_fetch",
            json!({ "url": "https://example.org/a" }),
            "The assistant wants to read the page https://example.org/a",
            json!([]),
        ),
        (
            "run_command",
            json!({ "command": "ls -l\nrm x" }),
            "The assistant wants to run the command: ls -l‹↵›rm x",
            json!([{ "label": "Command", "text": "ls -l\nrm x" }]),
        ),
        (
            "remember",
            json!({ "content": "The cat is Ada." }),
            "The assistant wants to remember: The cat is Ada.",
            json!([]),
        ),
    ] {
        let model = calling(tool, arguments.clone());
        let home = asking(&model, json!({ "tools": tools }));
        let mut client = home.admin();
        watch(&mut client);
        client.send(&json!({ "type": "chat", "message": "go", "id": 1 }));
        let asked = client.event("approval.requested");
        assert_eq!(asked["reason"], says);
        assert_eq!(asked["details"], beneath);
        assert_eq!(asked["origin"], "admin asks");
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
    let saved = fs::read_to_string(home.folder.path().join("config.json")).unwrap();
    let saved: Value = serde_json::from_str(&saved).unwrap();
    let own = json!({ "admin": { "tool_permissions": { "remember": "allow" } } });
    assert_eq!(saved["people"], own);
    assert_eq!(saved.get("tool_permissions"), None);
}

/// Says something in a conversation, and returns the question that an admin gets, if
/// there is one, and the conversation. The question gets this answer.
fn asks(
    speaker: &mut Client,
    admin: &mut Client,
    conversation: Option<&Value>,
    answer: &Value,
) -> (Option<Value>, Value) {
    let mut chat = json!({ "type": "chat", "message": "remember x" });
    if let Some(conversation) = conversation {
        chat["conversation_id"] = conversation.clone();
    }
    speaker.send(&chat);
    let mut asked = None;
    loop {
        let message = admin.receive();
        if message["event"] == "approval.requested" {
            let mut answer = answer.clone();
            answer["approval_id"] = message["approval_id"].clone();
            admin.send(&answer);
            asked = Some(message);
        } else if message["event"] == "chat.done" {
            return (asked, message["conversation_id"].clone());
        }
    }
}

/// An answer for the conversation, or for always, covers the one who asked: another
/// person and a webhook are asked about again.
#[test]
fn an_answer_covers_the_one_who_asked() {
    let model = calling("switch", json!({}));
    let receiver = Receiver::start();
    let switch = json!({
        "name": "switch", "description": "Switches.", "parameters": {}, "trusted": true,
        "command": ["true"],
    });
    let mut config = model.config_with(json!({
        "permission_mode": "ask",
        "privacy": { "conversations": "household" },
        "tools": { "custom": [switch] },
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": {
                "ci": {
                    "incoming_path": "/webhook/ci", "outgoing_url": receiver.url(),
                    "trusted": true,
                },
                "careful": {
                    "incoming_path": "/webhook/careful", "outgoing_url": receiver.url(),
                    "trusted": true, "permission_mode": "ask",
                },
            } },
        ],
    }));
    config["limits"] = json!({ "commands_per_second": 10_000, "commands_burst": 10_000 });
    let home = Home::start(config);
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    let mut deciding = home.admin();
    deciding.ask(json!({ "type": "subscribe", "events": ["approval.requested", "chat.done"] }));
    let answer = |remember: &str| json!({ "type": "approve", "remember": remember });

    let (asked, shared) = asks(&mut user, &mut deciding, None, &answer("conversation"));
    let asked = asked.expect("a user is asked for");
    assert_eq!(asked["requested_by"], "user");
    assert_eq!(asked["covers"], "user");
    assert_eq!(asked["channel"], "websocket");
    let mut asked_of = |client: &mut Client, place: Option<&Value>, remember: &str| {
        asks(client, &mut deciding, place, &answer(remember)).0
    };
    assert_eq!(asked_of(&mut user, Some(&shared), "once"), None);
    let other = asked_of(&mut admin, Some(&shared), "once").expect("not the same person");
    assert_eq!(other["requested_by"], "admin");
    assert!(
        asked_of(&mut user, None, "always").is_some(),
        "another conversation"
    );
    assert_eq!(asked_of(&mut user, None, "once"), None, "always");
    assert!(
        asked_of(&mut admin, None, "once").is_some(),
        "not for everybody"
    );

    // The same of two webhook accounts: what narrows one stays.
    let mut listing = home.admin();
    let mut waiting = |path: &str| {
        let before = receiver.callbacks().len();
        let body = json!({ "message": "remember x", "conversation_id": "one" });
        assert_eq!(post(home.address(), path, &[], &body).status, 202);
        eventually("it waits or is answered", || {
            let waiting = listing.ask(json!({ "type": "list_approvals" }))["approvals"].clone();
            if let Some(asked) = waiting.get(0) {
                return Some(Some(asked.clone()));
            }
            (receiver.callbacks().len() > before).then_some(None)
        })
    };
    let asked = waiting("/webhook/ci").expect("a webhook is asked for");
    assert_eq!(asked["requested_by"], "ci");
    assert_eq!(asked["covers"], "the webhook account ci");
    let mut deciding = home.admin();
    let mut answer = |asked: &Value, remember: &str| {
        let id = asked["approval_id"].clone();
        deciding.send(&json!({ "type": "approve", "approval_id": id, "remember": remember }));
        deciding.response()
    };
    assert_eq!(answer(&asked, "conversation")["status"], "ok");
    receiver.wait_for(1);
    assert_eq!(waiting("/webhook/ci"), None, "allowed in this conversation");
    let asked = waiting("/webhook/careful").expect("another account");
    let refused = answer(&asked, "always");
    assert_eq!(refused["code"], "invalid_request", "{refused}");
    assert!(
        refused["error"].to_string().contains("permission_mode"),
        "{refused}"
    );
    assert_eq!(answer(&asked, "once")["status"], "ok");
    receiver.wait_for(3);
    assert!(waiting("/webhook/careful").is_some(), "once was once");
}

/// What a trusted account sends is an instruction, in later turns of its conversation as well;
/// another account's text is data.
#[test]
fn the_words_of_a_trusted_account_are_not_fenced() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let account = |name: &str, trusted: bool| {
        let path = format!("/webhook/{name}");
        json!({ "incoming_path": path, "outgoing_url": receiver.url(), "trusted": trusted })
    };
    let accounts = json!({ "doorbell": account("doorbell", true), "shop": account("shop", false) });
    let home = Home::start(model.config_with(json!({
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": accounts },
        ],
    })));
    for (count, (name, is_fenced)) in [("doorbell", false), ("shop", true)]
        .into_iter()
        .enumerate()
    {
        for (number, said) in ["the postman rang", "he is gone"].iter().enumerate() {
            let body = json!({ "message": said, "conversation_id": "one" });
            let path = format!("/webhook/{name}");
            assert_eq!(post(home.address(), &path, &[], &body).status, 202);
            receiver.wait_for(2 * count + number + 1);
        }
        let request = model.requests().pop().unwrap();
        let messages = request["messages"].as_array().unwrap().iter();
        let said: Vec<&str> = messages
            .filter(|message| message["role"] == "user")
            .map(|message| message["content"].as_str().unwrap())
            .collect();
        assert_eq!(said.len(), 2, "{request}");
        for text in said {
            assert_eq!(text.contains("<outside "), is_fenced, "{name}: {text}");
        }
    }
}

/// Admins answer for everybody; whoever asked answers where `approves` says so, and
/// nobody else so much as sees it.
#[test]
fn who_may_answer_an_approval() {
    for (tool, arguments, approves, may) in [
        ("remember", json!({ "content": "x" }), Value::Null, true),
        (
            "web_fetch",
            json!({ "url": "http://127.0.0.1:1/" }),
            Value::Null,
            false,
        ),
        (
            "run_command",
            json!({ "command": "true" }),
            Value::Null,
            false,
        ),
        (
            "web_fetch",
            json!({ "url": "http://127.0.0.1:1/" }),
            json!(["web_fetch"]),
            true,
        ),
        ("remember", json!({ "content": "x" }), json!([]), false),
    ] {
        let model = calling(tool, arguments);
        let home = asking(
            &model,
            json!({
                "tools": { "run_command": { "enabled": true } },
                "people": { "User": { "approves": approves } },
            }),
        );
        let mut user = home.websocket(&home.tokens.user);
        home.websocket(&home.tokens.user)
            .send(&json!({ "type": "chat", "message": "go" }));
        let asked = eventually("the question is asked", || {
            let listed = user.ask(json!({ "type": "list_approvals" }));
            listed["approvals"].get(0).cloned()
        });
        let id = asked["approval_id"].clone();
        assert_eq!(asked["may_answer"], may, "{tool} {asked}");
        let mut admin = home.admin();
        let listed = admin.ask(json!({ "type": "list_approvals" }));
        assert_eq!(listed["approvals"][0]["may_answer"], true);
        // A second user neither sees nor answers it.
        let mut guest = home.websocket(&home.tokens.viewer);
        let refused = guest.refused(json!({ "type": "approve", "approval_id": id }));
        assert_eq!(refused, "unauthorized");
        let approve = json!({ "type": "approve", "approval_id": id });
        if may {
            user.ask(approve);
        } else {
            assert_eq!(user.refused(approve.clone()), "unauthorized", "{tool}");
            admin.ask(approve);
        }
    }
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
    let account = json!({ "tools": ["remember"] });
    let home = webhook_home(&model, &receiver, account, "ask");
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
    let account = json!({ "tools": ["remember"] });
    let home = webhook_home(&model, &receiver, account, "ask");
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
        json!({ "permission_mode": "ask", "tools": ["remember"] }),
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

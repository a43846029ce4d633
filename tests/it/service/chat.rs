//! Chat from message to reply: streaming, order, cancelling, and models
//! that misbehave.

use std::time::Instant;

use serde_json::{Value, json};

use support::AT_ONCE;
use support::client::Client;
use support::eventually;
use support::home::Home;
use support::model::{Act, Model};
use support::prompt_size::{Sent, hello};
use support::receiver::Receiver;

#[test]
fn streamed_pieces_make_up_the_reply() {
    let model = Model::saying("one two three four");
    let home = Home::start(model.config());
    let mut client = home.websocket(&home.tokens.user);
    client.send(&json!({ "type": "chat", "message": "count", "stream": true, "id": 1 }));
    let (mut text, mut pieces) = (String::new(), 0);
    let response = loop {
        let message = client.receive();
        match message["event"].as_str() {
            Some("chat.delta") => {
                text.push_str(message["text"].as_str().unwrap());
                pieces += 1;
            }
            Some("chat.done") | Some("message.created") => {}
            Some(other) => panic!("unexpected event {other}"),
            None => break message,
        }
    };
    assert_eq!(text, "one two three four");
    assert!(pieces >= 2, "{pieces} pieces");
    assert_eq!(response["data"]["response"], text.as_str());
    assert_eq!(model.requests()[0]["stream"], true);
    client.chat("again");
    assert_ne!(model.requests()[1]["stream"], true, "nobody listens");
}

#[test]
fn the_model_is_sent_the_conversation() {
    let model = Model::saying("fine");
    let home = Home::start(model.config_with(json!({ "temperature": 0.3, "api_key": "k-1" })));
    let mut client = home.admin();
    let first = client.chat("first question");
    let conversation = &first["conversation_id"];
    client.ask(json!({ "type": "chat", "message": "second", "conversation_id": conversation }));
    let request = &model.requests()[1];
    let texts: Vec<(&str, bool)> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let content = message["content"].as_str().unwrap();
            let known = ["first question", "fine", "second"]
                .iter()
                .any(|one| content.contains(one));
            (message["role"].as_str().unwrap(), known)
        })
        .collect();
    assert_eq!(
        texts,
        [
            ("system", false),
            ("user", true),
            ("assistant", true),
            ("user", true)
        ]
    );
    assert_eq!(request["temperature"], 0.3);
    assert_eq!(request["model"], "scripted");
}

#[test]
fn the_request_for_hello_is_small() {
    let sent = hello();
    assert_eq!(sent.len(), 4 * 4 * 2);
    for Sent { how, bytes, body } in &sent {
        println!("{how}: {bytes} bytes");
        assert_eq!(body["tools"].as_array().unwrap().len(), 11, "{how}");
    }
    let largest = sent.iter().max_by_key(|sent| sent.bytes).unwrap();
    assert!(largest.bytes <= 4_700, "{}: {}", largest.how, largest.bytes);
}

#[test]
fn a_setting_is_in_force_for_the_next_turn() {
    let model = Model::saying("fine");
    let home = Home::start(model.config());
    let mut admin = home.admin();
    admin.chat("one");
    admin.ask(json!({ "type": "update_config", "config": { "model": "other", "system_prompt": "Be a cat." } }));
    admin.chat("two");
    let requests = model.requests();
    assert_eq!(
        (&requests[0]["model"], &requests[1]["model"]),
        (&json!("scripted"), &json!("other"))
    );
    assert!(
        requests[1]["messages"][0]["content"]
            .as_str()
            .unwrap()
            .starts_with("Be a cat.")
    );
    let saved = std::fs::read_to_string(home.folder.path().join("config.json")).unwrap();
    assert!(saved.contains("Be a cat."));
}

#[test]
fn a_client_that_leaves_loses_nothing() {
    let model = Model::acting(vec![Act::Stall("the answer".into())]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    client.send(&json!({ "type": "chat", "message": "think long", "id": 1 }));
    let turn = client.event("message.created")["turn_id"].clone();
    drop(client);
    model.wait_for_requests(1);
    model.release();
    let mut again = home.admin();
    let done = eventually("the turn is done", || {
        let view = again.ask(json!({ "type": "get_turn", "turn_id": turn }));
        (view["state"] == "done").then_some(view)
    });
    assert_eq!(done["response"], "the answer");
}

#[test]
fn what_an_event_tells_of_can_be_read_at_once() {
    let model = Model::acting(vec![Act::Stall("late".into())]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    for number in 0..20 {
        client.send(&json!({ "type": "chat", "message": "go", "id": number }));
        let conversation = client.event("message.created")["conversation_id"].clone();
        let page = client.ask(json!({ "type": "get_messages", "conversation_id": conversation }));
        assert_eq!(page["messages"].as_array().unwrap().len(), 1, "{number}");
    }
    let info = client.ask(json!({ "type": "server_info" }));
    assert!(info["database_bytes"].as_u64().unwrap() > 4096);
}

#[test]
fn what_others_use_is_told_to_admins_alone() {
    let model = Model::saying("hello");
    let mut config = model.config();
    config["budget"] = json!({ "monthly_tokens": 1_000_000 });
    config["people"] = json!({ "user": { "monthly_tokens": 5_000 } });
    let home = Home::start(config);
    let tokens = &home.tokens;
    let (mut admin, mut second) = (home.admin(), home.admin());
    let (mut user, mut guest) = (home.websocket(&tokens.user), home.websocket(&tokens.viewer));
    let chat = json!({ "type": "chat", "message": "go" });
    for client in [&mut admin, &mut second, &mut user] {
        client.ask(chat.clone());
    }
    let mut told = [&mut admin, &mut user, &mut guest].map(|client| {
        let mut info = client.ask(json!({ "type": "server_info" }));
        for field in [
            "name",
            "version",
            "uptime_seconds",
            "machine_id",
            "relays",
            "connections",
            "turns",
            "deliveries",
            "tokens",
        ] {
            assert!(info.get(field).is_some(), "{field} of {info}");
        }
        info["used"] = json!(
            info["tokens"]["input"].as_u64().unwrap() + info["tokens"]["output"].as_u64().unwrap()
        );
        info
    });
    let [all, own, none] = &mut told;
    let used = own["used"].as_u64().unwrap();
    assert!(used > 0, "{own}");
    for (info, turns, connections, budget) in [
        (all, 3, 4, json!(1_000_000)),
        (own, 1, 1, json!(5_000)),
        (none, 0, 1, json!(null)),
    ] {
        assert_eq!(info["used"], turns * used, "{info}");
        let expected = json!({ "monthly_tokens": budget, "used_this_month": turns * used });
        assert_eq!(info["budget"], expected);
        assert_eq!(info["connections"], connections);
        assert_eq!(info["database_bytes"].is_null(), turns < 3);
    }
}

#[test]
fn a_repeated_idempotency_key_runs_one_turn() {
    let model = Model::acting(vec![Act::Stall("once".into())]);
    let mut home = Home::start(model.config());
    let chat =
        json!({ "type": "chat", "message": "pay the bill", "idempotency_key": "k", "id": 1 });
    let (mut one, mut two) = (home.admin(), home.admin());
    one.send(&chat);
    model.wait_for_requests(1);
    two.send(&chat);
    // The second has joined when its connection answers something after it.
    two.ask(json!({ "type": "ping", "id": "joined" }));
    model.release();
    let (first, second) = (one.response(), two.response());
    assert_eq!(first["data"], second["data"]);
    home.restart();
    assert_eq!(home.admin().ask(chat)["turn_id"], first["data"]["turn_id"]);
    assert_eq!(model.requests().len(), 1);
    let other = json!({ "type": "chat", "message": "something else", "idempotency_key": "k" });
    assert_eq!(home.admin().refused(other), "invalid_request");
}

#[test]
fn turns_of_one_conversation_keep_their_order_and_its_queue_is_bounded() {
    let model = Model::start(|request, number| match number {
        0 => Act::say("begin"),
        1 => Act::Stall("first".into()),
        _ => {
            Act::Say(request["messages"].as_array().unwrap().last().unwrap()["content"].to_string())
        }
    });
    let limits = json!({ "limits": { "waiting_turns_per_conversation": 3 } });
    let home = Home::start(model.config_with(limits));
    let mut client = home.admin();
    let conversation = client.chat("start")["conversation_id"].clone();
    let say = |client: &mut Client, text: String| {
        client.send(&json!({
            "type": "chat", "message": text, "conversation_id": conversation, "id": text,
        }));
    };
    say(&mut client, "stalls".into());
    model.wait_for_requests(2);
    for number in 0..4 {
        say(&mut client, format!("waits {number}"));
    }
    let refused = client.response();
    assert_eq!(
        (&refused["id"], &refused["code"]),
        (&json!("waits 3"), &json!("rate_limited"))
    );
    model.release();
    let order: Vec<Value> = (0..4).map(|_| client.response()["id"].clone()).collect();
    assert_eq!(
        json!(order),
        json!(["stalls", "waits 0", "waits 1", "waits 2"])
    );
    assert_eq!(
        model.requests()[4]["messages"].as_array().unwrap().len(),
        10,
        "1 + 4 turns + 1"
    );
}

#[test]
fn turns_of_different_conversations_run_side_by_side() {
    let model = Model::acting(vec![Act::Stall("done".into())]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    for number in 0..4 {
        client.send(&json!({ "type": "chat", "message": "go", "id": number }));
    }
    model.wait_for_requests(4);
    model.release();
    for _ in 0..4 {
        assert_eq!(client.response()["status"], "ok");
    }
}

#[test]
fn a_turn_can_be_cancelled_wherever_it_is() {
    let model = Model::acting(vec![Act::Stall("late".into())]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    let mut watcher = home.admin();
    watcher.ask(json!({ "type": "subscribe", "events": ["chat.failed"] }));
    client.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    client.send(&json!({ "type": "chat", "message": "running", "id": "a" }));
    let created = client.event("message.created");
    let conversation = created["conversation_id"].clone();
    model.wait_for_requests(1);
    client.send(&json!({ "type": "chat", "message": "waiting", "conversation_id": conversation, "id": "b" }));
    let waiting = client.event("message.created")["turn_id"].clone();

    let state = client_cancel(&mut client, &waiting);
    assert_eq!(state, "cancelled");
    let began = Instant::now();
    client_cancel(&mut client, &created["turn_id"]);
    let view = eventually("the turn is cancelled", || {
        let view = home
            .admin()
            .ask(json!({ "type": "get_turn", "turn_id": created["turn_id"] }));
        (view["state"] == "cancelled").then_some(view)
    });
    assert!(began.elapsed() < AT_ONCE, "{view}");
    assert_eq!(model.requests().len(), 1, "the waiting turn never ran");
    for turn in [&waiting, &created["turn_id"]] {
        let failed = watcher.event("chat.failed");
        assert_eq!(
            (&failed["turn_id"], &failed["cancelled"]),
            (turn, &json!(true))
        );
    }
}

#[test]
fn a_cancelled_turn_is_answered_with_what_was_said_so_far() {
    let whole = "One, two, three, four, five, six, seven, eight, nine, ten, eleven.";
    let model = Model::start(move |_, number| match number {
        1 => Act::Pause(whole.into()),
        _ => Act::Say("Hello.".into()),
    });
    let mut home = Home::start(model.config());
    let mut client = home.admin();
    let conversation = client.chat("hello")["conversation_id"].clone();
    let chat = json!({
        "type": "chat", "message": "count", "conversation_id": conversation, "stream": true,
        "idempotency_key": "count", "id": "chat",
    });
    client.send(&chat);
    let delta = client.event("chat.delta");
    let turn = delta["turn_id"].clone();
    client.send(&json!({ "type": "cancel", "turn_id": turn, "id": "cancel" }));
    let failed = client.event("chat.failed");
    assert_eq!(failed["cancelled"], true);
    let said = failed["text"].as_str().unwrap();
    let first = delta["text"].as_str().unwrap();
    assert!(whole.starts_with(said) && said.starts_with(first), "{said}");
    // It stays in the conversation.
    let page = json!({ "type": "get_messages", "conversation_id": conversation, "limit": 1 });
    let stored = home.admin().ask(page)["messages"][0].clone();
    assert_eq!(stored["content"], said);
    assert_eq!(stored["finish_reason"], "interrupted");
    let cancelled = json!({
        "state": "cancelled", "response": said, "conversation_id": conversation, "turn_id": turn,
        "message_id": stored["id"], "finish_reason": "interrupted",
    });
    let of_chat = |client: &mut Client| loop {
        let response = client.response();
        if response["id"] == "chat" {
            break response;
        }
    };
    let expected = json!({ "status": "ok", "id": "chat", "data": cancelled });
    assert_eq!(of_chat(&mut client), expected);
    model.release();

    // Also later, to a repeat of the message and to whoever looks the turn up.
    home.restart();
    let mut client = home.admin();
    client.send(&chat);
    assert_eq!(of_chat(&mut client), expected);
    let view = client.ask(json!({ "type": "get_turn", "turn_id": turn }));
    assert_eq!(
        (&view["state"], &view["response"]),
        (&json!("cancelled"), &json!(said))
    );
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn a_turn_that_runs_gives_the_reply_so_far_and_the_event_it_ends_with() {
    let model = Model::acting(vec![Act::Pause(
        "the first half, and the other half".into(),
    )]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe" }));
    client.send(&json!({ "type": "chat", "message": "tell me", "id": "chat" }));
    let turn = client.event("chat.delta")["turn_id"].clone();
    let get = json!({ "type": "get_turn", "turn_id": turn, "id": "view" });
    // Somebody who comes later: the text so far, and the pieces that are not in it.
    let mut other = home.admin();
    other.ask(json!({ "type": "subscribe" }));
    other.send(&get);
    let (mut view, mut pieces) = (Value::Null, Vec::new());
    loop {
        let message = other.receive();
        match message["event"].as_str() {
            _ if message["id"] == "view" => {
                view = message["data"].clone();
                model.release();
            }
            Some("chat.delta") => pieces.push(message),
            Some("chat.done") => break,
            _ => {}
        }
    }
    let said = view["text"].as_str().unwrap();
    assert!(view["state"] == "running" && !said.is_empty(), "{view}");
    let later = pieces
        .iter()
        .filter(|piece| piece["seq"].as_u64() > view["seq"].as_u64())
        .map(|piece| piece["text"].as_str().unwrap());
    let text = said.to_owned() + &later.collect::<String>();
    assert_eq!(text, "the first half, and the other half");
    let view = other.ask(get);
    assert_eq!(
        (&view["response"], &view["text"]),
        (&json!(text), &Value::Null)
    );
}

fn client_cancel(client: &mut Client, turn: &Value) -> String {
    client.send(&json!({ "type": "cancel", "turn_id": turn, "id": "cancel" }));
    loop {
        let message = client.receive();
        if message["id"] == "cancel" {
            return message["data"]["state"].as_str().unwrap().to_owned();
        }
    }
}

#[test]
fn what_the_offline_assistant_answers_is_booked_as_its_own() {
    let home = Home::start(json!({ "provider": "offline", "model": "expensive" }));
    let mut client = home.admin();
    let turn = client.chat("hello")["turn_id"].clone();
    let view = client.ask(json!({ "type": "get_turn", "turn_id": turn }));
    assert_eq!(view["model"], "offline");
}

#[test]
fn a_turn_has_a_deadline() {
    let model = Model::acting(vec![Act::Stall("too late".into())]);
    let home = Home::start(model.config_with(json!({ "limits": { "turn_seconds": 1 } })));
    let mut client = home.admin();
    let began = Instant::now();
    client.send(&json!({ "type": "chat", "message": "hurry" }));
    let response = client.response();
    assert_eq!(response["code"], "server_error", "{response}");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[test]
fn a_model_that_misbehaves_gives_a_clear_error_and_the_server_goes_on() {
    let closed = format!("127.0.0.1:{}", support::program::free_port());
    let cut =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"choi";
    for (name, act, says) in [
        (
            "garbage",
            Act::Raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".into(),
            ),
            "",
        ),
        (
            "html",
            Act::Raw(
                "HTTP/1.1 500 Oops\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>"
                    .into(),
            ),
            "",
        ),
        ("no http", Act::Raw("nonsense".into()), ""),
        ("cut", Act::Raw(cut.into()), ""),
        (
            "key",
            Act::error(401, "", "Incorrect API key provided: k-secret"),
            "key",
        ),
        ("model", Act::error(404, "", "no such model"), "scripted"),
        ("empty", Act::say(""), "empty"),
    ] {
        let model = Model::acting(vec![act]);
        let home = Home::start(model.config_with(json!({ "api_key": "k-secret" })));
        let mut client = home.admin();
        client.send(&json!({ "type": "chat", "message": "hello" }));
        let response = client.response();
        assert_eq!(response["code"], "server_error", "{name}: {response}");
        let error = response["error"].as_str().unwrap();
        assert!(error.contains(says), "{name}: {error}");
        assert!(
            !response.to_string().contains("k-secret"),
            "{name}: {response}"
        );
        client.ask(json!({ "type": "ping" }));
    }
    let config = json!({
        "provider": "openai-compatible", "base_url": format!("http://{closed}/v1"), "model": "m",
    });
    let home = Home::start(config);
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "hello" }));
    let error = client.response()["error"].as_str().unwrap().to_owned();
    assert!(error.contains(&closed), "{error}");
}

#[test]
fn a_key_is_not_sent_to_a_new_address() {
    let model = Model::saying("fine");
    let home = Home::start(model.config_with(json!({ "api_key": "sk-household" })));
    let elsewhere = Receiver::start();
    let mut client = home.admin();
    let change =
        |address: String| json!({ "type": "update_config", "config": { "base_url": address } });
    let updated = client.ask(change(elsewhere.url()));
    assert_eq!(updated["updated_fields"], json!(["base_url", "api_key"]));
    assert_eq!(
        client.ask(json!({ "type": "get_config" }))["api_key_set"],
        false
    );
    client.send(&json!({ "type": "chat", "message": "hello" }));
    for request in elsewhere.wait_for(1) {
        assert!(!request.head.contains("sk-household"), "{}", request.head);
    }
}

#[test]
fn a_model_that_is_busy_is_asked_again() {
    let model = Model::acting(vec![
        Act::error(429, "Retry-After: 0\r\n", "slow down"),
        Act::error(503, "", "loading"),
        Act::say("here I am"),
    ]);
    let home = Home::start(model.config());
    assert_eq!(home.admin().chat("hello")["response"], "here I am");
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn an_idempotency_key_tells_fields_apart_that_look_alike_in_lines() {
    let home = Home::offline();
    let mut user = home.websocket(&home.tokens.user);
    let put = json!({ "type": "put_attachment", "name": "a.txt", "bytes": 1 });
    let file = user.ask(put)["attachment_id"].clone();
    let part = json!({ "type": "put_attachment_part", "attachment_id": file, "data": "eA==" });
    user.ask(part);
    let chat = |key: &str, message: &str, more: Value| {
        let mut chat = json!({ "type": "chat", "message": message, "idempotency_key": key });
        chat.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        chat
    };
    let in_lines = format!("hi\n{}", file.as_str().unwrap());
    user.ask(chat("one", &in_lines, json!({})));
    let with_file = chat("one", "hi", json!({ "attachments": [file] }));
    assert_eq!(user.refused(with_file), "invalid_request");
    user.ask(chat("two", "hi\nmodel \"\"", json!({})));
    let with_model = chat("two", "hi", json!({ "model": "" }));
    assert_eq!(user.refused(with_model), "invalid_request");
}

#[test]
fn a_repeat_across_an_upgrade_is_the_same_request() {
    let mut home = Home::offline();
    let chat = json!({
        "type": "chat", "message": "hello", "audience": "household", "idempotency_key": "k",
    });
    let first = home.websocket(&home.tokens.user).ask(chat.clone());
    home.stop();
    // As the version before stored it.
    let database = rusqlite::Connection::open(home.folder.path().join("hearth.db")).unwrap();
    let lines = base::secret::sha256(b"0\nhello\nHousehold");
    let changed = database
        .execute("UPDATE idempotency SET request = ?", [lines])
        .unwrap();
    assert_eq!(changed, 1);
    database.close().unwrap();
    home.restart();
    let mut user = home.websocket(&home.tokens.user);
    assert_eq!(user.ask(chat)["turn_id"], first["turn_id"]);
    let other = json!({
        "type": "chat", "message": "hello!", "audience": "household", "idempotency_key": "k",
    });
    assert_eq!(user.refused(other), "invalid_request");
}

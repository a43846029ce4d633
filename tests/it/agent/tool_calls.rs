//! What a turn does with tool calls: rounds, permissions, approvals, and tools
//! of the household's own.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::eventually;
use support::home::Home;
use support::model::{Act, Model};
use support::{AT_ONCE, MAX_WAIT};

#[test]
fn tools_run_and_their_results_reach_the_model() {
    let model = Model::acting(vec![
        Act::Call(vec![
            (
                "remember".into(),
                json!({ "content": "The cat is called Ada." }),
            ),
            ("no_such_tool".into(), json!({})),
            ("recall".into(), json!({ "wrong": 1 })),
        ]),
        Act::call("recall", json!({ "query": "cat" })),
        Act::say("Your cat is Ada."),
    ]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["chat.tool_call", "chat.tool_result"] }));
    client.send(&json!({ "type": "chat", "message": "remember my cat Ada", "id": 1 }));
    let mut results = Vec::new();
    let response = loop {
        let message = client.receive();
        match message["event"].as_str() {
            Some("chat.tool_result") => results.push(message["ok"].as_bool().unwrap()),
            Some(_) => {}
            None => break message,
        }
    };
    assert_eq!(response["data"]["response"], "Your cat is Ada.");
    assert_eq!(results, [true, false, false, true]);
    let last = &model.requests()[2]["messages"];
    let tool_texts: Vec<&str> = last
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(tool_texts.len(), 4);
    assert!(tool_texts[1].contains("no_such_tool") && tool_texts[2].contains("query"));
    assert!(
        tool_texts[3].contains("The cat is called Ada."),
        "{tool_texts:?}"
    );
}

#[test]
fn an_endless_tool_loop_is_stopped_with_an_answer() {
    let model = Model::start(|request, _| match request.get("tool_choice") {
        None => Act::call("current_time", json!({})),
        Some(_) => Act::say("It is late."),
    });
    let home = Home::start(model.config_with(json!({ "limits": { "tool_rounds": 3 } })));
    assert_eq!(
        home.admin().chat("what time is it?")["response"],
        "It is late."
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[3]["tool_choice"], "none");
    // Else a server could not go on from what it keeps of the round before.
    assert_eq!(requests[3]["tools"], requests[0]["tools"]);
}

#[test]
fn what_was_said_with_a_call_is_the_reply_when_nothing_follows() {
    let said = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "It is about noon.", "tool_calls": [{
            "id": "c1", "type": "function",
            "function": { "name": "current_time", "arguments": "{}" },
        }],
    }}]});
    let nothing = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "" }}]});
    let model = Model::acting(vec![Act::json(&said), Act::json(&nothing)]);
    let home = Home::start(model.config());
    let reply = home.admin().chat("what time is it?");
    assert_eq!(reply["response"], "It is about noon.");
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn permissions_decide_what_is_offered_and_what_runs() {
    let model = Model::acting(vec![
        Act::call("forget", json!({ "memory_id": "x" })),
        Act::say("ok"),
    ]);
    let config = json!({ "permission_mode": "deny", "tool_permissions": { "recall": "allow" } });
    let home = Home::start(model.config_with(config));
    home.admin().chat("forget it");
    let requests = model.requests();
    let offered = requests[0]["tools"].as_array().unwrap();
    assert_eq!(offered.len(), 1);
    assert_eq!(offered[0]["function"]["name"], "recall");
    let result = requests[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(result["role"], "tool");
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("not permitted"),
        "{result}"
    );
}

#[test]
fn an_approval_survives_a_restart() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "x" })),
        Act::say("remembered"),
    ]);
    let mut home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    client.send(&json!({ "type": "chat", "message": "remember x", "id": 1 }));
    let asked = client.event("approval.requested");
    home.restart();
    let mut client = home.admin();
    client.ask(json!({
        "type": "approve", "approval_id": asked["approval_id"], "remember": "always",
    }));
    let view = eventually("the turn is done", || {
        let view = client.ask(json!({ "type": "get_turn", "turn_id": asked["turn_id"] }));
        (view["state"] == "done").then_some(view)
    });
    assert_eq!(view["response"], "remembered");
    let config = client.ask(json!({ "type": "get_config" }));
    let asker = &config["people"]["admin"];
    assert_eq!(asker["tool_permissions"]["remember"], "allow");
    // Nobody else is covered.
    assert_eq!(config["tool_permissions"]["remember"], Value::Null);
}

#[test]
fn an_approval_that_nobody_gives_expires() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "x" })),
        Act::say("not allowed, then"),
    ]);
    let home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let mut client = home.admin();
    client
        .ask(json!({ "type": "subscribe", "events": ["approval.requested", "approval.resolved"] }));
    client.send(&json!({ "type": "chat", "message": "remember x", "id": 1 }));
    client.event("approval.requested");
    home.server()
        .advance_clock(Duration::from_secs(24 * 3600 + 1));
    let resolved = client.event("approval.resolved");
    assert_eq!(
        (&resolved["decision"], &resolved["by"]),
        (&json!("expired"), &json!("timeout"))
    );
    assert_eq!(client.response()["data"]["response"], "not allowed, then");
}

#[test]
fn custom_tools_run_with_their_limits() {
    let script = |body: &str| json!(["/bin/sh", "-c", body]);
    let tool = |name: &str, body: &str| {
        json!({
            "name": name, "description": "Test.", "parameters": { "text": "string" },
            "command": script(body), "timeout_seconds": 1,
        })
    };
    let model = Model::acting(vec![
        Act::Call(vec![
            ("echo".into(), json!({ "text": "hello" })),
            ("hang".into(), json!({ "text": "" })),
            ("flood".into(), json!({ "text": "" })),
            ("fail".into(), json!({ "text": "" })),
        ]),
        Act::say("done"),
    ]);
    let tools = json!({ "tools": { "custom": [
        tool("echo", "cat"),
        tool("hang", "sleep 600 & sleep 600"),
        tool("flood", "head -c 10000000 /dev/zero | tr '\\0' x"),
        tool("fail", "echo broken >&2; exit 3"),
    ] } });
    let home = Home::start(model.config_with(tools));
    let began = Instant::now();
    assert_eq!(home.admin().chat("go")["response"], "done");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let requests = model.requests();
    let result = |place: usize| {
        let messages = requests[1]["messages"].as_array().unwrap();
        messages[messages.len() - 4 + place]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(result(0).contains(r#"{"text":"hello"}"#), "{}", result(0));
    assert!(result(1).starts_with("Error:"), "{}", result(1));
    assert!(result(2).len() < 20_000);
    assert!(
        result(3).contains("broken") && result(3).contains('3'),
        "{}",
        result(3)
    );
}

/// To replace a memory is to forget one, too: the stricter of both permissions holds.
#[test]
fn a_memory_is_replaced_only_where_it_may_be_forgotten() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        let corrected = json!({ "content": "x is 2", "replaces": "x is 1" });
        match last["role"] == "tool" {
            true => Act::say(text),
            false if text.ends_with("correct x") => Act::call("remember", corrected),
            false => Act::call("remember", json!({ "content": "x is 1" })),
        }
    });
    let denied = json!({ "forget": "deny" });
    for (more, comes_to) in [
        (json!({}), "in place of"),
        (json!({ "tool_permissions": { "forget": "ask" } }), "asked"),
        (json!({ "tool_permissions": denied }), "not permitted here"),
        (
            json!({ "people": { "admin": { "tool_permissions": denied } } }),
            "not permitted here",
        ),
        (
            json!({ "people": { "admin": { "tools": ["remember"] } } }),
            "not permitted here",
        ),
    ] {
        let mut config = model.config();
        config["permission_mode"] = json!("allow");
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        let home = Home::start(config);
        let mut client = home.admin();
        client.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
        let kept = client.chat("remember x");
        assert!(
            kept["response"].to_string().contains("Remembered as"),
            "{kept}"
        );
        client.send(&json!({ "type": "chat", "message": "correct x", "id": "chat" }));
        let answer = match client.receive() {
            event if event["event"] == "approval.requested" => "asked".to_owned(),
            answer => answer["data"]["response"].to_string(),
        };
        assert!(answer.contains(comes_to), "{more}: {answer}");
    }
}

#[test]
fn only_the_first_calls_of_a_reply_run() {
    for count in [128, 129, 20_000] {
        let model = Model::acting(vec![
            Act::Call(vec![("current_time".into(), json!({})); count]),
            Act::say("Done."),
        ]);
        let home = Home::start(model.config());
        let mut client = home.admin();
        let begun = Instant::now();
        assert_eq!(client.chat("what time is it?")["response"], "Done.");
        assert!(begun.elapsed() < MAX_WAIT);
        let requests = model.requests();
        let shown = requests[1]["messages"].as_array().unwrap();
        let results = shown.iter().filter(|message| message["role"] == "tool");
        assert_eq!(results.count(), 128);
        let is_told = shown
            .last()
            .unwrap()
            .to_string()
            .contains("first 128 calls");
        assert_eq!(is_told, count > 128, "{count}");
    }
}

/// The deadline holds between calls, too.
#[test]
fn a_turn_with_many_slow_calls_ends_in_time() {
    let model = Model::acting(vec![
        Act::Call(vec![("slow".into(), json!({})); 100]),
        Act::say("Done."),
    ]);
    let config = model.config_with(json!({
        "limits": { "turn_seconds": 2 },
        "tool_permissions": { "slow": "allow" },
        "tools": { "custom": [{ "name": "slow", "description": "Takes a while.",
            "command": ["sh", "-c", "echo >> ran; sleep 0.5"] }] },
    }));
    let home = Home::start(config);
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "go" }));
    let error = client.response()["error"].to_string();
    assert!(error.contains("the tools had not finished"), "{error}");
    let ran = fs::read_to_string(home.folder.path().join("files/ran")).unwrap();
    assert!((1..=8).contains(&ran.lines().count()), "{ran:?}");
}

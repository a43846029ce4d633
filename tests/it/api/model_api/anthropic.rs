//! Anthropic's interface.

use serde_json::{Value, json};

use super::reasoning::thinking;
use super::{ask, bearer, conversations, home};
use support::home::Home;
use support::http::{Answer, get, post};
use support::model::{Act, Model};

const MESSAGES: &str = "/v1/messages";

/// The events of a stream, each with its name.
fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut events = Vec::new();
    for block in answer.body.split_terminator("\n\n") {
        let (name, data) = block.split_once("\ndata: ").unwrap();
        let data: Value = data.parse().unwrap();
        assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
        events.push(data);
    }
    events
}

/// The message of a stream, put together as Anthropic's libraries do.
fn message_of(events: &[Value]) -> Value {
    let mut message = Value::Null;
    let mut arguments = String::new();
    for event in events {
        let index = event["index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                assert_eq!(message["content"].as_array().unwrap().len(), index);
                let block = event["content_block"].clone();
                message["content"].as_array_mut().unwrap().push(block);
                arguments.clear();
            }
            "content_block_delta" => {
                let (delta, block) = (&event["delta"], &mut message["content"][index]);
                match delta["type"].as_str().unwrap() {
                    "input_json_delta" => arguments += delta["partial_json"].as_str().unwrap(),
                    kind => {
                        let kind = kind.strip_suffix("_delta").unwrap();
                        let text = block[kind].as_str().unwrap();
                        block[kind] = json!(format!("{text}{}", delta[kind].as_str().unwrap()));
                    }
                }
            }
            "content_block_stop" if !arguments.is_empty() => {
                message["content"][index]["input"] = arguments.parse().unwrap();
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    message
}

fn message(home: &Home, mut body: Value, stream: bool) -> Value {
    body["stream"] = json!(stream);
    body["max_tokens"] = json!(500);
    let answer = ask(home, MESSAGES, body);
    let mut message = match stream {
        true => message_of(&events(&answer)),
        false => answer.json(),
    };
    let id = message["id"].take();
    assert!(id.as_str().unwrap().starts_with("msg_"), "{message}");
    message
}

#[test]
fn a_message_is_whole_or_streamed_and_the_chat_goes_on() {
    let model = Model::start(|_, number| Act::say(&format!("answer {number}")));
    let home = home(&model);
    let mut said = vec![json!({ "role": "user", "content": "one" })];
    for (number, stream) in [false, true, false].into_iter().enumerate() {
        let body = json!({ "model": "hearth", "messages": said, "system": "Be brief." });
        let message = message(&home, body, stream);
        let text = format!("answer {number}");
        assert_eq!(
            message,
            json!({
                "id": null, "type": "message", "role": "assistant", "model": "hearth",
                "content": [{ "type": "text", "text": text }],
                "stop_reason": "end_turn", "stop_sequence": null,
                "usage": { "input_tokens": 10, "cache_read_input_tokens": 0,
                    "cache_creation_input_tokens": 0, "output_tokens": 5 },
            })
        );
        said.push(json!({ "role": "assistant", "content": message["content"] }));
        said.push(json!({ "role": "user", "content": [{ "type": "text", "text": "next" }] }));
    }
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(6)));
    assert!(model.requests()[0].to_string().contains("Be brief."));
}

#[test]
fn a_client_runs_its_own_tools() {
    for stream in [false, true] {
        for name in ["hearth", "hearth-plain"] {
            let model = Model::start(|request, _| {
                let messages = request["messages"].as_array().unwrap();
                match messages.iter().filter(|one| one["role"] == "tool").count() {
                    0 => Act::Call(vec![
                        ("light".to_owned(), json!({ "name": "hall" })),
                        ("light".to_owned(), json!({ "name": "door" })),
                    ]),
                    _ => Act::say("Both are on."),
                }
            });
            let home = home(&model);
            let tools = json!([
                { "name": "light", "description": "Turns on a light.",
                  "input_schema": { "type": "object", "properties": { "name": {} } },
                  "cache_control": { "type": "ephemeral" } },
                { "type": "web_search_20250305", "name": "web_search", "max_uses": 5 },
            ]);
            let mut said = vec![json!({ "role": "user", "content": "lights on" })];
            let body = |said: &[Value]| json!({ "model": name, "messages": said, "tools": tools });
            let called = message(&home, body(&said), stream);
            assert_eq!(called["stop_reason"], "tool_use", "{called}");
            let calls = called["content"].as_array().unwrap();
            assert_eq!(calls.len(), 2, "{called}");
            assert_eq!(calls[1]["name"], "light");
            assert_eq!(calls[1]["input"], json!({ "name": "door" }));

            let result = |call: &Value, content: Value| json!({ "type": "tool_result", "tool_use_id": call["id"], "content": content });
            let results = json!([
                result(&calls[1], json!([{ "type": "text", "text": "of door" }])),
                result(&calls[0], json!("of hall")),
                { "type": "text", "text": "<system-reminder>Be quick.</system-reminder>" },
            ]);
            said.push(json!({ "role": "assistant", "content": calls }));
            said.push(json!({ "role": "user", "content": results }));
            let message = message(&home, body(&said), stream);
            assert_eq!(message["content"][0]["text"], "Both are on.", "{message}");
            let requests = model.requests();
            assert_eq!(requests.len(), 2, "the turn went on");
            let shown = requests[1]["messages"].to_string();
            for text in ["of door", "of hall", "Be quick."] {
                assert!(shown.contains(text), "{text}: {shown}");
            }
        }
    }
}

#[test]
fn thoughts_are_a_block_of_their_own() {
    let model = thinking();
    let home = home(&model);
    let said = json!([{ "role": "user", "content": "Coat?" }]);
    for stream in [false, true, false, true] {
        let thinking = json!({ "type": "enabled", "budget_tokens": 1024 });
        let body = json!({ "model": "hearth-plain", "messages": said, "thinking": thinking });
        let shown = message(&home, body.clone(), stream);
        let expected = json!([
            { "type": "thinking", "thinking": "It is wet.", "signature": "" },
            { "type": "text", "text": "Take a coat." },
        ]);
        assert_eq!(shown["content"], expected, "{shown}");
        let again = json!([
            said[0], { "role": "assistant", "content": expected },
            { "role": "user", "content": "Sure?" },
        ]);
        let body = json!({ "model": "hearth", "messages": again });
        let hidden = message(&home, body, stream);
        assert_eq!(hidden["content"], json!([expected[1]]), "{hidden}");
    }
}

/// As Claude Code sends it, shortened.
#[test]
fn what_programs_send_beside_is_taken_or_named() {
    let model = Model::saying("hi");
    let home = home(&model);
    let cached = json!({ "type": "ephemeral", "ttl": "1h" });
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
    let body = json!({
        "model": "hearth-plain", "max_tokens": 32000, "stream": true, "temperature": 1,
        "system": [
            { "type": "text", "text": "You are a tool.", "cache_control": cached },
            { "type": "text", "text": "Be exact." },
        ],
        "messages": [{ "role": "user", "content": [
            { "type": "text", "text": "<system-reminder>x</system-reminder>" },
            { "type": "image", "source":
                { "type": "base64", "media_type": "image/png", "data": pixel } },
            { "type": "text", "text": "hello", "cache_control": cached },
        ] }],
        "stop_sequences": ["END"], "tool_choice": { "type": "auto" },
        "tools": [{ "name": "Read", "description": "x", "input_schema": { "type": "object" } }],
        "metadata": { "user_id": "user_1" },
        "context_management": { "edits": [] },
        "output_config": { "effort": "medium" },
    });
    let authorization = bearer(&home.tokens.user);
    let headers = [
        ("authorization", authorization.as_str()),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "claude-code-20250219"),
    ];
    let path = format!("{MESSAGES}?beta=true");
    let answer = post(home.address(), &path, &headers, &body);
    assert_eq!(message_of(&events(&answer))["content"][0]["text"], "hi");
    let ignored = answer.header("x-hearth-ignored").unwrap();
    for name in [
        "metadata.user_id",
        "context_management",
        "output_config.effort",
    ] {
        assert!(ignored.contains(name), "{ignored}");
    }
    let sent = model.requests().pop().unwrap();
    assert_eq!(sent["stop"], json!(["END"]), "{sent}");
    assert_eq!(sent["tools"][0]["function"]["name"], "Read");
    assert_eq!(sent["messages"][0]["content"], "You are a tool.\nBe exact.");
    assert!(sent["messages"][1].to_string().contains(pixel), "{sent}");
}

#[test]
fn errors_and_keys_are_as_its_libraries_know_them() {
    let model = Model::start(|request, _| match request.to_string().contains("busy") {
        true => Act::error(429, "Retry-After: 1\r\n", "busy"),
        false => Act::say("hi"),
    });
    let home = home(&model);
    let said = |text: &str| json!([{ "role": "user", "content": text }]);
    for (key, body, status, kind) in [
        ("", json!({}), 401, "authentication_error"),
        ("wrong", json!({}), 401, "authentication_error"),
        (&home.tokens.viewer, json!({}), 403, "permission_error"),
        (
            &home.tokens.user,
            json!({ "model": "hearth" }),
            400,
            "invalid_request_error",
        ),
        (
            &home.tokens.user,
            json!({ "model": "claude-5", "messages": said("a") }),
            404,
            "not_found_error",
        ),
        (
            &home.tokens.user,
            json!({ "model": "hearth", "messages": said("busy") }),
            429,
            "rate_limit_error",
        ),
        (
            &home.tokens.user,
            json!({ "model": "hearth", "messages": said("a") }),
            200,
            "",
        ),
    ] {
        for path in [MESSAGES, "/v1/messages/count_tokens"] {
            // Nothing is asked to count.
            let (status, kind) = match (status, path == MESSAGES) {
                (429, false) => (200, ""),
                _ => (status, kind),
            };
            let answer = post(home.address(), path, &[("x-api-key", key)], &body);
            assert_eq!(answer.status, status, "{answer:?}");
            if !kind.is_empty() {
                let body = answer.json();
                assert_eq!(
                    (&body["type"], &body["error"]["type"]),
                    (&json!("error"), &json!(kind))
                );
                assert!(body["error"]["message"].is_string(), "{body}");
            }
        }
    }
    let wrong = get(home.address(), MESSAGES);
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    assert_eq!(wrong.json()["error"]["type"], "invalid_request_error");
    let nothing = get(home.address(), "/v1/messages/batches");
    assert_eq!(nothing.json()["error"]["type"], "not_found_error");
    let body = json!({ "model": "hearth", "messages": said("busy too"), "stream": true });
    let answer = ask(&home, MESSAGES, body);
    assert_eq!(answer.status, 429, "{answer:?}");
}

#[test]
fn tokens_are_counted_without_the_model() {
    let model = Model::saying("hi");
    let home = home(&model);
    let count = |body: Value| {
        let answer = ask(&home, "/v1/messages/count_tokens", body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["input_tokens"].as_u64().unwrap()
    };
    let said = json!([{ "role": "user", "content": "x".repeat(400) }]);
    let alone = count(json!({ "model": "hearth", "messages": said }));
    assert!((100..120).contains(&alone), "{alone}");
    let tools = json!([{ "name": "a", "description": "y".repeat(300), "input_schema": {} }]);
    let more =
        json!({ "model": "hearth", "messages": said, "tools": tools, "system": "Be brief." });
    assert!(count(more) > alone + 100);
    assert!(model.requests().is_empty());
}

//! The responses of one turn whose calls a client runs: what each says and took.

use serde_json::{Value, json};

use super::{COMPLETIONS, ask, bearer, conversations, events, home, text_of};
use support::http::post;
use support::model::{Act, Model};

/// Says something, calls `light` beside it, and answers; each round takes 11 and 7 tokens.
fn assistant() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let message = match messages.last().unwrap()["role"] == "tool" {
            true => json!({ "role": "assistant", "content": "It is on." }),
            false => json!({ "role": "assistant", "content": "Let me see.", "tool_calls": [
                { "id": "a", "type": "function",
                  "function": { "name": "light", "arguments": "{}" } },
            ] }),
        };
        Act::json(&json!({
            "choices": [{ "message": message }],
            "usage": { "prompt_tokens": 11, "completion_tokens": 7 },
        }))
    })
}

/// The message of a chat completion, whole or streamed, and its tokens.
fn message(answer: &support::http::Answer, stream: bool) -> (Value, Value) {
    if !stream {
        let mut answer = answer.json();
        let usage = answer["usage"]["total_tokens"].take();
        return (answer["choices"][0]["message"].take(), usage);
    }
    let events = events(answer);
    let mut message = json!({ "role": "assistant", "content": text_of(&events) });
    let mut calls = events
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"]);
    if let Some(calls) = calls.find(|calls| calls.is_array()) {
        message["tool_calls"] = calls.clone();
    }
    let usage = &events.last().unwrap()["usage"]["total_tokens"];
    (message, usage.clone())
}

#[test]
fn each_response_has_its_own_text_and_tokens() {
    for name in ["hearth", "hearth-plain"] {
        for stream in [false, true] {
            let model = assistant();
            let home = home(&model);
            let mut messages = vec![json!({ "role": "user", "content": "light on" })];
            let send = |messages: &[Value]| {
                let tool = json!({ "type": "function", "function": { "name": "light" } });
                let body = json!({ "model": name, "messages": messages, "tools": [tool],
                    "stream": stream, "stream_options": { "include_usage": true } });
                let answer = ask(&home, COMPLETIONS, body);
                assert_eq!(answer.status, 200, "{answer:?}");
                message(&answer, stream)
            };
            let (calls, usage) = send(&messages);
            let case = format!("{name} {stream}: {calls}");
            assert_eq!(calls["content"], "Let me see.", "{case}");
            assert_eq!(usage, 18, "{case}");
            let id = calls["tool_calls"][0]["id"].clone();
            messages.push(calls);
            messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "on" }));
            let (reply, usage) = send(&messages);
            assert_eq!(reply["content"], "It is on.", "{case}");
            assert_eq!(usage, 18, "{case}");
            let last = model.requests().pop().unwrap()["messages"].clone();
            let shown = last.to_string().matches("Let me see.").count();
            assert_eq!(shown, 1, "{case}: {last}");
            if name == "hearth" {
                assert_eq!(send(&messages), (reply.clone(), usage), "lost: {case}");
                messages.push(reply);
                messages.push(json!({ "role": "user", "content": "thanks" }));
                send(&messages);
                assert_eq!(conversations(&home).len(), 1, "{case}");
            }
        }
    }
}

#[test]
fn the_other_interfaces_have_it_too() {
    let model = assistant();
    let home = home(&model);
    let function = json!({ "name": "light" });
    let tool = json!({ "type": "function", "name": "light", "function": function });
    let answer = ask(
        &home,
        "/v1/responses",
        json!({ "model": "hearth", "input": "light on", "tools": [tool] }),
    );
    let answer = answer.json();
    let output = &answer["output"];
    assert_eq!(output[0]["content"][0]["text"], "Let me see.", "{answer}");
    assert_eq!(output[1]["type"], "function_call", "{answer}");
    assert_eq!(answer["usage"]["total_tokens"], 18, "{answer}");

    let mut messages = vec![json!({ "role": "user", "content": "lights" })];
    let send = |messages: &[Value]| {
        let body = json!({ "model": "hearth", "messages": messages, "tools": [tool],
            "stream": false });
        ask(&home, "/api/chat", body).json()
    };
    let answer = send(&messages);
    assert_eq!(answer["message"]["content"], "Let me see.", "{answer}");
    assert_eq!(answer["prompt_eval_count"], 11, "{answer}");
    messages.push(answer["message"].clone());
    messages.push(json!({ "role": "tool", "content": "on" }));
    let answer = send(&messages);
    assert_eq!(answer["message"]["content"], "It is on.", "{answer}");
    assert_eq!(answer["eval_count"], 7, "{answer}");
}

/// The calls that it must have are those of the client's tools.
#[test]
fn a_call_that_is_demanded_is_one_for_the_client() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let tools = request["tools"].to_string();
        match messages.last().unwrap()["role"] == "tool" {
            true => Act::say("It is on."),
            false if tools.contains("current_time") => Act::call("current_time", json!({})),
            false => Act::call("light", json!({})),
        }
    });
    let home = home(&model);
    let authorization = bearer(&home.tokens.user);
    let headers = [("authorization", &*authorization)];
    let named = json!({ "type": "function", "function": { "name": "light" } });
    for choice in [json!("required"), named.clone()] {
        let mut messages = vec![json!({ "role": "user", "content": "light on" })];
        let send = |messages: &[Value]| {
            let body = json!({ "model": "hearth", "messages": messages, "tools": [named],
                "tool_choice": choice });
            let answer = post(home.address(), COMPLETIONS, &headers, &body).json();
            answer["choices"][0].clone()
        };
        let calls = send(&messages);
        assert_eq!(calls["finish_reason"], "tool_calls", "{choice}: {calls}");
        assert_eq!(model.requests().pop().unwrap()["tool_choice"], choice);
        let id = &calls["message"]["tool_calls"][0]["id"];
        let result = json!({ "role": "tool", "tool_call_id": id, "content": "on" });
        messages.extend([calls["message"].clone(), result]);
        assert_eq!(send(&messages)["message"]["content"], "It is on.");
        // The household's tools are there again.
        let last = model.requests().pop().unwrap();
        assert!(last["tools"].to_string().contains("current_time"), "{last}");
        assert_eq!(last.get("tool_choice"), None);
    }
}

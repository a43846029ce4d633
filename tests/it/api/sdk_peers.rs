//! What the program sends to models, held against the types of the services' own libraries.
//! The first test records the requests; the others need a library from PyPI each, which they
//! install: `make test-peers`. Without Python or a network they say so and are skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use support::home::Home;
use support::peers;
use support::served::{Served, page};

/// Where requests and libraries are; kept from run to run.
fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-peers")
}

/// A kind of request, the provider whose requests are of that kind, and a model.
const KINDS: [(&str, &str, &str); 5] = [
    ("openai_chat", "openai", "gpt-4.1"),
    ("openai_responses", "openai", "gpt-5"),
    ("anthropic", "anthropic", "claude-opus-5"),
    ("ollama", "ollama", "qwen3"),
    ("mistral", "mistral", "mistral-large"),
];

/// What the model says: it calls a tool for as long as it may, and then answers.
fn answer(kind: &str, request: &Value) -> Value {
    let may_call = request["tools"].is_array()
        && request["tool_choice"] != "none"
        && request["tool_choice"]["type"] != "none";
    let usage =
        json!({"prompt_tokens": 1, "completion_tokens": 1, "input_tokens": 1, "output_tokens": 1});
    match (kind, may_call) {
        ("openai_chat" | "mistral", true) => json!({ "usage": usage, "choices": [{
            "finish_reason": "tool_calls",
            "message": { "role": "assistant", "content": "I look.", "tool_calls": [{
                "id": "call12345", "type": "function",
                "function": { "name": "current_time", "arguments": "{}" },
            }] },
        }] }),
        ("openai_chat" | "mistral", false) => json!({ "usage": usage, "choices": [{
            "finish_reason": "stop", "message": { "role": "assistant", "content": "Late." },
        }] }),
        ("openai_responses", true) => json!({ "status": "completed", "usage": usage, "output": [
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "aGk=" },
            { "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "current_time",
              "arguments": "{}", "status": "completed" },
        ] }),
        ("openai_responses", false) => json!({ "status": "completed", "usage": usage, "output": [
            { "type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "aGk=" },
            { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
              "content": [{ "type": "output_text", "text": "Late.", "annotations": [] }] },
        ] }),
        ("anthropic", true) => json!({
            "type": "message", "role": "assistant", "stop_reason": "tool_use", "usage": usage,
            "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "sig" },
                { "type": "redacted_thinking", "data": "aGk=" },
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "toolu_1", "name": "current_time", "input": {} },
            ],
        }),
        ("anthropic", false) => json!({
            "type": "message", "role": "assistant", "stop_reason": "end_turn", "usage": usage,
            "content": [{ "type": "text", "text": "Late." }],
        }),
        (_, true) => json!({ "done": true, "message": {
            "role": "assistant", "content": "I look.", "thinking": "Hm.",
            "tool_calls": [{ "function": { "name": "current_time", "arguments": {} } }],
        } }),
        (_, false) => {
            json!({ "done": true, "message": { "role": "assistant", "content": "Late." } })
        }
    }
}

/// The requests of one kind: two turns with a tool and without more rounds for it, streamed
/// and whole, one of them with a picture.
fn record(kind: &'static str, provider: &str, model: &str) -> PathBuf {
    let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
    let served = Served::answering({
        let requests = Arc::clone(&requests);
        move |head, body| {
            let Ok(request) = serde_json::from_slice::<Value>(body) else {
                return Some(page("application/json", "{}").into_bytes().into());
            };
            if head.contains("/api/show") {
                return Some(page("application/json", "{}").into_bytes().into());
            }
            if kind == "openai_responses" && !head.contains("/responses") {
                let refusal = json!({ "error": { "message":
                    "this model is only supported in v1/responses and not in v1/chat/completions" } });
                let answer = page("application/json", &refusal.to_string());
                return Some(
                    answer
                        .replace("200 OK", "404 Not Found")
                        .into_bytes()
                        .into(),
                );
            }
            let answer = answer(kind, &request);
            requests.lock().unwrap().push(request);
            Some(
                page("application/json", &answer.to_string())
                    .into_bytes()
                    .into(),
            )
        }
    });
    let mut config = json!({
        "provider": provider, "model": model, "api_key": "test-key",
        "base_url": format!("http://{}", served.address),
        "permission_mode": "allow", "max_tokens": 2_000,
        "reasoning_effort": "low", "limits": { "tool_rounds": 1 },
    });
    // Anthropic's library has no temperature any more. Its older models take one, and a newer
    // one that refuses it gets none.
    if kind != "anthropic" {
        config["temperature"] = json!(0.5);
    }
    let home = Home::start(config);
    let mut client = home.admin();
    let first = client.chat("How late is it?");
    let png = crate::service::attachments::PNG;
    let picture =
        crate::service::attachments::uploaded(home.address(), &home.tokens.admin, "a.png", png);
    client.send(&json!({
        "type": "chat", "message": "And now?", "conversation_id": first["conversation_id"],
        "stream": true, "id": 2, "attachments": [picture["attachment_id"]],
    }));
    let reply = client.response();
    let said = reply["data"]["response"].as_str().unwrap();
    assert!(said.ends_with("Late."), "{kind}: {reply}");
    fs::create_dir_all(place()).unwrap();
    let file = place().join(format!("{kind}.jsonl"));
    let requests = requests.lock().unwrap();
    assert!(requests.len() >= 4, "{kind}: {requests:?}");
    let lines: String = requests
        .iter()
        .map(|request| format!("{request}\n"))
        .collect();
    fs::write(&file, lines).unwrap();
    file
}

#[test]
fn requests_of_every_kind_are_recorded() {
    for (kind, provider, model) in KINDS {
        let file = record(kind, provider, model);
        let text = fs::read_to_string(file).unwrap();
        let words = match kind {
            "ollama" => text.contains("\"tool_name\""),
            _ => text.contains("\"tool_choice\""),
        };
        assert!(words && text.contains("current_time"), "{kind}: {text}");
    }
}

fn check(kind: &'static str) {
    let Some(programs) = peers::SERVICES.installed() else {
        return;
    };
    let (_, provider, model) = KINDS.iter().find(|(name, ..)| *name == kind).unwrap();
    let file = record(kind, provider, model);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sdk_types.py");
    peers::script(
        Command::new(programs.join("python"))
            .arg(script)
            .arg(kind)
            .arg(file),
    );
}

#[test]
#[ignore = "installs openai from PyPI: make test-peers"]
fn openais_types_know_every_member() {
    check("openai_chat");
    check("openai_responses");
}

#[test]
#[ignore = "installs anthropic from PyPI: make test-peers"]
fn anthropics_types_know_every_member() {
    check("anthropic");
}

#[test]
#[ignore = "installs ollama from PyPI: make test-peers"]
fn ollamas_types_know_every_member() {
    check("ollama");
}

#[test]
#[ignore = "installs mistralai from PyPI: make test-peers"]
fn mistrals_types_know_every_member() {
    check("mistral");
}

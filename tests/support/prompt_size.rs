//! How large the request for a person's "hello" is, on each surface and in each kind of API.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::served::{Served, ok};

/// A request of the server.
pub struct Sent {
    /// The kind of API, the surface, and whether the reply is streamed.
    pub how: String,
    pub bytes: usize,
    pub body: Value,
}

/// What the server sends for "hello", with all default tools, in every form.
pub fn hello() -> Vec<Sent> {
    let mut all = Vec::new();
    for (api, provider, model) in [
        ("/chat/completions", "openai-compatible", "gpt-4.1-mini"),
        ("/responses", "openai-compatible", "gpt-5-mini"),
        ("/messages", "anthropic", "claude-sonnet-4-5"),
        ("/api/chat", "ollama", "llama3.2"),
    ] {
        let sent: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
        let served = Served::answering({
            let sent = Arc::clone(&sent);
            move |head, body| Some(answer(api, head, body, &sent))
        });
        let mut config = json!({
            "provider": provider, "base_url": format!("http://{}", served.address), "model": model,
            "context_tokens": 128_000,
        });
        if provider != "ollama" {
            config["api_key"] = json!("k");
        }
        let home = Home::start(config);
        for surface in ["page", "terminal", "voice", "plain"] {
            for stream in [false, true] {
                home.admin().ask(json!({
                    "type": "chat", "message": "hello", "surface": surface, "stream": stream,
                }));
                let body = sent.lock().unwrap().take().unwrap();
                let streamed = if stream { ", streamed" } else { "" };
                all.push(Sent {
                    how: format!("{api}, {surface}{streamed}"),
                    bytes: body.len(),
                    body: serde_json::from_slice(&body).unwrap(),
                });
            }
        }
    }
    all
}

/// What the model's server answers; keeps the requests of turns.
fn answer(api: &str, head: &str, body: &[u8], sent: &Mutex<Option<Vec<u8>>>) -> Arc<[u8]> {
    let path = head.split(' ').nth(1).unwrap_or_default();
    if !path.ends_with(api) {
        // So that the Responses interface is used.
        let text = "This model is only supported in v1/responses and not in v1/chat/completions.";
        let error = json!({ "error": { "message": text } }).to_string();
        let length = error.len();
        let head = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n";
        return format!("{head}Content-Length: {length}\r\n\r\n{error}")
            .into_bytes()
            .into();
    }
    let request: Value = serde_json::from_slice(body).unwrap();
    // Without tools, it asks for a title.
    if request["tools"].is_array() {
        *sent.lock().unwrap() = Some(body.to_owned());
    }
    let text = json!([{ "type": "text", "text": "Hi" }]);
    let message = json!({ "role": "assistant", "content": "Hi" });
    let reply = match api {
        "/chat/completions" => json!({ "choices": [{ "message": message }] }),
        "/responses" => json!({ "output": [{ "type": "message", "content": text }] }),
        "/messages" => json!({ "content": text, "stop_reason": "end_turn" }),
        _ => json!({ "message": message, "done": true }),
    };
    ok("application/json", &reply.to_string())
        .into_bytes()
        .into()
}

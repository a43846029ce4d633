//! A model that answers at once, after a while, or never: OpenAI's Chat
//! Completions, with an answer that is ready beforehand.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;

use crate::served::{Served, ok};

/// When the model answers.
#[derive(Clone, Copy)]
pub enum Pace {
    AtOnce,
    After(Duration),
    Never,
}

/// The running model.
pub struct Model {
    served: Served,
    first: Arc<OnceLock<Request>>,
    /// Those who wait for an answer that never comes wait for this to go.
    _stalled: Sender<()>,
}

/// A request as it came.
pub struct Request {
    pub head: Vec<u8>,
    pub body: Vec<u8>,
}

impl Request {
    /// The bytes that were on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), self.body.as_slice()].concat()
    }
}

impl Model {
    pub fn start(pace: Pace) -> Model {
        let first = Arc::new(OnceLock::new());
        let (stalled, waiting) = channel::<()>();
        let waiting = Mutex::new(waiting);
        let (whole, streamed) = (whole(), streamed());
        let recorded = Arc::clone(&first);
        let served = Served::start(Arc::new(move |head, body| {
            recorded.get_or_init(|| Request {
                head: head.to_vec(),
                body: body.to_vec(),
            });
            match pace {
                Pace::AtOnce => {}
                Pace::After(time) => std::thread::sleep(time),
                Pace::Never => {
                    let _ = waiting.lock().ok()?.recv();
                    return None;
                }
            }
            let streams = body.windows(13).any(|window| window == br#""stream":true"#);
            Some(Arc::clone(if streams { &streamed } else { &whole }))
        }));
        Model {
            served,
            first,
            _stalled: stalled,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.served.address
    }

    /// The first request that came.
    pub fn first_request(&self) -> &Request {
        self.first.get().expect("the model was asked")
    }
}

fn whole() -> Arc<[u8]> {
    let body = json!({
        "id": "scripted", "object": "chat.completion", "model": "scripted",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": "Hello there." },
        }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    });
    ok("application/json", &body.to_string())
}

fn streamed() -> Arc<[u8]> {
    let chunk = |delta, reason: Option<&str>| {
        json!({
            "id": "scripted", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        })
    };
    let chunks = [
        chunk(json!({ "role": "assistant", "content": "" }), None),
        chunk(json!({ "content": "Hello" }), None),
        chunk(json!({ "content": " there." }), None),
        chunk(json!({}), Some("stop")),
        json!({
            "choices": [],
            "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
        }),
    ];
    let mut text: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    text.push_str("data: [DONE]\n\n");
    ok("text/event-stream", &text)
}

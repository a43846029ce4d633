//! A model that answers at once or never: OpenAI's Chat Completions, with an answer that is
//! ready beforehand.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::json;
use support::model::{streamed, whole};
use support::served::Served;

/// What it says.
pub const SAYS: &str = "Hello there.";

/// The running model.
pub struct Model {
    served: Served,
    last: Arc<Mutex<Vec<u8>>>,
    /// Those who wait for an answer that never comes wait for this to go.
    _stalled: Sender<()>,
}

impl Model {
    pub fn instant() -> Model {
        Model::start(true)
    }

    /// One that never answers.
    pub fn stalled() -> Model {
        Model::start(false)
    }

    fn start(answers: bool) -> Model {
        let last = Arc::new(Mutex::new(Vec::new()));
        let (stalled, waiting) = channel::<()>();
        let waiting = Mutex::new(waiting);
        let message = json!({ "role": "assistant", "content": SAYS });
        let [whole, streamed] = [whole(&message, "stop"), streamed(&message, "stop")]
            .map(|response| Arc::<[u8]>::from(response.into_bytes()));
        let kept = Arc::clone(&last);
        let served = Served::answering(move |head, body| {
            *kept.lock().ok()? = [head.as_bytes(), body].concat();
            if !answers {
                let _ = waiting.lock().ok()?.recv();
                return None;
            }
            let streams = body.windows(13).any(|window| window == br#""stream":true"#);
            Some(Arc::clone(if streams { &streamed } else { &whole }))
        });
        Model {
            served,
            last,
            _stalled: stalled,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.served.address
    }

    /// The bytes of the last request.
    pub fn last_request(&self) -> Vec<u8> {
        self.last.lock().unwrap().clone()
    }
}

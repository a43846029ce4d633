//! A model that answers at once, after a while, or never: OpenAI's Chat
//! Completions, with an answer that is ready beforehand.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;

use support::model::{streamed, whole};
use support::served::Served;

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
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    /// The bytes that were on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }
}

impl Model {
    pub fn start(pace: Pace) -> Model {
        let first = Arc::new(OnceLock::new());
        let (stalled, waiting) = channel::<()>();
        let waiting = Mutex::new(waiting);
        let message = json!({ "role": "assistant", "content": "Hello there." });
        let [whole, streamed] = [whole(&message, "stop"), streamed(&message, "stop")]
            .map(|response| Arc::<[u8]>::from(response.into_bytes()));
        let recorded = Arc::clone(&first);
        let served = Served::answering(move |head, body| {
            recorded.get_or_init(|| Request {
                head: head.to_owned(),
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
        });
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

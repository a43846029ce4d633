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
    longest: Arc<Mutex<Option<Request>>>,
    /// Those who wait for an answer that never comes wait for this to go.
    _stalled: Sender<()>,
}

/// A request as it came.
#[derive(Clone)]
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
        let longest = Arc::new(Mutex::new(None::<Request>));
        let (stalled, waiting) = channel::<()>();
        let waiting = Mutex::new(waiting);
        let message = json!({ "role": "assistant", "content": "Hello there." });
        let [whole, streamed] = [whole(&message, "stop"), streamed(&message, "stop")]
            .map(|response| Arc::<[u8]>::from(response.into_bytes()));
        let (recorded, grows) = (Arc::clone(&first), Arc::clone(&longest));
        let served = Served::answering(move |head, body| {
            let request = || Request {
                head: head.to_owned(),
                body: body.to_vec(),
            };
            recorded.get_or_init(request);
            let mut longest = grows.lock().ok()?;
            if longest
                .as_ref()
                .is_none_or(|longest| longest.body.len() < body.len())
            {
                *longest = Some(request());
            }
            drop(longest);
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
            longest,
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

    /// The longest request that came.
    pub fn longest_request(&self) -> Request {
        let longest = self.longest.lock().unwrap();
        longest.clone().expect("the model was asked")
    }
}

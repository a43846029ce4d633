//! A receiver of webhook callbacks.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use super::MAX_WAIT;
use super::schema::PROTOCOL;
use super::served::{Served, read_request};

/// One callback as it came.
#[derive(Clone, Debug)]
pub struct Callback {
    pub head: String,
    pub body: Value,
    pub raw: Vec<u8>,
}

impl Callback {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// The status that a callback gets, by its number from 0.
type Answer = Box<dyn Fn(&Callback, usize) -> String + Send + Sync>;

struct Shared {
    answer: Answer,
    callbacks: Mutex<Vec<Callback>>,
    came: Condvar,
}

/// The running receiver.
pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _served: Served,
}

impl Receiver {
    /// Takes every callback.
    pub fn start() -> Receiver {
        Receiver::answering(|_, _| "200 OK".to_owned())
    }

    /// Answers each callback with a status line's rest, perhaps with headers
    /// after a `\r\n`.
    pub fn answering(
        answer: impl Fn(&Callback, usize) -> String + Send + Sync + 'static,
    ) -> Receiver {
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            callbacks: Mutex::default(),
            came: Condvar::new(),
        });
        let served = {
            let shared = Arc::clone(&shared);
            Served::start(move |socket| serve(socket, &shared))
        };
        Receiver {
            address: served.address,
            shared,
            _served: served,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/callback", self.address)
    }

    /// The callbacks so far. Those of webhook accounts fit the schema of the protocol.
    pub fn callbacks(&self) -> Vec<Callback> {
        checked(self.shared.callbacks.lock().unwrap().clone())
    }

    /// Waits until so many callbacks have come, which fit the schema as well.
    pub fn wait_for(&self, count: usize) -> Vec<Callback> {
        let callbacks = self.shared.callbacks.lock().unwrap();
        let (callbacks, waited) = self
            .shared
            .came
            .wait_timeout_while(callbacks, MAX_WAIT, |callbacks| callbacks.len() < count)
            .unwrap();
        assert!(
            !waited.timed_out(),
            "{} of {count} callbacks came",
            callbacks.len()
        );
        checked(callbacks.clone())
    }
}

fn checked(callbacks: Vec<Callback>) -> Vec<Callback> {
    for callback in &callbacks {
        // What a phone's service gets has another form, and no id.
        if callback.header("webhook-id").is_some() {
            let problems = PROTOCOL.callback(&callback.body);
            assert!(problems.is_empty(), "{problems:#?}: {}", callback.body);
        }
    }
    callbacks
}

fn serve(socket: TcpStream, shared: &Shared) {
    socket.set_read_timeout(Some(MAX_WAIT)).unwrap();
    let mut reader = BufReader::new(socket);
    while let Some((head, raw)) = read_request(&mut reader) {
        let body = serde_json::from_slice(&raw).unwrap_or(Value::Null);
        let callback = Callback { head, body, raw };
        let number = shared.callbacks.lock().unwrap().len();
        let status = (shared.answer)(&callback, number);
        shared.callbacks.lock().unwrap().push(callback);
        shared.came.notify_all();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

//! A scripted server that speaks Telegram's Bot API
//! (<https://core.telegram.org/bots/api>).

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::MAX_WAIT;
use super::served::{Served, read_request};

/// The token of its bot. Nothing may print it.
pub const TOKEN: &str = "4242:AAH-secret-of-the-bot";

/// A request: the method and its body.
pub type Call = (String, Value);

/// A status and a body, or no answer at all.
type Answer = Option<(u16, Value)>;

#[derive(Default)]
struct State {
    updates: Vec<Value>,
    calls: Vec<Call>,
    /// What the next requests of a method get instead.
    scripts: Vec<(String, VecDeque<Answer>)>,
    /// How often the long polls that wait were ended.
    ends: u32,
    is_over: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The running server.
pub struct Telegram {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _served: Served,
}

impl Telegram {
    pub fn start() -> Telegram {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let served = {
            let shared = Arc::clone(&shared);
            Served::start(move |socket| serve(socket, &shared))
        };
        Telegram {
            address: served.address,
            shared,
            _served: served,
        }
    }

    /// The channel that uses it.
    pub fn channel(&self) -> Value {
        let base_url = format!("http://{}", self.address);
        json!({ "name": "bot", "type": "telegram", "bot_token": TOKEN, "base_url": base_url })
    }

    /// The next requests of this method get these answers; none hangs up.
    pub fn script(&self, method: &str, answers: impl IntoIterator<Item = Answer>) {
        let mut state = self.shared.state.lock().unwrap();
        let answers = answers.into_iter().collect();
        state.scripts.push((method.to_owned(), answers));
    }

    /// Something happens: an update, with its number or without, which is returned.
    pub fn happens(&self, mut update: Value) -> i64 {
        let mut state = self.shared.state.lock().unwrap();
        let next = 100 + state.updates.len() as i64;
        let id = update["update_id"].as_i64().unwrap_or(next);
        update["update_id"] = json!(id);
        state.updates.push(update);
        self.shared.changed.notify_all();
        id
    }

    /// The long poll that waits is answered now, as if its time were over.
    pub fn end_poll(&self) {
        self.shared.state.lock().unwrap().ends += 1;
        self.shared.changed.notify_all();
    }

    /// Somebody sends a message with these members in their private chat.
    pub fn sends(&self, chat: i64, members: Value) -> i64 {
        let mut message = members;
        message["message_id"] = json!(7);
        message["chat"] = json!({ "id": chat, "type": "private" });
        message["from"] = json!({ "id": chat, "is_bot": false, "first_name": "Somebody" });
        self.happens(json!({ "message": message }))
    }

    /// Somebody says this.
    pub fn says(&self, chat: i64, text: &str) -> i64 {
        self.sends(chat, json!({ "text": text }))
    }

    /// All requests so far of this method.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        let state = self.shared.state.lock().unwrap();
        let calls = state.calls.iter().filter(|(known, _)| known == method);
        calls.map(|(_, body)| body.clone()).collect()
    }

    /// Waits until there are so many.
    pub fn wait_for(&self, method: &str, count: usize) -> Vec<Value> {
        let is_short = |state: &mut State| {
            let calls = state.calls.iter().filter(|(known, _)| known == method);
            calls.count() < count
        };
        let state = self.shared.state.lock().unwrap();
        let (state, waited) = (self.shared.changed)
            .wait_timeout_while(state, MAX_WAIT, is_short)
            .unwrap();
        assert!(!waited.timed_out(), "{method} {count}: {:#?}", state.calls);
        drop(state);
        self.calls(method)
    }

    /// What a chat was told, of the messages that were accepted or not.
    pub fn told(&self, chat: i64) -> Vec<String> {
        let sent = self.calls("sendMessage").into_iter();
        let sent =
            sent.filter(|one| one["chat_id"].to_string().trim_matches('"') == chat.to_string());
        sent.map(|one| one["text"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for Telegram {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().is_over = true;
        self.shared.changed.notify_all();
    }
}

fn serve(socket: TcpStream, shared: &Shared) {
    socket.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(socket);
    while let Some((head, body)) = read_request(&mut reader) {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let (status, body) = if let Some(file) = path.strip_prefix(&format!("/file/bot{TOKEN}/")) {
            (200, format!("the bytes of {file}"))
        } else {
            let answer = match path.strip_prefix(&format!("/bot{TOKEN}/")) {
                Some(method) => answer(
                    method,
                    // A form with a file is kept as it is.
                    &serde_json::from_slice(&body)
                        .unwrap_or_else(|_| json!(String::from_utf8_lossy(&body))),
                    shared,
                ),
                None => Some((401, refusal(401, "Unauthorized"))),
            };
            let Some((status, body)) = answer else { return };
            (status, body.to_string())
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status} So\r\nContent-Length: {length}\r\n\r\n");
        if reader
            .get_mut()
            .write_all((head + &body).as_bytes())
            .is_err()
        {
            return;
        }
    }
}

/// The body of a refusal.
pub fn refusal(status: u16, description: &str) -> Value {
    json!({ "ok": false, "error_code": status, "description": description })
}

fn answer(method: &str, body: &Value, shared: &Shared) -> Answer {
    let mut state = shared.state.lock().unwrap();
    state.calls.push((method.to_owned(), body.clone()));
    shared.changed.notify_all();
    let script = state
        .scripts
        .iter_mut()
        .find(|(known, answers)| known == method && !answers.is_empty());
    if let Some((_, answers)) = script {
        return answers.pop_front().unwrap();
    }
    let result = match method {
        "getUpdates" => {
            let offset = body["offset"].as_i64().unwrap_or_default();
            let new = |state: &State| -> Vec<Value> {
                let updates = state.updates.iter();
                let new = updates.filter(|one| one["update_id"].as_i64().unwrap() >= offset);
                new.cloned().collect()
            };
            let limit = Duration::from_secs(body["timeout"].as_u64().unwrap_or_default());
            let ends = state.ends;
            let waits =
                |state: &mut State| !state.is_over && state.ends == ends && new(state).is_empty();
            let (state, _) = shared
                .changed
                .wait_timeout_while(state, limit, waits)
                .unwrap();
            return Some((200, json!({ "ok": true, "result": new(&state) })));
        }
        "getFile" => json!({ "file_path": format!("files/{}", body["file_id"].as_str().unwrap()) }),
        _ => json!(true),
    };
    Some((200, json!({ "ok": true, "result": result })))
}

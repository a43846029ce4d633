//! A scripted model server that speaks OpenAI's Chat Completions.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::MAX_WAIT;
use super::served::{Served, ok, read_request};

/// Longer than anybody waits for the model, so that a test that wants an answer
/// without it cannot get one from it.
const LONG: Duration = Duration::from_secs(10 * MAX_WAIT.as_secs());

/// What the model does with one request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers with this text.
    Say(String),
    /// Calls tools: name and arguments.
    Call(Vec<(String, Value)>),
    /// Sends these bytes as they are and closes.
    Raw(String),
    /// Waits until [`Model::release`], then answers with this text.
    Stall(String),
    /// Streams half of this text, waits until [`Model::release`], and goes on.
    Pause(String),
}

impl Act {
    pub fn say(text: &str) -> Act {
        Act::Say(text.to_owned())
    }

    pub fn call(tool: &str, arguments: Value) -> Act {
        Act::Call(vec![(tool.to_owned(), arguments)])
    }

    /// This body, whole.
    pub fn json(body: &Value) -> Act {
        Act::http("200 OK", "", body)
    }

    /// A reply whose tokens are counted like this.
    pub fn counted(text: &str, usage: &Value) -> Act {
        Act::json(&json!({
            "choices": [{ "message": { "content": text }, "finish_reason": "stop" }],
            "usage": usage,
        }))
    }

    /// An HTTP error with a JSON body.
    pub fn error(status: u16, headers: &str, message: &str) -> Act {
        let status = format!("{status} Scripted");
        Act::http(
            &status,
            headers,
            &json!({ "error": { "message": message } }),
        )
    }

    fn http(status: &str, headers: &str, body: &Value) -> Act {
        let body = body.to_string();
        Act::Raw(format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ))
    }
}

type Script = Box<dyn Fn(&Value, usize) -> Act + Send + Sync>;

struct Shared {
    script: Script,
    requests: Mutex<Vec<Value>>,
    /// The answer to every GET.
    about: Mutex<String>,
    came: Condvar,
    released: (Mutex<bool>, Condvar),
}

impl Shared {
    fn wait_for_release(&self) {
        let (released, told) = &self.released;
        let released = released.lock().unwrap();
        let waited = told.wait_timeout_while(released, LONG, |is| !*is);
        drop(waited.unwrap());
    }
}

/// The running server.
pub struct Model {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _served: Served,
}

impl Model {
    /// A model whose every request is answered by `script`, which gets the
    /// request's JSON and its number from 0.
    pub fn start(script: impl Fn(&Value, usize) -> Act + Send + Sync + 'static) -> Model {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            about: Mutex::new(answer(404, "")),
            came: Condvar::new(),
            released: Default::default(),
        });
        let served = {
            let shared = Arc::clone(&shared);
            Served::start(move |socket| serve(socket, &shared))
        };
        Model {
            address: served.address,
            shared,
            _served: served,
        }
    }

    /// From now on answers questions about itself (GET) so.
    pub fn says_of_itself(&self, status: u16, body: &str) {
        *self.shared.about.lock().unwrap() = answer(status, body);
    }

    /// A model that answers every message with the same text.
    pub fn saying(text: &'static str) -> Model {
        Model::start(move |_, _| Act::say(text))
    }

    /// A model that goes through these acts and repeats the last.
    pub fn acting(acts: Vec<Act>) -> Model {
        Model::start(move |_, number| acts[number.min(acts.len() - 1)].clone())
    }

    /// The configuration that uses it.
    pub fn config(&self) -> Value {
        json!({
            "provider": "openai-compatible",
            "base_url": format!("http://{}/v1", self.address),
            "model": "scripted",
            "permission_mode": "allow",
            // Scripts count the requests of turns.
            "titles": false,
        })
    }

    /// The same with these settings, too.
    pub fn config_with(&self, more: Value) -> Value {
        let mut config = self.config();
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        config
    }

    /// Lets every stalled request go on.
    pub fn release(&self) {
        *self.shared.released.0.lock().unwrap() = true;
        self.shared.released.1.notify_all();
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub fn wait_for_requests(&self, count: usize) -> Vec<Value> {
        let requests = self.shared.requests.lock().unwrap();
        let (requests, waited) = self
            .shared
            .came
            .wait_timeout_while(requests, MAX_WAIT, |requests| requests.len() < count)
            .unwrap();
        assert!(
            !waited.timed_out(),
            "{} of {count} model requests came",
            requests.len()
        );
        requests.clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.release();
    }
}

fn answer(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} So\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn serve(socket: TcpStream, shared: &Shared) {
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let mut reader = BufReader::new(socket);
    while let Some((head, body)) = read_request(&mut reader) {
        // Questions for its window.
        if head.starts_with("GET ") {
            let answer = shared.about.lock().unwrap().clone();
            if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
            continue;
        }
        let request: Value = serde_json::from_slice(&body).unwrap();
        let number = {
            let mut requests = shared.requests.lock().unwrap();
            requests.push(request.clone());
            shared.came.notify_all();
            requests.len() - 1
        };
        let mut pauses = false;
        let (message, reason) = match (shared.script)(&request, number) {
            Act::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
            Act::Call(calls) => (calling(&calls, number), "tool_calls"),
            Act::Raw(bytes) => {
                let _ = reader.get_mut().write_all(bytes.as_bytes());
                return;
            }
            Act::Pause(text) => {
                pauses = true;
                (json!({ "role": "assistant", "content": text }), "stop")
            }
            Act::Stall(text) => {
                shared.wait_for_release();
                (json!({ "role": "assistant", "content": text }), "stop")
            }
        };
        let answer = match request["stream"] == true {
            true => streamed(&message, reason),
            false => whole(&message, reason),
        };
        let half = answer[..answer.len() / 2].rfind("data: ").unwrap_or(0);
        let (first, rest) = answer.split_at(if pauses { half } else { 0 });
        if reader.get_mut().write_all(first.as_bytes()).is_err() {
            return;
        }
        if pauses {
            shared.wait_for_release();
        }
        if reader.get_mut().write_all(rest.as_bytes()).is_err() {
            return;
        }
    }
}

fn calling(calls: &[(String, Value)], number: usize) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(place, (tool, arguments))| {
            json!({
                "id": format!("call_{number}_{place}"), "type": "function",
                "function": { "name": tool, "arguments": arguments.to_string() },
            })
        })
        .collect();
    json!({ "role": "assistant", "content": "", "tool_calls": calls })
}

/// A response that holds the message.
pub fn whole(message: &Value, reason: &str) -> String {
    let body = json!({
        "id": "scripted", "object": "chat.completion", "model": "scripted",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    });
    ok("application/json", &body.to_string())
}

/// A response that streams the message as server-sent events, a word at a time.
pub fn streamed(message: &Value, reason: &str) -> String {
    let mut chunks = Vec::new();
    let mut push = |delta: Value, reason: Value| {
        chunks.push(json!({
            "id": "scripted", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        }));
    };
    push(json!({ "role": "assistant", "content": "" }), Value::Null);
    for word in message["content"].as_str().unwrap().split_inclusive(' ') {
        push(json!({ "content": word }), Value::Null);
    }
    for (index, call) in message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let mut call = call.clone();
        call["index"] = json!(index);
        push(json!({ "tool_calls": [call] }), Value::Null);
    }
    push(json!({}), json!(reason));
    chunks.push(json!({
        "choices": [],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    }));
    let mut text: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    text.push_str("data: [DONE]\n\n");
    ok("text/event-stream", &text)
}

/// A text of a request without the times behind the speakers' names:
/// `[ann, Sat 2026-11-21 09:30]` becomes `[ann]`.
pub fn without_times(text: &str) -> String {
    const TIME: &str = ", Sat 2026-11-21 09:30]";
    let is_time = |text: &str| {
        text.chars()
            .zip(TIME.chars())
            .all(|(one, like)| match like {
                '0'..='9' => one.is_ascii_digit(),
                'A'..='Z' | 'a'..='z' => one.is_ascii_alphabetic(),
                _ => one == like,
            })
    };
    let mut rest = text;
    let mut without = String::new();
    while let Some(place) = rest.find(", ") {
        let (before, after) = rest.split_at(place);
        without.push_str(before);
        match after.get(..TIME.len()).is_some_and(is_time) {
            true => rest = &after[TIME.len() - 1..],
            false => {
                without.push_str(", ");
                rest = &after[2..];
            }
        }
    }
    without + rest
}

//! `ask`: one turn of the household's assistant as a tool of other assistants.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::super::answer::new_waker;
use super::super::form::{KEEP_ALIVE, stream_head};
use super::message::{self, Fault, REFUSED, Request, Revision};
use super::{Exchange, SESSION};
use crate::http::share;
use crate::service::Service;
use crate::service::turn_stream::{Question, TurnProgress, TurnStream};
use agent::message_text::MCP_CHANNEL;
use agent::model::ToolSpec;
use agent::tool::check_arguments;
use base::error::Error;
use base::ids::{TokenId, TurnId};
use base::sync::lock;
use net::http::{Answer, DeferredResponse, Head, Response, ResponsePart};
use net::wait::Waker;
use protocol::command::check_message;
use store::{Identity, Viewer};

/// The tool's name.
pub const NAME: &str = "ask";
/// Most bytes of a chat's name.
const CHAT_BYTES: usize = 200;
/// How often a client is told that the reply is being written.
const PROGRESS: Duration = Duration::from_secs(1);

/// The tool.
pub fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Ask the household's assistant, which has its own memory and tools, such as \
            for the house. It answers once; it may take a minute."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "message": {"type": "string", "description": "Clear alone"},
                "chat": {
                    "type": "string",
                    "description": "Any name; the same again goes on with that conversation",
                },
            },
            "required": ["message"],
        })
        .into(),
    }
}

/// A call of it.
pub struct Asked<'a> {
    pub exchange: &'a Exchange<'a>,
    pub request: &'a Request,
    pub revision: Revision,
}

/// Which turn a request has begun: by token, session and request id.
type Key = (TokenId, String, String);

/// The turns that are under way, for `notifications/cancelled`.
#[derive(Default)]
pub struct Running(Mutex<Vec<(Key, TurnId)>>);

impl Running {
    /// Stops the turn of a request. None where several have its id: two programs with one
    /// token and no sessions cannot be told apart.
    pub fn cancel(&self, service: &Service, by: &Identity, head: &Head, id: &Value) {
        let key = key(by, head, id);
        let turns: Vec<TurnId> = {
            let running = lock(&self.0);
            let of_key = running.iter().filter(|(known, _)| *known == key);
            of_key.map(|(_, turn)| *turn).collect()
        };
        if let [turn] = turns[..] {
            stop(service, turn);
        }
    }
}

fn key(by: &Identity, head: &Head, id: &Value) -> Key {
    let session = head.header(SESSION).unwrap_or_default();
    (by.token_id, session.to_owned(), id.to_string())
}

fn stop(service: &Service, turn: TurnId) {
    let by = "the assistant that asked";
    if let Err(error) = service.cancel(&Viewer::server(), turn, by) {
        log::warn!("{turn}: it could not be stopped: {error}");
    }
}

/// Begins a turn. What is wrong with the arguments is a result, too, so that a model reads it.
///
/// # Errors
/// Those of [`Service::follow`]; a call without a name.
pub fn ask(
    service: &Arc<Service>,
    running: &Arc<Running>,
    asked: &Asked<'_>,
) -> Result<Answer, Fault> {
    let (exchange, request) = (asked.exchange, asked.request);
    let (_, arguments) = request.call()?;
    let arguments = match checked(&arguments) {
        Ok(arguments) => arguments,
        Err(why) => {
            let result = message::called(Err(why));
            let response = message::result_of(&request.id, result, asked.revision);
            return Ok(Answer::Now(response));
        }
    };
    let text = |name| arguments.get(name).and_then(Value::as_str).map(str::trim);
    let message = text("message").unwrap_or_default();
    let chat = text("chat").filter(|chat| !chat.is_empty());
    let refused = |error: Error| Fault::new(REFUSED, error.message());
    let waker = new_waker(exchange.head).map_err(refused)?;
    let wake = Arc::clone(&waker);
    let takes_stream = exchange
        .head
        .header("accept")
        .is_some_and(|accept| accept.contains("text/event-stream"));
    let token = request.meta("progressToken");
    let token = token.filter(|token| token.is_string() || token.is_number());
    let token = token.filter(|_| takes_stream).cloned();
    let question = Question {
        history: Vec::new(),
        // Beside the names of the model API's programs.
        chat: chat.map(|chat| format!("mcp:{chat}")),
        message: message.to_owned(),
        files: Vec::new(),
        instructions: None,
        idempotency: None,
        channel: MCP_CHANNEL,
        program: None,
        stream: token.is_some(),
    };
    let followed = service.follow(exchange.asker, question, move || wake.wake());
    let turn_stream = followed.map_err(refused)?;
    let key = key(exchange.by, exchange.head, &request.id);
    lock(&running.0).push((key, turn_stream.turn()));
    let now = Instant::now();
    let mut shared = Response::empty(200);
    share(exchange.head, exchange.config, &mut shared);
    let mut asking = Asking {
        running: Arc::clone(running),
        waker,
        turn_stream,
        id: request.id.clone(),
        revision: asked.revision,
        takes_stream,
        token,
        progress: 0,
        next_progress: now,
        next_keep_alive: now + KEEP_ALIVE,
        deadline: now + Duration::from_secs(exchange.config.limits.turn_seconds),
        shared: shared.headers,
        has_begun: false,
        is_over: false,
        parts: VecDeque::new(),
    };
    asking.tell("The assistant has begun.");
    Ok(Answer::Deferred(Box::new(asking)))
}

/// The arguments of a call.
fn checked(arguments: &str) -> Result<Map<String, Value>, String> {
    let arguments = check_arguments(&spec(), arguments)?;
    let text = |name| arguments.get(name).and_then(Value::as_str).map(str::trim);
    let message = text("message").unwrap_or_default();
    check_message(message).map_err(|error| error.message().to_owned())?;
    match text("chat").is_some_and(|chat| chat.len() > CHAT_BYTES) {
        true => Err(format!("\"chat\" may have {CHAT_BYTES} bytes")),
        false => Ok(arguments),
    }
}

/// The response, while the turn runs.
struct Asking {
    running: Arc<Running>,
    waker: Arc<Waker>,
    turn_stream: TurnStream,
    id: Value,
    revision: Revision,
    takes_stream: bool,
    /// The client's token for reports of progress.
    token: Option<Value>,
    progress: u64,
    next_progress: Instant,
    next_keep_alive: Instant,
    deadline: Instant,
    /// Headers of the response, until they are sent.
    shared: Vec<(&'static str, Cow<'static, str>)>,
    has_begun: bool,
    is_over: bool,
    parts: VecDeque<ResponsePart>,
}

impl DeferredResponse for Asking {
    fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    fn advance(&mut self) -> ResponsePart {
        if self.parts.is_empty() && !self.is_over {
            self.look();
        }
        match self.parts.pop_front() {
            Some(part) => part,
            None if self.is_over => ResponsePart::Broken,
            None if self.takes_stream => {
                ResponsePart::Wait(self.deadline.min(self.next_keep_alive))
            }
            None => ResponsePart::Wait(self.deadline),
        }
    }
}

impl Asking {
    fn look(&mut self) {
        let news = self.turn_stream.take();
        let now = Instant::now();
        for progress in news.progress {
            match progress {
                TurnProgress::Text(_) if now < self.next_progress => {}
                TurnProgress::Text(_) => self.tell("The assistant writes."),
                TurnProgress::ToolCall => self.tell("The assistant uses a tool."),
                TurnProgress::AwaitsApproval { tool } => {
                    let text = format!(
                        "Waiting for permission to use {tool}: it is asked for in Hearth. The \
                         reply will be in the conversation there."
                    );
                    return self.finish(Ok(text));
                }
            }
        }
        match news.end {
            Some(Ok(reply)) if reply.state().is_some() => {
                self.finish(Err("the turn was stopped".to_owned()));
            }
            Some(Ok(reply)) => {
                let cut = match reply.finish_reason() {
                    Some(reason) => format!("\n\n[The reply is not whole: {}]", reason.as_str()),
                    None => String::new(),
                };
                self.finish(Ok(format!("{}{cut}", reply.text())));
            }
            Some(Err(error)) => self.finish(Err(error.message().to_owned())),
            None if news.is_cut => self.finish(Err("the token is no longer valid".to_owned())),
            None if now >= self.deadline => {
                let why = "the answer is not there yet; it will be in the conversation in Hearth";
                self.finish(Err(why.to_owned()));
            }
            None if self.takes_stream && now >= self.next_keep_alive => match &self.token {
                Some(_) => self.tell("The assistant is still at it."),
                None => self.push(": waiting\n\n".to_owned()),
            },
            None => {}
        }
    }

    /// Reports progress to a client that wants it.
    fn tell(&mut self, text: &str) {
        let Some(token) = &self.token else { return };
        self.progress += 1;
        let report = json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": self.progress, "message": text},
        });
        self.next_progress = Instant::now() + PROGRESS;
        self.push(event(&report));
    }

    fn finish(&mut self, called: Result<String, String>) {
        self.is_over = true;
        let result = message::called(called);
        if self.has_begun {
            let message = message::result(&self.id, result, self.revision);
            self.push(event(&message));
            return self.parts.push_back(ResponsePart::End);
        }
        let mut response = message::result_of(&self.id, result, self.revision);
        response.headers.append(&mut self.shared);
        self.parts.push_back(ResponsePart::Whole(response));
    }

    /// Sends something, after the head if it is the first.
    fn push(&mut self, piece: String) {
        self.next_keep_alive = Instant::now() + KEEP_ALIVE;
        if !self.has_begun {
            self.has_begun = true;
            let mut head = stream_head("text/event-stream");
            head.headers.append(&mut self.shared);
            self.parts.push_back(ResponsePart::Head(head));
        }
        self.parts
            .push_back(ResponsePart::Piece(piece.into_bytes()));
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let ended = self.turn_stream.turn();
        lock(&self.running.0).retain(|(_, turn)| *turn != ended);
        // Without sessions a closed connection is the cancellation; with them it is not.
        if !self.is_over && self.revision == Revision::Stateless {
            self.turn_stream.cancel();
        }
    }
}

/// A message as an event of a stream: JSON has no line breaks.
fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

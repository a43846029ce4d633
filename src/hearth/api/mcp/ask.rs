//! `ask`: one turn of the household's assistant as a tool of other assistants.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::access::Exchange;
use super::super::answer::{AnswerOptions, Event, Form, PendingAnswer, Sending, new_waker};
use super::message::{self, Fault, REFUSED, Request, Revision};
use crate::service::program_turns::Question;
use agent::model::fence::MCP_CHANNEL;
use agent::model::{ModelReply, ToolSpec};
use agent::tools::check_arguments;
use base::error::Error;
use base::secret::sha256;
use net::http::{Answer, Head, Response};
use protocol::command::check_message;

/// The tool's name.
pub const NAME: &str = "ask";
/// Most bytes of a chat's name.
const MAX_CHAT_BYTES: usize = 200;
/// The header with a session's id, in the revisions that have sessions.
const SESSION: &str = "mcp-session-id";
/// How often a client hears that the reply is being written.
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

/// By which name a client may cancel the request with this id, within its token.
pub fn name_of(head: &Head, id: &Value) -> String {
    format!("{}\n{id}", head.header(SESSION).unwrap_or_default())
}

/// Begins a turn. What is wrong with the arguments is a result, too, so that a model reads it.
///
/// # Errors
/// Those of [`Service::follow`](crate::service::Service::follow); a call without a name.
pub fn ask(
    exchange: &Exchange<'_>,
    request: &Request,
    revision: Revision,
) -> Result<Answer, Fault> {
    let head = &exchange.request.head;
    let (_, arguments) = request.call()?;
    let (message, chat) = match checked(&arguments) {
        Ok(checked) => checked,
        Err(why) => {
            let result = message::called(Err(why));
            let response = message::result_of(&request.id, result, revision);
            return Ok(Answer::Now(response));
        }
    };
    let accept = head.header("accept").unwrap_or_default();
    let takes_stream = accept.contains("text/event-stream");
    let token = request.meta("progressToken");
    let token = token.filter(|token| token.is_string() || token.is_number());
    let token = token.filter(|_| takes_stream).cloned();
    let name = name_of(head, &request.id);
    let question = Question {
        // Beside the names of the model API's programs.
        chat: chat.map(|chat| format!("mcp:{chat}")),
        message,
        fingerprint: Some(sha256(
            &[name.as_bytes(), exchange.request.body.as_slice()].concat(),
        )),
        channel: MCP_CHANNEL,
        stream: token.is_some(),
        request: Some(name),
        ..Question::default()
    };
    let followed = new_waker(head)
        .and_then(|waker| exchange.service.follow(&exchange.asker, question, &waker));
    let stream = followed.map_err(|error| Fault::new(REFUSED, error.message()))?;
    let options = AnswerOptions {
        sending: if takes_stream {
            Sending::WholeIfSoon
        } else {
            Sending::Whole
        },
        // Without sessions a closed connection is the cancellation; with them it is not.
        cancels: revision == Revision::Stateless,
        longest: Duration::from_secs(exchange.config.limits.turn_seconds),
        ..AnswerOptions::default()
    };
    let reports = token.is_some();
    let form = Box::new(Messages {
        id: request.id.clone(),
        revision,
        token,
        progress: 0,
        next_progress: Instant::now(),
    });
    let mut answer = PendingAnswer::new(exchange, stream, form, options);
    if reports {
        answer.begin();
    }
    Ok(answer.deferred())
}

/// The message and the name of the chat.
fn checked(arguments: &str) -> Result<(String, Option<String>), String> {
    let arguments = check_arguments(&spec(), arguments)?;
    let text = |name| {
        let text = arguments.get(name).and_then(Value::as_str);
        text.unwrap_or_default().trim().to_owned()
    };
    let (message, chat) = (text("message"), text("chat"));
    check_message(&message).map_err(|error| error.message().to_owned())?;
    if chat.len() > MAX_CHAT_BYTES {
        return Err(format!("\"chat\" may have {MAX_CHAT_BYTES} bytes"));
    }
    Ok((message, Some(chat).filter(|chat| !chat.is_empty())))
}

/// A stream of JSON-RPC's messages, or one.
struct Messages {
    id: Value,
    revision: Revision,
    /// The client's token for reports of progress.
    token: Option<Value>,
    progress: u64,
    next_progress: Instant,
}

impl Messages {
    /// Reports progress to a client that wants it.
    fn report(&mut self, text: &str) -> Option<String> {
        let token = self.token.as_ref()?;
        self.progress += 1;
        self.next_progress = Instant::now() + PROGRESS;
        Some(event(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": self.progress, "message": text},
        })))
    }

    fn result(&self, called: Result<String, String>) -> Value {
        message::result(&self.id, message::called(called), self.revision)
    }
}

impl Form for Messages {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn piece(&mut self, happened: Event<'_>) -> String {
        let report = match happened {
            Event::Begin => self.report("The assistant has begun."),
            Event::Text(_) if Instant::now() < self.next_progress => None,
            Event::Text(_) => self.report("The assistant writes."),
            Event::Thought(_) => None,
            Event::ToolCall => self.report("The assistant uses a tool."),
            Event::KeepAlive => self
                .report("The assistant is still at it.")
                .or_else(|| Some(": waiting\n\n".to_owned())),
            Event::End(reply) => Some(event(&self.result(Ok(text_of(reply))))),
            Event::Failed(error) => Some(event(&self.result(Err(error.message().to_owned())))),
        };
        report.unwrap_or_default()
    }

    fn whole(&self, reply: &ModelReply, _: &str) -> Response {
        Response::json(200, self.result(Ok(text_of(reply))).to_string())
    }

    fn refusal(&self, error: &Error) -> Response {
        Response::json(
            200,
            self.result(Err(error.message().to_owned())).to_string(),
        )
    }
}

fn text_of(reply: &ModelReply) -> String {
    let cut = reply
        .finish_reason
        .map(|reason| format!("\n\n[The reply is not whole: {}]", reason.as_str()));
    format!("{}{}", reply.text, cut.unwrap_or_default())
}

/// A message as an event of a stream: JSON has no line breaks.
fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

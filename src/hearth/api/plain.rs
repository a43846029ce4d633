//! The model `hearth-plain`: the household's model without the household. For what programs
//! ask beside a chat, such as for its title, and for those that want no assistant.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::access::Exchange;
use super::answer::{AnswerOptions, Form, PendingAnswer, Sending, new_waker};
use super::client_message::{ClientMessage, Part, Role, joined};
use super::options::OptionsRead;
use super::transcript::{append, called_tool};
use crate::service::reply_stream::Work;
use agent::model::estimate::{message_tokens, text_tokens};
use agent::model::{ChatMessage, ModelReply};
use agent::turn::plain::{self, BroughtFiles, PlainRequest};
use base::error::{Error, Result};
use base::sync::lock;
use net::http::{Answer, Response};
use protocol::attachment;
use store::ToolCall;

/// Asks the model, without the household.
///
/// # Errors
/// `invalid_request` for messages that cannot be read; those of [`pass_on`].
pub fn answer(
    exchange: &Exchange<'_>,
    form: Box<dyn Form>,
    stream: bool,
    messages: Vec<ClientMessage>,
    options: OptionsRead,
) -> Result<Answer> {
    let chat = PlainChat::read(messages)?;
    let OptionsRead { program, ignored } = options;
    let is_heard = stream || form.wants_thoughts();
    let asker = exchange.asker.clone();
    let ask = move |work: Work<'_>| {
        let service = work.service;
        let asked = PlainRequest {
            user: (asker.user_id, &asker.user),
            system: &chat.system,
            messages: &chat.messages,
            files: &chat.files,
            tools: &program.tools,
            client: &program.reply,
            stream: is_heard,
            data_dir: &service.data_dir,
            deadline: work.deadline,
            cancel: work.cancel,
        };
        let assistant = service.assistant();
        let (store, clock) = (&service.store, &service.clock);
        plain::reply(&assistant, store, clock, &asked, work.listener)
    };
    pass_on(exchange, form, stream, ignored, ask)
}

/// About how many tokens a client's messages have.
///
/// # Errors
/// `invalid_request` for messages that cannot be read.
pub fn tokens(messages: Vec<ClientMessage>) -> Result<usize> {
    let chat = PlainChat::read(messages)?;
    Ok(text_tokens(&chat.system) + message_tokens(&chat.messages))
}

/// Answers with what a model says that is asked without a turn.
///
/// # Errors
/// As [`Service::ask_model`](crate::service::Service::ask_model); 503 without a descriptor.
pub fn pass_on(
    exchange: &Exchange<'_>,
    form: Box<dyn Form>,
    stream: bool,
    mut ignored: Vec<String>,
    ask: impl FnOnce(Work<'_>) -> Result<ModelReply> + Send + 'static,
) -> Result<Answer> {
    let head = &exchange.request.head;
    // Nothing is kept that would be repeated.
    if head.header("idempotency-key").is_some() {
        ignored.insert(0, "Idempotency-Key".to_owned());
    }
    let waker = new_waker(head)?;
    let identity = exchange.asker.identity.as_ref();
    let reply = exchange.service.ask_model(identity, &waker, ask)?;
    let options = AnswerOptions {
        sending: Sending::of(stream),
        longest: Duration::from_secs(exchange.config.limits.turn_seconds),
        ignored,
        ..AnswerOptions::default()
    };
    Ok(PendingAnswer::new(exchange, reply, form, options).deferred())
}

/// The same for an answer that is never streamed: `ask` makes the response.
///
/// # Errors
/// As [`pass_on`].
pub fn pass_on_whole(
    exchange: &Exchange<'_>,
    refusal: fn(&Error) -> Response,
    ignored: Vec<String>,
    ask: impl FnOnce(Work<'_>) -> Result<Response> + Send + 'static,
) -> Result<Answer> {
    let response = Arc::new(Mutex::new(Response::empty(200)));
    let form = Whole {
        response: Arc::clone(&response),
        refusal,
    };
    pass_on(exchange, Box::new(form), false, ignored, move |work| {
        *lock(&response) = ask(work)?;
        Ok(ModelReply::default())
    })
}

/// A response that is ready when the model has been asked.
struct Whole {
    response: Arc<Mutex<Response>>,
    refusal: fn(&Error) -> Response,
}

impl Form for Whole {
    fn whole(&self, _: &ModelReply, _: &str) -> Response {
        std::mem::replace(&mut lock(&self.response), Response::empty(200))
    }

    fn refusal(&self, error: &Error) -> Response {
        (self.refusal)(error)
    }
}

/// A client's messages.
#[derive(Default)]
struct PlainChat {
    /// System messages, joined.
    system: String,
    /// The others.
    messages: Vec<ChatMessage<'static>>,
    /// The files that came since the last reply. Earlier ones are only marked.
    files: BroughtFiles,
}

impl PlainChat {
    /// Reads them all.
    ///
    /// # Errors
    /// `invalid_request` for an unknown role, a result without its call, what is neither
    /// text nor a file since the last reply, and where nothing is said.
    fn read(messages: Vec<ClientMessage>) -> Result<PlainChat> {
        let mut chat = PlainChat::default();
        let mut called: Vec<ToolCall> = Vec::new();
        // Each with the place of its message.
        let mut newest: Vec<(usize, Part)> = Vec::new();
        for mut message in joined(messages) {
            let role = message.role()?;
            let calls = message.tool_calls.take().unwrap_or_default();
            let id = message.tool_call_id.take();
            let tool = message.tool_name.take();
            let (text, parts) = message.read()?;
            match role {
                Role::System => append(&mut chat.system, text),
                Role::User => {
                    let place = chat.messages.len();
                    newest.extend(parts.into_iter().map(|part| (place, part)));
                    let (content, files) = (text.into(), Vec::new());
                    chat.messages.push(ChatMessage::User { content, files });
                }
                Role::Assistant => {
                    let calls = calls.into_iter().enumerate();
                    let calls: Vec<ToolCall> = calls.map(called_tool).collect();
                    if calls.is_empty() && !text.trim().is_empty() {
                        newest.clear();
                    }
                    called.clone_from(&calls);
                    chat.messages.push(ChatMessage::Assistant {
                        text: text.into(),
                        calls,
                        extra: None,
                    });
                }
                Role::Tool => {
                    let named = |call: &ToolCall| match (&id, &tool) {
                        (Some(id), _) => *id == call.id,
                        (None, tool) => tool.as_ref().is_none_or(|tool| *tool == call.tool),
                    };
                    let place = called.iter().position(named).ok_or_else(|| {
                        Error::invalid_request("a tool's result must follow its call")
                    })?;
                    let call = called.remove(place);
                    chat.messages.push(ChatMessage::ToolResult {
                        call_id: call.id,
                        tool: call.tool,
                        content: text.into(),
                        ok: true,
                        files: Vec::new(),
                    });
                }
            }
        }
        attachment::check_count(newest.len())?;
        for (place, part) in newest {
            let file = chat.files.add(part.into_file()?);
            if let ChatMessage::User { files, .. } = &mut chat.messages[place] {
                files.push(file);
            }
        }
        // Services want a message of the user.
        if chat.messages.is_empty() && !chat.system.is_empty() {
            chat.messages.push(ChatMessage::User {
                content: std::mem::take(&mut chat.system).into(),
                files: Vec::new(),
            });
        }
        match chat.messages.last_mut() {
            // A reply that the model is to finish. Some services refuse white space at its end.
            Some(ChatMessage::Assistant { text, calls, .. }) if calls.is_empty() => {
                let length = text.trim_end().len();
                text.to_mut().truncate(length);
                Ok(chat)
            }
            Some(ChatMessage::User { .. } | ChatMessage::ToolResult { .. }) => Ok(chat),
            _ => Err(Error::invalid_request(
                "the last message must be a user's, a tool's result, or a reply to finish",
            )),
        }
    }
}

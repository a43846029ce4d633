//! Reads a model's reply, whole or streamed, whatever API it comes from. A
//! dialect supplies a [`ReplyParser`], which only maps its JSON to the parts of
//! a [`ReplyBuilder`].

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::event_stream::{Event, EventStream, Source};
use super::failure::{ErrorResponse, Failure, has_error};
use super::mended_json::mended;
use super::reply_stream::ReplyStream;
use super::tool_call_builder::{ToolCallBuilder, calls_in_text, finish_calls, wrap_members};
use crate::model::{ModelReply, ToolSpec};
use base::reply::FinishReason;
use net::http_client::{BODY_LIMIT, ClientError, ClientResponse};
use store::Usage;

/// The words of all APIs for the end of a reply that is not whole. Any other word means
/// that it is.
const CUTS: [(&str, FinishReason); 9] = [
    // Chat Completions and Ollama.
    ("length", FinishReason::Length),
    ("content_filter", FinishReason::ContentFilter),
    // Responses.
    ("max_output_tokens", FinishReason::Length),
    // Anthropic.
    ("max_tokens", FinishReason::Length),
    ("model_context_window_exceeded", FinishReason::Length),
    ("refusal", FinishReason::Refusal),
    // Mistral.
    ("model_length", FinishReason::Length),
    // DeepSeek and OpenRouter, when what runs the model broke down.
    ("insufficient_system_resource", FinishReason::Interrupted),
    ("error", FinishReason::Interrupted),
];

/// How long a server may be silent once it has said why the model stopped. Only the number of
/// tokens is still to come.
const SILENCE_AFTER_END: Duration = Duration::from_secs(5);

/// A reply as its parts arrive.
pub struct ReplyBuilder<'a> {
    /// The text, without the model's thoughts.
    pub text: ReplyStream<'a>,
    /// Tool calls, perhaps unfinished.
    pub calls: Vec<ToolCallBuilder>,
    /// Members that the server wants back with the calls, such as thoughts.
    pub members: Map<String, Value>,
    /// As the server counted.
    pub usage: Usage,
    /// Why the model stopped, in the words of the API; `None` before the end.
    pub finish_reason: Option<String>,
    /// Whether the members go back with every reply, not only with calls.
    pub keeps_members: bool,
    /// The tools that the model may call.
    pub offered: &'a [ToolSpec],
    /// Whether anything in the answer had the form of a reply.
    pub has_begun: bool,
    /// Whether reasoning or a call has come, of which nothing else here tells yet.
    pub has_block: bool,
    /// Whether the server says that the model thinks, although none of it has come.
    pub is_thinking: bool,
    /// Whether the answer said that the reply is complete.
    pub is_complete: bool,
}

/// Maps what one kind of API sends to the parts of one reply.
pub trait ReplyParser {
    /// Takes an event of a stream. Errors were sorted out before.
    fn event(&mut self, value: Value, reply: &mut ReplyBuilder<'_>);

    /// Takes a reply that came whole.
    fn whole(&mut self, value: Value, reply: &mut ReplyBuilder<'_>) {
        self.event(value, reply);
    }

    /// Adds what is known only at the end.
    fn finish(&mut self, _reply: &mut ReplyBuilder<'_>) {}

    /// Whether a stream is JSON lines and not server-sent events.
    fn reads_lines(&self) -> bool {
        false
    }

    /// Whether an event of this name is no part of a reply if it is not JSON.
    fn may_skip(&self, _event_name: &[u8]) -> bool {
        false
    }
}

/// How long a stream may take.
#[derive(Clone, Copy)]
pub struct Patience {
    /// Until when text or reasoning must have come.
    pub first_token: Option<Instant>,
    /// The same once the server has said that the model thinks.
    pub first_token_thinking: Option<Instant>,
    /// How long it may be silent after that.
    pub silence: Duration,
}

/// A stream that is read with patience: comments that keep it alive do not count.
struct Patient<'a> {
    answer: &'a mut ClientResponse,
    patience: Patience,
}

impl Source for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let limit = (self.patience.first_token).map_or(self.patience.silence, left);
        if limit.is_zero() {
            return Err(ClientError::Silent(limit));
        }
        self.answer.limit_silence(limit);
        self.answer.read(buffer)
    }
}

/// Reads the body of a successful answer; as a stream with this patience.
///
/// # Errors
/// Those of the exchange, what the server reports inside the answer, and what is
/// no reply, is cut short or was withheld.
pub fn read(
    answer: &mut ClientResponse,
    stream: Option<Patience>,
    parser: &mut dyn ReplyParser,
    reply: &mut ReplyBuilder<'_>,
    origin: &str,
) -> Result<ModelReply, Failure> {
    if let Some(patience) = stream {
        let mut source = Patient { answer, patience };
        read_stream(&mut source, parser, reply)?;
        answer.finish();
    } else {
        let body = answer.read_all(BODY_LIMIT)?;
        parser.whole(parse(&body, b"", &mut None)?, reply);
    }
    parser.finish(reply);
    if !reply.has_begun {
        return Err(Failure::NoReply);
    }
    reply.finish(origin)
}

fn read_stream(
    source: &mut Patient<'_>,
    parser: &mut dyn ReplyParser,
    reply: &mut ReplyBuilder<'_>,
) -> Result<(), Failure> {
    let is_hurried = source.patience.first_token.is_some();
    let mut events = EventStream::new(source);
    let mut size = 0;
    let mut held = None;
    while !reply.is_complete {
        let has_token = reply.has_token();
        // Some servers send an empty reason with every piece.
        let has_ended = (reply.finish_reason.as_ref()).is_some_and(|reason| !reason.is_empty());
        let patience = &mut events.source().patience;
        if has_ended {
            patience.silence = patience.silence.min(SILENCE_AFTER_END);
        }
        if has_token {
            patience.first_token = None;
        } else if reply.is_thinking {
            patience.first_token = patience.first_token_thinking;
        }
        let event = match parser.reads_lines() {
            true => {
                (events.next_json_line()).map(|data| data.map(|data| Event { name: b"", data }))
            }
            false => events.next(),
        };
        // The reply is whole: what fails now takes nothing from it.
        let is_over = has_ended && !matches!(event, Err(ClientError::Cancelled));
        if is_over && event.is_err() {
            break;
        }
        let event = event.map_err(|error| match error {
            ClientError::Silent(_) if !has_token && is_hurried => Failure::NoWord,
            error => error.into(),
        });
        let Some(event) = event? else { break };
        size += event.data.len();
        if size > BODY_LIMIT {
            return Err(ClientError::TooLarge(BODY_LIMIT).into());
        }
        if event.data.starts_with(b"[DONE]") {
            reply.is_complete = true;
            break;
        }
        match parse(event.data, event.name, &mut held) {
            Ok(value) => {
                parser.event(value, reply);
                if !reply.members.is_empty() {
                    reply.text.thoughts_are_separate();
                }
            }
            Err(Failure::NotJson(_)) if parser.may_skip(event.name) => {}
            Err(error) => return Err(error),
        }
    }
    if reply.is_complete || reply.finish_reason.is_some() {
        Ok(())
    } else if size > 0 && !reply.has_begun {
        Err(Failure::NoReply)
    } else {
        Err(Failure::CutShort)
    }
}

/// Whether a member says nothing: some servers send it so before the first word.
pub fn is_empty(member: &Value) -> bool {
    match member {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The JSON of a body or of an event, unless it reports an error. Half a character of the
/// events before may be `held`.
fn parse(json: &[u8], event_name: &[u8], held: &mut Option<u16>) -> Result<Value, Failure> {
    let value: Value = serde_json::from_slice(json)
        .or_else(|error| match mended(json, held) {
            Some(mended) => serde_json::from_str(&mended),
            None => Err(error),
        })
        .map_err(|error| Failure::not_json(&error, json))?;
    let is_error = has_error(&value)
        || event_name == b"error"
        || value.get("type").and_then(Value::as_str) == Some("error");
    // The Responses API puts its errors one level deeper.
    let reported = match value.get("response").filter(|inner| has_error(inner)) {
        None => is_error.then_some(&value),
        inner => inner,
    };
    match reported {
        Some(error) => Err(Failure::Reported(Box::new(ErrorResponse::in_reply(error)))),
        None => Ok(value),
    }
}

impl<'a> ReplyBuilder<'a> {
    /// An empty reply whose text goes to `text`.
    pub fn new(text: ReplyStream<'a>) -> ReplyBuilder<'a> {
        ReplyBuilder {
            text,
            calls: Vec::new(),
            members: Map::new(),
            usage: Usage::default(),
            finish_reason: None,
            keeps_members: false,
            offered: &[],
            has_begun: false,
            has_block: false,
            is_thinking: false,
            is_complete: false,
        }
    }

    /// Whether any text, reasoning or call has come.
    fn has_token(&self) -> bool {
        self.has_block
            || self.text.was_written()
            || !self.members.values().all(is_empty)
            || !self.calls.is_empty()
    }

    fn finish(&mut self, origin: &str) -> Result<ModelReply, Failure> {
        let reason = self.finish_reason.take().unwrap_or_default();
        let cut = CUTS.iter().find(|(word, _)| *word == reason);
        let finish_reason = cut.map(|(_, finish_reason)| *finish_reason);
        let text = self.text.finish(finish_reason.is_some());
        let mut calls = std::mem::take(&mut self.calls);
        // Half a call is none.
        if finish_reason.is_some() && calls.last().is_some_and(|last| !last.is_whole()) {
            calls.pop();
        }
        if calls.is_empty() {
            calls = calls_in_text(&self.text.take_calls(), self.offered);
        }
        let calls = finish_calls(calls, origin);
        if let Some(FinishReason::ContentFilter | FinishReason::Refusal) = finish_reason
            && text.is_empty()
            && calls.is_empty()
        {
            return Err(Failure::Withheld(reason));
        }
        // Most are sent back in the form they came in only with calls.
        let members = match calls.is_empty() && !self.keeps_members {
            true => Map::new(),
            false => std::mem::take(&mut self.members),
        };
        Ok(ModelReply {
            text,
            calls,
            finish_reason,
            extra: wrap_members(members, origin),
            usage: self.usage,
            ..ModelReply::default()
        })
    }

    /// What there is of a reply that was lost on the way: its text.
    pub fn lost(&mut self, finish_reason: FinishReason) -> ModelReply {
        ModelReply {
            text: self.text.finish(true),
            finish_reason: Some(finish_reason),
            usage: self.usage,
            ..ModelReply::default()
        }
    }
}

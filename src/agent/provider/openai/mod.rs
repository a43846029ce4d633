//! The Chat Completions API: OpenAI's own, and that of the many servers that
//! speak it (llama.cpp, LM Studio, vLLM, OpenRouter, ...); and the part of the
//! Responses API that a few of OpenAI's models need to use tools.

mod reply;
mod request;
mod responses;
mod stream;

use serde_json::{Map, Value};

use super::dialect::{AttemptError, Dialect, EncodedRequest, Reading, RequestContext, has_error};
use super::event_stream::EventStream;
use super::extra::wrap_members;
use super::refusal::Refusal;
use super::reply_stream::without_thoughts;
use super::tool_call_builder::{ToolCallBuilder, finish_calls};
use crate::model::ModelReply;
use net::http_client::{BODY_LIMIT, ClientError, ClientResponse};
use reply::{Message, usage_of};
use request::Body;
use stream::Assembly;

/// Chat Completions, and Responses where they are needed.
pub struct OpenAi;

impl Dialect for OpenAi {
    fn write(&self, asking: &RequestContext<'_>) -> EncodedRequest {
        if asking.learned.responses {
            return responses::write(asking);
        }
        EncodedRequest {
            path: "/chat/completions",
            body: Body(asking).to_bytes(),
        }
    }

    fn read(&self, reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
        if reading.learned.responses {
            responses::read(reading)
        } else if reading.is_stream {
            read_stream(reading)
        } else {
            read_whole(reading)
        }
    }
}

fn read_whole(reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
    let mut reply_stream = reading.reply_stream;
    let body = reading.answer.read_all(BODY_LIMIT)?;
    let value: Value =
        serde_json::from_slice(&body).map_err(|error| AttemptError::not_json(&error, &body))?;
    if has_error(&value) {
        return Err(AttemptError::Refused(Refusal::in_reply(&value)));
    }
    let choice = value.get("choices").and_then(|choices| choices.get(0));
    let message = choice.and_then(|choice| choice.get("message"));
    let Some(message) = message.and_then(Value::as_object) else {
        return Err(AttemptError::no_reply("there is no choices[0].message"));
    };
    let message = Message::of(message);
    reply_stream.push(without_thoughts(&message.text));
    let reason = choice
        .and_then(|choice| choice.get("finish_reason"))
        .and_then(Value::as_str);
    let usage = value.get("usage").map(usage_of).unwrap_or_default();
    finish(
        reply_stream.finish(),
        message.drafts,
        message.members,
        reason,
        reading.base_url,
    )
    .map(|reply| ModelReply { usage, ..reply })
}

fn read_stream(reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
    let answer = reading.answer;
    let mut assembly = Assembly::new(reading.reply_stream);
    let result = read_chunks(answer, &mut assembly);
    *reading.heard = assembly.reply_stream.was_heard();
    let is_whole = result?;
    if !is_whole && assembly.finish_reason.is_none() {
        return Err(AttemptError::cut_short(
            "the stream ended without finish_reason and [DONE]",
        ));
    }
    if !assembly.has_choice {
        return Err(AttemptError::no_reply("no chunk held a choice"));
    }
    answer.finish();
    let reason = assembly.finish_reason.take();
    let (text, drafts, members, usage) = assembly.finish();
    finish(text, drafts, members, reason.as_deref(), reading.base_url)
        .map(|reply| ModelReply { usage, ..reply })
}

fn finish(
    text: String,
    drafts: Vec<ToolCallBuilder>,
    members: Map<String, Value>,
    reason: Option<&str>,
    origin: &str,
) -> Result<ModelReply, AttemptError> {
    let calls = finish_calls(drafts, origin);
    if text.is_empty() && calls.is_empty() && reason == Some("content_filter") {
        return Err(AttemptError::withheld("content_filter"));
    }
    // Only replies with calls are sent back in the form they came in.
    let extra = if calls.is_empty() {
        None
    } else {
        wrap_members(members, origin)
    };
    Ok(ModelReply {
        text,
        calls,
        extra,
        ..ModelReply::default()
    })
}

/// Reads chunks to the end. Returns whether the stream said that it is complete.
fn read_chunks(
    answer: &mut ClientResponse,
    assembly: &mut Assembly<'_>,
) -> Result<bool, AttemptError> {
    let mut events = EventStream::new(answer);
    while let Some(event) = events.next()? {
        if event.data.starts_with(b"[DONE]") {
            return Ok(true);
        }
        let size = event.data.len();
        let chunk = serde_json::from_slice::<Value>(event.data);
        match chunk {
            Ok(chunk) if event.name == b"error" || has_error(&chunk) => {
                return Err(AttemptError::Refused(Refusal::in_reply(&chunk)));
            }
            Ok(chunk) => {
                if !assembly.push(&chunk, size) {
                    return Err(ClientError::TooLarge(BODY_LIMIT).into());
                }
            }
            // `ping` and the like.
            Err(_) if !event.name.is_empty() && event.name != b"error" => {}
            Err(error) => return Err(AttemptError::not_json(&error, event.data)),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;

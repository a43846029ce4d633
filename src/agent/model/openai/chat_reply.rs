//! Parses a reply of the Chat Completions API, tolerantly: servers omit different
//! members, and some use other places for them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::model::reply_reader::{ReplyBuilder, ReplyParser};
use crate::model::tool_call_builder::{MAX_CALLS, ToolCallBuilder, merge_member};
use store::Usage;

/// Parses one reply.
#[derive(Default)]
pub struct ChatReply {
    /// The index that each call was sent under.
    indexes: Vec<Option<u64>>,
    /// What the model wrote instead of a reply that it refuses to give.
    refusal: String,
}

impl ReplyParser for ChatReply {
    fn event(&mut self, chunk: Value, reply: &mut ReplyBuilder<'_>) {
        self.take(&chunk, false, reply);
    }

    fn whole(&mut self, value: Value, reply: &mut ReplyBuilder<'_>) {
        self.take(&value, true, reply);
    }

    fn finish(&mut self, reply: &mut ReplyBuilder<'_>) {
        if self.refusal.is_empty() {
            return;
        }
        if !reply.text.has_text() {
            reply.text.push(&self.refusal);
        }
        reply.finish_reason = Some("refusal".to_owned());
    }

    /// Chunks have no name; `ping` and the like have one.
    fn may_skip(&self, event_name: &[u8]) -> bool {
        !event_name.is_empty() && event_name != b"error"
    }
}

impl ChatReply {
    fn take(&mut self, value: &Value, is_whole: bool, reply: &mut ReplyBuilder<'_>) {
        if let Some(usage) = value.get("usage").filter(|usage| usage.is_object()) {
            reply.usage = usage_of(usage);
        }
        let Some(choice) = value.get("choices").and_then(|choices| choices.get(0)) else {
            return;
        };
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            reply.finish_reason = Some(reason.to_owned());
        }
        let delta = choice.get("delta").filter(|_| !is_whole);
        let message = delta.or_else(|| choice.get("message"));
        let message = message.and_then(Value::as_object);
        reply.has_begun |= !is_whole || message.is_some();
        if let Some(message) = message {
            self.take_message(message, is_whole, reply);
        }
    }

    fn take_message(
        &mut self,
        message: &Map<String, Value>,
        is_whole: bool,
        reply: &mut ReplyBuilder<'_>,
    ) {
        let text = message.get("content").map(text_of).unwrap_or_default();
        reply.text.push(&text);
        if let Some(piece) = message.get("refusal").and_then(Value::as_str) {
            self.refusal.push_str(piece);
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let calls = calls.map(Vec::as_slice).unwrap_or_default();
        for call in calls {
            let slot = match is_whole {
                true => self.open(None, reply),
                false => self.slot_of(call, reply),
            };
            if let Some(slot) = slot {
                reply.calls[slot].merge(call);
            }
        }
        // The old form. Some servers send it along with the new one.
        if let Some(function) = message.get("function_call").filter(|_| calls.is_empty()) {
            if reply.calls.is_empty() {
                self.open(None, reply);
            }
            if self.indexes[0].is_none() {
                reply.calls[0].merge_function(function);
            }
        }
        // Some send the same under two names.
        let thoughts = ["reasoning_content", "reasoning"].map(|name| message.get(name));
        if let Some(thought) = thoughts.into_iter().flatten().find_map(Value::as_str) {
            reply.text.think(thought);
        }
        // Mistral sends them as parts of the content.
        let parts = message.get("content").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            reply.text.think(&text_of(&part["thinking"]));
        }
        for (name, value) in message.iter().filter(|(name, _)| !is_known_member(name)) {
            merge_member(&mut reply.members, name, value);
        }
    }

    /// Where a piece of a call belongs: by index, else by id, else to the last
    /// call. Another id, or another name after whole arguments, under a known
    /// index is another call: several gateways number every call 0. None once there are too
    /// many.
    fn slot_of(&mut self, call: &Value, reply: &mut ReplyBuilder<'_>) -> Option<usize> {
        let index = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let name = call.pointer("/function/name").and_then(Value::as_str);
        let known = match index {
            Some(_) => self.indexes.iter().rposition(|known| *known == index),
            None if id.is_empty() => reply.calls.len().checked_sub(1),
            None => reply.calls.iter().rposition(|call| call.id == id),
        };
        let Some(slot) = known else {
            return self.open(index, reply);
        };
        let known = &reply.calls[slot];
        let other_id = !id.is_empty() && !known.id.is_empty() && known.id != id;
        let other_call = id.is_empty()
            && name.is_some_and(|name| !name.is_empty())
            && serde_json::from_str::<Map<String, Value>>(&known.arguments).is_ok();
        if other_id || other_call {
            return self.open(index, reply);
        }
        Some(slot)
    }

    fn open(&mut self, index: Option<u64>, reply: &mut ReplyBuilder<'_>) -> Option<usize> {
        if reply.calls.len() == MAX_CALLS {
            return None;
        }
        reply.calls.push(ToolCallBuilder::default());
        self.indexes.push(index);
        Some(reply.calls.len() - 1)
    }
}

/// Whether a member of a message is read here, or known to be of no use when it
/// is sent back.
fn is_known_member(name: &str) -> bool {
    matches!(
        name,
        "role"
            | "content"
            | "tool_calls"
            | "function_call"
            | "refusal"
            | "annotations"
            | "audio"
            | "name"
    )
}

/// The text of a `content`: a string, or a list of parts of which some are
/// thoughts.
fn text_of(content: &Value) -> Cow<'_, str> {
    match content {
        Value::String(text) => text.into(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Value::String(text) => Some(text.as_str()),
                part => part.get("text")?.as_str(),
            })
            .collect(),
        _ => Cow::default(),
    }
}

/// `usage`, in the names of OpenAI and DeepSeek.
fn usage_of(usage: &Value) -> Usage {
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    Usage {
        input: count("/prompt_tokens").unwrap_or(0),
        output: count("/completion_tokens").unwrap_or(0),
        cached: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .unwrap_or(0),
    }
}

//! Puts a streamed reply of the Chat Completions API together.

use serde_json::{Map, Value};

use super::reply::{is_known_member, text_of, usage_of};
use crate::provider::reply_stream::ReplyStream;
use crate::provider::tool_call_builder::{ToolCallBuilder, merge_member};
use store::Usage;

/// Most bytes of text, arguments and other members of one reply.
const REPLY_LIMIT: usize = 10 * 1024 * 1024;

/// What has come of a streamed reply.
pub struct Assembly<'a> {
    pub reply_stream: ReplyStream<'a>,
    pub drafts: Vec<ToolCallBuilder>,
    pub members: Map<String, Value>,
    pub usage: Usage,
    /// Why the reply ended; `None` before its end.
    pub finish_reason: Option<String>,
    /// Whether any chunk held a choice.
    pub has_choice: bool,
    /// The index that each tool_call_builder was sent under.
    indexes: Vec<Option<u64>>,
    refusal: String,
    size: usize,
}

impl<'a> Assembly<'a> {
    /// An empty reply, to be spoken by `reply_stream`.
    pub fn new(reply_stream: ReplyStream<'a>) -> Assembly<'a> {
        Assembly {
            reply_stream,
            drafts: Vec::new(),
            members: Map::new(),
            usage: Usage::default(),
            finish_reason: None,
            has_choice: false,
            indexes: Vec::new(),
            refusal: String::new(),
            size: 0,
        }
    }

    /// Takes a chunk of `size` bytes. Returns whether the reply is within its
    /// limit.
    pub fn push(&mut self, chunk: &Value, size: usize) -> bool {
        self.size += size;
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage_of(usage);
        }
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else {
            return true;
        };
        self.has_choice = true;
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish_reason = Some(reason.to_owned());
        }
        let delta = choice.get("delta").or_else(|| choice.get("message"));
        if let Some(delta) = delta.and_then(Value::as_object) {
            self.take_delta(delta);
        }
        self.size <= REPLY_LIMIT
    }

    fn take_delta(&mut self, delta: &Map<String, Value>) {
        match delta.get("content") {
            Some(Value::String(piece)) => self.reply_stream.push(piece),
            Some(parts) => self.reply_stream.push(&text_of(parts)),
            None => {}
        }
        if let Some(piece) = delta.get("refusal").and_then(Value::as_str) {
            self.refusal.push_str(piece);
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            let slot = self.slot_of(call);
            self.drafts[slot].merge(call);
        }
        if let Some(function) = delta.get("function_call").filter(|_| calls.is_none()) {
            if self.drafts.is_empty() {
                self.open(None);
            }
            // Some servers send the old form beside the new one.
            if self.indexes[0].is_none() {
                self.drafts[0].merge_function(function);
            }
        }
        for (name, value) in delta.iter().filter(|(name, _)| !is_known_member(name)) {
            merge_member(&mut self.members, name, value);
        }
    }

    /// Where a piece of a call belongs: by index, else by id, else to the last
    /// call. Another id, or another name after whole arguments, under a known
    /// index is another call: several gateways number every call 0.
    fn slot_of(&mut self, call: &Value) -> usize {
        let index = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let name = call.pointer("/function/name").and_then(Value::as_str);
        let known = match index {
            Some(_) => self.indexes.iter().rposition(|known| *known == index),
            None if id.is_empty() => self.drafts.len().checked_sub(1),
            None => self
                .drafts
                .iter()
                .rposition(|tool_call_builder| tool_call_builder.id == id),
        };
        let Some(slot) = known else {
            return self.open(index);
        };
        let tool_call_builder = &self.drafts[slot];
        let other_id =
            !id.is_empty() && !tool_call_builder.id.is_empty() && tool_call_builder.id != id;
        let other_call = id.is_empty()
            && name.is_some_and(|name| !name.is_empty())
            && serde_json::from_str::<Map<String, Value>>(&tool_call_builder.arguments).is_ok();
        if other_id || other_call {
            return self.open(index);
        }
        slot
    }

    fn open(&mut self, index: Option<u64>) -> usize {
        self.drafts.push(ToolCallBuilder::default());
        self.indexes.push(index);
        self.drafts.len() - 1
    }

    /// The text, the model's refusal if it wrote nothing else, and the rest.
    pub fn finish(mut self) -> (String, Vec<ToolCallBuilder>, Map<String, Value>, Usage) {
        if !self.refusal.is_empty() && !self.reply_stream.has_spoken() {
            self.reply_stream.push(&self.refusal);
        }
        (
            self.reply_stream.finish(),
            self.drafts,
            self.members,
            self.usage,
        )
    }
}

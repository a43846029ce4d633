//! Parses a reply of the Messages API.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::reply_reader::{ReplyBuilder, ReplyParser, is_empty};
use crate::model::reply_stream::ReplyStream;
use crate::model::tool_call_builder::{ToolCallBuilder, arguments_object};
use store::Usage;

/// Parses one reply.
#[derive(Default)]
pub struct MessagesReply {
    /// By index: some servers let blocks overlap.
    blocks: BTreeMap<u64, Block>,
    /// The newest figures of `usage`.
    counts: Map<String, Value>,
}

impl ReplyParser for MessagesReply {
    fn event(&mut self, mut event: Value, reply: &mut ReplyBuilder<'_>) {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                reply.has_begun = true;
                self.note_end(&event["message"], reply);
            }
            Some("content_block_start") => {
                let block = Block::begun(event["content_block"].take());
                reply.text.push(block.text());
                reply.has_block |= !block.is("text") && !block.is("thinking");
                reply.is_thinking |= block.is("thinking");
                self.blocks.insert(index, block);
            }
            Some("content_block_delta") => {
                let pieces = event["delta"].as_object().into_iter().flatten();
                reply.has_block |= pieces
                    .filter(|(name, _)| *name != "type")
                    .any(|(_, piece)| !is_empty(piece));
                if let Some(block) = self.blocks.get_mut(&index) {
                    block.add(&event["delta"], &mut reply.text);
                }
            }
            Some("message_delta") => {
                self.note_end(&event["delta"], reply);
                self.note_end(&event, reply);
            }
            Some("message_stop") => reply.is_complete = true,
            // `ping`, `content_block_stop`, and later additions.
            _ => {}
        }
    }

    fn whole(&mut self, mut value: Value, reply: &mut ReplyBuilder<'_>) {
        let content = value.get_mut("content").map(Value::take);
        reply.has_begun = matches!(content, Some(Value::Array(_)));
        if let Some(Value::Array(content)) = content {
            self.blocks = (0..).zip(content.into_iter().map(Block::whole)).collect();
        }
        for block in self.blocks.values() {
            let thought = block.value["thinking"].as_str();
            reply.text.think(thought.unwrap_or_default());
            reply.text.push(block.text());
        }
        self.note_end(&value, reply);
    }

    fn finish(&mut self, reply: &mut ReplyBuilder<'_>) {
        let count = |name: &str| self.counts.get(name).and_then(Value::as_u64).unwrap_or(0);
        let cached = count("cache_read_input_tokens");
        reply.usage = Usage {
            input: count("input_tokens") + count("cache_creation_input_tokens") + cached,
            output: count("output_tokens"),
            cached,
        };
        let blocks: Vec<Block> = std::mem::take(&mut self.blocks).into_values().collect();
        let calls = blocks.iter().filter(|block| block.is("tool_use"));
        reply.calls = calls.map(|block| block.call.clone()).collect();
        // Thoughts must go back unchanged, with the calls that they led to. A reply
        // without thoughts can be written anew.
        let is_plain = |block: &Block| block.is("text") || block.is("tool_use");
        if !blocks.iter().all(is_plain) {
            let content: Vec<Value> = blocks
                .into_iter()
                .filter(|block| !block.is("text") || !block.text().trim().is_empty())
                .map(Block::finished)
                .collect();
            reply.members.insert("content".to_owned(), content.into());
        }
    }
}

impl MessagesReply {
    /// Takes the reason of the end and the usage from a message or a piece of
    /// one; what comes later wins.
    fn note_end(&mut self, message: &Value, reply: &mut ReplyBuilder<'_>) {
        if let Some(reason) = message.get("stop_reason").and_then(Value::as_str) {
            reply.finish_reason = Some(reason.to_owned());
        }
        let counts = message.get("usage").and_then(Value::as_object);
        for (name, count) in counts.into_iter().flatten() {
            if count.is_u64() {
                self.counts.insert(name.clone(), count.clone());
            }
        }
    }
}

/// A block of a reply's content.
struct Block {
    value: Value,
    /// Holds nothing of use unless the block is a tool call.
    call: ToolCallBuilder,
}

impl Block {
    fn whole(value: Value) -> Block {
        let call = ToolCallBuilder::whole(&value, "id", &value["input"]);
        Block { value, call }
    }

    /// A block of a stream, which begins with an empty input.
    fn begun(value: Value) -> Block {
        let mut block = Block::whole(value);
        if block.call.arguments == "{}" {
            block.call.arguments.clear();
        }
        block
    }

    fn is(&self, kind: &str) -> bool {
        self.value.get("type").and_then(Value::as_str) == Some(kind)
    }

    fn text(&self) -> &str {
        let text = || self.value.get("text")?.as_str();
        text().filter(|_| self.is("text")).unwrap_or_default()
    }

    fn add(&mut self, delta: &Value, text: &mut ReplyStream<'_>) {
        let piece = |name: &str| delta.get(name).and_then(Value::as_str);
        match delta.get("type").and_then(Value::as_str) {
            Some("text_delta") => {
                let piece = piece("text").unwrap_or_default();
                self.append("text", piece);
                text.push(piece);
            }
            Some("input_json_delta") => {
                let piece = piece("partial_json").unwrap_or_default();
                self.call.arguments.push_str(piece);
            }
            Some("thinking_delta") => {
                let piece = piece("thinking").unwrap_or_default();
                self.append("thinking", piece);
                text.think(piece);
            }
            Some("signature_delta") => {
                self.append("signature", piece("signature").unwrap_or_default());
            }
            _ => {}
        }
    }

    fn append(&mut self, name: &str, piece: &str) {
        let Some(members) = self.value.as_object_mut() else {
            return;
        };
        match members.get_mut(name) {
            Some(Value::String(text)) => text.push_str(piece),
            _ => {
                members.insert(name.to_owned(), piece.into());
            }
        }
    }

    /// As it is sent back.
    fn finished(mut self) -> Value {
        if self.is("tool_use") {
            self.value["input"] = arguments_object(&self.call.arguments);
        }
        self.value
    }
}

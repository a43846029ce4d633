//! Reads a reply of the Messages API.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::origin;
use crate::model::ModelReply;
use crate::provider::dialect::{AttemptError, Reading, has_error};
use crate::provider::event_stream::EventStream;
use crate::provider::extra::{arguments_object, wrap_members};
use crate::provider::refusal::Refusal;
use crate::provider::reply_stream::ReplyStream;
use crate::provider::tool_call_builder::{ToolCallBuilder, finish_calls};
use net::http_client::{BODY_LIMIT, ClientError, ClientResponse};
use serde_json::json;
use store::Usage;

/// Reads a reply that came whole.
pub fn read_whole(reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
    let mut reply_stream = reading.reply_stream;
    let body = reading.answer.read_all(BODY_LIMIT)?;
    let mut value: Value =
        serde_json::from_slice(&body).map_err(|error| AttemptError::not_json(&error, &body))?;
    if has_error(&value) {
        return Err(AttemptError::Refused(Refusal::in_reply(&value)));
    }
    let Some(Value::Array(content)) = value.get_mut("content").map(Value::take) else {
        return Err(AttemptError::no_reply("there is no content"));
    };
    let blocks: Vec<Block> = content.into_iter().map(Block::whole).collect();
    for block in &blocks {
        reply_stream.push(block.text());
    }
    let mut ending = Ending::default();
    ending.note(&value);
    finish(reply_stream.finish(), blocks, &ending, reading.base_url)
}

/// Reads a streamed reply.
pub fn read_stream(reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
    let mut gathered = Gathered {
        reply_stream: reading.reply_stream,
        blocks: BTreeMap::new(),
        ending: Ending::default(),
        has_begun: false,
    };
    let result = read_events(reading.answer, &mut gathered);
    *reading.heard = gathered.reply_stream.was_heard();
    let is_whole = result?;
    if !gathered.has_begun {
        return Err(AttemptError::no_reply("there was no message_start"));
    }
    if !is_whole && gathered.ending.reason.is_none() {
        return Err(AttemptError::cut_short(
            "the stream ended before message_stop",
        ));
    }
    reading.answer.finish();
    let blocks = gathered.blocks.into_values().collect();
    let text = gathered.reply_stream.finish();
    finish(text, blocks, &gathered.ending, reading.base_url)
}

struct Gathered<'v> {
    reply_stream: ReplyStream<'v>,
    /// By index: some servers let blocks overlap.
    blocks: BTreeMap<u64, Block>,
    ending: Ending,
    has_begun: bool,
}

/// A block of a reply's content.
struct Block {
    value: Value,
    /// The input of a call, as text.
    input: String,
}

impl Block {
    fn whole(value: Value) -> Block {
        let input = match value.get("input") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(input) => input.to_string(),
        };
        Block { value, input }
    }

    /// A block of a stream, which begins with an empty input.
    fn begun(value: Value) -> Block {
        let mut block = Block::whole(value);
        if block.input == "{}" {
            block.input.clear();
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

    fn add(&mut self, delta: &Value, reply_stream: &mut ReplyStream<'_>) {
        let piece = |name: &str| delta.get(name).and_then(Value::as_str);
        match delta.get("type").and_then(Value::as_str) {
            Some("text_delta") => {
                let piece = piece("text").unwrap_or_default();
                self.append("text", piece);
                reply_stream.push(piece);
            }
            Some("input_json_delta") => {
                self.input
                    .push_str(piece("partial_json").unwrap_or_default());
            }
            Some("thinking_delta") => {
                self.append("thinking", piece("thinking").unwrap_or_default())
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
            self.value["input"] = arguments_object(&self.input);
        }
        self.value
    }
}

/// Why the reply ended and what it cost.
#[derive(Default)]
struct Ending {
    reason: Option<String>,
    counts: Map<String, Value>,
}

impl Ending {
    /// Takes what a message or a piece of one says of it; what comes later wins.
    fn note(&mut self, message: &Value) {
        if let Some(reason) = message.get("stop_reason").and_then(Value::as_str) {
            self.reason = Some(reason.to_owned());
        }
        let counts = message.get("usage").and_then(Value::as_object);
        for (name, count) in counts.into_iter().flatten() {
            if count.is_u64() {
                self.counts.insert(name.clone(), count.clone());
            }
        }
    }

    fn usage(&self) -> Usage {
        let count = |name: &str| self.counts.get(name).and_then(Value::as_u64).unwrap_or(0);
        let cached = count("cache_read_input_tokens");
        Usage {
            input: count("input_tokens") + count("cache_creation_input_tokens") + cached,
            output: count("output_tokens"),
            cached,
        }
    }
}

/// Reads events to the end. Returns whether the stream said that it is complete.
fn read_events(
    answer: &mut ClientResponse,
    gathered: &mut Gathered<'_>,
) -> Result<bool, AttemptError> {
    let mut events = EventStream::new(answer);
    let mut size = 0;
    while let Some(event) = events.next()? {
        size += event.data.len();
        if size > BODY_LIMIT {
            return Err(ClientError::TooLarge(BODY_LIMIT).into());
        }
        let mut value: Value = serde_json::from_slice(event.data)
            .map_err(|error| AttemptError::not_json(&error, event.data))?;
        if has_error(&value) {
            return Err(AttemptError::Refused(Refusal::in_reply(&value)));
        }
        let index = value.get("index").and_then(Value::as_u64).unwrap_or(0);
        match value.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                gathered.has_begun = true;
                gathered.ending.note(&value["message"]);
            }
            Some("content_block_start") => {
                let block = Block::begun(value["content_block"].take());
                gathered.reply_stream.push(block.text());
                gathered.blocks.insert(index, block);
            }
            Some("content_block_delta") => {
                if let Some(block) = gathered.blocks.get_mut(&index) {
                    block.add(&value["delta"], &mut gathered.reply_stream);
                }
            }
            Some("message_delta") => {
                gathered.ending.note(&value["delta"]);
                gathered.ending.note(&value);
            }
            Some("message_stop") => return Ok(true),
            // `ping`, `content_block_stop`, and what is still to be invented.
            _ => {}
        }
    }
    Ok(false)
}

fn finish(
    text: String,
    blocks: Vec<Block>,
    ending: &Ending,
    base_url: &str,
) -> Result<ModelReply, AttemptError> {
    let origin = origin(base_url);
    let drafts = blocks.iter().filter(|block| block.is("tool_use"));
    let drafts = drafts.map(|block| {
        let text = |name: &str| block.value.get(name).and_then(Value::as_str);
        ToolCallBuilder {
            id: text("id").unwrap_or_default().to_owned(),
            name: text("name").unwrap_or_default().to_owned(),
            arguments: block.input.clone(),
            members: Map::new(),
        }
    });
    let calls = finish_calls(drafts.collect(), &origin);
    if text.is_empty() && calls.is_empty() && ending.reason.as_deref() == Some("refusal") {
        return Err(AttemptError::withheld("refusal"));
    }
    // Thoughts must go back, unchanged and with the calls that they led to. What
    // holds none can be written anew.
    let is_plain = |block: &Block| block.is("text") || block.is("tool_use");
    let extra = if calls.is_empty() || blocks.iter().all(is_plain) {
        None
    } else {
        let content: Vec<Value> = blocks
            .into_iter()
            .filter(|block| !block.is("text") || !block.text().trim().is_empty())
            .map(Block::finished)
            .collect();
        wrap_members(
            Map::from_iter([("content".to_owned(), json!(content))]),
            &origin,
        )
    };
    Ok(ModelReply {
        text,
        calls,
        extra,
        usage: ending.usage(),
        ..ModelReply::default()
    })
}

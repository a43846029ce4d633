//! Reads a reply of the Chat Completions API, tolerantly: servers differ in
//! what they leave out, and some in what they put where.

use serde_json::{Map, Value};

use crate::provider::tool_call_builder::{ToolCallBuilder, merge_member};
use store::Usage;

/// Whether a member of a message is read here, or known to be of no use when it
/// is sent back.
pub fn is_known_member(name: &str) -> bool {
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
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Value::String(text) => Some(text.as_str()),
                part => part.get("text")?.as_str(),
            })
            .collect(),
        _ => String::new(),
    }
}

/// A message, taken from a reply that came whole.
#[derive(Debug, Default)]
pub struct Message {
    pub text: String,
    pub drafts: Vec<ToolCallBuilder>,
    pub members: Map<String, Value>,
}

impl Message {
    /// From the `message` of a choice.
    pub fn of(message: &Map<String, Value>) -> Message {
        let text = message.get("content").map(text_of).unwrap_or_default();
        let refusal = || message.get("refusal").and_then(Value::as_str);
        let text = match refusal() {
            Some(refusal) if text.is_empty() => refusal.to_owned(),
            _ => text,
        };
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let mut drafts: Vec<ToolCallBuilder> = calls
            .into_iter()
            .flatten()
            .map(|call| {
                let mut tool_call_builder = ToolCallBuilder::default();
                tool_call_builder.merge(call);
                tool_call_builder
            })
            .collect();
        // The old form; some servers send both.
        if let Some(function) = message.get("function_call").filter(|_| drafts.is_empty()) {
            let mut tool_call_builder = ToolCallBuilder::default();
            tool_call_builder.merge_function(function);
            drafts.push(tool_call_builder);
        }
        let mut members = Map::new();
        for (name, value) in message.iter().filter(|(name, _)| !is_known_member(name)) {
            merge_member(&mut members, name, value);
        }
        Message {
            text,
            drafts,
            members,
        }
    }
}

/// `usage`, in the names of OpenAI and DeepSeek.
pub fn usage_of(usage: &Value) -> Usage {
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    Usage {
        input: count("/prompt_tokens").unwrap_or(0),
        output: count("/completion_tokens").unwrap_or(0),
        cached: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .unwrap_or(0),
    }
}

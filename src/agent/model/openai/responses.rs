//! The Responses API, as far as a conversation with tools needs it: stateless,
//! with the model's own items sent back unchanged.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::ChatMessage;
use crate::model::dialect::{RequestBody, RequestContext};
use crate::model::files::{Media, object};
use crate::model::profile::Thoughts;
use crate::model::reply_reader::{ReplyBuilder, ReplyParser, is_empty};
use crate::model::tool_call_builder::{ToolCallBuilder, result_text, sendable};
use serde_json::json;
use store::{ToolCall, Usage};

/// Follows the base URL, in requests and in the origin of extra members.
pub const PATH: &str = "/responses";
/// The member under which a reply's items are kept.
const ITEMS: &str = "output";
/// The member of a message that says whether it is the answer or a comment on the way.
const PHASE: &str = "phase";

/// The body of a request.
pub fn body(context: &RequestContext<'_>) -> RequestBody {
    let request = context.request;
    let mut body = RequestBody::default();
    body.put("model", request.model);
    body.put("store", false);
    if request.stream {
        body.put("stream", true);
    }
    if context.capabilities.thoughts != Thoughts::Nothing {
        // Without a store, thoughts come back only in this form.
        body.put("include", json!(["reasoning.encrypted_content"]));
    }
    let mut reasoning = Map::new();
    if let Some(effort) = context.effort() {
        reasoning.insert("effort".to_owned(), effort.into());
    }
    if context.wants_summary() {
        reasoning.insert("summary".to_owned(), "auto".into());
    }
    if !reasoning.is_empty() {
        body.put("reasoning", reasoning);
    }
    if let Some(key) = context.cache_key() {
        body.put("prompt_cache_key", key);
    }
    if let Some(temperature) = context.temperature() {
        body.put("temperature", temperature);
    }
    if let Some(max_tokens) = request.max_tokens {
        body.put("max_output_tokens", max_tokens);
    }
    let tools = context.tools(|tool, parameters| FunctionTool {
        name: &tool.name,
        description: &tool.description,
        parameters,
        strict: context.is_strict(tool),
    });
    if let Some(tools) = tools {
        body.put("tools", tools);
        let named = |name: &str| json!({ "type": "function", "name": name });
        if let Some(choice) = context.tool_choice(named) {
            body.put("tool_choice", choice);
        }
    }
    if let Some(client) = request.client {
        for (name, value) in &client.sampling {
            body.put(name, value);
        }
    }
    if let Some((kind, mut format)) = context.reply_format() {
        format.insert("type".to_owned(), kind.into());
        body.put("text", json!({ "format": format }));
    }
    if !request.system.is_empty() {
        body.put("instructions", request.system);
    }
    let input = input(context);
    body.reserve_for(context);
    body.put("input", input);
    body
}

/// A tool as this API describes it: flat, unlike in Chat Completions.
#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct FunctionTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    strict: bool,
}

fn input(context: &RequestContext<'_>) -> Vec<Value> {
    let mut items = Vec::new();
    for message in context.request.messages {
        match message {
            ChatMessage::User { .. } => {
                let (text, media) = context.files.with(message);
                items.push(match media.is_empty() {
                    true => message_item("user", &text),
                    false => object([
                        ("type", "message".into()),
                        ("role", "user".into()),
                        ("content", parts(&text, media)),
                    ]),
                });
            }
            ChatMessage::Assistant { text, calls, extra } => {
                let of_call = ("function_call", "call_id");
                match context.own_blocks(extra.as_ref(), calls, ITEMS, of_call) {
                    Some(own) => items.extend(own),
                    None => {
                        if !text.trim().is_empty() {
                            let mut item = message_item("assistant", text);
                            // Models that know it answer worse without it.
                            let own = context.own_members(extra.as_ref());
                            if let Some(phase) = own.and_then(|own| own.get(PHASE)) {
                                item[PHASE] = phase.clone();
                            }
                            items.push(item);
                        }
                        items.extend(calls.iter().map(call_item));
                    }
                }
            }
            ChatMessage::ToolResult { call_id, ok, .. } => {
                let (content, media) = context.files.with(message);
                let output = result_text(&content, *ok);
                let output = match media.is_empty() {
                    true => json!(output),
                    false => parts(&output, media),
                };
                items.push(object([
                    ("type", "function_call_output".into()),
                    ("call_id", call_id.as_str().into()),
                    ("output", output),
                ]));
            }
        }
    }
    items
}

/// A text and what comes with it.
fn parts(text: &str, media: Vec<Media>) -> Value {
    let part = |media: Media| match &media {
        Media::Image { .. } => object([
            ("type", "input_image".into()),
            ("image_url", media.url()),
            ("detail", "auto".into()),
        ]),
        Media::Document { name, .. } => object([
            ("type", "input_file".into()),
            ("filename", name.as_str().into()),
            ("file_data", media.url()),
        ]),
    };
    let text = json!({ "type": "input_text", "text": text });
    [text]
        .into_iter()
        .chain(media.into_iter().map(part))
        .collect()
}

fn message_item(role: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": text })
}

fn call_item(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": call.tool,
        "arguments": sendable(&call.arguments),
    })
}

/// Parses one reply.
#[derive(Default)]
pub struct ResponsesReply {
    /// Items as they were finished one by one.
    items: Vec<Value>,
    /// The response as it was at its end.
    response: Value,
    /// Whether the model wrote why it refuses to answer.
    is_refusal: bool,
    /// The place of the item whose text came last.
    speaking: Option<u64>,
}

impl ResponsesReply {
    /// Takes text of the item at this place. A reply may have several messages, which are
    /// shown as one.
    fn say(&mut self, item: u64, text: &str, reply: &mut ReplyBuilder<'_>) {
        if text.is_empty() {
            return;
        }
        if self.speaking.is_some_and(|last| last != item) {
            reply.text.push("\n\n");
        }
        self.speaking = Some(item);
        reply.text.push(text);
    }
}

impl ReplyParser for ResponsesReply {
    fn event(&mut self, mut event: Value, reply: &mut ReplyBuilder<'_>) {
        let kind = event.get("type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default();
        reply.has_begun |= kind.starts_with("response.");
        match kind {
            "response.output_item.added" => {
                let item = event["item"]["type"].as_str();
                reply.has_block |= item.is_some_and(|item| item.ends_with("_call"));
                reply.is_thinking |= item == Some("reasoning");
            }
            kind if kind.starts_with("response.reasoning") && kind.ends_with(".delta") => {
                reply.has_block |= !is_empty(&event["delta"]);
                reply
                    .text
                    .think(event["delta"].as_str().unwrap_or_default());
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.is_refusal |= kind == "response.refusal.delta";
                let piece = event.get("delta").and_then(Value::as_str);
                let item = event.get("output_index").and_then(Value::as_u64);
                // A server that gives no place at least says when an item is done.
                let item = item.unwrap_or(self.items.len() as u64);
                self.say(item, piece.unwrap_or_default(), reply);
            }
            "response.output_item.done" => self.items.push(event["item"].take()),
            "response.completed" | "response.incomplete" => {
                self.response = event["response"].take();
                reply.is_complete = true;
            }
            _ => {}
        }
    }

    fn whole(&mut self, value: Value, reply: &mut ReplyBuilder<'_>) {
        let items = value["output"].as_array().into_iter().flatten();
        let thoughts = items.filter_map(|item| item["summary"].as_array());
        for part in thoughts.flatten() {
            reply.text.think(part["text"].as_str().unwrap_or_default());
        }
        self.response = value;
    }

    fn finish(&mut self, reply: &mut ReplyBuilder<'_>) {
        let output = self.response.get_mut("output").map(Value::take);
        // Without an item it is a reply, too: an empty one.
        reply.has_begun |= matches!(output, Some(Value::Array(_)));
        let output = match output {
            Some(Value::Array(items)) if !items.is_empty() => items,
            _ => std::mem::take(&mut self.items),
        };
        let text = |pointer: &str| self.response.pointer(pointer)?.as_str();
        reply.finish_reason = text("/incomplete_details/reason").map(str::to_owned);
        let is_cut = reply.finish_reason.is_some();
        reply.has_begun |= is_cut;
        if !reply.text.has_text() {
            let messages = (0..).zip(&output);
            for (place, item) in messages.filter(|(_, item)| item["type"] == "message") {
                for part in item["content"].as_array().into_iter().flatten() {
                    self.is_refusal |= part["type"] == "refusal";
                    let text = part.get("text").or_else(|| part.get("refusal"));
                    let text = text.and_then(Value::as_str).unwrap_or_default();
                    self.say(place, text, reply);
                }
            }
        }
        if self.is_refusal && !is_cut {
            reply.finish_reason = Some("refusal".to_owned());
        }
        let is_call = |item: &&Value| item["type"] == "function_call";
        reply.calls = output
            .iter()
            .filter(is_call)
            .map(|item| ToolCallBuilder::whole(item, "call_id", &item["arguments"]))
            .collect();
        let phases = output.iter().rev().find_map(|item| item.get(PHASE));
        match phases.filter(|phase| phase.is_string() && reply.calls.is_empty()) {
            // The text itself is stored: only this goes back with it.
            Some(phase) => {
                reply.members.insert(PHASE.to_owned(), phase.clone());
                reply.keeps_members = true;
            }
            None => {
                reply.members.insert(ITEMS.to_owned(), output.into());
            }
        }
        let count = |pointer: &str| self.response.pointer(pointer)?.as_u64();
        reply.usage = Usage {
            input: count("/usage/input_tokens").unwrap_or(0),
            output: count("/usage/output_tokens").unwrap_or(0),
            cached: count("/usage/input_tokens_details/cached_tokens").unwrap_or(0),
        };
    }
}

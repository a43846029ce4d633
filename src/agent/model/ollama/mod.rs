//! Ollama's own API. Unlike its OpenAI-compatible one, it can set the size of the
//! context, without which Ollama silently cuts long conversations.

use serde_json::Value;

use super::dialect::{Dialect, FunctionTool, RequestBody, RequestContext};
use super::files::{Media, object};
use super::reply_reader::{ReplyBuilder, ReplyParser};
use super::server_capabilities::ServerCapabilities;
use super::tool_call_builder::{ToolCallBuilder, arguments_object, merge_member};
use crate::model::client_options::{Format, SupportedOptions};
use serde_json::json;
use store::ToolCall;

/// The member in which thoughts go back.
const THOUGHTS: &str = "thinking";

/// `/api/chat`.
pub struct Ollama;

impl Dialect for Ollama {
    fn path(&self, _: ServerCapabilities) -> &'static str {
        "/api/chat"
    }

    fn body(&self, context: &RequestContext<'_>) -> RequestBody {
        body(context)
    }

    fn supported_options(&self, _: ServerCapabilities) -> SupportedOptions {
        SupportedOptions {
            stop: true,
            any_json: true,
            all_sampling: true,
            ..SupportedOptions::default()
        }
    }

    fn parser(&self, _: ServerCapabilities) -> Box<dyn ReplyParser> {
        Box::new(OllamaReply)
    }
}

fn body(context: &RequestContext<'_>) -> RequestBody {
    let request = context.request;
    // The same in every request: a change makes Ollama reload the model.
    let mut options = json!({ "num_ctx": context.options.context_tokens });
    if let Some(temperature) = context.temperature() {
        options["temperature"] = json!(temperature);
    }
    if let Some(max_tokens) = request.max_tokens {
        options["num_predict"] = json!(max_tokens);
    }
    if let Some(client) = request.client {
        if !client.stop.is_empty() {
            options["stop"] = json!(client.stop);
        }
        for (name, value) in &client.sampling {
            options[name] = value.clone();
        }
    }
    // Ollama streams by default.
    let mut body = RequestBody::default();
    body.put("model", request.model);
    body.put("stream", request.stream);
    body.put("options", options);
    if let Some(minutes) = context.options.keep_alive_minutes {
        body.put("keep_alive", format!("{minutes}m"));
    }
    match context.effort() {
        None => {}
        Some("none") => body.put("think", false),
        Some("minimal" | "low") => body.put("think", "low"),
        Some("medium") => body.put("think", "medium"),
        Some(_) => body.put("think", "high"),
    }
    match request.client.and_then(|client| client.format.as_ref()) {
        None => {}
        Some(Format::Json) => body.put("format", "json"),
        Some(Format::Schema { schema, .. }) => body.put("format", schema),
    }
    if let Some(tools) = context.tools(FunctionTool::new) {
        body.put("tools", tools);
    }
    let reply = |text: &str, calls: &[ToolCall], extra: Option<&Value>| {
        let mut said = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            said["tool_calls"] = calls.iter().map(call_of).collect();
        }
        let own = context.own_members(extra);
        if let Some(thoughts) = own.and_then(|own| own.get(THOUGHTS)) {
            said[THOUGHTS] = thoughts.clone();
        }
        said
    };
    let result = |id: &str, tool: &str, content: &str| json!({ "role": "tool", "tool_name": tool, "tool_call_id": id, "content": content });
    // Templates of models show images of a person's messages alone.
    let messages = context.messages(with_images, reply, result);
    body.reserve_for(context);
    body.put("messages", messages);
    body
}

/// A person's message.
fn with_images(text: &str, media: Vec<Media>) -> Value {
    let images = media.into_iter().map(|media| media.base64());
    object([
        ("role", "user".into()),
        ("content", text.into()),
        ("images", images.collect()),
    ])
}

fn call_of(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "function": { "name": call.tool, "arguments": arguments_object(&call.arguments) },
    })
}

/// Parses one reply: each line of a stream has the form of a whole reply.
struct OllamaReply;

impl ReplyParser for OllamaReply {
    fn event(&mut self, line: Value, reply: &mut ReplyBuilder<'_>) {
        let piece = line.pointer("/message/content").and_then(Value::as_str);
        reply.text.push(piece.unwrap_or_default());
        take_rest(&line, reply);
    }

    fn reads_lines(&self) -> bool {
        true
    }
}

/// Takes all but the text.
fn take_rest(value: &Value, reply: &mut ReplyBuilder<'_>) {
    if let Some(message) = value.get("message") {
        reply.has_begun = true;
        reply
            .text
            .think(message[THOUGHTS].as_str().unwrap_or_default());
        if message[THOUGHTS] != "" {
            merge_member(&mut reply.members, THOUGHTS, &message[THOUGHTS]);
        }
        let calls = message["tool_calls"].as_array();
        for call in calls.into_iter().flatten() {
            let mut builder = ToolCallBuilder::default();
            builder.merge(call);
            // A call is whole in one line, whatever else the line holds.
            builder.members.clear();
            reply.calls.push(builder);
        }
    }
    reply.is_complete = value["done"] == true;
    if let Some(reason) = value["done_reason"].as_str() {
        reply.finish_reason = Some(reason.to_owned());
    }
    if let Some(output) = value["eval_count"].as_u64() {
        reply.usage.output = output;
    }
    // Absent when the whole prompt was cached.
    if let Some(input) = value["prompt_eval_count"].as_u64() {
        reply.usage.input = input;
    }
}

#[cfg(test)]
mod tests;

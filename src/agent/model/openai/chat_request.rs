//! Writes a request of the Chat Completions API.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::model::dialect::{FunctionTool, RequestBody, RequestContext, RequestMessage};
use crate::model::files::{Media, object};
use crate::model::profile::{CacheMark, Thoughts};
use crate::model::tool_call_builder::sendable;
use base::secret::{base32_lower, sha256};
use store::ToolCall;

/// The body of a request. What stays the same in a conversation comes before what
/// grows, so that a server can reuse its cache of the beginning.
pub fn body(context: &RequestContext<'_>) -> RequestBody {
    let (request, capabilities) = (context.request, context.capabilities);
    let mut body = RequestBody::default();
    body.put("model", request.model);
    if request.stream {
        body.put("stream", true);
        if !capabilities.no_stream_options {
            body.put("stream_options", json!({ "include_usage": true }));
        }
    }
    if let Some(temperature) = context.temperature() {
        body.put("temperature", temperature);
    }
    if let Some(effort) = context.effort() {
        body.put("reasoning_effort", effort);
    }
    if let Some(key) = context.cache_key() {
        body.put("prompt_cache_key", key);
    }
    if context.cache() == Some(CacheMark::Control) {
        body.put("cache_control", json!({ "type": "ephemeral" }));
    }
    if let Some(max_tokens) = request.max_tokens {
        body.put(capabilities.limit_name(), max_tokens);
    }
    let tools = context.tools(|tool, parameters| {
        FunctionTool::new(tool, parameters).strict(context.is_strict(tool))
    });
    if let Some(tools) = tools {
        body.put("tools", tools);
        let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
        if let Some(choice) = context.tool_choice(named) {
            body.put("tool_choice", choice);
        }
    }
    if let Some(client) = request.client {
        if !client.stop.is_empty() {
            body.put("stop", &client.stop);
        }
        for (name, value) in &client.sampling {
            body.put(name, value);
        }
    }
    if let Some((kind, schema)) = context.reply_format() {
        let mut format = json!({ "type": kind });
        if !schema.is_empty() {
            format[kind] = schema.into();
        }
        body.put("response_format", format);
    }
    let reply = |text: &str, calls: &[ToolCall], extra: Option<&Value>| {
        reply_of(text, calls, extra, context)
    };
    let result = |id: &str, _: &str, content: &str| json!({ "role": "tool", "tool_call_id": short_id(id, context), "content": content });
    let mut messages = context.messages(with_media, reply, result);
    if context.cache() == Some(CacheMark::Control) {
        mark_question(&mut messages);
    }
    body.reserve_for(context);
    body.put("messages", messages);
    body
}

/// Marks the newest message of a person, where the last request ended: from the end, the
/// cache looks back over 20 blocks only, and a round of many calls has more.
fn mark_question(messages: &mut [RequestMessage<'_>]) {
    let texts = messages
        .iter_mut()
        .rev()
        .filter_map(|message| match message {
            RequestMessage::Text {
                role: "user",
                content,
            } => {
                let text = content.to_string();
                Some((message, text))
            }
            _ => None,
        });
    if let Some((message, text)) = texts.into_iter().next() {
        let part = json!({
            "type": "text", "text": text, "cache_control": { "type": "ephemeral" },
        });
        *message = RequestMessage::Whole(json!({ "role": "user", "content": [part] }));
    }
}

/// A text of a person, and what comes with it.
fn with_media(text: &str, media: Vec<Media>) -> Value {
    let part = |media: Media| match &media {
        Media::Image { .. } => object([
            ("type", "image_url".into()),
            ("image_url", object([("url", media.url())])),
        ]),
        Media::Document { name, .. } => {
            let file = object([
                ("filename", name.as_str().into()),
                ("file_data", media.url()),
            ]);
            object([("type", "file".into()), ("file", file)])
        }
    };
    let text = json!({ "type": "text", "text": text });
    let parts = [text].into_iter().chain(media.into_iter().map(part));
    object([("role", "user".into()), ("content", parts.collect())])
}

fn reply_of(
    text: &str,
    calls: &[ToolCall],
    extra: Option<&Value>,
    context: &RequestContext<'_>,
) -> Value {
    // An empty content, not null or absent: the one form that all servers take.
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(|call| call_of(call, context)).collect();
        // Only the first of several calls carries one.
        if let Some(signature) = context.profile.call_signature
            && message["tool_calls"][0].get("extra_content").is_none()
        {
            let signed = json!({ "google": { "thought_signature": signature } });
            message["tool_calls"][0]["extra_content"] = signed;
        }
    }
    let mut message = with_extra(message, extra, context);
    if let Thoughts::WithEveryReply(member) = context.capabilities.thoughts
        && message.get(member).is_none()
    {
        message[member] = "".into();
    }
    message
}

fn call_of(call: &ToolCall, context: &RequestContext<'_>) -> Value {
    let function = json!({ "name": call.tool, "arguments": sendable(&call.arguments) });
    let id = short_id(&call.id, context);
    let value = json!({ "id": id, "type": "function", "function": function });
    with_extra(value, call.extra.as_ref(), context)
}

/// Adds the extra members that the server wants back.
fn with_extra(mut value: Value, extra: Option<&Value>, context: &RequestContext<'_>) -> Value {
    for (name, member) in context.own_members(extra).into_iter().flatten() {
        value[name] = member.clone();
    }
    value
}

/// A call's id in a form that the server accepts.
fn short_id<'v>(id: &'v str, context: &RequestContext<'_>) -> Cow<'v, str> {
    let is_short = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_short || !context.profile.short_call_ids {
        return id.into();
    }
    let mut short = base32_lower(&sha256(id.as_bytes())[..6]);
    short.truncate(9);
    short.into()
}

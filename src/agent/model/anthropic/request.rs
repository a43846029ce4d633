//! Writes a request of the Messages API.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::ChatMessage;
use crate::model::client_options::{Format, MustCall};
use crate::model::dialect::{RequestBody, RequestContext};
use crate::model::files::{Media, object};
use crate::model::tool_call_builder::arguments_object;
use serde_json::json;
use store::ToolCall;

/// The default limit on the tokens of a reply: the API requires a number.
const LIMIT: u32 = 8192;
/// The default for models that cannot write that much.
const SMALL_LIMIT: u32 = 4096;

/// The body, in the order in which the API's cache compares beginnings: tools,
/// system, messages.
pub fn body(context: &RequestContext<'_>) -> RequestBody {
    let (request, capabilities) = (context.request, context.capabilities);
    let usual_limit = if capabilities.small_limit {
        SMALL_LIMIT
    } else {
        LIMIT
    };
    let mut body = RequestBody::default();
    body.put("model", request.model);
    body.put("max_tokens", request.max_tokens.unwrap_or(usual_limit));
    if request.stream {
        body.put("stream", true);
    }
    if let Some(temperature) = context.temperature() {
        body.put("temperature", temperature.min(1.0));
    }
    let mut output = Map::new();
    match context.effort() {
        // It thinks only where it is asked to.
        _ if request.purpose.is_aside() => {}
        None => {}
        Some("none") => {
            body.put("thinking", json!({ "type": "disabled" }));
        }
        Some(effort) => {
            let effort = if effort == "minimal" { "low" } else { effort };
            let mut thinking = json!({ "type": "adaptive" });
            if !capabilities.no_summaries {
                // Newer models leave out their thoughts otherwise. Also where nobody hears
                // them, since a change of it may cost the cache.
                thinking["display"] = "summarized".into();
            }
            body.put("thinking", thinking);
            output.insert("effort".to_owned(), effort.into());
        }
    }
    if let Some(client) = request.client {
        if !client.stop.is_empty() {
            body.put("stop_sequences", &client.stop);
        }
        if let Some(Format::Schema { schema, .. }) = &client.format {
            let format = json!({ "type": "json_schema", "schema": schema });
            output.insert("format".to_owned(), format);
        }
        for (name, value) in &client.sampling {
            body.put(name, value);
        }
    }
    if !output.is_empty() {
        body.put("output_config", output);
    }
    let is_marked = !capabilities.no_cache_marks && !request.purpose.is_aside();
    let cache_control = is_marked.then(|| json!({ "type": "ephemeral" }));
    let mark = |block: &mut Value| {
        if let Some(cache_control) = &cache_control {
            block["cache_control"] = cache_control.clone();
        }
    };
    let tools = context.tools(|tool, input_schema| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema,
        strict: context.is_strict(tool),
        cache_control: None,
    });
    let is_known = tools.is_some();
    let mut tools = tools.unwrap_or_else(|| tools_called(request.messages));
    if let Some(last) = tools.last_mut() {
        last.cache_control = cache_control.as_ref();
        body.put("tools", tools);
        if (!request.may_call || !is_known) && !capabilities.no_tool_choice {
            body.put("tool_choice", json!({ "type": "none" }));
        } else if let Some(must) = request.client.and_then(|client| client.must_call.as_ref()) {
            body.put(
                "tool_choice",
                match must {
                    MustCall::Any => json!({ "type": "any" }),
                    MustCall::Tool(name) => json!({ "type": "tool", "name": name }),
                },
            );
        }
    }
    if !request.system.trim().is_empty() {
        let mut system = json!({ "type": "text", "text": request.system });
        mark(&mut system);
        body.put("system", [system]);
    }
    let mut messages = messages(context);
    // Also where the last request ended: from a mark, the cache looks back over 20 blocks
    // only, and a round of many calls has more. With these, all four marks are used.
    let of_users = messages.iter_mut().rev();
    let ends = of_users.filter(|message| message.role == USER).take(2);
    ends.filter_map(|message| message.blocks.last_mut())
        .for_each(mark);
    let messages: Vec<Value> = messages
        .into_iter()
        .map(|message| {
            object([
                ("role", message.role.into()),
                ("content", message.blocks.into()),
            ])
        })
        .collect();
    body.reserve_for(context);
    body.put("messages", messages);
    body
}

/// A tool as this API describes it.
#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a Value>,
}

/// The tools that earlier replies called, when none is offered now: the API refuses
/// calls without any description of a tool.
fn tools_called<'t>(messages: &'t [ChatMessage<'_>]) -> Vec<Tool<'t>> {
    let calls = messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    let names: BTreeSet<&str> = calls.flatten().map(|call| call.tool.as_str()).collect();
    let describe = |name| Tool {
        name,
        description: "No longer available.",
        input_schema: Cow::Owned(json!({ "type": "object" })),
        strict: false,
        cache_control: None,
    };
    names.into_iter().map(describe).collect()
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";

/// One message: neighbours of one role are one.
struct Message {
    role: &'static str,
    blocks: Vec<Value>,
}

fn messages(context: &RequestContext<'_>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let mut add = |role: &'static str, blocks: Vec<Value>| {
        if blocks.is_empty() {
            return;
        }
        match messages.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            None if role == ASSISTANT => {
                // The first message must be a person's.
                let blocks_before = vec![text_block("(What was said before is left out.)")];
                messages.push(Message {
                    role: USER,
                    blocks: blocks_before,
                });
                messages.push(Message { role, blocks });
            }
            _ => messages.push(Message { role, blocks }),
        }
    };
    for message in context.request.messages {
        match message {
            ChatMessage::User { .. } => {
                let (text, media) = context.files.with(message);
                // Images before the text, as Anthropic recommends.
                let mut blocks: Vec<Value> = media.into_iter().map(media_block).collect();
                // Blank blocks are refused.
                let is_blank = text.trim().is_empty();
                blocks.push(text_block(if is_blank { "(empty)" } else { &text }));
                add(USER, blocks);
            }
            ChatMessage::Assistant { text, calls, extra } => {
                let of_call = ("tool_use", "id");
                let own = context.own_blocks(extra.as_ref(), calls, "content", of_call);
                let blocks = own.map_or_else(|| blocks_of(text, calls), with_safe_ids);
                add(ASSISTANT, blocks);
            }
            ChatMessage::ToolResult { call_id, ok, .. } => {
                let (content, media) = context.files.with(message);
                let content = match media.is_empty() {
                    true => json!(content),
                    false => {
                        let media = media.into_iter().map(media_block);
                        [text_block(&content)].into_iter().chain(media).collect()
                    }
                };
                let mut result = object([
                    ("type", "tool_result".into()),
                    ("tool_use_id", safe_id(call_id).into()),
                    ("content", content),
                ]);
                if !ok {
                    result["is_error"] = json!(true);
                }
                add(USER, vec![result]);
            }
        }
    }
    messages
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn media_block(media: Media) -> Value {
    let kind = match media {
        Media::Image { .. } => "image",
        Media::Document { .. } => "document",
    };
    let source = object([
        ("type", "base64".into()),
        ("media_type", media.media_type().into()),
        ("data", media.base64()),
    ]);
    object([("type", kind.into()), ("source", source)])
}

fn blocks_of(text: &str, calls: &[ToolCall]) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !text.trim().is_empty() {
        // White space at the end is refused in some places.
        blocks.push(text_block(text.trim_end()));
    }
    blocks.extend(calls.iter().map(|call| {
        json!({
            "type": "tool_use",
            "id": safe_id(&call.id),
            "name": call.tool,
            "input": arguments_object(&call.arguments),
        })
    }));
    blocks
}

fn with_safe_ids(mut blocks: Vec<Value>) -> Vec<Value> {
    for block in &mut blocks {
        if let Some(Value::String(id)) = block.get_mut("id") {
            *id = safe_id(id);
        }
    }
    blocks
}

/// A call's id, perhaps from another provider, in characters that this API
/// accepts.
fn safe_id(id: &str) -> String {
    id.chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
            _ => '_',
        })
        .collect()
}

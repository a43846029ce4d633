//! Writes a request of the Messages API.

use serde_json::{Map, Value};

use crate::model::ChatMessage;
use crate::provider::dialect::RequestContext;
use crate::provider::extra::arguments_object;
use serde_json::json;
use store::ToolCall;

/// The default limit on the tokens of a reply: the API requires a number.
const LIMIT: u32 = 8192;
/// The default for models that cannot write that much.
const SMALL_LIMIT: u32 = 4096;

/// The body, in the order in which the API's cache compares beginnings: tools,
/// system, messages.
pub fn body(context: &RequestContext<'_>) -> Value {
    let (request, capabilities) = (context.request, context.capabilities);
    let usual_limit = if capabilities.small_limit {
        SMALL_LIMIT
    } else {
        LIMIT
    };
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("model", json!(request.model));
    put(
        "max_tokens",
        json!(request.max_tokens.unwrap_or(usual_limit)),
    );
    if request.stream {
        put("stream", json!(true));
    }
    if let Some(temperature) = context.temperature() {
        put("temperature", json!(temperature.min(1.0)));
    }
    match context.effort() {
        None => {}
        Some("none") => {
            put("thinking", json!({ "type": "disabled" }));
        }
        Some(effort) => {
            let effort = if effort == "minimal" { "low" } else { effort };
            put("thinking", json!({ "type": "adaptive" }));
            put("output_config", json!({ "effort": effort }));
        }
    }
    let mark = |block: &mut Value| {
        if !capabilities.no_cache_marks {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
    };
    let tools = context.tools(|tool, parameters| {
        json!({
            "name": tool.name, "description": tool.description, "input_schema": parameters,
        })
    });
    if let Some(mut tools) = tools {
        tools.last_mut().map(mark);
        put("tools", tools.into());
    }
    if !request.system.trim().is_empty() {
        let mut system = json!({ "type": "text", "text": request.system });
        mark(&mut system);
        put("system", json!([system]));
    }
    let mut messages = messages(context);
    let newest = messages.iter_mut().rfind(|message| message.role == USER);
    newest
        .and_then(|message| message.blocks.last_mut())
        .map(mark);
    let messages: Vec<Value> = messages
        .into_iter()
        .map(|message| json!({ "role": message.role, "content": message.blocks }))
        .collect();
    put("messages", messages.into());
    Value::Object(body)
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
            // Blank blocks are refused.
            ChatMessage::User { text } if text.trim().is_empty() => {
                add(USER, vec![text_block("(empty)")]);
            }
            ChatMessage::User { text } => add(USER, vec![text_block(text)]),
            ChatMessage::Assistant { text, calls, extra } => {
                let of_call = ("tool_use", "id");
                let own = context.own_blocks(extra.as_ref(), calls, "content", of_call);
                let blocks = own.map_or_else(|| blocks_of(text, calls), with_safe_ids);
                add(ASSISTANT, blocks);
            }
            ChatMessage::ToolResult {
                call_id,
                content,
                ok,
                ..
            } => {
                let mut result = json!({
                    "type": "tool_result",
                    "tool_use_id": safe_id(call_id),
                    "content": content,
                });
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

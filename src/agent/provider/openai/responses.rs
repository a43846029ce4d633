//! The Responses API, as far as a conversation with tools needs it: stateless,
//! with the model's own items sent back unchanged.

use serde_json::{Map, Value};

use super::super::dialect::{AttemptError, EncodedRequest, Reading, RequestContext, has_error};
use super::super::event_stream::EventStream;
use super::super::extra::{own_blocks, sendable, wrap_members};
use super::super::plain_schema::parameters_of;
use super::super::refusal::Refusal;
use super::super::reply_stream::ReplyStream;
use super::super::tool_call_builder::{ToolCallBuilder, finish_calls};
use crate::model::{ChatMessage, ModelReply};
use net::http_client::{BODY_LIMIT, ClientError, ClientResponse};
use serde_json::json;
use store::{ToolCall, Usage};

/// The member under which a reply's items are kept.
const ITEMS: &str = "output";

fn origin(base_url: &str) -> String {
    format!("{base_url}/responses")
}

/// Writes a request.
pub fn write(asking: &RequestContext<'_>) -> EncodedRequest {
    let (request, learned) = (asking.request, asking.learned);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("store".to_owned(), json!(false));
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
    }
    if !learned.no_extra {
        // Without a store, thoughts come back only in this form.
        let include = json!(["reasoning.encrypted_content"]);
        body.insert("include".to_owned(), include);
    }
    if let Some(effort) = asking.effort() {
        body.insert("reasoning".to_owned(), json!({ "effort": effort }));
    }
    if let Some(temperature) = request.temperature.filter(|_| !learned.no_temperature) {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(max_tokens) = request.max_tokens {
        body.insert("max_output_tokens".to_owned(), json!(max_tokens));
    }
    if !request.tools.is_empty() && !learned.no_tools {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": parameters_of(&tool.parameters, learned.plain_schemas),
                    "strict": false,
                })
            })
            .collect();
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    if !request.system.is_empty() {
        body.insert("instructions".to_owned(), json!(request.system));
    }
    body.insert("input".to_owned(), Value::Array(input(asking)));
    EncodedRequest {
        path: "/responses",
        body: Value::Object(body).to_string().into_bytes(),
    }
}

fn input(asking: &RequestContext<'_>) -> Vec<Value> {
    let origin = origin(asking.base_url);
    let mut items = Vec::new();
    for message in asking.request.messages {
        match message {
            ChatMessage::User { text } => items.push(said("user", text)),
            ChatMessage::Assistant { text, calls, extra } => {
                let extra = extra.as_ref().filter(|_| !asking.learned.no_extra);
                match own_blocks(extra, &origin, calls, ITEMS, ("function_call", "call_id")) {
                    Some(own) => items.extend(own),
                    None => {
                        if !text.trim().is_empty() {
                            items.push(said("assistant", text));
                        }
                        items.extend(calls.iter().map(called));
                    }
                }
            }
            ChatMessage::ToolResult {
                call_id,
                content,
                ok,
                ..
            } => {
                let output = match ok {
                    true => content.clone(),
                    false => format!("Error: {content}"),
                };
                items.push(json!({
                    "type": "function_call_output", "call_id": call_id, "output": output,
                }));
            }
        }
    }
    items
}

fn said(role: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": text })
}

fn called(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": call.tool,
        "arguments": sendable(&call.arguments),
    })
}

/// Reads a reply, streamed or whole.
pub fn read(reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
    let origin = origin(reading.base_url);
    let mut gathered = Gathered {
        reply_stream: reading.reply_stream,
        items: Vec::new(),
        response: None,
    };
    if reading.is_stream {
        let result = read_events(reading.answer, &mut gathered);
        *reading.heard = gathered.reply_stream.was_heard();
        result?;
        reading.answer.finish();
    } else {
        let body = reading.answer.read_all(BODY_LIMIT)?;
        let value: Value =
            serde_json::from_slice(&body).map_err(|error| AttemptError::not_json(&error, &body))?;
        if has_error(&value) {
            return Err(AttemptError::Refused(Refusal::in_reply(&value)));
        }
        gathered.response = Some(value);
    }
    gathered.finish(&origin)
}

struct Gathered<'v> {
    reply_stream: ReplyStream<'v>,
    /// Items as they were finished one by one.
    items: Vec<Value>,
    /// The response as it was at its end.
    response: Option<Value>,
}

fn read_events(
    answer: &mut ClientResponse,
    gathered: &mut Gathered<'_>,
) -> Result<(), AttemptError> {
    let mut events = EventStream::new(answer);
    let mut size = 0;
    while let Some(event) = events.next()? {
        size += event.data.len();
        if size > BODY_LIMIT {
            return Err(ClientError::TooLarge(BODY_LIMIT).into());
        }
        if event.data.starts_with(b"[DONE]") {
            break;
        }
        let mut value: Value = match serde_json::from_slice(event.data) {
            Ok(value) => value,
            Err(error) => return Err(AttemptError::not_json(&error, event.data)),
        };
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let piece = value.get("delta").and_then(Value::as_str);
                gathered.reply_stream.push(piece.unwrap_or_default());
            }
            "response.output_item.done" => gathered.items.push(value["item"].take()),
            "response.completed" | "response.incomplete" => {
                gathered.response = Some(value["response"].take());
                return Ok(());
            }
            "response.failed" => {
                return Err(AttemptError::Refused(Refusal::in_reply(&value["response"])));
            }
            "error" if !has_error(&value) => {
                return Err(AttemptError::Refused(Refusal::in_reply(
                    &json!({ "error": value }),
                )));
            }
            _ if has_error(&value) => return Err(AttemptError::Refused(Refusal::in_reply(&value))),
            _ => {}
        }
    }
    match gathered.response {
        Some(_) => Ok(()),
        None => Err(AttemptError::cut_short(
            "the stream ended before response.completed",
        )),
    }
}

impl Gathered<'_> {
    fn finish(mut self, origin: &str) -> Result<ModelReply, AttemptError> {
        let mut response = self.response.unwrap_or_default();
        let output = match response.get_mut("output").map(Value::take) {
            Some(Value::Array(items)) if !items.is_empty() => items,
            _ => self.items,
        };
        let reason = response.pointer("/incomplete_details/reason");
        let is_withheld = reason.and_then(Value::as_str) == Some("content_filter");
        if output.is_empty() && !self.reply_stream.has_spoken() && !is_withheld {
            return Err(AttemptError::no_reply("there is no output"));
        }
        if !self.reply_stream.has_spoken() {
            for part in output
                .iter()
                .filter_map(|item| item.get("content")?.as_array())
            {
                for part in part {
                    let text = part.get("text").or_else(|| part.get("refusal"));
                    self.reply_stream
                        .push(text.and_then(Value::as_str).unwrap_or_default());
                }
            }
        }
        let is_call = |item: &&Value| item["type"] == "function_call";
        let drafts = output.iter().filter(is_call).map(|item| {
            let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            ToolCallBuilder {
                id: text("call_id"),
                name: text("name"),
                arguments: match &item["arguments"] {
                    Value::String(arguments) => arguments.clone(),
                    Value::Null => String::new(),
                    whole => whole.to_string(),
                },
                members: Map::new(),
            }
        });
        let calls = finish_calls(drafts.collect(), origin);
        let text = self.reply_stream.finish();
        if text.is_empty() && calls.is_empty() && is_withheld {
            return Err(AttemptError::withheld("content_filter"));
        }
        let extra = if calls.is_empty() {
            None
        } else {
            wrap_members(Map::from_iter([(ITEMS.to_owned(), output.into())]), origin)
        };
        let count = |pointer: &str| response.pointer(pointer).and_then(Value::as_u64);
        Ok(ModelReply {
            text,
            calls,
            extra,
            usage: Usage {
                input: count("/usage/input_tokens").unwrap_or(0),
                output: count("/usage/output_tokens").unwrap_or(0),
                cached: count("/usage/input_tokens_details/cached_tokens").unwrap_or(0),
            },
            ..ModelReply::default()
        })
    }
}

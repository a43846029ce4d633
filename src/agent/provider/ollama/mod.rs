//! Ollama's own API. Unlike its imitation of OpenAI's, it lets the size of the
//! context be set, without which long conversations are cut silently.

use serde_json::{Map, Value};

use super::dialect::{AttemptError, Dialect, EncodedRequest, Reading, RequestContext, has_error};
use super::event_stream::EventStream;
use super::extra::{arguments_object, own_members, wrap_members};
use super::plain_schema::parameters_of;
use super::refusal::Refusal;
use super::reply_stream::{ReplyStream, without_thoughts};
use super::tool_call_builder::{ToolCallBuilder, finish_calls};
use crate::model::{ChatMessage, ModelReply};
use net::http_client::{BODY_LIMIT, ClientError, ClientResponse};
use serde_json::json;
use store::{ToolCall, Usage};

/// The size of the context where none is set, in tokens: more than Ollama's own
/// 4,096. It stays the same in every request, because a change loads the model
/// anew.
pub const CONTEXT: u32 = 16_384;
/// The member in which thoughts go back.
const THOUGHTS: &str = "thinking";

/// `/api/chat`.
pub struct Ollama;

impl Dialect for Ollama {
    fn write(&self, asking: &RequestContext<'_>) -> EncodedRequest {
        EncodedRequest {
            path: "/api/chat",
            body: body(asking).to_string().into_bytes(),
        }
    }

    fn read(&self, reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
        read(reading)
    }
}

fn origin(base_url: &str) -> String {
    format!("{base_url}/api/chat")
}

fn body(asking: &RequestContext<'_>) -> Value {
    let (request, learned) = (asking.request, asking.learned);
    let mut options = json!({ "num_ctx": asking.options.context_tokens.unwrap_or(CONTEXT) });
    if let Some(temperature) = request.temperature {
        options["temperature"] = json!(temperature);
    }
    if let Some(max_tokens) = request.max_tokens {
        options["num_predict"] = json!(max_tokens);
    }
    // Without a word on it, Ollama streams.
    let mut body = json!({ "model": request.model, "stream": request.stream, "options": options });
    match asking.effort() {
        None => {}
        Some("none") => body["think"] = json!(false),
        Some("minimal" | "low") => body["think"] = json!("low"),
        Some("medium") => body["think"] = json!("medium"),
        Some(_) => body["think"] = json!("high"),
    }
    if !request.tools.is_empty() && !learned.no_tools {
        let tools = request.tools.iter().map(|tool| {
            let parameters = parameters_of(&tool.parameters, learned.plain_schemas);
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": parameters,
            }})
        });
        body["tools"] = tools.collect();
    }
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    let origin = origin(asking.base_url);
    messages.extend(request.messages.iter().map(|message| match message {
        ChatMessage::User { text } => json!({ "role": "user", "content": text }),
        ChatMessage::Assistant { text, calls, extra } => {
            let mut said = json!({ "role": "assistant", "content": text });
            if !calls.is_empty() {
                said["tool_calls"] = calls.iter().map(called).collect();
            }
            let extra = extra.as_ref().filter(|_| !learned.no_extra);
            let own = extra.and_then(|extra| own_members(extra, &origin));
            if let Some(thoughts) = own.and_then(|own| own.get(THOUGHTS)) {
                said[THOUGHTS] = thoughts.clone();
            }
            said
        }
        ChatMessage::ToolResult {
            call_id,
            tool,
            content,
            ok,
        } => {
            let content = match ok {
                true => content.clone(),
                false => format!("Error: {content}"),
            };
            json!({
                "role": "tool", "tool_name": tool, "tool_call_id": call_id, "content": content,
            })
        }
    }));
    body["messages"] = messages.into();
    body
}

fn called(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "function": { "name": call.tool, "arguments": arguments_object(&call.arguments) },
    })
}

struct Gathered<'v> {
    reply_stream: ReplyStream<'v>,
    drafts: Vec<ToolCallBuilder>,
    thoughts: String,
    usage: Usage,
    is_done: bool,
    has_message: bool,
}

fn read(reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
    let mut gathered = Gathered {
        reply_stream: reading.reply_stream,
        drafts: Vec::new(),
        thoughts: String::new(),
        usage: Usage::default(),
        is_done: false,
        has_message: false,
    };
    if reading.is_stream {
        let result = read_lines(reading.answer, &mut gathered);
        *reading.heard = gathered.reply_stream.was_heard();
        result?;
        if !gathered.is_done {
            return Err(AttemptError::cut_short(
                "the stream ended before a line with done",
            ));
        }
        reading.answer.finish();
    } else {
        let body = reading.answer.read_all(BODY_LIMIT)?;
        let mut value: Value =
            serde_json::from_slice(&body).map_err(|error| AttemptError::not_json(&error, &body))?;
        if has_error(&value) {
            return Err(AttemptError::Refused(Refusal::in_reply(&value)));
        }
        let text = value.pointer_mut("/message/content");
        if let Some(Value::String(text)) = text {
            *text = without_thoughts(text).to_owned();
        }
        gathered.take(&value);
    }
    if !gathered.has_message {
        return Err(AttemptError::no_reply("there is no message"));
    }
    let origin = origin(reading.base_url);
    let calls = finish_calls(gathered.drafts, &origin);
    let mut members = Map::new();
    if !calls.is_empty() && !gathered.thoughts.is_empty() {
        members.insert(THOUGHTS.to_owned(), gathered.thoughts.into());
    }
    Ok(ModelReply {
        text: gathered.reply_stream.finish(),
        calls,
        extra: wrap_members(members, &origin),
        usage: gathered.usage,
        ..ModelReply::default()
    })
}

fn read_lines(
    answer: &mut ClientResponse,
    gathered: &mut Gathered<'_>,
) -> Result<(), AttemptError> {
    let mut lines = EventStream::new(answer);
    let mut size = 0;
    while let Some(line) = lines.next_json_line()? {
        size += line.len();
        if size > BODY_LIMIT {
            return Err(ClientError::TooLarge(BODY_LIMIT).into());
        }
        let value: Value =
            serde_json::from_slice(line).map_err(|error| AttemptError::not_json(&error, line))?;
        if has_error(&value) {
            return Err(AttemptError::Refused(Refusal::in_reply(&value)));
        }
        gathered.take(&value);
        if gathered.is_done {
            break;
        }
    }
    Ok(())
}

impl Gathered<'_> {
    fn take(&mut self, value: &Value) {
        if let Some(message) = value.get("message") {
            self.has_message = true;
            let text = |name: &str| message.get(name).and_then(Value::as_str);
            self.reply_stream.push(text("content").unwrap_or_default());
            self.thoughts.push_str(text(THOUGHTS).unwrap_or_default());
            let calls = message.get("tool_calls").and_then(Value::as_array);
            for call in calls.into_iter().flatten() {
                let mut tool_call_builder = ToolCallBuilder::default();
                tool_call_builder.merge(call);
                // Whole in one line, whatever else it holds.
                tool_call_builder.members.clear();
                self.drafts.push(tool_call_builder);
            }
        }
        self.is_done |= value.get("done").and_then(Value::as_bool) == Some(true);
        let count = |name: &str| value.get(name).and_then(Value::as_u64);
        if let Some(output) = count("eval_count") {
            self.usage.output = output;
        }
        // Absent when the whole prompt was cached.
        if let Some(input) = count("prompt_eval_count") {
            self.usage.input = input;
        }
    }
}

#[cfg(test)]
mod tests;

//! Anthropic's interface (<https://platform.claude.com/docs/en/api/messages>): messages,
//! streamed or whole, the client's own tools, and a count of tokens.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::access::Exchange;
use super::answer::{Event, Form};
use super::client_message::ClientMessage;
use super::openai::{self, CHANNEL, Metadata};
use super::options::{self, OptionsRead};
use super::request::{self, ReplyRequest};
use super::{models, plain};
use agent::model::ModelReply;
use agent::model::estimate::tool_tokens;
use base::error::{Error, Result};
use base::reply::FinishReason;
use base::secret::reference;
use net::http::{Answer, Response};
use store::{ToolCall, Usage};

/// How the texts begin that Claude Code adds to the results of its tools.
const REMINDER: &str = "<system-reminder>";

/// What is read of a request; [`options`] reads the rest.
#[derive(Deserialize)]
struct CreateMessage {
    model: String,
    messages: Vec<Said>,
    #[serde(default)]
    system: Value,
    stream: Option<bool>,
    metadata: Option<Metadata>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Said {
    role: String,
    #[serde(default)]
    content: Value,
}

/// A request in the words that the interfaces share.
struct Asked {
    model: String,
    messages: Vec<ClientMessage>,
    chat: Option<String>,
    options: OptionsRead,
    stream: bool,
    wants_thoughts: bool,
}

/// An error in Anthropic's shape.
pub fn refusal(error: &Error) -> Response {
    Response::error_in(error, &error_object(error))
}

fn error_object(error: &Error) -> Value {
    let kind = match error.status() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        400..=422 => "invalid_request_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": error.message() } })
}

/// POST /v1/messages.
///
/// # Errors
/// As [`openai::complete`].
pub fn create(exchange: Exchange<'_>) -> Result<Answer> {
    let asked = read(&exchange)?;
    let form = Blocks {
        id: format!("msg_{}", reference()),
        model: asked.model.clone(),
        wants_thoughts: asked.wants_thoughts,
        open: None,
        complete: 0,
    };
    let request = ReplyRequest {
        model: asked.model,
        messages: asked.messages,
        chat: asked.chat,
        channel: CHANNEL,
        options: asked.options,
        stream: asked.stream,
        waits: true,
        form: Box::new(form),
    };
    request.answer(exchange)
}

/// POST /v1/messages/count_tokens: an estimate of what the program sends.
///
/// # Errors
/// As [`create`], but for those of a turn.
pub fn count_tokens(exchange: Exchange<'_>) -> Result<Answer> {
    let asked = read(&exchange)?;
    let tools = tool_tokens(&asked.options.program.tools);
    let tokens = tools + plain::tokens(asked.messages)?;
    let count = json!({ "input_tokens": tokens });
    Ok(Answer::Now(Response::json(200, count.to_string())))
}

fn read(exchange: &Exchange<'_>) -> Result<Asked> {
    let mut body: CreateMessage = request::parse(&exchange.request.body)?;
    models::check(exchange.config, &body.model)?;
    let rest = &mut body.rest;
    let chat = Metadata::chat_id(body.metadata, rest);
    let mut wants_thoughts = false;
    if let Some(Value::Object(mut thinking)) = rest.remove("thinking") {
        let kind = thinking.remove("type").unwrap_or_default();
        let is_shown = thinking
            .get("display")
            .is_none_or(|display| display != "omitted");
        wants_thoughts = is_shown && (kind == "enabled" || kind == "adaptive");
        openai::add_nested(rest, "thinking", thinking);
    }
    if let Some(Value::Object(mut output)) = rest.remove("output_config") {
        let format = output.remove("format");
        rest.extend(format.map(|format| ("response_format".to_owned(), format)));
        openai::add_nested(rest, "output_config", output);
    }
    for (theirs, ours) in [
        ("stop_sequences", "stop"),
        ("output_format", "response_format"),
    ] {
        let value = rest.remove(theirs);
        rest.extend(value.map(|value| (ours.to_owned(), value)));
    }
    for tool in rest
        .get_mut("tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if matches!(tool["type"].as_str(), None | Some("custom")) && tool.is_object() {
            tool["type"] = json!("function");
            tool["parameters"] = tool["input_schema"].take();
        }
    }
    if let Some(choice) = rest.get_mut("tool_choice")
        && choice["type"] == "tool"
    {
        choice["type"] = json!("function");
    }
    Ok(Asked {
        model: body.model,
        messages: messages_in(body.system, body.messages)?,
        chat,
        options: options::of_openai(body.rest)?,
        stream: body.stream.unwrap_or(false),
        wants_thoughts,
    })
}

/// What was said, as chat completions have it: results are messages of their own there, and
/// calls stand beside the text.
fn messages_in(system: Value, said: Vec<Said>) -> Result<Vec<ClientMessage>> {
    let mut messages = Vec::new();
    if !system.is_null() {
        messages.push(json!({ "role": "system", "content": parts(system) }));
    }
    for Said { role, content } in said {
        let Value::Array(blocks) = content else {
            messages.push(json!({ "role": role, "content": content }));
            continue;
        };
        let (mut calls, mut others) = (Vec::new(), Vec::new());
        let before = messages.len();
        for mut block in blocks {
            match block["type"].as_str() {
                Some("tool_use") => calls.push(json!({
                    "id": block["id"], "type": "function",
                    "function": { "name": block["name"], "arguments": block["input"] },
                })),
                Some("tool_result") => messages.push(json!({
                    "role": "tool", "tool_call_id": block["tool_use_id"],
                    "content": parts(block["content"].take()),
                })),
                // The model's own thoughts are not shown to it again.
                Some("thinking" | "redacted_thinking") => {}
                _ => others.push(part(block)),
            }
        }
        let is_reminder = |part: &Value| {
            part["text"]
                .as_str()
                .is_some_and(|text| text.starts_with(REMINDER))
        };
        let result = messages[before..].last_mut();
        match result.filter(|_| others.iter().all(is_reminder)) {
            // Nobody says anything new.
            Some(result) => {
                if let Some(content) = result["content"].as_array_mut() {
                    content.append(&mut others);
                }
            }
            None => {
                let mut message = json!({ "role": role, "content": others });
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                messages.push(message);
            }
        }
    }
    serde_json::from_value(Value::Array(messages))
        .map_err(|error| Error::invalid_request(format!("\"messages\" cannot be read: {error}")))
}

fn parts(content: Value) -> Value {
    match content {
        Value::Array(blocks) => blocks.into_iter().map(part).collect(),
        Value::Null => json!([]),
        text => json!([{ "type": "text", "text": text }]),
    }
}

/// A block as a part of chat completions.
fn part(block: Value) -> Value {
    let source = &block["source"];
    let kind = source["media_type"].as_str().unwrap_or_default();
    let data = source["data"].as_str().unwrap_or_default();
    match (block["type"].as_str(), source["type"].as_str()) {
        (Some("text"), _) => json!({ "type": "text", "text": block["text"] }),
        (Some("image"), Some("base64")) => json!({
            "type": "image_url", "image_url": { "url": format!("data:{kind};base64,{data}") },
        }),
        (Some("image"), _) => json!({ "type": "image_url", "image_url": source["url"] }),
        (Some("document"), Some("base64")) => {
            let name = block["title"].as_str().unwrap_or("document.pdf");
            let data = format!("data:{kind};base64,{data}");
            json!({ "type": "file", "file": { "filename": name, "file_data": data } })
        }
        (Some("document"), Some("text")) => json!({ "type": "text", "text": data }),
        _ => block,
    }
}

/// Server-sent events, or one object, with the content in blocks.
struct Blocks {
    id: String,
    model: String,
    /// Whether the client asks for what the model thinks.
    wants_thoughts: bool,
    /// The kind of block that is open.
    open: Option<&'static str>,
    /// How many are complete.
    complete: usize,
}

impl Blocks {
    fn message(&self, content: Value, reason: Option<&str>, usage: Usage) -> Value {
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": reason, "stop_sequence": null,
            "usage": usage_object(usage),
        })
    }

    fn start(&mut self, kind: &'static str, block: &Value) -> String {
        self.open = Some(kind);
        let data = json!({ "index": self.complete, "content_block": block });
        event("content_block_start", data)
    }

    fn delta(&self, delta: &Value) -> String {
        event(
            "content_block_delta",
            json!({ "index": self.complete, "delta": delta }),
        )
    }

    fn stop(&mut self) -> String {
        let Some(kind) = self.open.take() else {
            return String::new();
        };
        let mut events = String::new();
        if kind == "thinking" {
            // Libraries expect one, and nobody checks it.
            events += &self.delta(&json!({ "type": "signature_delta", "signature": "" }));
        }
        events += &event("content_block_stop", json!({ "index": self.complete }));
        self.complete += 1;
        events
    }

    /// A piece of a text or of thoughts, in the open block if it is of that kind.
    fn piece_of(&mut self, kind: &'static str, text: &str) -> String {
        let mut events = String::new();
        if self.open != Some(kind) {
            events += &self.stop();
            let block = match kind {
                "thinking" => thinking_block(""),
                _ => text_block(""),
            };
            events += &self.start(kind, &block);
        }
        let mut delta = json!({ "type": format!("{kind}_delta") });
        delta[kind] = json!(text);
        events + &self.delta(&delta)
    }

    fn end(&mut self, reply: &ModelReply) -> String {
        let mut events = String::new();
        if self.open != Some("text") && reply.calls.is_empty() {
            events += &self.piece_of("text", "");
        }
        events += &self.stop();
        for call in &reply.calls {
            events += &self.start("tool_use", &call_block(call, json!({})));
            let arguments = input_of(call).to_string();
            let delta = json!({ "type": "input_json_delta", "partial_json": arguments });
            events += &self.delta(&delta);
            events += &self.stop();
        }
        let delta = json!({ "stop_reason": stop_reason(reply), "stop_sequence": null });
        let data = json!({ "delta": delta, "usage": usage_object(reply.usage) });
        events + &event("message_delta", data) + &event("message_stop", json!({}))
    }
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn stop_reason(reply: &ModelReply) -> &'static str {
    match reply.finish_reason {
        None if !reply.calls.is_empty() => "tool_use",
        None => "end_turn",
        Some(FinishReason::Length | FinishReason::Interrupted) => "max_tokens",
        Some(FinishReason::ContentFilter | FinishReason::Refusal) => "refusal",
    }
}

/// Tokens that were read from a cache are counted apart here.
fn usage_object(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": 0,
        "output_tokens": usage.output,
    })
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn thinking_block(text: &str) -> Value {
    json!({ "type": "thinking", "thinking": text, "signature": "" })
}

fn call_block(call: &ToolCall, input: Value) -> Value {
    json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": input })
}

fn input_of(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}))
}

impl Form for Blocks {
    fn wants_thoughts(&self) -> bool {
        self.wants_thoughts
    }

    fn piece(&mut self, news: Event<'_>) -> String {
        match news {
            Event::Begin => {
                let message = self.message(json!([]), None, Usage::default());
                event("message_start", json!({ "message": message })) + &event("ping", json!({}))
            }
            Event::Text(text) => self.piece_of("text", text),
            Event::Thought(thought) => self.piece_of("thinking", thought),
            Event::ToolCall => String::new(),
            Event::KeepAlive => event("ping", json!({})),
            Event::End(reply) => self.end(reply),
            Event::Failed(error) => event("error", error_object(error)),
        }
    }

    fn whole(&self, reply: &ModelReply, thoughts: &str) -> Response {
        let mut content = Vec::new();
        if !thoughts.is_empty() {
            content.push(thinking_block(thoughts));
        }
        if reply.calls.is_empty() || !reply.text.is_empty() {
            content.push(text_block(&reply.text));
        }
        let calls = reply.calls.iter();
        content.extend(calls.map(|call| call_block(call, input_of(call))));
        let message = self.message(content.into(), Some(stop_reason(reply)), reply.usage);
        Response::json(200, message.to_string())
    }

    fn refusal(&self, error: &Error) -> Response {
        refusal(error)
    }
}

//! OpenAI's newer interface (<https://platform.openai.com/docs/api-reference/responses>):
//! text, streamed events and the client's own tools. Nothing can be looked up later:
//! a program sends what was said, as it does with chat completions.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer::{self, Task};
use super::form::{Form, TurnSummary, stream_head};
use super::models;
use super::openai::{self, CHANNEL, Metadata};
use super::transcript::Said;
use super::{asked, options};
use crate::service::Service;
use crate::service::turn_stream::Asker;
use base::error::{Error, Result};
use base::finish_reason::FinishReason;
use base::secret::reference;
use config::Config;
use net::http::{Answer, Request, Response};
use store::ToolCall;

/// What needs responses that are kept.
const KEPT: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

#[derive(Deserialize)]
struct Asked {
    model: String,
    input: Value,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// POST /v1/responses.
///
/// # Errors
/// As [`openai::complete`].
pub fn respond(
    service: &Arc<Service>,
    config: &Config,
    asker: Asker,
    request: &Request,
) -> Result<Answer> {
    let mut body: Asked = answer::parse(&request.body)?;
    models::check(config, &body.model)?;
    let is_set = |key: &str| body.rest.get(key).is_some_and(|value| !value.is_null());
    if let Some(key) = KEPT.iter().find(|key| is_set(key)) {
        return Err(Error::invalid_request(format!(
            "{key:?} needs responses that are kept, and this server keeps none: send what was \
             said as \"input\""
        )));
    }
    match body.rest.remove("text").unwrap_or_default() {
        Value::Null => {}
        Value::Object(mut text) => {
            if let Some(format) = text.remove("format") {
                body.rest.insert("response_format".to_owned(), format);
            }
            openai::add_nested(&mut body.rest, "text", text);
        }
        _ => return Err(Error::invalid_request("\"text\" must be an object")),
    }
    let chat = Metadata::chat_id(body.metadata, &mut body.rest);
    let options::Read { program, ignored } = options::of_openai(body.rest)?;
    let mut said = Vec::new();
    if let Some(instructions) = body.instructions {
        said.push(Said::new("system", instructions));
    }
    said.append(&mut said_in(body.input)?);
    let model = body.model.clone();
    let form = Events {
        id: format!("resp_{}", reference()),
        item: format!("msg_{}", reference()),
        model: body.model,
        created: service.clock().now().as_millis() / 1000,
        sequence: Cell::new(OPENING),
        text: RefCell::default(),
    };
    let task = Task {
        asker,
        said,
        chat,
        channel: CHANNEL,
        program,
        ignored,
        stream: body.stream.unwrap_or(false),
        waits: true,
        form: Box::new(form),
    };
    asked::begin(service, task, &model, request)
}

/// The messages of an input: a text, or items.
fn said_in(input: Value) -> Result<Vec<Said>> {
    let items = match input {
        Value::String(text) => return Ok(vec![Said::new("user", text)]),
        Value::Array(items) => items,
        _ => return Err(Error::invalid_request("\"input\" must be a text or items")),
    };
    let mut messages: Vec<Value> = Vec::new();
    for mut item in items {
        if !item.is_object() {
            return Err(Error::invalid_request("\"input\" must be a text or items"));
        }
        match item["type"].as_str().unwrap_or("message") {
            "message" => {
                let content = parts(item["content"].take());
                messages.push(json!({ "role": item["role"], "content": content }));
            }
            "function_call" => {
                let call = json!({ "id": item["call_id"], "type": "function",
                    "function": { "name": item["name"], "arguments": item["arguments"] } });
                // Calls of one reply are items of their own here.
                let last = messages.last_mut();
                match last.filter(|last| last["role"] == "assistant") {
                    Some(last) => match last["tool_calls"].as_array_mut() {
                        Some(calls) => calls.push(call),
                        None => last["tool_calls"] = json!([call]),
                    },
                    None => messages
                        .push(json!({ "role": "assistant", "content": "", "tool_calls": [call] })),
                }
            }
            "function_call_output" => {
                let output = parts(item["output"].take());
                let id = item["call_id"].take();
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": output }));
            }
            // The model's own thoughts are not shown to it again.
            "reasoning" => {}
            // A result names its call itself.
            "item_reference" if is_call(&item) => {}
            "item_reference" => {
                return Err(Error::invalid_request(
                    "an \"item_reference\" needs responses that are kept, and this server keeps \
                     none: set \"store\" to false in the program, so that it sends the items",
                ));
            }
            kind => {
                let kind: String = kind.chars().take(50).collect();
                return Err(Error::invalid_request(format!(
                    "items of the type {kind:?} are not understood here"
                )));
            }
        }
    }
    serde_json::from_value(Value::Array(messages))
        .map_err(|error| Error::invalid_request(format!("\"input\" cannot be read: {error}")))
}

/// Whether an `item_reference` is to a call, or to thoughts.
fn is_call(item: &Value) -> bool {
    let id = item["id"].as_str().unwrap_or_default();
    id.starts_with("fc_") || id.starts_with("rs_")
}

/// A content with its parts as chat completions have them.
fn parts(content: Value) -> Value {
    let Value::Array(parts) = content else {
        return content;
    };
    let part = |mut part: Value| match part["type"].as_str() {
        Some("input_text" | "output_text") => json!({ "type": "text", "text": part["text"] }),
        Some("refusal") => json!({ "type": "text", "text": part["refusal"] }),
        Some("input_image") => json!({ "type": "image_url", "image_url": part["image_url"] }),
        Some("input_file") => {
            part["type"].take();
            json!({ "type": "file", "file": part })
        }
        _ => part,
    };
    parts.into_iter().map(part).collect()
}

fn numbered(number: u64, kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    data["sequence_number"] = json!(number);
    format!("event: {kind}\ndata: {data}\n\n")
}

/// The events of the opening, which is written after the first piece and sent before it.
const OPENING: u64 = 2;

/// Server-sent events, or one object.
struct Events {
    id: String,
    /// The id of the message in the output.
    item: String,
    model: String,
    /// Seconds since 1970.
    created: i64,
    /// The number of the next event.
    sequence: Cell<u64>,
    /// What was streamed.
    text: RefCell<String>,
}

impl Events {
    fn event(&self, kind: &str, data: Value) -> String {
        let number = self.sequence.replace(self.sequence.get() + 1);
        numbered(number, kind, data)
    }

    fn response(&self, status: &str, output: &[Value], summary: Option<&TurnSummary>) -> Value {
        let reason = match summary.and_then(|summary| summary.finish_reason) {
            None => None,
            Some(FinishReason::Length | FinishReason::Interrupted) => Some("max_output_tokens"),
            Some(FinishReason::ContentFilter | FinishReason::Refusal) => Some("content_filter"),
        };
        let usage = summary.map(|TurnSummary { usage, .. }| {
            json!({
                "input_tokens": usage.input,
                "input_tokens_details": { "cached_tokens": usage.cached },
                "output_tokens": usage.output,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": usage.input + usage.output,
            })
        });
        json!({
            "id": self.id, "object": "response", "created_at": self.created,
            "model": self.model, "status": reason.map_or(status, |_| "incomplete"),
            "output": output, "usage": usage, "error": null,
            "incomplete_details": reason.map(|reason| json!({ "reason": reason })),
            "instructions": null, "metadata": {}, "parallel_tool_calls": true,
            "previous_response_id": null, "store": false, "temperature": null,
            "tool_choice": "auto", "tools": [], "top_p": null,
        })
    }

    fn message(&self, status: &str, content: Value) -> Value {
        json!({ "id": self.item, "type": "message", "status": status, "role": "assistant",
            "content": content })
    }

    /// An event about the message, which is the first item.
    fn of_message(&self, kind: &str, key: &str, value: Value) -> String {
        let mut data = json!({ "item_id": self.item, "output_index": 0, "content_index": 0 });
        data[key] = value;
        self.event(kind, data)
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn call_item(call: &ToolCall, status: &str, arguments: &str) -> Value {
    json!({ "id": format!("fc_{}", call.id), "type": "function_call", "status": status,
        "call_id": call.id, "name": call.tool, "arguments": arguments })
}

impl Form for Events {
    fn whole(&self, reply: &str, summary: &TurnSummary) -> Response {
        let calls = summary.calls.iter();
        let mut output: Vec<Value> = calls
            .map(|call| call_item(call, "completed", &call.arguments))
            .collect();
        if output.is_empty() || !reply.is_empty() {
            output.insert(0, self.message("completed", json!([text_part(reply)])));
        }
        let response = self.response("completed", &output, Some(summary));
        Response::json(200, response.to_string())
    }

    fn head(&self) -> Response {
        stream_head("text/event-stream; charset=utf-8")
    }

    fn opening(&self) -> String {
        let response = json!({ "response": self.response("in_progress", &[], None) });
        numbered(0, "response.created", response.clone())
            + &numbered(1, "response.in_progress", response)
    }

    fn text(&self, text: &str) -> String {
        let mut events = String::new();
        if self.text.borrow().is_empty() {
            let item = self.message("in_progress", json!([]));
            let data = json!({ "output_index": 0, "item": item });
            events += &self.event("response.output_item.added", data);
            events += &self.of_message("response.content_part.added", "part", text_part(""));
        }
        self.text.borrow_mut().push_str(text);
        events + &self.of_message("response.output_text.delta", "delta", json!(text))
    }

    fn keep_alive(&self) -> String {
        ": working\n\n".to_owned()
    }

    fn closing(&self, summary: &TurnSummary) -> String {
        let mut events = String::new();
        let mut output = Vec::new();
        if self.text.borrow().is_empty() && summary.calls.is_empty() {
            events += &self.text("");
        }
        let text = self.text.take();
        if !text.is_empty() || summary.calls.is_empty() {
            let part = text_part(&text);
            events += &self.of_message("response.output_text.done", "text", json!(text));
            events += &self.of_message("response.content_part.done", "part", part.clone());
            let item = self.message("completed", json!([part]));
            let data = json!({ "output_index": 0, "item": item.clone() });
            events += &self.event("response.output_item.done", data);
            output.push(item);
        }
        for call in &summary.calls {
            let index = output.len();
            let about = |key: &str, value: Value| {
                let mut data = json!({ "output_index": index });
                data[key] = value;
                if key != "item" {
                    data["item_id"] = json!(format!("fc_{}", call.id));
                }
                data
            };
            let begun = about("item", call_item(call, "in_progress", ""));
            let (delta, whole) = (json!(call.arguments), json!(call.arguments));
            let item = call_item(call, "completed", &call.arguments);
            events += &self.event("response.output_item.added", begun);
            for (kind, data) in [
                (
                    "response.function_call_arguments.delta",
                    about("delta", delta),
                ),
                (
                    "response.function_call_arguments.done",
                    about("arguments", whole),
                ),
                ("response.output_item.done", about("item", item.clone())),
            ] {
                events += &self.event(kind, data);
            }
            output.push(item);
        }
        let response = self.response("completed", &output, Some(summary));
        let kind = match summary.finish_reason {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        events + &self.event(kind, json!({ "response": response }))
    }

    fn failure(&self, error: &Error) -> String {
        let mut response = self.response("failed", &[], None);
        response["error"] = json!({ "code": "server_error", "message": error.message() });
        self.event("response.failed", json!({ "response": response }))
    }

    fn refusal(&self, error: &Error) -> Response {
        openai::refusal(error)
    }
}

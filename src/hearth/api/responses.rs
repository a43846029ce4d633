//! OpenAI's newer interface (<https://platform.openai.com/docs/api-reference/responses>):
//! text, streamed events and the client's own tools. Nothing can be looked up later:
//! a program sends what was said, as it does with chat completions.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::access::Exchange;
use super::answer::{Event, Form};
use super::client_message::ClientMessage;
use super::openai::{self, CHANNEL, Metadata};
use super::request::{self, ReplyRequest};
use super::{models, options};
use agent::model::ModelReply;
use base::error::{Error, Result};
use base::reply::FinishReason;
use base::secret::reference;
use net::http::{Answer, Response};
use store::ToolCall;

/// What needs responses that are kept.
const KEPT: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

#[derive(Deserialize)]
struct CreateResponse {
    model: String,
    input: Value,
    instructions: Option<String>,
    stream: Option<bool>,
    metadata: Option<Metadata>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// POST /v1/responses.
///
/// # Errors
/// As [`openai::complete`].
pub fn respond(exchange: Exchange<'_>) -> Result<Answer> {
    let mut body: CreateResponse = request::parse(&exchange.request.body)?;
    models::check(exchange.config, &body.model)?;
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
    let mut wants_thoughts = false;
    if let Some(Value::Object(mut reasoning)) = body.rest.remove("reasoning") {
        wants_thoughts = options::take_wish(&mut reasoning, "summary");
        openai::add_nested(&mut body.rest, "reasoning", reasoning);
    }
    let namespaces = body.rest.get_mut("tools").map(flatten).unwrap_or_default();
    let options = options::of_openai(body.rest)?;
    let instructions = body.instructions;
    let instructions = instructions.map(|text| ClientMessage::new("system", text));
    let mut messages: Vec<ClientMessage> = instructions.into_iter().collect();
    messages.append(&mut messages_in(body.input)?);
    let form = Events {
        id: format!("resp_{}", reference()),
        item: format!("msg_{}", reference()),
        thoughts: wants_thoughts.then(|| (format!("rs_{}", reference()), String::new())),
        output: Vec::new(),
        namespaces,
        model: body.model.clone(),
        created: exchange.service.clock.now().as_millis() / 1000,
        sequence: 0,
        text: String::new(),
    };
    let request = ReplyRequest {
        model: body.model,
        messages,
        chat,
        channel: CHANNEL,
        options,
        stream: body.stream.unwrap_or(false),
        waits: true,
        form: Box::new(form),
    };
    request.answer(exchange)
}

/// Puts the tools of namespaces among the others, with names that no other tool has; returns
/// the namespace of each, and its name there.
fn flatten(tools: &mut Value) -> BTreeMap<String, (String, String)> {
    let mut namespaces = BTreeMap::new();
    let Value::Array(listed) = tools else {
        return namespaces;
    };
    let is_one = |tool: &mut Value| tool["type"] == "namespace";
    for mut namespace in listed.extract_if(.., is_one).collect::<Vec<Value>>() {
        let space = namespace["name"].as_str().unwrap_or_default().to_owned();
        let Value::Array(inner) = namespace["tools"].take() else {
            continue;
        };
        for mut tool in inner {
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            let full = full_name(&space, &name);
            tool["name"] = json!(full);
            namespaces.insert(full, (space.clone(), name));
            listed.push(tool);
        }
    }
    namespaces
}

/// The name of a tool of a namespace, if it has one.
fn full_name(namespace: &str, name: &str) -> String {
    match namespace.trim_end_matches('_') {
        "" => name.to_owned(),
        namespace => format!("{namespace}__{name}"),
    }
}

/// The messages of an input: a text, or items.
fn messages_in(input: Value) -> Result<Vec<ClientMessage>> {
    let items = match input {
        Value::String(text) => return Ok(vec![ClientMessage::new("user", text)]),
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
                let [space, name] =
                    ["namespace", "name"].map(|key| item[key].as_str().unwrap_or_default());
                let name = full_name(space, name);
                let call = json!({ "id": item["call_id"], "type": "function",
                    "function": { "name": name, "arguments": item["arguments"] } });
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

/// Server-sent events, or one object.
struct Events {
    id: String,
    /// The id of the message in the output.
    item: String,
    model: String,
    /// Seconds since 1970.
    created: i64,
    /// The number of the next event.
    sequence: u64,
    /// The id and the text of what the model thinks before it answers, for a client that asks
    /// for it.
    thoughts: Option<(String, String)>,
    /// The items that are complete.
    output: Vec<Value>,
    /// The namespaces of the client's tools, and their names there.
    namespaces: BTreeMap<String, (String, String)>,
    /// What was streamed.
    text: String,
}

impl Events {
    fn event(&mut self, kind: &str, mut data: Value) -> String {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        format!("event: {kind}\ndata: {data}\n\n")
    }

    fn response(&self, status: &str, reply: Option<&ModelReply>) -> Value {
        let reason = match reply.and_then(|reply| reply.finish_reason) {
            None => None,
            Some(FinishReason::Length | FinishReason::Interrupted) => Some("max_output_tokens"),
            Some(FinishReason::ContentFilter | FinishReason::Refusal) => Some("content_filter"),
        };
        let usage = reply.map(|ModelReply { usage, .. }| {
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
            "output": self.output, "usage": usage, "error": null,
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

    fn call_item(&self, call: &ToolCall, status: &str, arguments: &str) -> Value {
        let mut item = json!({ "id": format!("fc_{}", call.id), "type": "function_call",
            "status": status, "call_id": call.id, "name": call.tool, "arguments": arguments });
        if let Some((namespace, name)) = self.namespaces.get(&call.tool) {
            item["namespace"] = json!(namespace);
            item["name"] = json!(name);
        }
        item
    }

    /// An event about the message, which is the item after the complete ones.
    fn of_message(&mut self, kind: &str, key: &str, value: Value) -> String {
        let index = self.output.len();
        let mut data = json!({ "item_id": self.item, "output_index": index, "content_index": 0 });
        data[key] = value;
        self.event(kind, data)
    }

    fn begun(&mut self, item: &Value) -> String {
        let data = json!({ "output_index": self.output.len(), "item": item });
        self.event("response.output_item.added", data)
    }

    fn done(&mut self, item: Value) -> String {
        let data = json!({ "output_index": self.output.len(), "item": item });
        self.output.push(item);
        self.event("response.output_item.done", data)
    }

    /// An event about the thoughts, which are the first item.
    fn of_thoughts(&mut self, kind: &str, id: &str, key: &str, value: Value) -> String {
        let mut data = json!({ "item_id": id, "output_index": 0, "summary_index": 0 });
        data[key] = value;
        self.event(&format!("response.reasoning_summary_{kind}"), data)
    }

    /// A piece of the thoughts. What the model thinks once it has begun to answer has no place.
    fn piece_of_thoughts(&mut self, piece: &str) -> String {
        if !self.text.is_empty() || !self.output.is_empty() {
            return String::new();
        }
        let (id, mut text) = self.thoughts.take().unwrap_or_default();
        let mut events = String::new();
        if text.is_empty() {
            events += &self.begun(&reasoning_item(&id, None));
            events += &self.of_thoughts("part.added", &id, "part", summary_part(""));
        }
        events += &self.of_thoughts("text.delta", &id, "delta", json!(piece));
        text.push_str(piece);
        self.thoughts = Some((id, text));
        events
    }

    fn end_thoughts(&mut self) -> String {
        let known = self.thoughts.take_if(|(_, text)| !text.is_empty());
        let Some((id, text)) = known else {
            return String::new();
        };
        let mut events = self.of_thoughts("text.done", &id, "text", json!(text));
        events += &self.of_thoughts("part.done", &id, "part", summary_part(&text));
        events + &self.done(reasoning_item(&id, Some(&text)))
    }

    fn piece_of_text(&mut self, text: &str) -> String {
        let mut events = self.end_thoughts();
        if self.text.is_empty() {
            let item = self.message("in_progress", json!([]));
            events += &self.begun(&item);
            events += &self.of_message("response.content_part.added", "part", text_part(""));
        }
        self.text.push_str(text);
        events + &self.of_message("response.output_text.delta", "delta", json!(text))
    }

    fn end(&mut self, reply: &ModelReply) -> String {
        let mut events = self.end_thoughts();
        if self.text.is_empty() && reply.calls.is_empty() {
            events += &self.piece_of_text("");
        }
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() || reply.calls.is_empty() {
            let part = text_part(&text);
            events += &self.of_message("response.output_text.done", "text", json!(text));
            events += &self.of_message("response.content_part.done", "part", part.clone());
            events += &self.done(self.message("completed", json!([part])));
        }
        for call in &reply.calls {
            events += &self.begun(&self.call_item(call, "in_progress", ""));
            for (kind, key) in [("delta", "delta"), ("done", "arguments")] {
                let mut data = json!({
                    "output_index": self.output.len(), "item_id": format!("fc_{}", call.id),
                });
                data[key] = json!(call.arguments);
                events += &self.event(&format!("response.function_call_arguments.{kind}"), data);
            }
            events += &self.done(self.call_item(call, "completed", &call.arguments));
        }
        let response = self.response("completed", Some(reply));
        let kind = match reply.finish_reason {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        events + &self.event(kind, json!({ "response": response }))
    }
}

/// What the model thinks, as far as it is known.
fn reasoning_item(id: &str, text: Option<&str>) -> Value {
    let summary: Vec<Value> = text.into_iter().map(summary_part).collect();
    json!({ "id": id, "type": "reasoning", "summary": summary })
}

fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

impl Form for Events {
    fn wants_thoughts(&self) -> bool {
        self.thoughts.is_some()
    }

    fn piece(&mut self, event: Event<'_>) -> String {
        match event {
            Event::Begin => {
                let response = json!({ "response": self.response("in_progress", None) });
                self.event("response.created", response.clone())
                    + &self.event("response.in_progress", response)
            }
            Event::Text(text) => self.piece_of_text(text),
            Event::Thought(thought) => self.piece_of_thoughts(thought),
            Event::ToolCall => String::new(),
            Event::KeepAlive => ": working\n\n".to_owned(),
            Event::End(reply) => self.end(reply),
            Event::Failed(error) => {
                let mut response = self.response("failed", None);
                response["error"] = json!({ "code": "server_error", "message": error.message() });
                self.event("response.failed", json!({ "response": response }))
            }
        }
    }

    fn whole(&self, reply: &ModelReply, thoughts: &str) -> Response {
        let mut output = Vec::new();
        if let Some((id, _)) = self.thoughts.as_ref().filter(|_| !thoughts.is_empty()) {
            output.push(reasoning_item(id, Some(thoughts)));
        }
        if reply.calls.is_empty() || !reply.text.is_empty() {
            output.push(self.message("completed", json!([text_part(&reply.text)])));
        }
        let calls = reply.calls.iter();
        output.extend(calls.map(|call| self.call_item(call, "completed", &call.arguments)));
        let mut response = self.response("completed", Some(reply));
        response["output"] = output.into();
        Response::json(200, response.to_string())
    }

    fn refusal(&self, error: &Error) -> Response {
        openai::refusal(error)
    }
}

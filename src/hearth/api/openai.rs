//! OpenAI's interface: models, chat completions and the older completions
//! (<https://platform.openai.com/docs/api-reference/chat>).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::access::Exchange;
use super::answer::{Event, Form};
use super::client_message::ClientMessage;
use super::models;
use super::options;
use super::request::{self, ReplyRequest};
use crate::service::Service;
use agent::model::ModelReply;
use agent::model::fence::PROGRAM_CHANNELS;
use base::error::{Code, Error, Result};
use base::reply::FinishReason;
use net::http::{Answer, Response};
use serde_json::json;
use store::{ToolCall, Usage};

/// Where its conversations come from, as in `Conversation::channel`.
pub const CHANNEL: &str = PROGRAM_CHANNELS[0];

/// What stands before a model's name in its path.
const MODEL: &str = "/v1/models/";

/// What is read of a request; [`options`] reads the rest.
#[derive(Deserialize)]
struct Completion {
    model: String,
    messages: Vec<ClientMessage>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    n: Option<u64>,
    metadata: Option<Metadata>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What a client says about a request.
#[derive(Deserialize)]
pub struct Metadata {
    /// The client's own name for the chat.
    pub chat_id: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Metadata {
    /// The name of the chat. What else is said goes to `rest`, as what has no effect.
    pub fn chat_id(metadata: Option<Metadata>, rest: &mut Map<String, Value>) -> Option<String> {
        let metadata = metadata?;
        add_nested(rest, "metadata", metadata.rest);
        metadata.chat_id
    }
}

/// Adds the members of a parameter to the others, under its name.
pub fn add_nested(rest: &mut Map<String, Value>, name: &str, members: Map<String, Value>) {
    let members = members.into_iter();
    rest.extend(members.map(|(key, value)| (format!("{name}.{key}"), value)));
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// An error in OpenAI's shape.
pub fn refusal(error: &Error) -> Response {
    refusal_as(error, kind_and_code(error).1)
}

/// [`refusal`] with this `code`.
pub fn refusal_as(error: &Error, code: &str) -> Response {
    Response::error_in(error, &error_object(error, code))
}

fn kind_and_code(error: &Error) -> (&'static str, &'static str) {
    match error.code() {
        Code::InvalidToken => ("invalid_request_error", "invalid_api_key"),
        Code::Unauthorized => ("permission_error", "unauthorized"),
        Code::NotFound => ("invalid_request_error", "model_not_found"),
        Code::InvalidRequest => ("invalid_request_error", "invalid_request"),
        Code::RateLimited => ("rate_limit_error", "rate_limit_exceeded"),
        Code::ServerError => match (error.status(), error.retry_after()) {
            // A budget of the household: its libraries know that waiting does not help.
            (429, None) => ("insufficient_quota", "insufficient_quota"),
            (429, Some(_)) => ("rate_limit_error", "rate_limit_exceeded"),
            (404, _) => ("invalid_request_error", "model_not_found"),
            (400..=422, _) => ("invalid_request_error", "invalid_request"),
            _ => ("server_error", "server_error"),
        },
    }
}

fn error_object(error: &Error, code: &str) -> Value {
    json!({ "error": {
        "message": error.message(), "type": kind_and_code(error).0, "param": null, "code": code,
    } })
}

fn model_object(service: &Service, name: &str) -> Value {
    let began = service.clock.now().minus(service.uptime());
    // Anthropic's clients read the last three.
    json!({
        "id": name, "object": "model", "created": began.as_millis() / 1000, "owned_by": "hearth",
        "type": "model", "display_name": name, "created_at": began,
    })
}

/// GET /v1/models.
///
/// # Errors
/// None.
pub fn models(exchange: Exchange<'_>) -> Result<Answer> {
    let names = models::names(exchange.config).into_iter();
    let names = names.chain(models::voices(exchange.config));
    let data: Vec<Value> = names
        .map(|name| model_object(exchange.service, name))
        .collect();
    let (first, last) = (data.first(), data.last());
    let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
    let list = json!({
        "object": "list", "has_more": false, "first_id": id(first), "last_id": id(last),
        "data": data,
    });
    Ok(Answer::Now(Response::json(200, list.to_string())))
}

/// GET /v1/models/NAME.
///
/// # Errors
/// `not_found`.
pub fn model(exchange: Exchange<'_>) -> Result<Answer> {
    let name = exchange.request.head.path.strip_prefix(MODEL);
    let name = name.unwrap_or_default();
    if !models::voices(exchange.config).any(|voice| voice == name) {
        models::check(exchange.config, name)?;
    }
    let model = model_object(exchange.service, name);
    Ok(Answer::Now(Response::json(200, model.to_string())))
}

/// POST /v1/chat/completions.
///
/// # Errors
/// `invalid_request`, `not_found` for another model, and those of a turn
/// that cannot begin.
pub fn complete(exchange: Exchange<'_>) -> Result<Answer> {
    let completion = request::parse(&exchange.request.body)?;
    answer(exchange, completion, true)
}

/// POST /v1/completions: a message without a past.
///
/// # Errors
/// As [`complete`].
pub fn complete_text(exchange: Exchange<'_>) -> Result<Answer> {
    let mut body: Map<String, Value> = request::parse(&exchange.request.body)?;
    let prompt = match body.remove("prompt") {
        Some(Value::String(prompt)) => prompt,
        Some(Value::Array(prompts)) if prompts.len() == 1 && prompts[0].is_string() => {
            prompts[0].as_str().unwrap_or_default().to_owned()
        }
        _ => return Err(Error::invalid_request("\"prompt\" must be one text")),
    };
    let message = json!([{ "role": "user", "content": prompt }]);
    body.insert("messages".to_owned(), message);
    let completion = serde_json::from_value(Value::Object(body));
    let completion = completion
        .map_err(|error| Error::invalid_request(format!("the body cannot be read: {error}")))?;
    answer(exchange, completion, false)
}

fn answer(exchange: Exchange<'_>, mut completion: Completion, is_chat: bool) -> Result<Answer> {
    models::check(exchange.config, &completion.model)?;
    if completion.n.is_some_and(|n| n != 1) {
        return Err(Error::invalid_request(
            "\"n\" must be 1: there is one answer to a message",
        ));
    }
    let chat = Metadata::chat_id(completion.metadata, &mut completion.rest);
    if completion.messages.iter().any(ClientMessage::is_named) {
        let name = "messages.name".to_owned();
        completion.rest.insert(name, true.into());
    }
    let mut include_usage = None;
    if let Some(options) = completion.stream_options {
        include_usage = options.include_usage;
        add_nested(&mut completion.rest, "stream_options", options.rest);
    }
    let wants_thoughts = options::take_wish(&mut completion.rest, "include_reasoning")
        || completion.rest.contains_key("reasoning_effort");
    let options = options::of_openai(completion.rest)?;
    let form = Chunks {
        wants_thoughts,
        id: format!(
            "{}-{}",
            if is_chat { "chatcmpl" } else { "cmpl" },
            base::secret::reference()
        ),
        is_chat,
        model: completion.model.clone(),
        created: exchange.service.clock.now().as_millis() / 1000,
        include_usage: include_usage.unwrap_or(false),
    };
    let request = ReplyRequest {
        model: completion.model,
        messages: completion.messages,
        chat,
        channel: CHANNEL,
        options,
        stream: completion.stream.unwrap_or(false),
        waits: true,
        form: Box::new(form),
    };
    request.answer(exchange)
}

/// Server-sent events, or one object.
struct Chunks {
    id: String,
    model: String,
    /// Seconds since 1970.
    created: i64,
    include_usage: bool,
    /// Of chat completions, not of completions.
    is_chat: bool,
    /// Whether the client asks for what the model thinks.
    wants_thoughts: bool,
}

impl Chunks {
    fn chunk(&self, choices: Value, usage: Value) -> String {
        let mut chunk = json!({
            "id": self.id, "object": self.object(true), "created": self.created,
            "model": self.model, "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    }

    fn object(&self, is_chunk: bool) -> &'static str {
        match (self.is_chat, is_chunk) {
            (true, true) => "chat.completion.chunk",
            (true, false) => "chat.completion",
            (false, _) => "text_completion",
        }
    }

    /// The only choice there is, with what is said in it.
    fn choice(&self, name: &str, said: Value, reason: Option<&str>) -> Value {
        let (name, said) = match self.is_chat {
            true => (name, said),
            false => ("text", said["content"].as_str().unwrap_or_default().into()),
        };
        json!({ "index": 0, (name): said, "logprobs": null, "finish_reason": reason })
    }

    fn delta(&self, delta: Value, reason: Option<&str>) -> String {
        let choice = self.choice("delta", delta, reason);
        self.chunk(json!([choice]), Value::Null)
    }

    fn end(&self, reply: &ModelReply) -> String {
        let mut text = String::new();
        for (index, call) in reply.calls.iter().enumerate() {
            let mut call = call_object(call);
            call["index"] = json!(index);
            text += &self.delta(json!({ "tool_calls": [call] }), None);
        }
        text += &self.delta(json!({}), Some(stop_reason(reply)));
        if self.include_usage {
            text += &self.chunk(json!([]), usage_object(reply.usage));
        }
        text + "data: [DONE]\n\n"
    }
}

fn stop_reason(reply: &ModelReply) -> &'static str {
    match reply.finish_reason {
        None if !reply.calls.is_empty() => "tool_calls",
        None => "stop",
        Some(FinishReason::Length | FinishReason::Interrupted) => "length",
        Some(FinishReason::ContentFilter | FinishReason::Refusal) => "content_filter",
    }
}

/// A reply; beside calls there may be no text.
fn message_of(reply: &ModelReply) -> Value {
    let mut message = json!({ "role": "assistant", "content": reply.text, "refusal": null });
    if !reply.calls.is_empty() {
        message["tool_calls"] = reply.calls.iter().map(call_object).collect();
        if reply.text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    message
}

fn call_object(call: &ToolCall) -> Value {
    json!({
        "id": call.id, "type": "function",
        "function": { "name": call.tool, "arguments": call.arguments },
    })
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
    })
}

impl Form for Chunks {
    fn wants_thoughts(&self) -> bool {
        self.wants_thoughts
    }

    fn whole(&self, reply: &ModelReply, thoughts: &str) -> Response {
        let mut message = message_of(reply);
        if !thoughts.is_empty() {
            message["reasoning_content"] = json!(thoughts);
        }
        let choice = self.choice("message", message, Some(stop_reason(reply)));
        let completion = json!({
            "id": self.id, "object": self.object(false), "created": self.created,
            "model": self.model, "choices": [choice], "usage": usage_object(reply.usage),
        });
        Response::json(200, completion.to_string())
    }

    fn piece(&mut self, event: Event<'_>) -> String {
        match event {
            Event::Begin => self.delta(json!({ "role": "assistant", "content": "" }), None),
            Event::Text(text) => self.delta(json!({ "content": text }), None),
            Event::Thought(thought) => self.delta(json!({ "reasoning_content": thought }), None),
            Event::ToolCall => String::new(),
            Event::KeepAlive => ": working\n\n".to_owned(),
            Event::End(reply) => self.end(reply),
            Event::Failed(error) => {
                let error = error_object(error, kind_and_code(error).1);
                format!("data: {error}\n\n")
            }
        }
    }

    fn refusal(&self, error: &Error) -> Response {
        refusal(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_shape_that_the_libraries_read() {
        let (token, role) = (Error::invalid_token("no"), Error::unauthorized("no"));
        let (rate, load) = (Error::rate_limited("no", 5), Error::overloaded("no", 5));
        for (error, status, kind, code) in [
            (token, 401, "invalid_request_error", "invalid_api_key"),
            (role, 403, "permission_error", "unauthorized"),
            (rate, 429, "rate_limit_error", "rate_limit_exceeded"),
            (load, 503, "server_error", "server_error"),
        ] {
            let response = refusal(&error);
            let body: Value = serde_json::from_slice(&response.body).unwrap();
            assert_eq!(response.status, status);
            assert_eq!(body["error"]["message"], "no");
            assert_eq!(body["error"]["type"], kind);
            assert_eq!(body["error"]["code"], code);
            let retry = response
                .headers
                .iter()
                .any(|(name, _)| *name == "Retry-After");
            assert_eq!(retry, error.retry_after().is_some());
        }
    }
}

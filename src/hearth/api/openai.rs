//! OpenAI's interface: models and chat completions
//! (<https://platform.openai.com/docs/api-reference/chat>).

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::{self, Task};
use super::asked;
use super::form::{Form, TurnSummary, stream_head};
use super::models;
use super::options;
use super::transcript::Said;
use crate::service::Service;
use crate::service::turn_stream::Asker;
use base::error::{Code, Error, Result};
use config::Config;
use net::http::{Answer, Request, Response};
use serde_json::json;
use store::{ToolCall, Usage};

/// Where its conversations come from, as in `Conversation::channel`.
pub const CHANNEL: &str = "openai_api";

/// What is read of a request; [`options`] reads the rest.
#[derive(Deserialize)]
struct Completion {
    model: String,
    messages: Vec<Said>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    n: Option<u64>,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What a client says about a request.
#[derive(Deserialize)]
pub struct Metadata {
    /// The client's own name for the chat.
    #[serde(default)]
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
    #[serde(default)]
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
    let mut response = Response::error(error);
    response.body = Cow::Owned(error_object(error, code).to_string().into_bytes());
    response
}

fn kind_and_code(error: &Error) -> (&'static str, &'static str) {
    match error.code() {
        Code::InvalidToken => ("invalid_request_error", "invalid_api_key"),
        Code::Unauthorized => ("permission_error", "unauthorized"),
        Code::NotFound => ("invalid_request_error", "model_not_found"),
        Code::InvalidRequest => ("invalid_request_error", "invalid_request"),
        Code::RateLimited => ("rate_limit_error", "rate_limit_exceeded"),
        // A budget of the household: its libraries know that waiting does not help.
        Code::ServerError if error.status() == 429 => ("insufficient_quota", "insufficient_quota"),
        Code::ServerError => ("server_error", "server_error"),
    }
}

fn error_object(error: &Error, code: &str) -> Value {
    json!({ "error": {
        "message": error.message(), "type": kind_and_code(error).0, "param": null, "code": code,
    } })
}

fn model_object(service: &Service, name: &str) -> Value {
    let began = service.clock().now().minus(service.uptime());
    json!({
        "id": name, "object": "model", "created": began.as_millis() / 1000, "owned_by": "hearth",
    })
}

/// GET /v1/models.
pub fn models(service: &Service, config: &Config) -> Response {
    let data: Vec<Value> = models::names(config)
        .into_iter()
        .map(|name| model_object(service, name))
        .collect();
    Response::json(200, json!({ "object": "list", "data": data }).to_string())
}

/// GET /v1/models/NAME.
///
/// # Errors
/// `not_found`.
pub fn model(service: &Service, config: &Config, name: &str) -> Result<Response> {
    models::check(config, name)?;
    Ok(Response::json(200, model_object(service, name).to_string()))
}

/// POST /v1/chat/completions.
///
/// # Errors
/// `invalid_request`, `not_found` for another model, and those of a turn
/// that cannot begin.
pub fn complete(
    service: &Arc<Service>,
    config: &Config,
    asker: Asker,
    request: &Request,
) -> Result<Answer> {
    let mut completion: Completion = answer::parse(&request.body)?;
    models::check(config, &completion.model)?;
    if completion.n.is_some_and(|n| n != 1) {
        return Err(Error::invalid_request(
            "\"n\" must be 1: there is one answer to a message",
        ));
    }
    let chat = Metadata::chat_id(completion.metadata, &mut completion.rest);
    if completion.messages.iter().any(Said::is_named) {
        completion
            .rest
            .insert("messages.name".to_owned(), true.into());
    }
    let mut include_usage = None;
    if let Some(options) = completion.stream_options {
        include_usage = options.include_usage;
        add_nested(&mut completion.rest, "stream_options", options.rest);
    }
    let options::Read { program, ignored } = options::of_openai(completion.rest)?;
    let stream = completion.stream.unwrap_or(false);
    let model = completion.model.clone();
    let form = Chunks {
        id: format!("chatcmpl-{}", base::secret::reference()),
        model: completion.model,
        created: service.clock().now().as_millis() / 1000,
        include_usage: include_usage.unwrap_or(false),
    };
    let task = Task {
        asker,
        said: completion.messages,
        chat,
        channel: CHANNEL,
        program,
        ignored,
        stream,
        waits: true,
        form: Box::new(form),
    };
    asked::begin(service, task, &model, request)
}

/// Server-sent events, or one object.
struct Chunks {
    id: String,
    model: String,
    /// Seconds since 1970.
    created: i64,
    include_usage: bool,
}

impl Chunks {
    fn chunk(&self, choices: Value, usage: Value) -> String {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created,
            "model": self.model, "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    }

    fn delta(&self, delta: Value, reason: Option<&str>) -> String {
        let choice = json!({
            "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason,
        });
        self.chunk(json!([choice]), Value::Null)
    }
}

/// Calls, and what was said beside them.
fn message_of(text: &str, calls: &[ToolCall]) -> Value {
    let calls: Value = calls.iter().map(call_object).collect();
    let text = Some(text).filter(|text| !text.is_empty());
    json!({ "role": "assistant", "content": text, "refusal": null, "tool_calls": calls })
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
    fn whole(&self, reply: &str, summary: &TurnSummary) -> Response {
        // Written at once: the objects in between take longer than the rest of a response.
        let model = json!(self.model);
        let message = match summary.calls.is_empty() {
            true => {
                let reply = Value::from(reply);
                format!(r#"{{"role":"assistant","content":{reply},"refusal":null}}"#)
            }
            false => message_of(reply, &summary.calls).to_string(),
        };
        let completion = format!(
            r#"{{"id":"{}","object":"chat.completion","created":{},"model":{model},"choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":"{}"}}],"usage":{}}}"#,
            self.id,
            self.created,
            summary.stop_reason(),
            usage_object(summary.usage),
        );
        Response::json(200, completion)
    }

    fn head(&self) -> Response {
        stream_head("text/event-stream; charset=utf-8")
    }

    fn opening(&self) -> String {
        self.delta(json!({ "role": "assistant", "content": "" }), None)
    }

    fn text(&self, text: &str) -> String {
        self.delta(json!({ "content": text }), None)
    }

    fn keep_alive(&self) -> String {
        ": working\n\n".to_owned()
    }

    fn closing(&self, summary: &TurnSummary) -> String {
        let mut text = String::new();
        for (index, call) in summary.calls.iter().enumerate() {
            let mut call = call_object(call);
            call["index"] = json!(index);
            text += &self.delta(json!({ "tool_calls": [call] }), None);
        }
        text += &self.delta(json!({}), Some(summary.stop_reason()));
        if self.include_usage {
            text += &self.chunk(json!([]), usage_object(summary.usage));
        }
        text + "data: [DONE]\n\n"
    }

    fn failure(&self, error: &Error) -> String {
        format!("data: {}\n\n", error_object(error, kind_and_code(error).1))
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

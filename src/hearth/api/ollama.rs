//! Ollama's interface (<https://github.com/ollama/ollama/blob/main/docs/api.md>), as
//! far as its clients need it to chat.

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
use agent::context::window::request_tokens;
use base::clock::Clock;
use base::error::{Error, Result};
use base::finish_reason::FinishReason;
use base::secret::sha256;
use config::Config;
use net::http::{Answer, Request, Response};
use serde_json::json;
use store::ToolCall;

/// Where its conversations come from, as in `Conversation::channel`.
const CHANNEL: &str = "ollama_api";

/// The version of Ollama whose interface this is: clients compare it.
const VERSION: &str = "0.12.0";

/// What is read of a request to chat; [`options`] reads the rest.
#[derive(Deserialize)]
struct Chat {
    model: String,
    #[serde(default)]
    messages: Vec<Said>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What is read of a request to generate.
#[derive(Deserialize)]
struct Generate {
    model: String,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    system: Option<String>,
    #[serde(default)]
    images: Option<Vec<String>>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What is read of a request to show. `name` is the older field.
#[derive(Deserialize)]
struct Show {
    #[serde(alias = "name")]
    model: String,
}

/// An error in Ollama's shape.
pub fn refusal(error: &Error) -> Response {
    let mut response = Response::error(error);
    response.body = Cow::Owned(error_object(error).to_string().into_bytes());
    response
}

fn error_object(error: &Error) -> Value {
    json!({ "error": error.message() })
}

fn ok(value: &Value) -> Response {
    Response::json(200, value.to_string())
}

/// GET /api/version.
pub fn version() -> Response {
    ok(&json!({ "version": VERSION }))
}

/// GET /api/ps: nothing is loaded here.
pub fn running() -> Response {
    ok(&json!({ "models": [] }))
}

fn details() -> Value {
    json!({
        "parent_model": "", "format": "hearth", "family": "hearth", "families": ["hearth"],
        "parameter_size": "", "quantization_level": "",
    })
}

/// GET /api/tags.
pub fn tags(service: &Service, config: &Config) -> Response {
    let began = service.clock().now().minus(service.uptime());
    let models: Vec<Value> = models::names(config)
        .into_iter()
        .map(|name| {
            let name = models::tagged(name);
            let digest: String = sha256(name.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            json!({
                "name": name, "model": name, "modified_at": began, "size": 0,
                "digest": digest, "details": details(),
            })
        })
        .collect();
    ok(&json!({ "models": models }))
}

/// POST /api/show.
///
/// # Errors
/// `invalid_request`, `not_found`.
pub fn show(service: &Service, config: &Config, request: &Request) -> Result<Response> {
    let show: Show = answer::parse(&request.body)?;
    models::check(config, &show.model)?;
    let provider = &service.assistant().provider;
    let window = provider.window(&config.model);
    let capabilities = match provider.takes(&config.model).images {
        true => &["completion", "tools", "vision"][..],
        false => &["completion", "tools"],
    };
    Ok(ok(&json!({
        "modelfile": "", "parameters": "", "template": "{{ .Prompt }}", "license": "",
        "details": details(),
        "model_info": {
            "general.architecture": "hearth",
            "hearth.context_length": request_tokens(window, config.max_tokens),
        },
        "capabilities": capabilities,
        "modified_at": service.clock().now().minus(service.uptime()),
    })))
}

/// POST /api/chat.
///
/// # Errors
/// `invalid_request`, `not_found` for another model, and those of a turn
/// that cannot begin.
pub fn chat(
    service: &Arc<Service>,
    config: &Config,
    asker: Asker,
    request: &Request,
) -> Result<Answer> {
    let chat: Chat = answer::parse(&request.body)?;
    models::check(config, &chat.model)?;
    let lines = Lines {
        model: chat.model,
        clock: service.clock().clone(),
        is_chat: true,
    };
    if chat.messages.is_empty() {
        return Ok(lines.loaded());
    }
    let (said, stream, rest) = (chat.messages, chat.stream, chat.rest);
    begin(service, lines, asker, said, stream, rest, request)
}

/// POST /api/generate: a message without a past.
///
/// # Errors
/// As [`chat`].
pub fn generate(
    service: &Arc<Service>,
    config: &Config,
    asker: Asker,
    request: &Request,
) -> Result<Answer> {
    let generate: Generate = answer::parse(&request.body)?;
    models::check(config, &generate.model)?;
    let lines = Lines {
        model: generate.model,
        clock: service.clock().clone(),
        is_chat: false,
    };
    let Some(prompt) = generate.prompt.filter(|prompt| !prompt.is_empty()) else {
        return Ok(lines.loaded());
    };
    let system = generate.system.map(|system| Said::new("system", system));
    let question = Said::new("user", prompt).with_images(generate.images);
    let said = system.into_iter().chain([question]);
    let (said, stream, rest) = (said.collect(), generate.stream, generate.rest);
    begin(service, lines, asker, said, stream, rest, request)
}

fn begin(
    service: &Arc<Service>,
    lines: Lines,
    asker: Asker,
    said: Vec<Said>,
    stream: Option<bool>,
    rest: Map<String, Value>,
    request: &Request,
) -> Result<Answer> {
    let options::Read { program, ignored } = options::of_ollama(rest)?;
    let model = lines.model.clone();
    let task = Task {
        asker,
        said,
        chat: None,
        channel: CHANNEL,
        program,
        ignored,
        stream: stream.unwrap_or(true),
        // Home Assistant streams what it speaks.
        waits: false,
        form: Box::new(lines),
    };
    asked::begin(service, task, &model, request)
}

/// A JSON object on each line, or one object.
struct Lines {
    model: String,
    clock: Clock,
    /// Of `/api/chat`, not `/api/generate`.
    is_chat: bool,
}

impl Lines {
    fn object(&self, text: &str, is_done: bool) -> Value {
        let mut object = json!({
            "model": self.model, "created_at": self.clock.now(), "done": is_done,
        });
        match self.is_chat {
            true => object["message"] = json!({ "role": "assistant", "content": text }),
            false => object["response"] = json!(text),
        }
        object
    }

    fn last(&self, text: &str, summary: &TurnSummary) -> Value {
        let nanoseconds = u64::try_from(summary.took.as_nanos()).unwrap_or(u64::MAX);
        let mut object = self.object(text, true);
        if !summary.calls.is_empty() {
            object["message"]["tool_calls"] = summary.calls.iter().map(call_object).collect();
        }
        object["done_reason"] = json!(match summary.finish_reason {
            Some(FinishReason::Length | FinishReason::Interrupted) => "length",
            _ => "stop",
        });
        object["total_duration"] = json!(nanoseconds);
        object["load_duration"] = json!(0);
        object["prompt_eval_count"] = json!(summary.usage.input);
        object["prompt_eval_duration"] = json!(0);
        object["eval_count"] = json!(summary.usage.output);
        object["eval_duration"] = json!(nanoseconds);
        object
    }

    /// The response to a request without a message, which asks Ollama to load the
    /// model.
    fn loaded(&self) -> Answer {
        let mut object = self.object("", true);
        object["done_reason"] = json!("load");
        Answer::Now(ok(&object))
    }
}

fn call_object(call: &ToolCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({ "id": call.id, "function": { "name": call.tool, "arguments": arguments } })
}

impl Form for Lines {
    fn whole(&self, reply: &str, summary: &TurnSummary) -> Response {
        ok(&self.last(reply, summary))
    }

    fn head(&self) -> Response {
        stream_head("application/x-ndjson")
    }

    fn opening(&self) -> String {
        String::new()
    }

    fn text(&self, text: &str) -> String {
        format!("{}\n", self.object(text, false))
    }

    fn keep_alive(&self) -> String {
        self.text("")
    }

    fn closing(&self, summary: &TurnSummary) -> String {
        format!("{}\n", self.last("", summary))
    }

    fn failure(&self, error: &Error) -> String {
        format!("{}\n", error_object(error))
    }

    fn refusal(&self, error: &Error) -> Response {
        refusal(error)
    }
}

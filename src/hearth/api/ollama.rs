//! Ollama's interface (<https://github.com/ollama/ollama/blob/main/docs/api.md>), as
//! far as its clients need it to chat.

use std::time::Instant;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::access::Exchange;
use super::answer::{Event, Form};
use super::client_message::ClientMessage;
use super::request::{self, ReplyRequest};
use super::{models, options};
use agent::model::ModelReply;
use agent::model::estimate::request_tokens;
use agent::model::fence::PROGRAM_CHANNELS;
use base::clock::Clock;
use base::error::{Error, Result};
use base::reply::FinishReason;
use base::secret::{hex, sha256};
use net::http::{Answer, Response};
use serde_json::json;
use store::ToolCall;

/// Where its conversations come from, as in `Conversation::channel`.
const CHANNEL: &str = PROGRAM_CHANNELS[1];

/// The version of Ollama whose interface this is: clients compare it.
const VERSION: &str = "0.12.0";

/// What is read of a request to chat; [`options`] reads the rest.
#[derive(Deserialize)]
struct Chat {
    model: String,
    // What clients in Go send for none is null.
    messages: Option<Vec<ClientMessage>>,
    stream: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What is read of a request to generate.
#[derive(Deserialize)]
struct Generate {
    model: String,
    prompt: Option<String>,
    system: Option<String>,
    images: Option<Vec<String>>,
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
    Response::error_in(error, &error_object(error))
}

fn error_object(error: &Error) -> Value {
    json!({ "error": error.message() })
}

fn ok(value: &Value) -> Response {
    Response::json(200, value.to_string())
}

fn now(value: &Value) -> Result<Answer> {
    Ok(Answer::Now(ok(value)))
}

/// GET /api/version.
///
/// # Errors
/// None.
pub fn version(_: Exchange<'_>) -> Result<Answer> {
    now(&json!({ "version": VERSION }))
}

/// GET /api/ps: nothing is loaded here.
///
/// # Errors
/// None.
pub fn running(_: Exchange<'_>) -> Result<Answer> {
    now(&json!({ "models": [] }))
}

fn details() -> Value {
    json!({
        "parent_model": "", "format": "hearth", "family": "hearth", "families": ["hearth"],
        "parameter_size": "", "quantization_level": "",
    })
}

/// GET /api/tags.
///
/// # Errors
/// None.
pub fn tags(exchange: Exchange<'_>) -> Result<Answer> {
    let service = exchange.service;
    let began = service.clock.now().minus(service.uptime());
    let models: Vec<Value> = models::names(exchange.config)
        .into_iter()
        .map(|name| {
            let name = models::tagged(name);
            json!({
                "name": name, "model": name, "modified_at": began, "size": 0,
                "digest": hex(&sha256(name.as_bytes())), "details": details(),
            })
        })
        .collect();
    now(&json!({ "models": models }))
}

/// POST /api/show.
///
/// # Errors
/// `invalid_request`, `not_found`.
pub fn show(exchange: Exchange<'_>) -> Result<Answer> {
    let (service, config) = (exchange.service, exchange.config);
    let show: Show = request::parse(&exchange.request.body)?;
    models::check(config, &show.model)?;
    let assistant = service.assistant();
    let server = assistant.servers.first(&config.model);
    let window = server.window();
    let capabilities = if server.takes().images {
        &["completion", "tools", "vision"][..]
    } else {
        &["completion", "tools"]
    };
    now(&json!({
        "modelfile": "", "parameters": "", "template": "{{ .Prompt }}", "license": "",
        "details": details(),
        "model_info": {
            "general.architecture": "hearth",
            "hearth.context_length": request_tokens(window, config.max_tokens),
        },
        "capabilities": capabilities,
        "modified_at": service.clock.now().minus(service.uptime()),
    }))
}

/// POST /api/chat.
///
/// # Errors
/// `invalid_request`, `not_found` for another model, and those of a turn
/// that cannot begin.
pub fn chat(exchange: Exchange<'_>) -> Result<Answer> {
    let chat: Chat = request::parse(&exchange.request.body)?;
    let lines = Lines::new(&exchange, chat.model, true)?;
    let messages = chat.messages.unwrap_or_default();
    if messages.is_empty() {
        return Ok(lines.loaded());
    }
    begin(exchange, lines, messages, chat.stream, chat.rest)
}

/// POST /api/generate: a message without a past.
///
/// # Errors
/// As [`chat`].
pub fn generate(exchange: Exchange<'_>) -> Result<Answer> {
    let generate: Generate = request::parse(&exchange.request.body)?;
    let lines = Lines::new(&exchange, generate.model, false)?;
    let Some(prompt) = generate.prompt.filter(|prompt| !prompt.is_empty()) else {
        return Ok(lines.loaded());
    };
    let system = generate.system;
    let system = system.map(|system| ClientMessage::new("system", system));
    let question = ClientMessage::new("user", prompt).with_images(generate.images);
    let messages = system.into_iter().chain([question]).collect();
    begin(exchange, lines, messages, generate.stream, generate.rest)
}

fn begin(
    exchange: Exchange<'_>,
    mut lines: Lines,
    messages: Vec<ClientMessage>,
    stream: Option<bool>,
    mut rest: Map<String, Value>,
) -> Result<Answer> {
    lines.wants_thoughts = options::take_wish(&mut rest, "think");
    let request = ReplyRequest {
        model: lines.model.clone(),
        messages,
        chat: None,
        channel: CHANNEL,
        options: options::of_ollama(rest)?,
        stream: stream.unwrap_or(true),
        // Home Assistant streams what it speaks.
        waits: false,
        form: Box::new(lines),
    };
    request.answer(exchange)
}

/// A JSON object on each line, or one object.
struct Lines {
    model: String,
    clock: Clock,
    began: Instant,
    /// Of `/api/chat`, not `/api/generate`.
    is_chat: bool,
    /// Whether the client asks for what the model thinks.
    wants_thoughts: bool,
}

impl Lines {
    fn new(exchange: &Exchange<'_>, model: String, is_chat: bool) -> Result<Lines> {
        models::check(exchange.config, &model)?;
        Ok(Lines {
            model,
            clock: exchange.service.clock.clone(),
            began: Instant::now(),
            is_chat,
            wants_thoughts: false,
        })
    }

    fn object(&self, text: &str, is_done: bool) -> Value {
        let mut object = json!({
            "model": self.model, "created_at": self.clock.now(), "done": is_done,
        });
        if self.is_chat {
            object["message"] = json!({ "role": "assistant", "content": text });
        } else {
            object["response"] = json!(text);
        }
        object
    }

    fn thinking(&self, mut object: Value, thoughts: &str) -> Value {
        match self.is_chat {
            true => object["message"]["thinking"] = json!(thoughts),
            false => object["thinking"] = json!(thoughts),
        }
        object
    }

    fn last(&self, text: &str, reply: &ModelReply) -> Value {
        let nanoseconds = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut object = self.object(text, true);
        if !reply.calls.is_empty() {
            object["message"]["tool_calls"] = reply.calls.iter().map(call_object).collect();
        }
        object["done_reason"] = json!(match reply.finish_reason {
            Some(FinishReason::Length | FinishReason::Interrupted) => "length",
            _ => "stop",
        });
        object["total_duration"] = json!(nanoseconds);
        object["load_duration"] = json!(0);
        object["prompt_eval_count"] = json!(reply.usage.input);
        object["prompt_eval_duration"] = json!(0);
        object["eval_count"] = json!(reply.usage.output);
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
    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn piece(&mut self, event: Event<'_>) -> String {
        let line = match event {
            Event::Thought(thought) => self.thinking(self.object("", false), thought),
            Event::Begin | Event::ToolCall => return String::new(),
            Event::Text(text) => self.object(text, false),
            Event::KeepAlive => self.object("", false),
            Event::End(reply) => self.last("", reply),
            Event::Failed(error) => error_object(error),
        };
        format!("{line}\n")
    }

    fn wants_thoughts(&self) -> bool {
        self.wants_thoughts
    }

    fn whole(&self, reply: &ModelReply, thoughts: &str) -> Response {
        let last = self.last(&reply.text, reply);
        ok(&match thoughts {
            "" => last,
            thoughts => self.thinking(last, thoughts),
        })
    }

    fn refusal(&self, error: &Error) -> Response {
        refusal(error)
    }
}

//! Model providers: one trait, and one module for each kind of API.
//!
//! What the kinds share stands beside them: a server that is asked over HTTP
//! (`remote`) in its own way (`dialect`), where it is and what is said about it (`endpoint`), what a refusal
//! means (`refusal`), what it taught about the server (`learned`), when to try
//! again (`retry`), server-sent events and lines (`event_stream`), tool calls as
//! they come (`tool_call_builder`), what goes back to where it came from (`extra`) and how
//! text reaches the person (`reply_stream`). `fallback` asks one provider after the
//! other; `probe` finds out whether one would answer.

mod anthropic;
mod dialect;
mod endpoint;
pub(super) mod event_stream;
mod extra;
mod fallback;
mod learned;
mod offline;
mod ollama;
mod openai;
mod plain_schema;
pub mod probe;
mod refusal;
mod remote;
mod reply_stream;
mod retry;
mod tool_call_builder;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use anthropic::Anthropic;
use base::error::{Code, Error};
use base::secret::random_bytes;
use config::{Api, Config, ModelChoice, Preset};
use dialect::Options;
use endpoint::Endpoint;
use fallback::Fallback;
pub use net::cancel::Cancel;
use net::tls::Trust;
use offline::Offline;
pub use ollama::CONTEXT as OLLAMA_CONTEXT;
use ollama::Ollama;
use openai::OpenAi;
use remote::Remote;
use store::{ToolCall, Usage};

/// One message of the model's view of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatMessage {
    /// What a person (or a system that speaks for one) said.
    User {
        /// The message, with whatever the context put around it.
        text: String,
    },
    /// What the model said and which tools it called.
    Assistant {
        /// May be empty when the model only called tools.
        text: String,
        /// In the order in which the model wrote them.
        calls: Vec<ToolCall>,
        /// Members of the message that the provider which wrote them wants
        /// back, such as its own record of how it thought.
        extra: Option<Value>,
    },
    /// What came of one call. Every call has exactly one, after its reply and
    /// before the next user message.
    ToolResult {
        /// The [`ToolCall::id`] that it answers.
        call_id: String,
        /// The called tool's name: some APIs want it beside the id.
        tool: String,
        /// The result, or what went wrong, cut to the limit of
        /// [`output`](super::tool::output).
        content: String,
        /// Whether the tool ran and did not fail.
        ok: bool,
    },
}

/// A tool as the model is told of it.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// As the model calls it; unique among the tools of one request.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// JSON Schema, an object schema.
    pub parameters: Value,
}

/// One request to a model.
pub struct ModelRequest<'a> {
    /// The provider's own name of the model.
    pub model: &'a str,
    /// Instructions that stand before the conversation; may be empty.
    pub system: &'a str,
    /// The conversation so far, oldest first, ending with a user message or a
    /// tool's result.
    pub messages: &'a [ChatMessage],
    /// What the model may call. Empty means that it must answer in words.
    pub tools: &'a [ToolSpec],
    /// 0 to 2; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Most tokens of the reply; `None` leaves it to the provider.
    pub max_tokens: Option<u32>,
    /// Whether pieces of text are wanted as they come.
    pub stream: bool,
    /// When the turn's time is up.
    pub deadline: Instant,
    /// Whether somebody stopped the turn.
    pub cancel: &'a Cancel,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// The reply, or what the model said before its calls; may be empty then.
    pub text: String,
    /// The tools it wants run. None means that the reply is finished.
    pub calls: Vec<ToolCall>,
    /// Members of the assistant message that the same provider wants back.
    pub extra: Option<Value>,
    /// As the provider counted.
    pub usage: Usage,
    /// Whether the usage is only estimated, because the provider does not count.
    pub is_estimated: bool,
    /// The model that answered, when it need not be the one that was asked.
    pub model: Option<String>,
}

/// A kind of model API.
pub trait Provider: Send + Sync {
    /// Asks the model. `on_text` gets the pieces of the reply's text as they
    /// come (when `stream`); together they are `ModelReply::text`.
    ///
    /// Retries are made inside, only before the first piece was given out, and
    /// never beyond the deadline.
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError>;

    /// The models that may answer and how they stand, in the order in which they
    /// are asked, when there are several; `model` is the first one's.
    fn standings(&self, model: &str) -> Vec<Standing> {
        let _ = model;
        Vec::new()
    }
}

/// How one of several models stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// As the configuration names its provider.
    pub provider: String,
    /// Its name there.
    pub model: String,
    /// How much longer it is left alone, because it did not answer.
    pub rest_left: Option<Duration>,
}

/// Why a model gave no answer.
#[derive(Clone, Debug)]
pub enum ProviderError {
    /// Somebody stopped the turn.
    Cancelled,
    /// The turn's time was up.
    TimedOut,
    /// Anything else. Neither text holds a key.
    Failed {
        /// For the person who asked: names the provider and what to do.
        public: String,
        /// For the log: what the provider said.
        detail: String,
        /// What it depends on.
        cause: Cause,
    },
    /// The conversation is longer than the model takes; the texts are as those
    /// of `Failed`. A shorter one may be answered.
    ContextOverflow {
        /// For the person who asked.
        public: String,
        /// For the log: what the provider said.
        detail: String,
    },
}

/// What a failure depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server: it is down, overloaded or broken, or refuses the key, the
    /// account or the model. Another may answer the same request.
    Away,
    /// The request.
    Request,
}

impl ProviderError {
    /// As the house's error: `server_error`, HTTP 504 when time was up. A stopped
    /// turn is 409: the request met a decision made meanwhile. (The turn loop
    /// ends a stopped turn by itself and does not come here.)
    pub fn into_error(self) -> Error {
        match self {
            ProviderError::Cancelled => {
                Error::new(Code::InvalidRequest, "the turn was stopped").with_status(409)
            }
            ProviderError::TimedOut => Error::server(
                "the turn took longer than its time limit",
                "the model had not answered when the time was up (limits.turn_seconds)",
            )
            .with_status(504),
            ProviderError::Failed { public, detail, .. }
            | ProviderError::ContextOverflow { public, detail } => Error::server(public, detail),
        }
    }
}

/// Time left until `deadline`, or [`ProviderError::TimedOut`].
pub fn time_left(deadline: Instant) -> Result<Duration, ProviderError> {
    deadline
        .checked_duration_since(Instant::now())
        .ok_or(ProviderError::TimedOut)
}

/// An id for a call whose model gave none: 9 alphanumeric characters, which is
/// the strictest rule among the servers (Mistral's).
fn make_call_id() -> String {
    random_bytes::<9>()
        .iter()
        .map(|byte| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[usize::from(byte & 31)]))
        .collect()
}

/// The provider that a configuration names. It keeps open connections and what
/// it has learned about its server, so it is made once for each configuration in
/// force, not for each turn.
pub fn from_config(config: &Config) -> Arc<dyn Provider> {
    let options = Options {
        context_tokens: config.context_tokens,
        reasoning_effort: config.reasoning_effort,
    };
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let first = config.first_choice();
    if config.fallback.is_empty() || config.provider == config::OFFLINE {
        return provider_of(&first, options, &trust, None).into();
    }
    Arc::new(Fallback::new(&first, &config.fallback, options, &trust))
}

/// The provider of one choice. With `patience`, its server may be silent no
/// longer than this before its first word.
fn provider_of(
    choice: &ModelChoice,
    options: Options,
    trust: &Trust,
    patience: Option<Duration>,
) -> Box<dyn Provider> {
    let Some(preset) = Preset::of(&choice.provider) else {
        return Box::new(Unusable(
            "this version does not know the provider that is configured",
        ));
    };
    let Some(endpoint) = endpoint_of(choice, preset) else {
        return match preset.api {
            Api::Offline => Box::new(Offline),
            _ => Box::new(Unusable(
                "the provider \"openai-compatible\" needs a base_url",
            )),
        };
    };
    let dialect: Box<dyn dialect::Dialect> = match preset.api {
        Api::Offline => return Box::new(Offline),
        Api::OpenAi => Box::new(OpenAi),
        Api::Anthropic => Box::new(Anthropic),
        Api::Ollama => Box::new(Ollama),
    };
    let remote = Remote::new(endpoint, dialect, preset.quirks, options).trusting(trust.clone());
    Box::new(match patience {
        Some(patience) => remote.with_patience(patience),
        None => remote,
    })
}

/// Where the server of a choice is; nowhere for `offline`, and without an
/// address.
fn endpoint_of(choice: &ModelChoice, preset: &Preset) -> Option<Endpoint> {
    let url = choice.base_url.as_deref().or(preset.base_url)?;
    let key = choice.api_key.clone();
    Some(match preset.api {
        Api::Offline => return None,
        Api::OpenAi => Endpoint::new(preset.title, url, key),
        Api::Anthropic => Endpoint::below(preset.title, url, &["/messages", "/v1"], key),
        Api::Ollama => Endpoint::below(preset.title, url, &["/chat", "/api", "/v1"], key),
    })
}

/// Stands for a provider that the validation of the configuration refuses.
struct Unusable(&'static str);

impl Provider for Unusable {
    fn complete(
        &self,
        _: &ModelRequest<'_>,
        _: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        Err(ProviderError::Failed {
            public: format!("no model can be asked: {}", self.0),
            detail: "the configuration was not validated".to_owned(),
            cause: Cause::Away,
        })
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

//! Model providers: one trait, and one module for each kind of API.
//!
//! What the kinds share stands beside them: where a server is and what is said
//! about it (`endpoint`), what a refusal means (`refusal`), when to try again
//! (`retry`), server-sent events (`event_stream`) and how text reaches the person
//! (`voice`).

mod endpoint;
pub(super) mod event_stream;
mod offline;
mod openai;
mod refusal;
mod retry;
mod voice;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use super::cancel::Cancel;
use crate::config::Config;
use crate::error::{Code, Error};
use crate::secret::{Secret, random_bytes};
use crate::store::{ToolCall, Usage};
use endpoint::Endpoint;
use offline::Offline;
use openai::OpenAi;

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
    /// As the provider counted; zero where it does not say.
    pub usage: Usage,
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
}

/// Why a model gave no answer.
#[derive(Clone, Debug)]
pub enum ProviderError {
    /// Somebody stopped the turn.
    Cancelled,
    /// The turn's time was up.
    TimedOut,
    /// Anything else: `public` is for the person who asked and names the
    /// provider, `detail` for the log. Neither holds a key.
    Failed {
        /// For the person who asked: names the provider and what to do.
        public: String,
        /// For the log: what the provider said.
        detail: String,
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
            ProviderError::Failed { public, detail }
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
    by_name(
        &config.provider,
        config.base_url.as_deref(),
        config.api_key.clone(),
    )
}

fn by_name(name: &str, base_url: Option<&str>, api_key: Option<Secret>) -> Arc<dyn Provider> {
    let endpoint = match (name, base_url) {
        ("offline", _) => return Arc::new(Offline),
        ("openai", None) => Endpoint::new("OpenAI", openai::BASE_URL, api_key),
        ("openai", Some(url)) => Endpoint::new("OpenAI", url, api_key),
        ("openai-compatible", Some(url)) => Endpoint::new("The model server", url, api_key),
        ("openai-compatible", None) => {
            return Arc::new(Unusable(
                "the provider \"openai-compatible\" needs a base_url",
            ));
        }
        _ => {
            return Arc::new(Unusable(
                "this version knows the providers offline, openai and openai-compatible",
            ));
        }
    };
    Arc::new(OpenAi::new(endpoint))
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
        })
    }
}

#[cfg(test)]
mod tests;

//! What a model is asked and what it answers: messages, tool specifications,
//! request, reply and error, and the [`Provider`] that exchanges them.

use std::time::{Duration, Instant};

use serde_json::Value;

use base::error::{Code, Error};
use base::secret::random_bytes;
use net::cancel::Cancel;
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
        /// [`tool::output`](crate::tool::output).
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
    Server,
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
pub(crate) fn make_call_id() -> String {
    random_bytes::<9>()
        .iter()
        .map(|byte| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[usize::from(byte & 31)]))
        .collect()
}

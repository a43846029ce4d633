//! Model providers: one trait, and one file for each kind of API.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::config::Config;
use crate::error::Error;
use crate::store::{ToolCall, Usage};

/// One message of the model's view of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatMessage {
    /// What a person (or a system that speaks for one) said.
    User { text: String },
    /// What the model said and which tools it called.
    Assistant {
        text: String,
        calls: Vec<ToolCall>,
        extra: Option<Value>,
    },
    /// What came of one call. Every call has exactly one, after its reply and
    /// before the next user message.
    ToolResult {
        call_id: String,
        tool: String,
        content: String,
        ok: bool,
    },
}

/// A tool as the model is told of it.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema, an object schema.
    pub parameters: Value,
}

/// One request to a model.
pub struct ModelRequest<'a> {
    pub model: &'a str,
    pub system: &'a str,
    pub messages: &'a [ChatMessage],
    pub tools: &'a [ToolSpec],
    pub temperature: Option<f64>,
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
    pub text: String,
    pub calls: Vec<ToolCall>,
    /// Members of the assistant message that the same provider wants back.
    pub extra: Option<Value>,
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
    Failed { public: String, detail: String },
}

impl ProviderError {
    /// As the house's error: `server_error`, HTTP 504 when time was up.
    pub fn into_error(self) -> Error {
        let _ = &self;
        todo!()
    }
}

/// Stops a turn from another thread: a flag, and a hook that breaks the network
/// call that is under way.
#[derive(Clone, Default)]
pub struct Cancel {
    inner: Arc<CancelInner>,
}

#[derive(Default)]
struct CancelInner {
    cancelled: AtomicBool,
    hook: std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Cancel {
    /// Stops the turn.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::SeqCst);
        let hook = self
            .inner
            .hook
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take();
        if let Some(hook) = hook {
            hook();
        }
    }

    /// Whether it was stopped.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::SeqCst)
    }

    /// Runs `work`; if the turn is stopped meanwhile, `hook` is called from the
    /// stopping thread to break what `work` waits for.
    pub fn guard<T>(&self, hook: impl FnOnce() + Send + 'static, work: impl FnOnce() -> T) -> T {
        let lock = || {
            self.inner
                .hook
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
        };
        *lock() = Some(Box::new(hook));
        // Stopped between the caller's last look and the line above: break at once.
        if self.is_cancelled() {
            if let Some(hook) = lock().take() {
                hook();
            }
        }
        let result = work();
        lock().take();
        result
    }
}

/// Time left until `deadline`, or [`ProviderError::TimedOut`].
pub fn time_left(deadline: Instant) -> Result<Duration, ProviderError> {
    deadline
        .checked_duration_since(Instant::now())
        .ok_or(ProviderError::TimedOut)
}

/// The provider that a configuration names.
pub fn from_config(config: &Config) -> Arc<dyn Provider> {
    let _ = config;
    todo!()
}

//! Requests to models and their replies: messages, tool specifications, errors,
//! and the [`Provider`] trait. Everything else in this crate builds on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client_options::ClientOptions;
use crate::text::Text;
use base::error::{Code, Error};
use base::finish_reason::FinishReason;
use base::ids::AttachmentId;
use base::secret::random_bytes;
use net::cancel::Cancel;
use store::{ToolCall, Usage};

/// One message of the model's view of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatMessage {
    /// From a person, or from a program on behalf of one.
    User {
        /// The message, with what the context added to it.
        text: Text,
        /// What came with it, in the order in which the text names it.
        files: Vec<ModelFile>,
    },
    /// From the model.
    Assistant {
        /// May be empty when the model only called tools.
        text: Text,
        /// In the order in which the model wrote them.
        calls: Vec<ToolCall>,
        /// Members that the provider wants back, such as the model's thoughts.
        extra: Option<Value>,
    },
    /// The result of one call. Every call has exactly one, after its reply and
    /// before the next user message.
    ToolResult {
        /// The [`ToolCall::id`] that it answers.
        call_id: String,
        /// The tool's name: some APIs require it in addition to the id.
        tool: String,
        /// The result, or what went wrong, cut to the limit of
        /// [`tool::output`](crate::tool::output).
        content: Text,
        /// Whether the tool ran and did not fail.
        ok: bool,
        /// What the tool brought, in the order in which the content names it.
        files: Vec<ModelFile>,
    },
}

impl ChatMessage {
    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            ChatMessage::User { text, .. }
            | ChatMessage::Assistant { text, .. }
            | ChatMessage::ToolResult { content: text, .. } => text,
        }
    }
}

/// A file of a message or a result. What it holds is read when a request is written:
/// see [`FileReader`].
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// Where it is stored.
    pub id: AttachmentId,
    /// What its sender called it.
    pub name: String,
    /// Its media type, by its content.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// Most characters that are shown, if it is text.
    pub most_chars: usize,
    /// Whether it is only named, because the conversation has become long.
    pub is_folded: bool,
    /// About how many tokens it takes.
    pub tokens: usize,
}

/// What can be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// PNG, JPEG, GIF or WebP, which every model takes that takes images.
    Image,
    /// PDF.
    Document,
    /// Text, or what is called so.
    Text,
    /// Anything else: it is only named.
    Other,
}

/// How the names of text files end that are not UTF-8, and so not known as text.
const TEXT_ENDINGS: [&str; 12] = [
    "txt", "csv", "tsv", "md", "log", "json", "xml", "html", "htm", "ini", "ics", "vcf",
];

impl FileKind {
    /// The kind of a file with this media type, by its content, and this name.
    pub fn of(media_type: &str, name: &str) -> FileKind {
        match media_type {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => FileKind::Image,
            "application/pdf" => FileKind::Document,
            "text/plain" => FileKind::Text,
            "application/octet-stream" => {
                let ending = name
                    .rsplit_once('.')
                    .map(|(_, ending)| ending.to_lowercase());
                match ending.is_some_and(|ending| TEXT_ENDINGS.contains(&&*ending)) {
                    true => FileKind::Text,
                    false => FileKind::Other,
                }
            }
            _ => FileKind::Other,
        }
    }
}

impl ModelFile {
    /// What can be done with it.
    pub fn kind(&self) -> FileKind {
        FileKind::of(&self.media_type, &self.name)
    }
}

/// Reads the files of a conversation while a request is written, so that none is in
/// memory before.
pub trait FileReader: Sync {
    /// All of a file; none if it is gone.
    fn bytes(&self, file: &ModelFile) -> Option<Vec<u8>>;

    /// The beginning of a text, with a note of how to read on; none if it is gone, or no
    /// text.
    fn text(&self, file: &ModelFile) -> Option<String>;
}

/// There are none.
impl FileReader for () {
    fn bytes(&self, _: &ModelFile) -> Option<Vec<u8>> {
        None
    }

    fn text(&self, _: &ModelFile) -> Option<String> {
        None
    }
}

/// What a model takes beside text, as far as its provider knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Takes {
    /// Images.
    pub images: bool,
    /// PDF.
    pub documents: bool,
}

/// A tool, as it is described to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// As the model calls it; unique among the tools of one request.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema, an object schema. Shared: each turn has its own list of tools.
    pub parameters: Arc<Value>,
}

/// One request to a model.
pub struct ModelRequest<'a> {
    /// The provider's name for the model.
    pub model: &'a str,
    /// The system prompt; may be empty.
    pub system: &'a str,
    /// The conversation so far, oldest first, ending with a user message or a
    /// tool's result.
    pub messages: &'a [ChatMessage],
    /// Reads the files of the messages.
    pub files: &'a dyn FileReader,
    /// The tools that the model knows.
    pub tools: &'a [ToolSpec],
    /// Whether it may call them, or must answer in words. They are sent nevertheless:
    /// servers compare them with earlier calls, and keep the beginning of a request.
    pub may_call: bool,
    /// What the program that asks wants of the reply. `max_tokens` and `temperature` have
    /// theirs already.
    pub client: Option<&'a ClientOptions>,
    /// 0 to 2; `None` means the provider's default.
    pub temperature: Option<f64>,
    /// Most tokens of the reply; `None` means the provider's default.
    pub max_tokens: Option<u32>,
    /// Whether to pass on pieces of text as they arrive.
    pub stream: bool,
    /// The turn's time limit.
    pub deadline: Instant,
    /// Stops the request.
    pub cancel: &'a Cancel,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// May be empty if there are calls.
    pub text: String,
    /// The tools to run. If there are none, the reply is finished.
    pub calls: Vec<ToolCall>,
    /// Why the text or the calls are not whole. A model that reached its limit while it
    /// was thinking leaves neither.
    pub finish_reason: Option<FinishReason>,
    /// As in [`ChatMessage::Assistant`].
    pub extra: Option<Value>,
    /// As the provider counted.
    pub usage: Usage,
    /// Whether the usage is only estimated, because the provider does not count.
    pub is_estimated: bool,
    /// The model that answered, if the provider knows.
    pub model: Option<String>,
}

/// The window of a model that needs none, in tokens.
const USUAL_WINDOW: usize = 128_000;

/// A kind of model API.
pub trait Provider: Send + Sync {
    /// Asks the model. With `stream`, `on_text` gets the pieces of the reply's
    /// text as they arrive; together they are `ModelReply::text`, unless their end
    /// shows that the first of them were thoughts.
    ///
    /// Retries happen inside, but only before the first piece and never beyond the
    /// deadline. A reply that is lost after that comes back as far as it was heard, with
    /// [`FinishReason::Interrupted`].
    ///
    /// # Errors
    /// Why the model gave no answer.
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError>;

    /// The tokens of a model's window. May ask its server for them, for at most a
    /// second, and seldom.
    fn window(&self, model: &str) -> usize {
        let _ = model;
        USUAL_WINDOW
    }

    /// Whether [`Provider::window`] is a guess for now, because the server that knows it did
    /// not answer.
    fn guesses_window(&self, model: &str) -> bool {
        let _ = model;
        false
    }

    /// What a model takes beside text. Does not ask its server.
    fn takes(&self, model: &str) -> Takes {
        let _ = model;
        Takes::default()
    }

    /// The health of each model if there are several, in the order in which they
    /// are asked; `model` is the first one's name.
    fn health(&self, model: &str) -> Vec<ModelHealth> {
        let _ = model;
        Vec::new()
    }
}

/// Whether one of several models answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelHealth {
    /// As the configuration names its provider.
    pub provider: String,
    /// Its name there.
    pub model: String,
    /// How much longer it is not asked, because it did not answer.
    pub cooldown_left: Option<Duration>,
}

/// Why a model gave no answer.
#[derive(Clone, Debug)]
pub enum ProviderError {
    /// The turn was stopped.
    Cancelled,
    /// The turn reached its time limit.
    TimedOut,
    /// Anything else. Neither text holds a key.
    Failed {
        /// For the person who asked: names the provider and what to do.
        public: String,
        /// For the log: what the provider said.
        detail: String,
        /// What is to blame.
        cause: Cause,
    },
    /// The conversation is too long for the model. The texts are as in `Failed`.
    ContextOverflow {
        /// For the person who asked.
        public: String,
        /// For the log: what the provider said.
        detail: String,
        /// Whether that is sure, and only what it refuses shows how large its window is.
        hides_window: bool,
    },
}

/// What is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server: it is down, overloaded or broken, or refuses the key, the
    /// account or the model. Another may answer the same request.
    Server,
    /// The request.
    Request,
}

impl ProviderError {
    /// As an error of Hearth: `server_error`, with HTTP 504 after a timeout. A
    /// stopped turn would give 409, but the turn loop ends it before that.
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
            | ProviderError::ContextOverflow { public, detail, .. } => {
                Error::server(public, detail)
            }
        }
    }
}

/// An id for a call: 9 alphanumeric characters, the strictest rule of any model's
/// server (Mistral's).
pub(crate) fn make_call_id() -> String {
    random_bytes::<9>()
        .iter()
        .map(|byte| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[usize::from(byte & 31)]))
        .collect()
}

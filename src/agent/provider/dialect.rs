//! What the kinds of API have in common: how one is written and read.

use serde_json::Value;

use super::learned::ServerCapabilities;
use super::refusal::Refusal;
use super::reply_stream::ReplyStream;
use crate::model::{Cause, ModelReply, ModelRequest};
use config::Quirks;
use net::http_client::{ClientError, ClientResponse};

/// What a provider is told by the configuration beside whom to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Tokens that the model takes in at once.
    pub context_tokens: Option<u32>,
    /// How hard the model thinks.
    pub reasoning_effort: Option<&'static str>,
}

/// One request as it is to be written.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    /// What is asked.
    pub request: &'a ModelRequest<'a>,
    /// Where the server is.
    pub base_url: &'a str,
    /// What the server does not take.
    pub learned: ServerCapabilities,
    /// What the configuration says.
    pub options: Options,
    /// How the server differs from others.
    pub quirks: &'a Quirks,
}

impl RequestContext<'_> {
    /// How hard the model is to think, in the words of OpenAI's API, where that
    /// is to be said.
    pub fn effort(&self) -> Option<&'static str> {
        if self.learned.effort_none && !self.request.tools.is_empty() {
            return Some("none");
        }
        self.options
            .reasoning_effort
            .filter(|_| !self.learned.no_effort)
    }
}

/// A request as it goes out.
pub struct EncodedRequest {
    /// What follows the base URL.
    pub path: &'static str,
    /// JSON.
    pub body: Vec<u8>,
}

/// A reply as it comes in.
pub struct Reading<'a, 'v> {
    /// Status 2xx; its body is unread.
    pub answer: &'a mut ClientResponse,
    /// Gets the text.
    pub reply_stream: ReplyStream<'v>,
    /// Whether the body is a stream.
    pub is_stream: bool,
    /// To be set when the person was given a part of the reply.
    pub heard: &'a mut bool,
    /// Where the server is.
    pub base_url: &'a str,
    /// The form in which was asked.
    pub learned: ServerCapabilities,
}

/// A kind of API: how requests are written and replies read.
pub trait Dialect: Send + Sync {
    /// Writes a request.
    fn write(&self, asking: &RequestContext<'_>) -> EncodedRequest;

    /// Reads a reply.
    fn read(&self, reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError>;

    /// The headers that carry the key, and others that every request needs.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }
}

/// `authorization: Bearer KEY`.
pub fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}")))
        .into_iter()
        .collect()
}

/// Why a try came to nothing, before it is known what to do about it.
pub enum AttemptError {
    /// The exchange failed.
    Client(ClientError),
    /// The server reported an error.
    Refused(Refusal),
    /// Not a reply: what is said of it, and the detail.
    Odd {
        /// Goes on after the server's name.
        says: &'static str,
        /// For the log.
        detail: String,
        /// Whether trying again may help.
        again: bool,
        /// Whether it is the server's fault.
        cause: Cause,
    },
}

impl From<ClientError> for AttemptError {
    fn from(error: ClientError) -> AttemptError {
        AttemptError::Client(error)
    }
}

impl AttemptError {
    /// What came is not JSON.
    pub fn not_json(error: &serde_json::Error, body: &[u8]) -> AttemptError {
        let beginning: String = String::from_utf8_lossy(body).chars().take(300).collect();
        AttemptError::Odd {
            says: "answered something that is not JSON",
            detail: format!("{error}: {beginning}"),
            again: false,
            cause: Cause::Away,
        }
    }

    /// What came is JSON, but no reply.
    pub fn no_reply(detail: &str) -> AttemptError {
        AttemptError::Odd {
            says: "answered without a reply in it",
            detail: detail.to_owned(),
            again: false,
            cause: Cause::Away,
        }
    }

    /// The stream ended before the reply did.
    pub fn cut_short(detail: &str) -> AttemptError {
        AttemptError::Odd {
            says: "cut the reply short",
            detail: detail.to_owned(),
            again: true,
            cause: Cause::Away,
        }
    }

    /// The provider keeps the reply to itself.
    pub fn withheld(detail: &str) -> AttemptError {
        AttemptError::Odd {
            says: "withheld the reply: its content filter took offence",
            detail: detail.to_owned(),
            again: false,
            cause: Cause::Request,
        }
    }
}

/// Whether a value reports an error.
pub fn has_error(value: &Value) -> bool {
    let value = value.get(0).unwrap_or(value);
    value.get("error").is_some_and(|error| !error.is_null())
}

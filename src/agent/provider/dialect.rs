//! What one kind of API writes and reads in its own way.

use serde_json::Value;

use super::reply_reader::ReplyParser;
use super::server_capabilities::ServerCapabilities;
use crate::model::ModelRequest;
use config::Quirks;

/// Settings that shape every request to a provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Tokens of the model's context window.
    pub context_tokens: Option<u32>,
    /// How hard the model thinks.
    pub reasoning_effort: Option<&'static str>,
}

/// What a request is written from.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    /// What to ask.
    pub request: &'a ModelRequest<'a>,
    /// Whose extra members go back with the request; see [`super::extra`].
    pub origin: &'a str,
    /// What the server accepts, as far as its errors have shown.
    pub capabilities: ServerCapabilities,
    /// What the configuration sets.
    pub options: Options,
    /// How the server differs from others.
    pub quirks: &'a Quirks,
}

impl RequestContext<'_> {
    /// The `reasoning_effort` to ask for, in the words of OpenAI's API; `None`
    /// leaves it out.
    pub fn effort(&self) -> Option<&'static str> {
        if self.capabilities.effort_none && !self.request.tools.is_empty() {
            return Some("none");
        }
        self.options
            .reasoning_effort
            .filter(|_| !self.capabilities.no_effort)
    }
}

/// A kind of API: how requests are written and replies parsed.
pub trait Dialect: Send + Sync {
    /// What follows the base URL in a request.
    fn path(&self, capabilities: ServerCapabilities) -> &'static str;

    /// The body of a request.
    fn body(&self, context: &RequestContext<'_>) -> Value;

    /// A parser for one reply to a request that was written for these
    /// capabilities.
    fn parser(&self, capabilities: ServerCapabilities) -> Box<dyn ReplyParser>;

    /// What follows the base URL in the origin of the extra members of a reply.
    /// Conversations on disk hold it: it must not change.
    fn origin_path(&self, capabilities: ServerCapabilities) -> &'static str {
        self.path(capabilities)
    }

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

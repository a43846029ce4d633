//! Anthropic's Messages API, and the servers that speak it (llama.cpp, Ollama).

mod reply;
mod request;

use super::dialect::{Dialect, RequestBody, RequestContext};
use super::reply_reader::ReplyParser;
use super::server_capabilities::ServerCapabilities;
use crate::model::client_options::SupportedOptions;
use base::secret::Secret;

/// The version of the API that every server knows, compatible ones included.
const VERSION: &str = "2023-06-01";

/// The Messages API.
pub struct Anthropic;

impl Dialect for Anthropic {
    fn path(&self, _: ServerCapabilities) -> &'static str {
        "/v1/messages"
    }

    fn body(&self, context: &RequestContext<'_>) -> RequestBody {
        request::body(context)
    }

    fn supported_options(&self, _: ServerCapabilities) -> SupportedOptions {
        SupportedOptions {
            stop: true,
            must_call: true,
            sampling: &["top_p", "top_k"],
            ..SupportedOptions::default()
        }
    }

    fn parser(&self, _: ServerCapabilities) -> Box<dyn ReplyParser> {
        Box::new(reply::MessagesReply::default())
    }

    fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, String)> {
        headers(key)
    }
}

/// The headers of every request.
pub fn headers(key: Option<&Secret>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    headers.extend(key.map(|key| ("x-api-key", key.expose().to_owned())));
    headers
}

#[cfg(test)]
mod tests;

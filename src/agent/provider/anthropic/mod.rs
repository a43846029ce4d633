//! Anthropic's Messages API, and the servers that speak it (llama.cpp, Ollama).

mod reply;
mod request;

use super::dialect::{Dialect, EncodedRequest, RequestContext};
use super::reply_reader::ReplyParser;
use super::server_capabilities::ServerCapabilities;

/// The version of the API that every server knows, compatible ones included.
const VERSION: &str = "2023-06-01";
const PATH: &str = "/v1/messages";

/// The Messages API.
pub struct Anthropic;

impl Dialect for Anthropic {
    fn encode(&self, context: &RequestContext<'_>) -> EncodedRequest {
        EncodedRequest {
            path: PATH,
            body: request::body(context).to_string().into_bytes(),
        }
    }

    fn parser(&self, _: ServerCapabilities) -> Box<dyn ReplyParser> {
        Box::new(reply::MessagesReply::default())
    }

    fn origin_path(&self, _: ServerCapabilities) -> &'static str {
        PATH
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        headers(key)
    }
}

/// The headers of every request.
pub fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
    headers
}

#[cfg(test)]
mod tests;

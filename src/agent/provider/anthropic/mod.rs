//! Anthropic's Messages API, and the servers that speak it (llama.cpp, Ollama).

mod reply;
mod request;

use super::dialect::{AttemptError, Dialect, EncodedRequest, Reading, RequestContext};
use crate::model::ModelReply;

/// The version of the API that every server knows, compatible ones included.
pub const VERSION: &str = "2023-06-01";

/// The Messages API.
pub struct Anthropic;

impl Dialect for Anthropic {
    fn write(&self, asking: &RequestContext<'_>) -> EncodedRequest {
        EncodedRequest {
            path: "/v1/messages",
            body: request::body(asking).to_string().into_bytes(),
        }
    }

    fn read(&self, reading: Reading<'_, '_>) -> Result<ModelReply, AttemptError> {
        if reading.is_stream {
            reply::read_stream(reading)
        } else {
            reply::read_whole(reading)
        }
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

/// Whose blocks may be sent back.
fn origin(base_url: &str) -> String {
    format!("{base_url}/v1/messages")
}

#[cfg(test)]
mod tests;

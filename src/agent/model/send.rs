//! The one way in which a model server is asked: for replies, vectors, speech and lists.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::dialect::bearer;
use super::endpoint::Endpoint;
use super::failure::{ErrorResponse, Failure};
use net::cancel::Cancel;
use net::http_client::{ClientRequest, ClientResponse};

/// Most bytes of an error that are read.
const ERROR_LIMIT: usize = 1024 * 1024;

/// A request to a model server; see [`Endpoint::request`].
pub struct ServerRequest<'a> {
    /// The whole address.
    pub url: String,
    /// Those that carry the key, and others of the server's API.
    pub headers: Vec<(&'static str, String)>,
    /// The media types of an answer.
    pub accept: &'a str,
    /// The media type of the body.
    pub media_type: &'a str,
    /// What is posted; without it, the request is a GET.
    pub body: Option<&'a [u8]>,
    /// How long the server may be silent before its answer.
    pub silence: Option<Duration>,
    /// When the answer must be read.
    pub deadline: Instant,
    /// Stops it.
    pub cancel: &'a Cancel,
}

impl Endpoint {
    /// A request for JSON at `path` below the base URL: with a body, it posts JSON.
    pub fn request<'a>(
        &self,
        path: &str,
        body: Option<&'a [u8]>,
        deadline: Instant,
        cancel: &'a Cancel,
    ) -> ServerRequest<'a> {
        ServerRequest {
            url: format!("{}{path}", self.base_url),
            headers: bearer(self.key()),
            accept: "application/json",
            media_type: "application/json",
            body,
            silence: None,
            deadline,
            cancel,
        }
    }

    /// Sends a request and lets `read` take what it wants of a successful answer.
    ///
    /// # Errors
    /// What the server reports, why there is no answer, or what `read` returns.
    pub fn send<T>(
        &self,
        request: &ServerRequest<'_>,
        read: impl FnOnce(&mut ClientResponse) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut headers = vec![("accept", request.accept)];
        headers.extend(request.body.map(|_| ("content-type", request.media_type)));
        headers.extend(
            request
                .headers
                .iter()
                .map(|(name, value)| (*name, &**value)),
        );
        let sent = ClientRequest {
            method: if request.body.is_some() {
                "POST"
            } else {
                "GET"
            },
            url: &request.url,
            headers: &headers,
            body: request.body,
            deadline: request.deadline,
            cancel: request.cancel,
        };
        let client = &self.http_client;
        client.exchange_within(&sent, request.silence, |answer| {
            if (200..300).contains(&answer.status()) {
                return read(answer);
            }
            let body = answer.read_all(ERROR_LIMIT).unwrap_or_default();
            Err(Failure::Reported(ErrorResponse::from_answer(answer, &body)))
        })
    }

    /// The JSON of a successful answer of at most so many bytes.
    ///
    /// # Errors
    /// As [`Endpoint::send`], and for a body that is not JSON.
    pub fn json(&self, request: &ServerRequest<'_>, most: usize) -> Result<Value, Failure> {
        let body = self.send(request, |answer| Ok(answer.read_all(most)?))?;
        serde_json::from_slice(&body).map_err(|error| Failure::not_json(&error, &body))
    }
}

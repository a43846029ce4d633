//! The one way in which a model server is asked: for replies, vectors, speech and lists.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::classify::{RequestKind, Retries, Verdict, classify};
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
            Err(Failure::Reported(Box::new(ErrorResponse::from_answer(
                answer, &body,
            ))))
        })
    }

    /// Sends a request, and again as long as that may help and there is time. For vectors nobody
    /// waits: words find memories, too.
    ///
    /// # Errors
    /// The last failure, and what can be done about it.
    pub fn ask<T>(
        &self,
        request: &ServerRequest<'_>,
        kind: RequestKind<'_>,
        mut read: impl FnMut(&mut ClientResponse) -> Result<T, Failure>,
    ) -> Result<T, (Failure, Verdict)> {
        let mut retries = Retries::default();
        loop {
            let failure = match self.send(request, &mut read) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let verdict = classify(&failure, kind);
            let most = match kind {
                RequestKind::Vectors { .. } => Duration::ZERO,
                _ => request.deadline.saturating_duration_since(Instant::now()),
            };
            match retries.next(verdict, failure.is_stale()) {
                Some(wait) if wait <= most && !request.cancel.is_cancelled() => {
                    request.cancel.wait(wait);
                }
                _ => return Err((failure, verdict)),
            }
        }
    }

    /// Sends a request once for the JSON of a successful answer.
    ///
    /// # Errors
    /// As [`Endpoint::send`], and for a body that is not JSON.
    pub fn json(&self, request: &ServerRequest<'_>, most: usize) -> Result<Value, Failure> {
        self.send(request, |answer| read_json(answer, most))
    }
}

/// The JSON of an answer of at most so many bytes.
///
/// # Errors
/// Why it was not read, or that it is not JSON.
pub fn read_json(answer: &mut ClientResponse, most: usize) -> Result<Value, Failure> {
    let body = answer.read_all(most)?;
    serde_json::from_slice(&body).map_err(|error| Failure::not_json(&error, &body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::http_client::test_server::{TestServer, json as answer};
    use serde_json::json;

    #[test]
    fn what_people_wait_for_is_asked_for_again() {
        let vectors = RequestKind::Vectors { has_length: false };
        for (kind, is_answered) in [(RequestKind::Speech, true), (vectors, false)] {
            let busy = answer(503, &json!({"error": {"message": "loading"}}));
            let server = TestServer::new(vec![busy, answer(200, &json!({"text": "hi"}))]);
            let endpoint = Endpoint::new("S", &format!("http://{}", server.address), None);
            let (deadline, cancel) = (Instant::now() + Duration::from_secs(60), Cancel::default());
            let request = endpoint.request("/x", Some(b"{}"), deadline, &cancel);
            let said = endpoint.ask(&request, kind, |answer| read_json(answer, 1_000));
            assert_eq!(said.is_ok(), is_answered);
            assert_eq!(server.heard().len(), 1 + usize::from(is_answered));
        }
    }
}

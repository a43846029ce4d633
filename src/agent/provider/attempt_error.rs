//! Why an attempt to get a reply failed, and whether to try again.

use super::endpoint::Endpoint;
use super::error_response::ErrorResponse;
use super::retry::{Retry, RetryDecision};
use crate::model::Cause;
use net::http_client::ClientError;

/// Most characters of an unreadable body that the log quotes.
const EXCERPT: usize = 300;

/// Why one attempt failed.
pub enum AttemptError {
    /// The exchange failed.
    Client(ClientError),
    /// The server reported an error.
    Reported(ErrorResponse),
    /// The server answered with something that cannot be used.
    Unusable {
        /// Continues the sentence that begins with the server's name.
        says: &'static str,
        /// For the log.
        detail: String,
        /// Whether another attempt may succeed.
        retry: Retry,
        /// Whether the server or the request is to blame.
        cause: Cause,
    },
}

impl From<ClientError> for AttemptError {
    fn from(error: ClientError) -> AttemptError {
        AttemptError::Client(error)
    }
}

impl AttemptError {
    /// The body is not JSON.
    pub fn not_json(error: &serde_json::Error, body: &[u8]) -> AttemptError {
        let beginning: String = String::from_utf8_lossy(body)
            .chars()
            .take(EXCERPT)
            .collect();
        AttemptError::Unusable {
            says: "answered something that is not JSON",
            detail: format!("{error}: {beginning}"),
            retry: Retry::Never,
            cause: Cause::Server,
        }
    }

    /// The body is JSON, but holds no reply.
    pub fn no_reply() -> AttemptError {
        AttemptError::Unusable {
            says: "answered without a reply in it",
            detail: "the JSON has not the form of a reply".to_owned(),
            retry: Retry::Never,
            cause: Cause::Server,
        }
    }

    /// The stream ended before the reply did.
    pub fn cut_short() -> AttemptError {
        AttemptError::Unusable {
            says: "cut the reply short",
            detail: "the stream ended before it said that the reply is complete".to_owned(),
            retry: Retry::Backoff,
            cause: Cause::Server,
        }
    }

    /// The provider's content filter withheld the reply, for this finish reason.
    pub fn withheld(reason: &str) -> AttemptError {
        AttemptError::Unusable {
            says: "withheld the reply because of its content filter",
            detail: reason.to_owned(),
            retry: Retry::Never,
            cause: Cause::Request,
        }
    }

    /// The error to report for a request to `model`, and whether to try again.
    /// `answered` says whether the head of a successful reply had arrived.
    pub fn into_decision(self, endpoint: &Endpoint, model: &str, answered: bool) -> RetryDecision {
        match self {
            AttemptError::Client(error @ ClientError::Interrupted { .. }) if answered => {
                RetryDecision {
                    error: endpoint.failed("cut the reply short", error, Cause::Server),
                    retry: Retry::Backoff,
                }
            }
            AttemptError::Client(error) => RetryDecision {
                error: endpoint.unanswered(&error, answered),
                retry: match error {
                    ClientError::Interrupted { stale: true, .. } => Retry::Now,
                    ClientError::Interrupted { .. }
                    | ClientError::Unreachable(_)
                    | ClientError::Refused(_)
                    | ClientError::Exhausted => Retry::Backoff,
                    _ => Retry::Never,
                },
            },
            AttemptError::Unusable {
                says,
                detail,
                retry,
                cause,
            } => RetryDecision {
                error: endpoint.failed(says, detail, cause),
                retry,
            },
            AttemptError::Reported(response) => response.into_decision(endpoint, model),
        }
    }
}

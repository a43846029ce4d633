//! One finished HTTP request and its response, as the router sees them.

use std::borrow::Cow;

use super::dialogue::OpenDialogue;
use crate::error::{Error, Result};
use crate::protocol::envelope;
use crate::service::peer::Peer;

/// A request's line and headers.
#[derive(Clone, Debug)]
pub struct Head {
    /// In capitals, as sent.
    pub method: String,
    /// The path, without the query, not decoded.
    pub path: String,
    /// What follows the `?`, if any.
    pub query: Option<String>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Where it comes from (behind trusted proxies).
    pub peer: Peer,
}

impl Head {
    /// The first header of this name (given in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A complete request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Request line and headers.
    pub head: Head,
    /// Whole, and within the limit for its path; empty when there was none.
    pub body: Vec<u8>,
}

/// What is sent back. `Content-Length`, `Date` and `Connection` are added on
/// the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// In the order in which they are sent.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// Left out on the wire, but counted, when the request was a HEAD.
    pub body: Cow<'static, [u8]>,
}

impl Response {
    /// A JSON text.
    pub fn json(status: u16, text: String) -> Response {
        Response {
            status,
            headers: vec![
                ("Content-Type", Cow::Borrowed("application/json")),
                ("X-Content-Type-Options", Cow::Borrowed("nosniff")),
            ],
            body: Cow::Owned(text.into_bytes()),
        }
    }

    /// The error envelope, with `Retry-After` where the error says when.
    pub fn error(error: &Error) -> Response {
        let mut response = Response::json(error.status(), envelope::failure(None, error));
        if let Some(seconds) = error.retry_after() {
            response
                .headers
                .push(("Retry-After", Cow::Owned(seconds.to_string())));
        }
        response
    }
}

/// The header of a response whose sender must know whether it arrived: its
/// value is what [`Handler::sent`] is told with.
pub const RECEIPT: &str = "webhook-id";

/// What answers HTTP requests: the rooms above the gate.
pub trait Handler: Send + Sync {
    /// Looks at a head before its body is read: refuses it (unknown path,
    /// wrong method, wrong origin), or says how many bytes its body may have.
    fn admit(&self, head: &Head) -> Result<usize, Response>;

    /// Looks at the head of a WebSocket upgrade to /ws, and refuses it or says
    /// whom it leads to: none is the service.
    fn admit_upgrade(&self, head: &Head) -> Result<Option<OpenDialogue>, Response>;

    /// Answers a complete request. May block; each connection has its thread.
    fn handle(&self, request: &Request) -> Response;

    /// Learns what became of a response with a [`RECEIPT`] header of this
    /// value: whether it was written whole to a client that was still there.
    fn sent(&self, receipt: &str, reached: bool) {
        let _ = (receipt, reached);
    }
}

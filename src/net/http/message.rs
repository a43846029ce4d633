//! HTTP requests and responses.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::peer::Peer;
use crate::wait::Waker;
use base::error::{Error, Result};
use protocol::envelope;
use serde_json::Value;

/// A request's line and headers.
#[derive(Clone, Debug)]
pub struct Head {
    /// As sent; methods are case-sensitive.
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
pub struct Request {
    /// Request line and headers.
    pub head: Head,
    /// Complete, and within the limit for its path; empty when there was none.
    pub body: Vec<u8>,
    /// The waker of the deferred response before it on this connection, to be used again: a
    /// new one takes a descriptor.
    pub waker: Option<Arc<Waker>>,
}

/// What is sent back. `Content-Length`, `Date` and `Connection` are added on
/// the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// In the order in which they are sent.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// Not sent for a HEAD request, but counted in `Content-Length`.
    pub body: Cow<'static, [u8]>,
}

impl Response {
    /// A JSON response.
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

    /// A response without headers and body.
    pub fn empty(status: u16) -> Response {
        Response {
            status,
            headers: Vec::new(),
            body: Cow::Borrowed(b""),
        }
    }

    /// Adds a header.
    pub fn add(&mut self, name: &'static str, value: impl Into<Cow<'static, str>>) {
        self.headers.push((name, value.into()));
    }

    /// The error envelope, with `Retry-After` if the error has one.
    pub fn error(error: &Error) -> Response {
        let mut response = Response::json(error.status(), envelope::failure(None, error));
        if let Some(seconds) = error.retry_after() {
            response.add("Retry-After", seconds.to_string());
        }
        response
    }

    /// The response to a request that failed, with this body in place of Hearth's own.
    pub fn error_in(error: &Error, body: &Value) -> Response {
        let mut response = Response::error(error);
        response.body = Cow::Owned(body.to_string().into_bytes());
        response
    }
}

/// The answer to a request.
pub enum Answer {
    /// The response.
    Now(Response),
    /// The response, and a function that learns whether the whole response was
    /// written to a client that was still connected.
    Confirmed(Response, Box<dyn FnOnce(bool)>),
    /// A response that is not complete yet.
    Deferred(Box<dyn DeferredResponse>),
    /// A response whose body is produced piece by piece, so that it is never in memory
    /// as a whole; its own body is ignored. It has this many bytes, and an empty piece
    /// before the end closes the connection; or an empty piece is the end. An error
    /// closes the connection.
    Pieces(Response, Option<u64>, Box<dyn FnMut() -> Result<Vec<u8>>>),
}

impl Answer {
    /// Changes the response, unless it is deferred.
    pub fn map(self, change: impl FnOnce(Response) -> Response) -> Answer {
        match self {
            Answer::Now(response) => Answer::Now(change(response)),
            Answer::Confirmed(response, confirm) => Answer::Confirmed(change(response), confirm),
            Answer::Deferred(deferred_response) => Answer::Deferred(deferred_response),
            Answer::Pieces(response, length, next) => {
                Answer::Pieces(change(response), length, next)
            }
        }
    }
}

/// A response that is produced over time, such as a streamed one. The
/// connection's thread waits for it and for the client at once, and drops it when
/// the client disconnects.
pub trait DeferredResponse {
    /// Wakes the thread whenever [`DeferredResponse::advance`] may have more; none where
    /// that never has to wait.
    fn waker(&self) -> Option<&Arc<Waker>>;

    /// The next part. Does not block.
    fn advance(&mut self) -> ResponsePart;
}

/// A part of an [`DeferredResponse`] response.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponsePart {
    /// Nothing yet. Ask again when woken, and at this time at the latest.
    Wait(Instant),
    /// The whole response. Only as the first part.
    Whole(Response),
    /// Status and headers; the body follows in pieces, with so many bytes if that is
    /// known, and the response's own body is ignored. Only as the first part.
    Head(Response, Option<u64>),
    /// A piece of the body, after the head.
    Piece(Vec<u8>),
    /// The body is complete.
    End,
    /// The response cannot be completed. The connection is closed, so that the
    /// client notices that something is missing.
    Broken,
}

//! HTTP requests, responses and the handler that answers them.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::body::{BodyError, RequestBody};
use crate::client_handler::HandlerFactory;
use crate::peer::Peer;
use crate::wait::Waker;
use base::error::{Error, Result};
use protocol::envelope;

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
#[derive(Clone, Debug)]
pub struct Request {
    /// Request line and headers.
    pub head: Head,
    /// Complete, and within the limit for its path; empty when there was none.
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
    /// A response whose body of this many bytes is produced piece by piece, so that
    /// it is never in memory as a whole; its own body is ignored. An empty piece or
    /// an error before the end closes the connection.
    Pieces(Response, u64, Box<dyn FnMut() -> Result<Vec<u8>>>),
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
pub trait DeferredResponse: Send {
    /// Wakes the thread whenever [`DeferredResponse::advance`] may have more.
    fn waker(&self) -> &Waker;

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
    /// Status and headers; the body follows in pieces and the response's own body
    /// is ignored. Only as the first part.
    Head(Response),
    /// A piece of the body, after the head.
    Piece(Vec<u8>),
    /// The body is complete.
    End,
    /// The response cannot be completed. The connection is closed, so that the
    /// client notices that something is missing.
    Broken,
}

/// A request whose head was accepted. It holds what the answer needs: the route,
/// the current configuration, the account.
pub struct Admitted<'a> {
    /// Largest size of the body, in bytes.
    pub body_bytes: usize,
    pub(super) handling: Handling<'a>,
}

/// How the body of a request is read.
pub(super) enum Handling<'a> {
    /// At once, before the request is answered.
    Whole(Box<dyn FnOnce(&Request) -> Answer + 'a>),
    /// By the handler, as it arrives, within this time.
    Streamed(Duration, Box<StreamHandler<'a>>),
}

type StreamHandler<'a> = dyn FnOnce(&Head, &mut RequestBody<'_>) -> Result<Answer, BodyError> + 'a;

impl<'a> Admitted<'a> {
    /// Accepts a body of at most `body_bytes`. `respond` answers the complete
    /// request; it may block, because each connection has its own thread.
    pub fn new(body_bytes: usize, respond: impl FnOnce(&Request) -> Answer + 'a) -> Admitted<'a> {
        Admitted {
            body_bytes,
            handling: Handling::Whole(Box::new(respond)),
        }
    }

    /// Accepts a body of at most `body_bytes` that must arrive within `time`.
    /// `respond` reads it piece by piece. If it returns an error, the client gets
    /// that and the connection is closed.
    pub fn streamed(
        body_bytes: usize,
        time: Duration,
        respond: impl FnOnce(&Head, &mut RequestBody<'_>) -> Result<Answer, BodyError> + 'a,
    ) -> Admitted<'a> {
        Admitted {
            body_bytes,
            handling: Handling::Streamed(time, Box::new(respond)),
        }
    }

    /// Changes the response, unless it is deferred.
    pub fn map(self, change: impl FnOnce(&Head, Response) -> Response + 'a) -> Admitted<'a> {
        let handling = match self.handling {
            Handling::Whole(respond) => Handling::Whole(Box::new(move |request: &Request| {
                respond(request).map(|response| change(&request.head, response))
            })),
            Handling::Streamed(time, respond) => Handling::Streamed(
                time,
                Box::new(move |head: &Head, body: &mut RequestBody<'_>| {
                    Ok(respond(head, body)?.map(|response| change(head, response)))
                }),
            ),
        };
        Admitted { handling, ..self }
    }
}

/// Answers HTTP requests.
pub trait Handler: Send + Sync {
    /// Checks a head before its body is read.
    ///
    /// # Errors
    /// The response that refuses it (unknown path, wrong method, wrong origin).
    fn admit(&self, head: &Head) -> Result<Admitted<'_>, Response>;

    /// Checks the head of a WebSocket upgrade to /ws. Returns the factory for the
    /// WebSocket's handler; with None the listener's own is used.
    ///
    /// # Errors
    /// The response that refuses it.
    fn admit_upgrade(&self, head: &Head) -> Result<Option<HandlerFactory>, Response>;
}

//! HTTP requests and responses, and what answers them.

use std::borrow::Cow;
use std::time::Instant;

use crate::client_handler::HandlerFactory;
use crate::peer::Peer;
use crate::wait::Waker;
use base::error::{Error, Result};
use protocol::envelope;

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

/// The answer to a request.
pub enum Answer {
    /// The response.
    Now(Response),
    /// The response, and what is called with whether it was written whole to a
    /// client that was still there.
    Confirmed(Response, Box<dyn FnOnce(bool)>),
    /// A response whose beginning or end is not there yet.
    Later(Box<dyn Unfinished>),
}

impl Answer {
    /// Changes the response, unless it comes later.
    pub fn map(self, change: impl FnOnce(Response) -> Response) -> Answer {
        match self {
            Answer::Now(response) => Answer::Now(change(response)),
            Answer::Confirmed(response, confirm) => Answer::Confirmed(change(response), confirm),
            Answer::Later(unfinished) => Answer::Later(unfinished),
        }
    }
}

/// A response that comes as something else goes on. The connection's thread
/// waits for it and for the client at once; when the client goes away, it is
/// dropped.
pub trait Unfinished: Send {
    /// Is used whenever [`Unfinished::advance`] may have more.
    fn waker(&self) -> &Waker;

    /// The next part. Does not block.
    fn advance(&mut self) -> Part;
}

/// A part of an [`Unfinished`] response.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// There is nothing yet: to be asked again when the waker was used, and at
    /// this time in any case.
    Wait(Instant),
    /// All of it. Only as the first part.
    Whole(Response),
    /// Status and headers; the body follows in pieces. Only as the first part,
    /// and its own body is left out.
    Head(Response),
    /// A piece of the body, after the head.
    Piece(Vec<u8>),
    /// The body is complete.
    End,
    /// It cannot be completed: the connection is closed so that the client sees
    /// that something is missing.
    Broken,
}

/// A request whose head was accepted. It holds what was found out on the way, such
/// as the route, the configuration in force and the account, for the answer.
pub struct Admitted<'a> {
    /// Most bytes that the body may have.
    pub body_bytes: usize,
    respond: Box<dyn FnOnce(&Request) -> Answer + 'a>,
}

impl<'a> Admitted<'a> {
    /// Accepts a body of at most `body_bytes`, and answers the whole request by
    /// `respond`, which may block: each connection has its thread.
    pub fn new(body_bytes: usize, respond: impl FnOnce(&Request) -> Answer + 'a) -> Admitted<'a> {
        Admitted {
            body_bytes,
            respond: Box::new(respond),
        }
    }

    /// Answers the request, whose body is complete.
    pub fn respond(self, request: &Request) -> Answer {
        (self.respond)(request)
    }
}

/// Answers HTTP requests.
pub trait Handler: Send + Sync {
    /// Looks at a head before its body is read.
    ///
    /// # Errors
    /// The response that refuses it (unknown path, wrong method, wrong origin).
    fn admit(&self, head: &Head) -> Result<Admitted<'_>, Response>;

    /// Looks at the head of a WebSocket upgrade to /ws. Returns what handles the
    /// WebSocket; none is the service's session.
    ///
    /// # Errors
    /// The response that refuses it.
    fn admit_upgrade(&self, head: &Head) -> Result<Option<HandlerFactory>, Response>;
}

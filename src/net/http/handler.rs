//! Handlers: they accept requests by their heads, and answer them.

use std::time::Duration;

use super::body::{BodyError, RequestBody};
use super::message::{Answer, Head, Request, Response};
use crate::client_handler::HandlerFactory;
use base::error::{Error, Result};

/// A request whose head was accepted. It holds what the answer needs: the route,
/// the current configuration, the account.
pub struct Admitted<'a> {
    /// Largest size of the body, in bytes.
    pub body_bytes: usize,
    pub(super) handling: Handling<'a>,
    pub(super) refusal: Refusal,
    /// A header of that refusal.
    pub(super) named: Option<(&'static str, String)>,
}

/// Makes the response that refuses a request, in the form that its client knows.
pub type Refusal = fn(&Error) -> Response;

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
            refusal: Response::error,
            named: None,
        }
    }

    /// Accepts a body of at most `body_bytes` that must arrive within `time`
    /// and may stand still for `limits.body_seconds`. `respond` reads it piece by piece. If it returns an error, the client gets
    /// that and the connection is closed.
    pub fn streamed(
        body_bytes: usize,
        time: Duration,
        respond: impl FnOnce(&Head, &mut RequestBody<'_>) -> Result<Answer, BodyError> + 'a,
    ) -> Admitted<'a> {
        Admitted {
            body_bytes,
            handling: Handling::Streamed(time, Box::new(respond)),
            refusal: Response::error,
            named: None,
        }
    }

    /// Refuses a body that cannot be read in this form, instead of the error envelope, and
    /// with this header.
    pub fn refusing_as(
        self,
        refusal: Refusal,
        named: Option<(&'static str, String)>,
    ) -> Admitted<'a> {
        Admitted {
            refusal,
            named,
            ..self
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

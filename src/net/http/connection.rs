//! One HTTP/1.1 connection: reads requests strictly, one after the other, and
//! hands each to the [`Handler`](super::handler::Handler) when it is whole.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::body::{self, BodyError, RequestBody};
use super::deferred::{self, Pieces};
use super::forwarded;
use super::handler::{Admitted, Handling};
use super::head::{Framing, HeadLimits, ParsedHead, parse};
use super::message::{Answer, Head, Request, Response};
use super::response_writer::{Persistence, Responder};
use crate::connection::admission::Transport;
use crate::connection::registry::Registered;
use crate::connection::{Connection, ConnectionIo, seconds};
use crate::inbox::Inbox;
use crate::peer::{AddressKey, Peer};
use crate::stream::{ReadTimeout, Stream, linger};
use crate::wait::Waker;
use crate::websocket::handshake;
use base::error::Error;

/// A connection that was upgraded to a WebSocket.
pub struct Upgrade {
    pub io: ConnectionIo,
    pub peer: Peer,
    /// What the client sent after its request.
    pub rest: Vec<u8>,
}

/// One HTTP/1.1 connection.
pub struct HttpConnection<'a> {
    connection: &'a mut Connection,
    stream: &'a mut dyn Stream,
    registered: &'a Registered,
    inbox: Inbox,
    responder: Responder,
    /// Whether the stream's idle time is set; a connection of one request
    /// needs none.
    has_idle_time: bool,
    /// Of the newest deferred response.
    waker: Option<Arc<Waker>>,
}

/// The outcome of waiting for a request.
enum Arrival {
    Request(ParsedHead),
    /// Malformed, too large or too slow.
    Refused(Error),
    /// The client disconnected or was idle for too long.
    Nothing,
}

/// Why a read brought nothing.
enum NoInput {
    /// The request has begun but did not arrive in time.
    Late,
    /// The client disconnected or was idle for too long.
    Ended,
}

/// What becomes of the connection after a response.
#[derive(PartialEq, Eq)]
enum AfterResponse {
    Keep,
    Close,
}

impl<'a> HttpConnection<'a> {
    /// A connection that has already received `inbox`.
    pub fn new(
        connection: &'a mut Connection,
        stream: &'a mut dyn Stream,
        registered: &'a Registered,
        inbox: Inbox,
    ) -> HttpConnection<'a> {
        HttpConnection {
            connection,
            stream,
            registered,
            inbox,
            responder: Responder::default(),
            has_idle_time: false,
            waker: None,
        }
    }

    /// Serves requests until the connection ends or becomes a WebSocket.
    pub fn serve(mut self) -> Option<Upgrade> {
        loop {
            self.connection.admission.awaits_request();
            let mut parsed = match self.await_request() {
                Arrival::Request(parsed) => parsed,
                Arrival::Refused(error) => {
                    // The head is still unread.
                    let is_head = self.inbox.unread().starts_with(b"HEAD ");
                    self.refuse(&error, is_head);
                    return None;
                }
                Arrival::Nothing => return None,
            };
            self.connection.received += 1;
            let is_head = parsed.is_head;
            if let Err(error) = self.identify_peer(&mut parsed) {
                self.refuse(&error, is_head);
                return None;
            }
            if self.connection.policy.upgrades && handshake::is_upgrade(&parsed.head) {
                return match self.upgrade(parsed) {
                    Ok(upgrade) => Some(upgrade),
                    Err(response) => {
                        self.reject(&response, is_head);
                        None
                    }
                };
            }
            self.connection.admission.end_unauthenticated();
            if self.answer(parsed) == AfterResponse::Close {
                return None;
            }
        }
    }

    /// Waits for the next request's head. Its deadline begins with its first
    /// byte and cannot be extended.
    fn await_request(&mut self) -> Arrival {
        let limits = HeadLimits {
            bytes: self.connection.limits().head_bytes,
            count: self.connection.limits().head_count,
        };
        let mut deadline = None;
        // Bytes that were already parsed. Parsing again for every byte of a slow
        // head would let a client waste our time.
        let mut seen = 0;
        let mut may_skip_line = true;
        loop {
            // RFC 9112 section 2.2: one empty line before a request is ignored.
            if may_skip_line && self.inbox.unread().starts_with(b"\r\n") {
                self.inbox.consume(2);
                may_skip_line = false;
            }
            let unread = self.inbox.unread();
            if unread.len() >= limits.bytes || unread[seen.min(unread.len())..].contains(&b'\n') {
                match parse(unread, limits, self.connection.socket_peer()) {
                    Ok(Some((parsed, length))) => {
                        self.inbox.consume(length);
                        return Arrival::Request(parsed);
                    }
                    Ok(None) => seen = unread.len(),
                    Err(error) => return Arrival::Refused(error),
                }
            }
            let has_begun = !unread.is_empty();
            match self.read_more(has_begun, &mut deadline) {
                Ok(()) => {}
                Err(NoInput::Late) => {
                    return Arrival::Refused(
                        Error::invalid_request("the request's head did not arrive in time")
                            .with_status(408),
                    );
                }
                Err(NoInput::Ended) => return Arrival::Nothing,
            }
        }
    }

    fn read_more(
        &mut self,
        has_begun: bool,
        deadline: &mut Option<Instant>,
    ) -> Result<(), NoInput> {
        if has_begun {
            let time = seconds(self.connection.limits().head_seconds);
            let deadline = deadline.get_or_insert_with(|| Instant::now() + time);
            self.stream.set_read_timeout(ReadTimeout::Until(*deadline));
        } else {
            if !self.has_idle_time {
                let time = seconds(self.connection.limits().idle_seconds);
                if self.stream.set_idle_time(time).is_err() {
                    return Err(NoInput::Ended);
                }
                self.has_idle_time = true;
            }
            self.stream.set_read_timeout(ReadTimeout::Idle);
        }
        match self.inbox.fill(self.stream) {
            Ok(1..) => Ok(()),
            Err(error) if has_begun && error.kind() == io::ErrorKind::TimedOut => {
                Err(NoInput::Late)
            }
            Ok(0) | Err(_) => Err(NoInput::Ended),
        }
    }

    /// Finds the client behind a trusted proxy and checks that it may connect.
    fn identify_peer(&self, parsed: &mut ParsedHead) -> Result<(), Error> {
        if !self.connection.is_proxied() {
            forwarded::forget(&mut parsed.head);
            return Ok(());
        }
        let proxy = self.connection.socket_peer();
        let trusted = &self.connection.config.trusted_proxies;
        let peer = forwarded::client(&parsed.head, proxy, trusted);
        self.connection.policy.admit(peer.address)?;
        parsed.head.peer = peer;
        Ok(())
    }

    /// Answers a request other than an upgrade.
    fn answer(&mut self, parsed: ParsedHead) -> AfterResponse {
        let handler = Arc::clone(&self.connection.policy.handler);
        let ParsedHead {
            head,
            framing,
            is_head,
            is_current,
            keep_alive,
            expects_continue,
        } = parsed;
        let keep_alive = keep_alive && !self.registered.is_stopping();
        let persistence = match (keep_alive, is_current) {
            (true, true) => Persistence::Usual,
            (true, false) => Persistence::KeepAlive,
            (false, _) => Persistence::Close,
        };
        let has_body = framing != Framing::Length(0);
        let admitted = match head.path.as_str() {
            // OPTIONS for the whole server, which serves as a ping (RFC 9110 section 9.3.7).
            "*" => Ok(Admitted::new(0, |_| Answer::Now(Response::empty(204)))),
            _ => handler.admit(&head),
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            // The body stays unread, so the next request cannot be found.
            Err(response) if has_body => return self.reject(&response, is_head),
            Err(response) => return self.respond(&response, is_head, persistence),
        };
        let expects_continue = expects_continue && has_body;
        let (refusal, named) = (admitted.refusal, admitted.named.clone());
        match self.handle(admitted, head, framing, expects_continue) {
            Ok((answer, true)) => self.send(answer, is_head, is_current, persistence),
            Ok((answer, false)) => {
                // Behind a body that was not read the next request cannot be found.
                self.send(answer, is_head, is_current, Persistence::Close);
                linger(self.stream);
                AfterResponse::Close
            }
            Err(BodyError::Refused(error)) if !self.registered.is_stopping() => {
                let mut response = refusal(&error);
                if let Some((name, value)) = named {
                    response.add(name, value);
                }
                self.reject(&response, is_head)
            }
            // A listener that stops ends the input of its connections.
            Err(_) => AfterResponse::Close,
        }
    }

    /// Reads the body, or lets the handler do so, and has the request answered. Also
    /// returns whether the body was read to its end.
    fn handle(
        &mut self,
        admitted: Admitted<'_>,
        head: Head,
        framing: Framing,
        expects_continue: bool,
    ) -> Result<(Answer, bool), BodyError> {
        let limit = admitted.body_bytes;
        body::check_length(framing, limit)?;
        // A client that did not wait needs no permission (RFC 9110 section 10.1.1).
        if expects_continue && self.inbox.unread().is_empty() {
            self.stream
                .set_write_deadline(self.connection.write_deadline());
            self.stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .map_err(|_| BodyError::Lost)?;
        }
        let idle_time = seconds(self.connection.limits().body_seconds);
        let time = match &admitted.handling {
            Handling::Whole(_) => idle_time,
            Handling::Streamed(time, _) => *time,
        };
        let deadline = Instant::now() + time;
        let (inbox, stream) = (&mut self.inbox, &mut *self.stream);
        let mut body = RequestBody::new(framing, limit, deadline, idle_time, inbox, stream);
        let mut request = Request {
            head,
            body: Vec::new(),
            waker: self.waker.take(),
        };
        let admission = &self.connection.admission;
        let result = catch_unwind(AssertUnwindSafe(|| match admitted.handling {
            Handling::Whole(respond) => {
                admission.awaits_request();
                request.body = body.read_all()?;
                admission.has_request();
                Ok(respond(&request))
            }
            Handling::Streamed(_, respond) => respond(&request.head, &mut body),
        }));
        let answer = result.unwrap_or_else(|_| {
            let Head { method, path, .. } = &request.head;
            let place = format_args!("a panic at {method} {path}");
            Err(Error::server("the request could not be answered", place).into())
        })?;
        Ok((answer, body.is_read()))
    }

    /// Sends an answer.
    fn send(
        &mut self,
        answer: Answer,
        is_head: bool,
        is_current: bool,
        persistence: Persistence,
    ) -> AfterResponse {
        let deferred_response = match answer {
            Answer::Now(response) => return self.respond(&response, is_head, persistence),
            Answer::Confirmed(response, confirm) => {
                let is_there = !self.stream.has_left();
                let written = self.write(&response, is_head, persistence);
                confirm(is_there && written.is_ok());
                return self.after_response(written, persistence);
            }
            Answer::Deferred(deferred_response) => deferred_response,
            Answer::Pieces(response, length, next) => Box::new(Pieces {
                head: Some((response, length)),
                next,
            }),
        };
        let framing = deferred::Framing {
            is_head,
            is_current,
            persistence,
        };
        self.waker = deferred_response.waker().cloned();
        let written = catch_unwind(AssertUnwindSafe(|| {
            let (connection, responder) = (&*self.connection, &mut self.responder);
            deferred::send(
                deferred_response,
                framing,
                connection,
                responder,
                self.stream,
            )
        }));
        match written {
            Ok(Ok(persistence)) => self.after_response(Ok(()), persistence),
            // The response has begun, so no error can be sent.
            Ok(Err(_)) | Err(_) => AfterResponse::Close,
        }
    }

    /// Upgrades the connection to a WebSocket, or returns the response that refuses
    /// it.
    fn upgrade(&mut self, parsed: ParsedHead) -> Result<Upgrade, Response> {
        let response = handshake::check(&parsed)?;
        let head = parsed.head;
        let factory = self.connection.policy.handler.admit_upgrade(&head)?;

        let config = Arc::clone(&self.connection.config);
        let admission = &mut self.connection.admission;
        let key = AddressKey::of(head.peer.address);
        admission
            .belong_to(key, &config.limits)
            .and_then(|()| admission.begin_unauthenticated(&config.limits))
            .map_err(|error| Response::error(&error))?;
        admission.speaks(Transport::WebSocket);

        let unavailable = |error: io::Error| {
            log::warn!(peer:% = head.peer.place(); "no WebSocket for {}: {error}", head.peer);
            Response::error(&Error::overloaded("the server has no descriptor left", 5))
        };
        let Some(open) = factory
            .as_ref()
            .or(self.connection.policy.sessions.as_ref())
        else {
            return Err(Response::error(&Error::not_found("no WebSocket here")));
        };
        let io = ConnectionIo::open(self.connection, self.registered, open, head.peer.clone())
            .map_err(unavailable)?;
        self.stream
            .set_write_deadline(self.connection.write_deadline());
        self.responder
            .write_upgrade(&response, self.stream)
            .map_err(unavailable)?;
        Ok(Upgrade {
            io,
            peer: head.peer,
            rest: std::mem::take(&mut self.inbox).into_unread(),
        })
    }

    fn respond(
        &mut self,
        response: &Response,
        is_head: bool,
        persistence: Persistence,
    ) -> AfterResponse {
        let written = self.write(response, is_head, persistence);
        self.after_response(written, persistence)
    }

    fn write(
        &mut self,
        response: &Response,
        is_head: bool,
        persistence: Persistence,
    ) -> io::Result<()> {
        self.stream
            .set_write_deadline(self.connection.write_deadline());
        self.responder
            .write(response, is_head, persistence, self.stream)
    }

    fn after_response(
        &mut self,
        written: io::Result<()>,
        persistence: Persistence,
    ) -> AfterResponse {
        if written.is_ok() && persistence != Persistence::Close {
            return AfterResponse::Keep;
        }
        if written.is_ok() && !self.inbox.unread().is_empty() {
            // The client sent more requests; see `linger`.
            linger(self.stream);
        }
        AfterResponse::Close
    }

    /// Answers a request that was not read to its end, and closes the connection
    /// in a way that lets the client read the answer.
    fn reject(&mut self, response: &Response, is_head: bool) -> AfterResponse {
        self.respond(response, is_head, Persistence::Close);
        linger(self.stream);
        AfterResponse::Close
    }

    fn refuse(&mut self, error: &Error, is_head: bool) -> AfterResponse {
        self.reject(&Response::error(error), is_head)
    }
}

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
use super::head::{Framing, ParsedHead, parse};
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
    /// How the response to the newest request is framed. What it says of the connection
    /// holds once that is sent.
    framing: deferred::Framing,
    /// Of the newest deferred response.
    waker: Option<Arc<Waker>>,
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
            framing: deferred::Framing {
                is_head: false,
                is_current: true,
                persistence: Persistence::Close,
            },
            waker: None,
        }
    }

    /// Serves requests until the connection ends or becomes a WebSocket.
    pub fn serve(mut self) -> Option<Upgrade> {
        loop {
            self.connection.admission.awaits_request();
            let mut parsed = match self.await_request() {
                Ok(Some(parsed)) => parsed,
                Ok(None) => return None,
                Err(error) => {
                    // The head is still unread.
                    self.framing.is_head = self.inbox.unread().starts_with(b"HEAD ");
                    self.reject(&Response::error(&error));
                    return None;
                }
            };
            self.connection.received += 1;
            let keep_alive = parsed.keep_alive && !self.registered.is_stopping();
            self.framing = deferred::Framing {
                is_head: parsed.is_head,
                is_current: parsed.is_current,
                persistence: match (keep_alive, parsed.is_current) {
                    (true, true) => Persistence::Usual,
                    (true, false) => Persistence::KeepAlive,
                    (false, _) => Persistence::Close,
                },
            };
            if let Err(error) = self.identify_peer(&mut parsed) {
                self.reject(&Response::error(&error));
                return None;
            }
            if self.connection.policy.upgrades && handshake::is_upgrade(&parsed.head) {
                return match self.upgrade(parsed) {
                    Ok(upgrade) => Some(upgrade),
                    Err(response) => {
                        self.reject(&response);
                        None
                    }
                };
            }
            self.connection.admission.end_unauthenticated();
            self.answer(parsed);
            if self.framing.persistence == Persistence::Close {
                return None;
            }
        }
    }

    /// Waits for the next request's head; none comes from a client that disconnected or
    /// was idle for too long. Its deadline begins with its first byte and cannot be
    /// extended.
    ///
    /// # Errors
    /// It is malformed, too large or too slow.
    fn await_request(&mut self) -> Result<Option<ParsedHead>, Error> {
        let limits = self.connection.limits();
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
            if unread.len() >= limits.head_bytes
                || unread[seen.min(unread.len())..].contains(&b'\n')
            {
                if let Some((parsed, length)) =
                    parse(unread, limits, self.connection.socket_peer())?
                {
                    self.inbox.consume(length);
                    return Ok(Some(parsed));
                }
                seen = unread.len();
            }
            let has_begun = !unread.is_empty();
            let until = match has_begun {
                true => {
                    *deadline.get_or_insert_with(|| Instant::now() + seconds(limits.head_seconds))
                }
                false => Instant::now() + seconds(limits.idle_seconds),
            };
            self.stream.set_read_timeout(ReadTimeout::Until(until));
            match self.inbox.fill(self.stream) {
                Ok(1..) => {}
                Err(error) if has_begun && error.kind() == io::ErrorKind::TimedOut => {
                    let late = Error::invalid_request("the request's head did not arrive in time");
                    return Err(late.with_status(408));
                }
                Ok(0) | Err(_) => return Ok(None),
            }
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
    fn answer(&mut self, parsed: ParsedHead) {
        let handler = Arc::clone(&self.connection.policy.handler);
        let ParsedHead {
            head,
            framing,
            expects_continue,
            ..
        } = parsed;
        let has_body = framing != Framing::Length(0);
        let admitted = match head.path.as_str() {
            // OPTIONS for the whole server, which serves as a ping (RFC 9110 section 9.3.7).
            "*" => Ok(Admitted::new(0, |_| Answer::Now(Response::empty(204)))),
            _ => handler.admit(&head),
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            // The body stays unread, so the next request cannot be found.
            Err(response) if has_body => return self.reject(&response),
            Err(response) => return self.respond(&response),
        };
        let expects_continue = expects_continue && has_body;
        let (refusal, named) = (admitted.refusal, admitted.named.clone());
        match self.handle(admitted, head, framing, expects_continue) {
            Ok((answer, true)) => self.send(answer),
            Ok((answer, false)) => {
                // Behind a body that was not read the next request cannot be found.
                self.framing.persistence = Persistence::Close;
                self.send(answer);
                linger(self.stream);
            }
            Err(BodyError::Refused(error)) if !self.registered.is_stopping() => {
                let mut response = refusal(&error);
                if let Some((name, value)) = named {
                    response.add(name, value);
                }
                self.reject(&response);
            }
            // A listener that stops ends the input of its connections.
            Err(_) => self.framing.persistence = Persistence::Close,
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
    fn send(&mut self, answer: Answer) {
        let deferred_response = match answer {
            Answer::Now(response) => return self.respond(&response),
            Answer::Confirmed(response, confirm) => {
                let is_there = !self.stream.has_left();
                let written = self.write(&response);
                confirm(is_there && written.is_ok());
                return self.end_response(written);
            }
            Answer::Deferred(deferred_response) => deferred_response,
            Answer::Pieces(response, length, next) => Box::new(Pieces {
                head: Some((response, length)),
                next,
            }),
        };
        self.waker = deferred_response.waker().cloned();
        let written = catch_unwind(AssertUnwindSafe(|| {
            let (connection, responder) = (&*self.connection, &mut self.responder);
            let (framing, stream) = (&mut self.framing, &mut *self.stream);
            deferred::send(deferred_response, framing, connection, responder, stream)
        }));
        // The response has begun, so no error can be sent.
        self.end_response(written.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
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

    fn respond(&mut self, response: &Response) {
        let written = self.write(response);
        self.end_response(written);
    }

    fn write(&mut self, response: &Response) -> io::Result<()> {
        let deferred::Framing {
            is_head,
            persistence,
            ..
        } = self.framing;
        self.stream
            .set_write_deadline(self.connection.write_deadline());
        self.responder
            .write(response, is_head, persistence, self.stream)
    }

    fn end_response(&mut self, written: io::Result<()>) {
        if written.is_err() {
            self.framing.persistence = Persistence::Close;
        } else if self.framing.persistence == Persistence::Close && !self.inbox.unread().is_empty()
        {
            // The client sent more requests; see `linger`.
            linger(self.stream);
        }
    }

    /// Answers a request that was not read to its end, and closes the connection
    /// in a way that lets the client read the answer.
    fn reject(&mut self, response: &Response) {
        self.framing.persistence = Persistence::Close;
        self.respond(response);
        linger(self.stream);
    }
}

//! Connections that the accept loop refuses, without a thread of their own.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

#[cfg(feature = "tls")]
use super::tls_opening;
use crate::connection::policy::ListenerPolicy;
use crate::http::message::Response;
use crate::http::response_writer::{Persistence, Responder};
use base::error::Error;
use protocol::envelope;

/// Sends `error` in the protocol whose first bytes have arrived: as a line to a
/// client that speaks JSON lines, else as an HTTP response. A client of a port that
/// `awaits_tls` gets an alert.
///
/// # Errors
/// It could not be sent.
pub fn answer(
    error: &Error,
    first: &[u8],
    policy: &ListenerPolicy,
    awaits_tls: bool,
    responder: &mut Responder,
    stream: &mut dyn Write,
) -> io::Result<()> {
    #[cfg(feature = "tls")]
    if awaits_tls && matches!(first.first(), None | Some(&tls_opening::HANDSHAKE)) {
        return stream.write_all(tls_opening::REFUSAL);
    }
    #[cfg(not(feature = "tls"))]
    let _ = awaits_tls;
    if first.starts_with(b"{") && policy.sessions.is_some() {
        return writeln!(stream, "{}", envelope::failure(None, error));
    }
    let is_head = first.starts_with(b"HEAD ");
    let response = Response::error(error);
    responder.write(&response, is_head, Persistence::Close, stream)
}

/// Refused connections: those whose clients have sent nothing yet, so that their
/// protocol is unknown, and those that have a moment to read why. If they were
/// closed at once with unread input, the reset could overtake the answer.
#[derive(Default)]
pub struct Refused {
    open: VecDeque<Refusal>,
    responder: Responder,
}

struct Refusal {
    stream: TcpStream,
    error: Error,
    is_answered: bool,
    /// Until when its client may begin or, once it is answered, read.
    until: Instant,
}

impl Refused {
    const MOST: usize = 32;
    const TIME: Duration = Duration::from_secs(1);
    const GRACE: Duration = Duration::from_millis(100);

    /// Answers `stream` with `error` as far as possible without waiting.
    pub fn add(&mut self, stream: TcpStream, error: Error, policy: &ListenerPolicy) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.open.len() == Refused::MOST
            && let Some(first) = self.open.pop_front()
        {
            first.end(policy, &mut self.responder);
        }
        self.open.push_back(Refusal {
            stream,
            error,
            is_answered: false,
            until: Instant::now() + Refused::TIME,
        });
        self.advance(policy);
    }

    /// Answers those whose protocol is known by now, and closes those whose time is
    /// over.
    pub fn advance(&mut self, policy: &ListenerPolicy) {
        let now = Instant::now();
        let responder = &mut self.responder;
        self.open
            .retain_mut(|refusal| refusal.advance(policy, responder, now));
    }

    /// Closes those that are answered, or silent for longer than a client needs to
    /// begin, because they hold descriptors.
    pub fn clear(&mut self, policy: &ListenerPolicy) {
        let now = Instant::now();
        for refusal in std::mem::take(&mut self.open) {
            match refusal.is_answered || refusal.until <= now + Refused::TIME - Refused::GRACE {
                true => refusal.end(policy, &mut self.responder),
                false => self.open.push_back(refusal),
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Those from which input is awaited.
    pub fn silent(&self) -> Vec<BorrowedFd<'_>> {
        let silent = self.open.iter().filter(|refusal| !refusal.is_answered);
        silent.map(|refusal| refusal.stream.as_fd()).collect()
    }

    /// When the time of one of them is over.
    pub fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|refusal| refusal.until).min()
    }
}

impl Refusal {
    /// Returns whether it stays open.
    fn advance(
        &mut self,
        policy: &ListenerPolicy,
        responder: &mut Responder,
        now: Instant,
    ) -> bool {
        if self.is_answered {
            if now >= self.until {
                self.drop_input();
            }
            return now < self.until;
        }
        let mut first = [0; 5];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let count = match recv(&self.stream, &mut first, flags) {
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) if now < self.until => return true,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return false,
        };
        let (first, is_secure) = (&first[..count], policy.is_secure());
        let mut stream = &self.stream;
        let answered = answer(
            &self.error,
            first,
            policy,
            is_secure,
            responder,
            &mut stream,
        );
        self.is_answered = true;
        self.until = now + Refused::TIME;
        answered.is_ok() && self.stream.shutdown(Shutdown::Write).is_ok()
    }

    fn end(mut self, policy: &ListenerPolicy, responder: &mut Responder) {
        if !self.is_answered {
            let now = Instant::now();
            self.until = now;
            self.advance(policy, responder, now);
        }
        self.drop_input();
    }

    /// Reads and drops what the client sent.
    fn drop_input(&mut self) {
        let _ = (&self.stream).read(&mut [0; 2048]);
    }
}

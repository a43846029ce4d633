//! The first bytes on a port that speaks TLS: a handshake, or somebody who does
//! not know that it does.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::client_handler::HandlerFactory;
use super::exchange::{Handler, Head, Request, Response};
use super::stream::Socket;
use super::wait::{Interest, wait};
use super::{ListenerPolicy, secure};
use crate::tls::Acceptor;
use base::error::Error;
use config::AddressPatterns;

/// The first byte of a TLS connection: the type of the record that holds the
/// client's first message (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;

/// A fatal alert `internal_error` (RFC 8446, section 6), for clients that are
/// refused before any handshake.
pub const REFUSAL: &[u8] = &[0x15, 3, 3, 0, 2, 2, 80];

/// What is before a port that speaks TLS.
pub struct TlsPolicy {
    acceptor: Arc<Acceptor>,
    /// Where clients go that do not speak it.
    pub plain: Arc<ListenerPolicy>,
}

/// What a client began with.
pub enum Opening {
    /// A handshake, which is over.
    Secure(secure::SecureStream),
    /// Something else, of which nothing has been read.
    Plain(Socket, u8),
}

impl TlsPolicy {
    /// Before a door with these patterns.
    pub fn new(acceptor: Arc<Acceptor>, allow_from: AddressPatterns) -> TlsPolicy {
        TlsPolicy {
            acceptor,
            plain: Arc::new(ListenerPolicy {
                allow_from,
                handler: Arc::new(ToHttps),
                sessions: None,
                upgrades: false,
                tls: None,
            }),
        }
    }

    /// Waits for the first byte and, if it begins a handshake, for its end; both
    /// by `deadline`.
    ///
    /// # Errors
    /// Nothing came, or the handshake failed.
    pub fn open(&self, socket: Socket, deadline: Instant) -> io::Result<Opening> {
        match first_byte(socket.as_fd(), deadline)? {
            HANDSHAKE => {
                secure::accept(socket, self.acceptor.config(), deadline).map(Opening::Secure)
            }
            other => Ok(Opening::Plain(socket, other)),
        }
    }
}

/// The first byte that arrives, which stays to be read.
fn first_byte(socket: BorrowedFd<'_>, deadline: Instant) -> io::Result<u8> {
    loop {
        if !wait(socket, Interest::Read, None, Some(deadline))?.ready {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut byte = [0; 1];
        match recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((1.., _)) => return Ok(byte[0]),
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What a client is told that speaks another protocol than TLS.
pub fn speaks_tls() -> Error {
    Error::invalid_request("this port speaks TLS; use https:// (or wss://)")
}

/// Sends plain HTTP to where it is encrypted.
struct ToHttps;

impl Handler for ToHttps {
    fn admit(&self, head: &Head) -> Result<usize, Response> {
        // A request with a body would be sent again with everything in it that
        // has just crossed the network for all to read: that is to be noticed.
        let (true, Some(host)) = (head.method == "GET", head.header("host")) else {
            return Err(Response::error(&speaks_tls()));
        };
        let query = head.query.as_deref();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let location = format!("https://{host}{}{query}", head.path);
        let mut response = Response::error(&speaks_tls());
        response.status = 308;
        response.headers.push(("Location", Cow::Owned(location)));
        // Without TLS tomorrow, the address must work again.
        response
            .headers
            .push(("Cache-Control", Cow::Borrowed("no-store")));
        Err(response)
    }

    fn admit_upgrade(&self, _: &Head) -> Result<Option<HandlerFactory>, Response> {
        Err(Response::error(&speaks_tls()))
    }

    fn handle(&self, _: &Request) -> Response {
        Response::error(&speaks_tls())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;

    #[test]
    fn only_a_get_is_sent_on_and_to_where_it_asked_for() {
        for (method, host, path, query, status, location) in [
            (
                "GET",
                Some("pi.local:5000"),
                "/a%20b",
                Some("c=d&e"),
                308,
                Some("https://pi.local:5000/a%20b?c=d&e"),
            ),
            (
                "GET",
                Some("[::1]:5000"),
                "/",
                None,
                308,
                Some("https://[::1]:5000/"),
            ),
            ("GET", None, "/", None, 400, None),
            ("POST", Some("pi.local"), "/auth", None, 400, None),
        ] {
            let head = Head {
                method: method.into(),
                path: path.into(),
                query: query.map(str::to_owned),
                headers: host
                    .map(|host| ("host".to_owned(), host.to_owned()))
                    .into_iter()
                    .collect(),
                peer: Peer {
                    address: "192.0.2.1".parse().unwrap(),
                    secure: false,
                    relay: None,
                },
            };
            let response = ToHttps.admit(&head).unwrap_err();
            assert_eq!(response.status, status, "{method} {host:?}");
            let found = response
                .headers
                .iter()
                .find(|(name, _)| *name == "Location")
                .map(|(_, value)| value.as_ref());
            assert_eq!(found, location);
            assert!(String::from_utf8_lossy(&response.body).contains("speaks TLS"));
        }
    }
}

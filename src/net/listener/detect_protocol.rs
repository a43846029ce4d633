//! Serves one connection. Its first byte shows which protocol the client speaks
//! (protocol section 2).

#[cfg(feature = "tls")]
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::error::Error;
#[cfg(feature = "tls")]
use protocol::envelope;

use super::refused;
#[cfg(feature = "tls")]
use super::tls_opening::{self, Opening};
use crate::connection::admission::Transport;
#[cfg(feature = "tls")]
use crate::connection::policy::TlsPolicy;
use crate::connection::registry::Registered;
use crate::connection::{Connection, seconds};
use crate::http::connection::HttpConnection;
#[cfg(feature = "tls")]
use crate::http::https_redirect::speaks_tls;
use crate::http::response_writer::Responder;
use crate::inbox::Inbox;
use crate::lines;
use crate::peer::Peer;
use crate::stream::{ReadTimeout, Socket, Stream, linger};
use crate::websocket;

/// How long a client that is refused may take to show which protocol it speaks.
const REFUSED_TIME: Duration = Duration::from_secs(1);

/// Serves a connection until it ends, and logs its end.
pub fn serve(mut connection: Connection, mut socket: Socket, registered: &Registered) {
    let config = Arc::clone(&connection.config);
    socket.set_write_deadline(connection.write_deadline());
    let peer = match connection.admission.begin_unauthenticated(&config.limits) {
        Ok(()) => serve_client(&mut connection, socket, registered),
        Err(error) => {
            refuse(&connection, &mut socket, &error);
            connection.socket_peer()
        }
    };
    // One line for each request would wear out the card of a small machine.
    let level = match connection.admission.transport() {
        Transport::Http => log::Level::Debug,
        Transport::WebSocket | Transport::Lines => log::Level::Info,
    };
    log::log!(
        level,
        peer:% = peer.place();
        "{peer} {}: closed after {:.1} s, {} received",
        connection.admission.transport().as_str(),
        connection.begun.elapsed().as_secs_f32(),
        connection.received,
    );
}

/// Returns the client, for the log.
fn serve_client(connection: &mut Connection, mut socket: Socket, registered: &Registered) -> Peer {
    #[cfg(feature = "tls")]
    if let Some(tls) = &Arc::clone(&connection.policy).tls {
        return serve_tls(connection, socket, registered, tls);
    }
    serve_protocol(connection, &mut socket, registered)
}

/// Returns the client, for the log. Not inlined: what a handshake needs would
/// otherwise stay on the stack of every plain connection.
#[cfg(feature = "tls")]
#[inline(never)]
fn serve_tls(
    connection: &mut Connection,
    socket: Socket,
    registered: &Registered,
    tls: &TlsPolicy,
) -> Peer {
    let peer = connection.socket_peer();
    let deadline = Instant::now() + seconds(connection.limits().head_seconds);
    match tls_opening::open(&tls.acceptor, socket, deadline) {
        Ok(Opening::Secure(mut stream)) => {
            connection.secure = true;
            serve_protocol(connection, &mut stream, registered)
        }
        Ok(Opening::Plain(mut socket, first)) => {
            if let Some(plain) = &tls.plain {
                if first == b'{' && connection.policy.sessions.is_some() {
                    socket.set_write_deadline(connection.write_deadline());
                    let line = envelope::failure(None, &speaks_tls());
                    let _ = writeln!(socket, "{line}");
                    linger(&mut socket);
                    return peer;
                }
                connection.policy = Arc::clone(plain);
            }
            serve_protocol(connection, &mut socket, registered)
        }
        Err(error) => {
            log::debug!("{peer}: no TLS connection: {error}");
            peer
        }
    }
}

/// Says `error` in the protocol that the client begins with.
fn refuse(connection: &Connection, stream: &mut dyn Stream, error: &Error) {
    stream.set_read_timeout(ReadTimeout::Until(Instant::now() + REFUSED_TIME));
    // Whether these succeed changes nothing: the connection ends either way.
    let mut inbox = Inbox::default();
    let _ = inbox.fill(stream);
    let (first, policy) = (inbox.unread(), &connection.policy);
    let awaits_tls = policy.is_secure() && !connection.secure;
    let responder = &mut Responder::default();
    let _ = refused::answer(error, first, policy, awaits_tls, responder, stream);
    linger(stream);
}

/// Returns the client, for the log.
fn serve_protocol(
    connection: &mut Connection,
    stream: &mut dyn Stream,
    registered: &Registered,
) -> Peer {
    let peer = connection.socket_peer();
    stream.set_write_deadline(connection.write_deadline());
    let mut inbox = Inbox::default();
    let deadline = Instant::now() + seconds(connection.limits().head_seconds);
    stream.set_read_timeout(ReadTimeout::Until(deadline));
    // A client that sends nothing gets no answer.
    if !matches!(inbox.fill(stream), Ok(1..)) {
        return peer;
    }
    if inbox.unread().first() == Some(&b'{') && connection.policy.sessions.is_some() {
        connection.admission.speaks(Transport::Lines);
        lines::run(connection, stream, registered, inbox);
        return peer;
    }
    // A separate call, so that HTTP's memory is freed before a WebSocket
    // begins, which may idle for days.
    let upgrade = HttpConnection::new(connection, stream, registered, inbox).serve();
    match upgrade {
        Some(upgrade) => {
            let peer = upgrade.peer.clone();
            websocket::run(connection, stream, upgrade);
            peer
        }
        None => peer,
    }
}

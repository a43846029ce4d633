//! Serves one connection from its first byte to its end: the first byte tells
//! which protocol the client speaks (protocol section 2).

#[cfg(feature = "tls")]
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "tls")]
use protocol::envelope;

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
use crate::http::message::Response;
use crate::http::response_writer::{Persistence, Responder};
use crate::inbox::Inbox;
use crate::lines;
use crate::stream::{ReadTimeout, Socket, Stream, linger};
use crate::websocket;

/// Serves a connection until it ends, and says so in the log.
pub fn serve(mut connection: Connection, socket: Socket, registered: &Registered) {
    let peer = enter(&mut connection, socket, registered);
    log::info!(
        "{peer} {}: closed after {:.1} s, {} received",
        connection.admission.transport().as_str(),
        connection.begun.elapsed().as_secs_f32(),
        connection.received,
    );
}

/// Returns who was there.
#[cfg(not(feature = "tls"))]
fn enter(connection: &mut Connection, mut socket: Socket, registered: &Registered) -> String {
    converse(connection, &mut socket, registered)
}

/// Returns who was there.
#[cfg(feature = "tls")]
fn enter(connection: &mut Connection, mut socket: Socket, registered: &Registered) -> String {
    let policy = Arc::clone(&connection.policy);
    match &policy.tls {
        None => converse(connection, &mut socket, registered),
        Some(tls) => enter_secure(connection, socket, registered, tls),
    }
}

/// Returns who was there. A function of its own in the program too: inlined,
/// what a handshake needs would lie on the stack of every plain connection.
#[cfg(feature = "tls")]
#[inline(never)]
fn enter_secure(
    connection: &mut Connection,
    mut socket: Socket,
    registered: &Registered,
    tls: &TlsPolicy,
) -> String {
    let policy = Arc::clone(&connection.policy);
    let peer = connection.socket_peer().to_string();
    let config = Arc::clone(&connection.config);
    socket.set_write_deadline(connection.write_deadline());
    if connection
        .admission
        .begin_unauthenticated(&config.limits)
        .is_err()
    {
        // A failure to tell changes nothing: the connection ends either way.
        let _ = socket.write_all(tls_opening::REFUSAL);
        linger(&mut socket);
        return peer;
    }
    let deadline = Instant::now() + seconds(config.limits.head_seconds);
    match tls_opening::open(&tls.acceptor, socket, deadline) {
        Ok(Opening::Secure(mut stream)) => {
            connection.secure = true;
            converse(connection, &mut stream, registered)
        }
        Ok(Opening::Plain(mut socket, b'{')) if policy.sessions.is_some() => {
            socket.set_write_deadline(connection.write_deadline());
            let line = envelope::failure(None, &speaks_tls());
            let _ = writeln!(socket, "{line}");
            linger(&mut socket);
            peer
        }
        Ok(Opening::Plain(mut socket, _)) => {
            connection.policy = Arc::clone(&tls.plain);
            converse(connection, &mut socket, registered)
        }
        Err(error) => {
            log::debug!("{peer}: no TLS connection: {error}");
            peer
        }
    }
}

/// Returns who was there.
fn converse(
    connection: &mut Connection,
    stream: &mut dyn Stream,
    registered: &Registered,
) -> String {
    let peer = connection.socket_peer().to_string();
    let config = Arc::clone(&connection.config);
    stream.set_write_deadline(connection.write_deadline());
    if let Err(error) = connection.admission.begin_unauthenticated(&config.limits) {
        // A failure to tell changes nothing: the connection ends either way.
        let _ =
            Responder::default().write(&Response::error(&error), false, Persistence::Close, stream);
        linger(stream);
        return peer;
    }

    let mut inbox = Inbox::default();
    let deadline = Instant::now() + seconds(config.limits.head_seconds);
    stream.set_read_timeout(ReadTimeout::Until(deadline));
    // Whoever connects and sends nothing is not told anything either.
    if !matches!(inbox.fill(stream), Ok(1..)) {
        return peer;
    }
    if inbox.unread().first() == Some(&b'{') && connection.policy.sessions.is_some() {
        connection.admission.speaks(Transport::Lines);
        lines::run(connection, stream, registered, inbox);
        return peer;
    }
    // A call of its own: what HTTP needed is given back before a WebSocket,
    // which may idle for days, begins.
    let upgrade = HttpConnection::new(connection, stream, registered, inbox).serve();
    match upgrade {
        Some(upgrade) => {
            let peer = upgrade.peer.to_string();
            websocket::run(connection, stream, upgrade);
            peer
        }
        None => peer,
    }
}

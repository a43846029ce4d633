//! Serves one connection from its first byte to its end: the first byte tells
//! what is spoken (protocol section 2).

use std::time::Instant;

use super::admission::Transport;
use super::body::Inbox;
use super::connection::{Connection, seconds};
use super::exchange::Response;
use super::http_connection::HttpConnection;
use super::registry::Registered;
use super::respond::{Persistence, Responder};
use super::stream::{Patience, Stream, linger};
use super::{lines, websocket};

/// Serves a connection until it ends, and says so in the log.
pub fn serve(mut connection: Connection, mut stream: impl Stream, registered: &Registered) {
    let peer = converse(&mut connection, &mut stream, registered);
    log::info!(
        "{peer} {}: closed after {:.1} s, {} received",
        connection.admission.transport().as_str(),
        connection.begun.elapsed().as_secs_f32(),
        connection.received,
    );
}

/// Returns who was there.
fn converse(
    connection: &mut Connection,
    stream: &mut impl Stream,
    registered: &Registered,
) -> String {
    let peer = connection.socket_peer().to_string();
    let config = std::sync::Arc::clone(&connection.config);
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
    stream.set_patience(Patience::Until(deadline));
    // Whoever connects and sends nothing is not told anything either.
    if !matches!(inbox.fill(stream), Ok(1..)) {
        return peer;
    }
    if inbox.unread().first() == Some(&b'{') && connection.door.sessions.is_some() {
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

//! Sends responses whose body is produced piece by piece.

use std::io;

use super::message::Response;
use super::response_writer::{Persistence, Responder};
use crate::connection::Connection;
use crate::stream::Stream;
use base::error::Result;

/// What precedes the pieces.
pub struct Head<'a> {
    /// Status and headers.
    pub response: &'a Response,
    /// Bytes of the body, if that is known.
    pub length: Option<u64>,
    /// The client speaks HTTP/1.1 and so understands chunks.
    pub is_current: bool,
    /// The request was a HEAD: no body follows.
    pub is_head: bool,
    /// What becomes of the connection.
    pub persistence: Persistence,
}

/// Sends a response piece by piece. A client that does not read is cut off at the
/// write deadline of each piece.
///
/// # Errors
/// The client disconnected or does not read, or the pieces broke off: the head has
/// been sent, so the client can only be told by the end of the connection.
pub fn send(
    head: Head<'_>,
    next: &mut dyn FnMut() -> Result<Vec<u8>>,
    connection: &Connection,
    responder: &mut Responder,
    stream: &mut dyn Stream,
) -> io::Result<Persistence> {
    stream.set_write_deadline(connection.write_deadline());
    let Some(length) = head.length else {
        return send_all(&head, next, connection, responder, stream);
    };
    responder.write_head_of(head.response, length, head.persistence, stream)?;
    let mut left = if head.is_head { 0 } else { length };
    while left > 0 {
        let piece = next().map_err(io::Error::other)?;
        left = match left.checked_sub(piece.len() as u64) {
            Some(rest) if !piece.is_empty() => rest,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        stream.set_write_deadline(connection.write_deadline());
        stream.write_all(&piece)?;
    }
    Ok(head.persistence)
}

/// Sends pieces to their end, in chunks for a client that understands them.
fn send_all(
    head: &Head<'_>,
    next: &mut dyn FnMut() -> Result<Vec<u8>>,
    connection: &Connection,
    responder: &mut Responder,
    stream: &mut dyn Stream,
) -> io::Result<Persistence> {
    let is_chunked = head.is_current;
    let persistence = if is_chunked {
        head.persistence
    } else {
        // The end of the connection is the end of the body.
        Persistence::Close
    };
    responder.write_head(head.response, is_chunked, persistence, stream)?;
    if head.is_head {
        return Ok(persistence);
    }
    loop {
        let piece = next().map_err(io::Error::other)?;
        stream.set_write_deadline(connection.write_deadline());
        if piece.is_empty() {
            if is_chunked {
                stream.write_all(b"0\r\n\r\n")?;
            }
            return Ok(persistence);
        }
        responder.write_piece(&piece, is_chunked, stream)?;
    }
}

//! Sends responses whose length is known and whose body is produced piece by piece.

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
    /// Bytes of the body.
    pub length: u64,
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
) -> io::Result<()> {
    stream.set_write_deadline(connection.write_deadline());
    responder.write_head_of(head.response, head.length, head.persistence, stream)?;
    let mut left = if head.is_head { 0 } else { head.length };
    while left > 0 {
        let piece = next().map_err(io::Error::other)?;
        left = match left.checked_sub(piece.len() as u64) {
            Some(rest) if !piece.is_empty() => rest,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        stream.set_write_deadline(connection.write_deadline());
        stream.write_all(&piece)?;
    }
    Ok(())
}

//! Sends deferred responses.
//!
//! The connection's thread waits for the response and its client in one `poll`.
//! When the client disconnects the response ends, but the turn behind it does not.
//! A client that does not read is cut off at the write deadline.

use std::io;
use std::time::Instant;

use super::message::{DeferredResponse, ResponsePart};
use super::response_writer::{Persistence, Responder};
use crate::connection::Connection;
use crate::stream::Stream;
use crate::wait::{Interest, wait};

/// How a response is framed, as its request asks.
#[derive(Clone, Copy)]
pub struct Framing {
    /// The request was a HEAD.
    pub is_head: bool,
    /// The client speaks HTTP/1.1 and so understands chunks.
    pub is_current: bool,
    /// What becomes of the connection.
    pub persistence: Persistence,
}

/// Sends a response part by part. Returns what becomes of the connection.
///
/// # Errors
/// The client disconnected or does not read, or the response broke off.
pub fn send(
    mut deferred_response: Box<dyn DeferredResponse>,
    framing: Framing,
    connection: &Connection,
    responder: &mut Responder,
    stream: &mut dyn Stream,
) -> io::Result<Persistence> {
    let is_chunked = framing.is_current;
    let persistence = match is_chunked {
        true => framing.persistence,
        // Without chunks, the end of the connection marks the end of the body.
        false => Persistence::Close,
    };
    let mut interest = Interest::Read;
    loop {
        deferred_response.waker().prepare();
        let part = deferred_response.advance();
        stream.set_write_deadline(connection.write_deadline());
        match part {
            ResponsePart::Wait(until) => {
                interest = wait_for_part(&*deferred_response, interest, until, stream)?;
            }
            ResponsePart::Whole(response) => {
                responder.write(&response, framing.is_head, framing.persistence, stream)?;
                return Ok(framing.persistence);
            }
            ResponsePart::Head(response) => {
                responder.write_head(&response, is_chunked, persistence, stream)?;
                if framing.is_head {
                    return Ok(persistence);
                }
            }
            ResponsePart::Piece(piece) if piece.is_empty() => {}
            ResponsePart::Piece(piece) => responder.write_piece(&piece, is_chunked, stream)?,
            ResponsePart::End if is_chunked => {
                stream.write_all(b"0\r\n\r\n")?;
                return Ok(persistence);
            }
            ResponsePart::End => return Ok(persistence),
            ResponsePart::Broken => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Waits for the next part or for the client, at most until `until`. Returns what
/// to wait for on the socket next.
fn wait_for_part(
    deferred_response: &dyn DeferredResponse,
    interest: Interest,
    until: Instant,
    stream: &mut dyn Stream,
) -> io::Result<Interest> {
    let woken = wait(
        stream.as_fd(),
        interest,
        Some(deferred_response.waker()),
        Some(until),
    )?;
    if woken.gone || (woken.ready && stream.has_left()) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    Ok(match woken.ready {
        // The next request is already there and would wake us again and again.
        true => Interest::Hangup,
        false => interest,
    })
}

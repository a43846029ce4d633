//! Sends responses that come as something else goes on.
//!
//! The connection's thread waits for the response and its client in one `poll`.
//! A client that goes away ends the response, not what it tells of; one that
//! does not read is cut off at the write deadline.

use std::io;
use std::time::Instant;

use super::message::{Part, Unfinished};
use super::response_writer::{Persistence, Responder};
use crate::connection::Connection;
use crate::stream::Stream;
use crate::wait::{Interest, wait};

/// How a response is framed, by what its request said.
#[derive(Clone, Copy)]
pub struct Framing {
    /// The request was a HEAD.
    pub is_head: bool,
    /// The client speaks HTTP/1.1 and so knows chunks.
    pub is_current: bool,
    /// What becomes of the connection.
    pub persistence: Persistence,
}

/// Sends a response as it comes. Returns what becomes of the connection.
///
/// # Errors
/// The client has gone or does not read, or the response broke off.
pub fn finish(
    mut unfinished: Box<dyn Unfinished>,
    framing: Framing,
    connection: &Connection,
    responder: &mut Responder,
    stream: &mut dyn Stream,
) -> io::Result<Persistence> {
    let is_chunked = framing.is_current;
    let persistence = match is_chunked {
        true => framing.persistence,
        // Only the end of the connection tells where the body ends.
        false => Persistence::Close,
    };
    let mut interest = Interest::Read;
    loop {
        unfinished.waker().prepare();
        let part = unfinished.advance();
        stream.set_write_deadline(connection.write_deadline());
        match part {
            Part::Wait(until) => {
                interest = attend(&*unfinished, interest, until, stream)?;
            }
            Part::Whole(response) => {
                responder.write(&response, framing.is_head, framing.persistence, stream)?;
                return Ok(framing.persistence);
            }
            Part::Head(response) => {
                responder.write_head(&response, is_chunked, persistence, stream)?;
                if framing.is_head {
                    return Ok(persistence);
                }
            }
            Part::Piece(piece) if piece.is_empty() => {}
            Part::Piece(piece) => responder.write_piece(&piece, is_chunked, stream)?,
            Part::End if is_chunked => {
                stream.write_all(b"0\r\n\r\n")?;
                return Ok(persistence);
            }
            Part::End => return Ok(persistence),
            Part::Broken => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Waits for news of the response or the client, at most until a time. Returns
/// what to wait for on the socket from now on.
fn attend(
    unfinished: &dyn Unfinished,
    interest: Interest,
    until: Instant,
    stream: &mut dyn Stream,
) -> io::Result<Interest> {
    let woken = wait(
        stream.as_fd(),
        interest,
        Some(unfinished.waker()),
        Some(until),
    )?;
    if woken.gone || (woken.ready && stream.has_left()) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    Ok(match woken.ready {
        // Another request waits there already, and would wake us for ever.
        true => Interest::Hangup,
        false => interest,
    })
}

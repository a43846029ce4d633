//! Sends responses part by part.
//!
//! The connection's thread waits for the response and its client in one `poll`.
//! When the client disconnects the response ends, but the turn behind it does not.
//! A client that does not read is cut off at the write deadline.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::message::{DeferredResponse, Response, ResponsePart};
use super::response_writer::{BodyFraming, Persistence, Responder};
use crate::connection::Connection;
use crate::stream::Stream;
use crate::wait::{Interest, Waker, wait};
use base::error::Result;

/// How a response is framed, as its request asks.
#[derive(Clone, Copy)]
pub struct Framing {
    /// The request was a HEAD.
    pub is_head: bool,
    /// The client speaks HTTP/1.1 and so understands chunks.
    pub is_current: bool,
    /// What becomes of the connection after it.
    pub persistence: Persistence,
}

/// A response whose body is produced piece by piece, without a wait.
pub struct Pieces {
    /// Status and headers, until they are sent, and the length of the body.
    pub head: Option<(Response, Option<u64>)>,
    /// The next piece; an empty one at the end.
    pub next: Box<dyn FnMut() -> Result<Vec<u8>>>,
}

impl DeferredResponse for Pieces {
    fn waker(&self) -> Option<&Arc<Waker>> {
        None
    }

    fn advance(&mut self) -> ResponsePart {
        if let Some((response, length)) = self.head.take() {
            return ResponsePart::Head(response, length);
        }
        match (self.next)() {
            Ok(piece) if piece.is_empty() => ResponsePart::End,
            Ok(piece) => ResponsePart::Piece(piece),
            Err(_) => ResponsePart::Broken,
        }
    }
}

/// Sends a response part by part. Without another mark of its end, that of the connection
/// is one.
///
/// # Errors
/// The client disconnected or does not read, or the response broke off: its head has
/// been sent, so the client can only be told by the end of the connection.
pub fn send(
    mut deferred_response: Box<dyn DeferredResponse>,
    framing: &mut Framing,
    connection: &Connection,
    responder: &mut Responder,
    stream: &mut dyn Stream,
) -> io::Result<()> {
    let mut body = BodyFraming::Chunked;
    let mut interest = Interest::Read;
    while body != BodyFraming::Length(0) {
        if let Some(waker) = deferred_response.waker() {
            waker.prepare();
        }
        let part = deferred_response.advance();
        stream.set_write_deadline(connection.write_deadline());
        match part {
            ResponsePart::Wait(until) => {
                interest = wait_for_part(&*deferred_response, interest, until, stream)?;
            }
            ResponsePart::Whole(response) => {
                return responder.write(&response, framing.is_head, framing.persistence, stream);
            }
            ResponsePart::Head(response, length) => {
                body = match length {
                    Some(length) => BodyFraming::Length(length),
                    None if framing.is_current => BodyFraming::Chunked,
                    None => BodyFraming::Unmarked,
                };
                if body == BodyFraming::Unmarked {
                    framing.persistence = Persistence::Close;
                }
                responder.write_head(&response, body, framing.persistence, stream)?;
                if framing.is_head {
                    return Ok(());
                }
            }
            ResponsePart::Piece(piece) if piece.is_empty() => {}
            ResponsePart::Piece(piece) => {
                if let BodyFraming::Length(left) = &mut body {
                    let rest = left.checked_sub(piece.len() as u64);
                    *left = rest.ok_or(io::ErrorKind::InvalidData)?;
                }
                responder.write_piece(&piece, body, stream)?;
            }
            ResponsePart::End if body == BodyFraming::Chunked => {
                return stream.write_all(b"0\r\n\r\n");
            }
            ResponsePart::End if body == BodyFraming::Unmarked => return Ok(()),
            ResponsePart::End | ResponsePart::Broken => {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
    }
    Ok(())
}

/// Waits for the next part or for the client, at most until `until`. Returns what
/// to wait for on the socket next.
fn wait_for_part(
    deferred_response: &dyn DeferredResponse,
    interest: Interest,
    until: Instant,
    stream: &mut dyn Stream,
) -> io::Result<Interest> {
    let waker = deferred_response.waker().map(|waker| &**waker);
    let woken = wait(stream.as_fd(), interest, waker, Some(until))?;
    if woken.gone || (woken.ready && stream.has_left()) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    Ok(match woken.ready {
        // The next request is already there and would wake us again and again.
        true => Interest::Hangup,
        false => interest,
    })
}

//! The first bytes on a port that speaks TLS: a handshake, or a client that
//! does not speak TLS.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::stream::Socket;
use crate::tls::Acceptor;
use crate::tls::stream::{self, SecureStream};
use crate::wait::{Interest, wait};

/// The first byte of a TLS connection: the type of the record that holds the
/// client's first message (RFC 8446, section 5.1).
pub const HANDSHAKE: u8 = 0x16;

/// A fatal alert `internal_error` (RFC 8446, section 6), for clients that are
/// refused before any handshake.
pub const REFUSAL: &[u8] = &[0x15, 3, 3, 0, 2, 2, 80];

/// What a client began with.
pub enum Opening {
    /// A completed handshake.
    Secure(SecureStream),
    /// Something else, still unread; holds its first byte.
    Plain(Socket, u8),
}

/// Waits for the first byte and, if it begins a handshake, for the end of the
/// handshake; both by `deadline`.
///
/// # Errors
/// Nothing arrived, or the handshake failed.
pub fn open(acceptor: &Acceptor, socket: Socket, deadline: Instant) -> io::Result<Opening> {
    match first_byte(socket.as_fd(), deadline)? {
        HANDSHAKE => stream::accept(socket, acceptor.config(), deadline).map(Opening::Secure),
        other => Ok(Opening::Plain(socket, other)),
    }
}

/// The first byte that arrives; it stays unread.
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

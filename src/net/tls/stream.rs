//! TLS over a socket, with the deadlines of a [`Stream`]. A peer that sends slowly
//! or sends empty records cannot extend them.
//!
//! Buffers stay small: one incoming record (18 KiB, freed with the next read);
//! writes are flushed at once.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConfig, ServerConnection};

use super::reason::in_words;
use super::trust::Trust;
use crate::stream::{ReadTimeout, Socket, Stream};

/// Most bytes that are encrypted before they are sent: one record.
const RECORD_BYTES: usize = 16 * 1024;
/// Most ciphertext that is held while it is sent.
const BUFFER_BYTES: usize = 32 * 1024;
/// Most reads of the socket for one read that must not wait: records without
/// data must not keep a thread from its outbox.
const READS: usize = 8;

/// A connection with TLS, of either end.
pub struct SecureStream {
    connection: Box<Connection>,
    socket: Socket,
    timeout: ReadTimeout,
    /// Decrypted bytes that are not yet read.
    buffered: usize,
    /// Whether the other end has ended its side.
    has_ended: bool,
    is_finished: bool,
}

/// Answers a new connection as a server. The whole handshake must be over by
/// `deadline`.
///
/// # Errors
/// `TimedOut` at the deadline, `InvalidData` where the other end does
/// not speak TLS or shares no version or cipher; it then gets an alert.
pub fn accept(
    socket: Socket,
    config: Arc<ServerConfig>,
    deadline: Instant,
) -> io::Result<SecureStream> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    SecureStream::begin(Connection::Server(connection), socket, deadline)
}

/// Makes a connection that is open (TCP) one with TLS, to a server that must
/// show a certificate for `host` (a name or an address, IPv6 without brackets)
/// which `trust` accepts. The whole handshake must be over by `deadline`.
///
/// # Errors
/// `InvalidData` where the server cannot be trusted or does not speak
/// TLS, `InvalidInput` for a `host` that no certificate can be for, `TimedOut`
/// at the deadline.
pub fn connect(
    socket: Socket,
    host: &str,
    trust: &Trust,
    deadline: Instant,
) -> io::Result<SecureStream> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let message = format!("{host:?} is no name that a certificate can have");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    let config = trust
        .client_config()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    SecureStream::begin(Connection::Client(connection), socket, deadline).map_err(in_words)
}

impl SecureStream {
    fn begin(
        mut connection: Connection,
        socket: Socket,
        deadline: Instant,
    ) -> io::Result<SecureStream> {
        connection.set_buffer_limit(Some(BUFFER_BYTES));
        let mut stream = SecureStream {
            connection: Box::new(connection),
            socket,
            timeout: ReadTimeout::Until(deadline),
            buffered: 0,
            has_ended: false,
            is_finished: false,
        };
        stream.socket.set_read_timeout(ReadTimeout::Until(deadline));
        stream.socket.set_write_deadline(deadline);
        while stream.connection.is_handshaking() {
            stream.send_records()?;
            if stream.connection.is_handshaking() && !stream.receive_records()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        stream.send_records()?;
        Ok(stream)
    }

    /// Sends what rustls has encrypted.
    fn send_records(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Reads from the socket once and decrypts what is complete. Returns false
    /// at the end of input.
    fn receive_records(&mut self) -> io::Result<bool> {
        if self.connection.read_tls(&mut self.socket)? == 0 {
            return Ok(false);
        }
        match self.connection.process_new_packets() {
            Ok(state) => {
                self.buffered = state.plaintext_bytes_to_read();
                self.has_ended |= state.peer_has_closed();
                Ok(true)
            }
            Err(error) => {
                // Sends the other end an alert, if it listens.
                let _ = self.send_records();
                self.is_finished = true;
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// What rustls holds decrypted. None when more must be received first.
    fn take_buffered(&mut self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        match self.connection.reader().read(buffer) {
            Ok(count) => {
                self.buffered = self.buffered.saturating_sub(count);
                Some(Ok(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for SecureStream {
    fn set_read_timeout(&mut self, timeout: ReadTimeout) {
        self.timeout = timeout;
    }

    fn set_write_deadline(&mut self, deadline: Instant) {
        self.socket.set_write_deadline(deadline);
    }

    fn write_without_waiting(&mut self) {
        self.socket.write_without_waiting();
    }

    fn has_buffered(&self) -> bool {
        self.buffered > 0 || self.has_ended
    }

    fn has_left(&mut self) -> bool {
        // Its end is a record like any other: what has come is taken in, as far
        // as there is room for it.
        self.socket.set_read_timeout(ReadTimeout::Never);
        for _ in 0..READS {
            if self.buffered > 0 {
                return false;
            }
            if self.has_ended {
                return true;
            }
            match self.receive_records() {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
        false
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.is_finished {
            self.is_finished = true;
            self.connection.send_close_notify();
            self.send_records()?;
        }
        self.socket.finish()
    }

    fn keep_alive(&mut self, probe_after: Duration) -> io::Result<()> {
        self.socket.keep_alive(probe_after)
    }
}

impl Read for SecureStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What is buffered does not outlive the deadline either.
        if matches!(self.timeout, ReadTimeout::Until(deadline) if Instant::now() >= deadline) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(self.timeout);
        let mut reads = 0;
        loop {
            if let Some(taken) = self.take_buffered(buffer) {
                return taken;
            }
            if self.timeout == ReadTimeout::Never && reads == READS {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            reads += 1;
            // Our protocols are self-delimiting, so a missing close_notify is
            // harmless.
            if !self.receive_records()? {
                return Ok(0);
            }
            // Answers of the protocol itself, such as new keys.
            sent_or_kept(self.send_records())?;
        }
    }
}

impl Write for SecureStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Nothing may be taken and then reported as not written, so what was
        // kept before goes first.
        self.send_records()?;
        let part = &bytes[..bytes.len().min(RECORD_BYTES)];
        let count = self.connection.writer().write(part)?;
        sent_or_kept(self.send_records())?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_records()
    }
}

/// Keeps unsent bytes for the next write.
fn sent_or_kept(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        sent => sent,
    }
}

impl AsFd for SecureStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for SecureStream {
    /// Sends close_notify if that does not block, so that the peer can tell this
    /// from truncation.
    fn drop(&mut self) {
        if !self.is_finished && !self.connection.is_handshaking() {
            self.connection.send_close_notify();
            self.socket.set_write_deadline(Instant::now());
            let _ = self.send_records();
        }
    }
}

#[cfg(feature = "tls")]
#[cfg(test)]
mod tests;

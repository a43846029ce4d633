//! A byte stream to a client, with deadlines that a slow client cannot extend.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use crate::wait::{Interest, wait};

/// How long a read waits for its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTimeout {
    /// Until a point in time, over any number of reads. After it a read fails even
    /// if input is there, so that a client that never pauses cannot hold the reader.
    Until(Instant),
    /// Not at all.
    Never,
}

/// A byte stream to a client: TCP, or TLS over it.
///
/// Reads fail with [`io::ErrorKind::TimedOut`] when the read timeout expires and,
/// only with [`ReadTimeout::Never`], with [`io::ErrorKind::WouldBlock`] when there
/// is nothing. Writes fail with `TimedOut` at the write deadline and, only where
/// they do not wait, with `WouldBlock` when there is no room. Interrupted calls
/// are repeated within.
pub trait Stream: Read + Write + AsFd + Send {
    /// Sets how long reads wait from now on.
    fn set_read_timeout(&mut self, timeout: ReadTimeout);

    /// Sets when writes give up from now on.
    fn set_write_deadline(&mut self, deadline: Instant);

    /// Makes writes not wait at all until a write deadline is set again. What one
    /// flush could not send, the next one sends.
    fn write_without_waiting(&mut self);

    /// Whether a read returns something although the descriptor may have
    /// nothing (bytes that TLS has already decrypted).
    fn has_buffered(&self) -> bool;

    /// Whether the client has closed its end. Unread data hides that: the client
    /// then counts as connected.
    fn has_left(&mut self) -> bool;

    /// Ends the sending side; the client sees the end of input.
    ///
    /// # Errors
    /// The connection is already gone, or TLS could not send its last record.
    fn finish(&mut self) -> io::Result<()>;

    /// Turns on TCP keep-alive, by which the system notices that a silent client
    /// is gone.
    ///
    /// # Errors
    /// The system does not take the socket options.
    fn keep_alive(&mut self, probe_after: Duration) -> io::Result<()>;
}

/// A plain TCP connection. The socket is shared with the registry of open
/// connections, so that another thread can end a read.
pub struct Socket {
    stream: Arc<TcpStream>,
    timeout: ReadTimeout,
    /// None where writes do not wait.
    write_deadline: Option<Instant>,
}

/// Probes of a silent peer, each a half of the first wait after the one before.
const KEEP_ALIVE_PROBES: u32 = 3;

impl Socket {
    /// Takes over an accepted connection.
    pub fn new(stream: Arc<TcpStream>) -> Socket {
        let now = Instant::now();
        Socket {
            stream,
            timeout: ReadTimeout::Until(now),
            write_deadline: Some(now),
        }
    }
}

impl Stream for Socket {
    fn set_read_timeout(&mut self, timeout: ReadTimeout) {
        self.timeout = timeout;
    }

    fn set_write_deadline(&mut self, deadline: Instant) {
        self.write_deadline = Some(deadline);
    }

    fn write_without_waiting(&mut self) {
        self.write_deadline = None;
    }

    fn has_buffered(&self) -> bool {
        false
    }

    fn has_left(&mut self) -> bool {
        let mut byte = [0; 1];
        let peeked = recv(
            &self.stream,
            &mut byte,
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        );
        !matches!(peeked, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    fn keep_alive(&mut self, probe_after: Duration) -> io::Result<()> {
        sockopt::set_socket_keepalive(&self.stream, true)?;
        let second = Duration::from_secs(1);
        sockopt::set_tcp_keepidle(&self.stream, probe_after.max(second))?;
        sockopt::set_tcp_keepintvl(&self.stream, (probe_after / 2).max(second))?;
        sockopt::set_tcp_keepcnt(&self.stream, KEEP_ALIVE_PROBES)?;
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let ReadTimeout::Until(deadline) = self.timeout {
                let woken = wait(self.as_fd(), Interest::Read, None, Some(deadline))?;
                if !woken.ready || Instant::now() >= deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            match recv(&self.stream, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.timeout != ReadTimeout::Never => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            // The socket blocks, but this call does not: a send timeout would
            // restart with every byte that the client reads.
            match send(
                &self.stream,
                bytes,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let deadline = self.write_deadline;
                    if deadline.is_none() {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                    if !wait(self.as_fd(), Interest::Write, None, deadline)?.ready {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Limits for reading from a client that was refused.
const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1024 * 1024;

/// Ends a stream whose client may still be sending: ends our side, then reads and
/// drops what arrives until the client ends too. Closing at
/// once would reset the connection, and the client would see the reset instead
/// of the answer (RFC 9112 section 9.6). Bounded to one second and one
/// mebibyte, so that a client that sends its whole body before it looks still
/// gets its answer.
pub fn linger(stream: &mut dyn Stream) {
    if stream.finish().is_err() {
        return;
    }
    stream.set_read_timeout(ReadTimeout::Until(Instant::now() + LINGER_TIME));
    let mut sink = vec![0; 16 * 1024];
    let mut drained = 0;
    while drained < LINGER_BYTES {
        match stream.read(&mut sink) {
            Ok(0) | Err(_) => return,
            Ok(count) => drained += count,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        (Socket::new(Arc::new(server)), client)
    }

    #[test]
    fn every_read_timeout_expires() {
        let (mut socket, mut client) = pair();
        let mut buffer = [0; 8];
        let soon = Instant::now() + Duration::from_millis(20);
        for (timeout, kind) in [
            (ReadTimeout::Until(soon), io::ErrorKind::TimedOut),
            (ReadTimeout::Until(Instant::now()), io::ErrorKind::TimedOut),
            (ReadTimeout::Never, io::ErrorKind::WouldBlock),
        ] {
            socket.set_read_timeout(timeout);
            let error = socket.read(&mut buffer).unwrap_err();
            assert_eq!(error.kind(), kind, "{timeout:?}");
        }
        client.write_all(b"abc").unwrap();
        socket.set_read_timeout(ReadTimeout::Until(Instant::now()));
        assert!(socket.read(&mut buffer).is_err());
        socket.set_read_timeout(ReadTimeout::Until(Instant::now() + Duration::from_secs(60)));
        assert_eq!(socket.read(&mut buffer).unwrap(), 3);
    }

    #[test]
    fn a_client_that_does_not_read_cannot_hold_a_write() {
        let (mut socket, client) = pair();
        socket.set_write_deadline(Instant::now() + Duration::from_millis(50));
        let error = socket.write_all(&vec![0; 64 * 1024 * 1024]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    #[test]
    fn a_write_need_not_wait() {
        let (mut socket, mut client) = pair();
        socket.write_without_waiting();
        let piece = vec![7; 64 * 1024];
        let mut sent = 0;
        let error = loop {
            match socket.write(&piece) {
                Ok(count) => sent += count,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        client.read_exact(&mut vec![0; sent]).unwrap();
        let soon = Some(Instant::now() + Duration::from_secs(60));
        let woken = wait(socket.as_fd(), Interest::ReadOrWrite, None, soon).unwrap();
        assert!(woken.ready);
        assert_eq!(socket.write(b"abc").unwrap(), 3);
    }
}

//! The commands of the WebSocket API as JSON lines over plain TCP (protocol
//! section 2): one object per line each way, so that `nc` is a client.

use std::io;
use std::time::Instant;

use crate::connection::registry::Registered;
use crate::connection::{Connection, ConnectionIo, seconds};
use crate::inbox::Inbox;
use crate::stream::{ReadTimeout, Stream, linger};
use crate::wait::{Interest, wait};
use base::error::Error;
use protocol::envelope;

/// Buffers that have grown beyond this are freed when they are empty.
const KEPT_BYTES: usize = 4 * 1024;

/// Serves JSON lines until the connection ends. `inbox` is what has arrived.
pub fn run(
    connection: &mut Connection,
    stream: &mut dyn Stream,
    registered: &Registered,
    inbox: Inbox,
) {
    let Some(open) = &connection.policy.sessions else {
        return;
    };
    let io = match ConnectionIo::open(connection, registered, open, connection.socket_peer()) {
        Ok(io) => io,
        Err(error) => {
            let peer = connection.socket_peer();
            log::warn!(peer:% = peer.place(); "no session for {peer}: {error}");
            let error = Error::overloaded("the server has no descriptor left", 5);
            // Whether this arrives changes nothing: the connection ends.
            let _ = writeln!(stream, "{}", envelope::failure(None, &error));
            return;
        }
    };
    // Pings would be lines that no client asked for; TCP keep-alive probes instead.
    // Without it, a dead client keeps its connection until the next write.
    if !connection.policy.is_local
        && let Err(error) = stream.keep_alive(seconds(connection.limits().ping_seconds))
    {
        let peer = connection.socket_peer();
        log::warn!(peer:% = peer.place(); "no keep-alive for {peer}: {error}");
    }
    stream.set_read_timeout(ReadTimeout::Never);
    let mut lines = Lines {
        connection,
        stream,
        io,
        inbox,
        searched: 0,
        out: Vec::new(),
        input_ended: None,
    };
    let Err(end) = lines.serve_messages();
    if end == End::Finish {
        linger(lines.stream);
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client is gone.
    Gone,
    /// We end it, and the client must be able to read what was sent last.
    Finish,
}

struct Lines<'a> {
    connection: &'a mut Connection,
    stream: &'a mut dyn Stream,
    io: ConnectionIo,
    inbox: Inbox,
    /// Bytes of the inbox that are known to hold no line break.
    searched: usize,
    out: Vec<u8>,
    /// Set once the client has ended its side, as `echo ... | nc` does: until when
    /// we wait for its outstanding responses.
    input_ended: Option<Instant>,
}

impl Lines<'_> {
    fn serve_messages(&mut self) -> Result<std::convert::Infallible, End> {
        let auth_deadline = Instant::now() + seconds(self.connection.limits().auth_seconds);
        self.take_lines()?;
        loop {
            self.io.waker.prepare();
            // First: whoever reads that it has signed in does not make way for others.
            let is_authenticated = self.io.client_handler.is_authenticated();
            if is_authenticated {
                self.connection.admission.end_unauthenticated();
            }
            self.send_waiting()?;
            self.give_back_memory();
            if self.input_ended.is_some() && self.io.client_handler.is_idle() {
                return Err(End::Finish);
            }
            let deadline = match (self.input_ended, is_authenticated) {
                (Some(deadline), true) => Some(deadline),
                (None, true) => None,
                (_, false) => Some(auth_deadline),
            };
            if self.await_input(deadline)? {
                self.read()?;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if !self.io.client_handler.is_authenticated() {
                    self.io.client_handler.time_out();
                    self.send_waiting()?;
                    return Err(End::Finish);
                }
                if self.input_ended.is_some() {
                    return Err(End::Finish);
                }
            }
        }
    }

    /// Waits for input, a wake-up or the deadline. Returns whether there is input.
    fn await_input(&mut self, deadline: Option<Instant>) -> Result<bool, End> {
        let interest = match self.input_ended {
            // `poll` would report the end of input again and again.
            Some(_) => Interest::Hangup,
            None if self.stream.has_buffered() => return Ok(true),
            None => Interest::Read,
        };
        let waker = Some(&*self.io.waker);
        let woken = wait(self.stream.as_fd(), interest, waker, deadline).map_err(|_| End::Gone)?;
        match interest {
            Interest::Hangup if woken.gone => Err(End::Gone),
            Interest::Hangup => Ok(false),
            _ => Ok(woken.ready),
        }
    }

    /// Reads once and handles every line that is complete.
    fn read(&mut self) -> Result<(), End> {
        match self.inbox.fill(self.stream) {
            Ok(0) => {
                let time = seconds(self.connection.limits().turn_seconds);
                self.input_ended = Some(Instant::now() + time);
                self.take_last_line()
            }
            Ok(_) => self.take_lines(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(End::Gone),
        }
    }

    fn take_lines(&mut self) -> Result<(), End> {
        loop {
            let unread = self.inbox.unread();
            let found = unread[self.searched..]
                .iter()
                .position(|&byte| byte == b'\n');
            let length = found.map_or(unread.len(), |place| self.searched + place);
            // A `\r` before the line break is not counted.
            if length > self.io.client_handler.message_bytes() + 1 {
                return Err(self.refuse_long_line());
            }
            if found.is_none() {
                self.searched = length;
                return Ok(());
            }
            self.take_line(length)?;
            self.inbox.consume(length + 1);
            self.searched = 0;
        }
    }

    /// The last line may lack its line break. A truncated object does not parse, so
    /// this cannot run half a command.
    fn take_last_line(&mut self) -> Result<(), End> {
        let length = self.inbox.unread().len();
        self.take_line(length)?;
        self.inbox.consume(length);
        Ok(())
    }

    fn take_line(&mut self, length: usize) -> Result<(), End> {
        let line = &self.inbox.unread()[..length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.io.client_handler.message_bytes() {
            return Err(self.refuse_long_line());
        }
        match std::str::from_utf8(line) {
            Ok("") => {}
            Ok(text) => {
                self.connection.received += 1;
                self.io.client_handler.receive(text);
            }
            Err(_) => {
                let error = Error::invalid_request("a line must be UTF-8");
                return Err(self.refuse(error));
            }
        }
        Ok(())
    }

    fn refuse_long_line(&mut self) -> End {
        let error = Error::too_large(format!(
            "a line may have at most {} bytes",
            self.io.client_handler.message_bytes()
        ));
        self.refuse(error)
    }

    /// Refuses input that cannot be read, and ends the connection.
    fn refuse(&mut self, error: Error) -> End {
        self.io.client_handler.refuse(error);
        match self.send_waiting() {
            Ok(()) => End::Finish,
            Err(end) => end,
        }
    }

    /// Sends what is in the outbox, in a single write if it is small.
    fn send_waiting(&mut self) -> Result<(), End> {
        let taken = self.io.outbox.take();
        self.stream
            .set_write_deadline(self.connection.write_deadline());
        for item in taken.items {
            let out = &mut self.out;
            self.io.client_handler.arrange(item, &mut |text| {
                out.extend_from_slice(text.as_bytes());
                out.push(b'\n');
            });
            if self.out.len() > KEPT_BYTES {
                self.write_out()?;
            }
        }
        self.write_out()?;
        match taken.close {
            Some(_) => Err(End::Finish),
            None => Ok(()),
        }
    }

    fn write_out(&mut self) -> Result<(), End> {
        if !self.out.is_empty() {
            let written = self.stream.write_all(&self.out);
            self.out.clear();
            written.map_err(|_| End::Gone)?;
        }
        Ok(())
    }

    fn give_back_memory(&mut self) {
        if self.out.capacity() > KEPT_BYTES {
            self.out = Vec::new();
        }
        if self.inbox.unread().is_empty() && self.inbox.capacity() > KEPT_BYTES {
            self.inbox = Inbox::default();
        }
    }
}

//! A WebSocket connection (RFC 6455): texts in, texts out, pings, and an
//! orderly end.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Bytes, Error as WebSocketError, Message, Utf8Bytes};

use super::frames::Frames;
use crate::connection::{Connection, ConnectionIo, seconds};
use crate::http::connection::Upgrade;
use crate::inbox;
use crate::outbox::{Close, Direct, Item};
use crate::stream::{ReadTimeout, Stream, linger};
use crate::wait::{Interest, wait};
use base::error::Error;

/// tungstenite allocates this much at once and reads at most so much at a time.
/// It is the same size as the HTTP buffer, so the allocator reuses it: an idle
/// connection then costs 4 KiB less than with twice as much.
const READ_BYTES: usize = inbox::FIRST_BYTES;
/// Small messages are sent together up to this size.
const WRITE_BYTES: usize = 4 * 1024;
/// After a message larger than this, the enlarged buffers are freed.
const KEPT_BYTES: usize = 8 * 1024;
/// The close code of a gateway that got an invalid response.
const BAD_GATEWAY: u16 = 1014;
/// How long to wait for the client's part of the closing handshake.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// Serves a WebSocket until it ends.
pub fn run(connection: &mut Connection, stream: &mut dyn Stream, upgrade: Upgrade) {
    let Upgrade { io, rest, .. } = upgrade;
    stream.set_read_timeout(ReadTimeout::Never);
    let mut frames = Frames::default();
    frames.observe(&rest);
    let pipe = Pipe {
        stream,
        may_read: false,
        frames,
    };
    let message_bytes = io.client_handler.message_bytes();
    let config = Some(config(message_bytes));
    let now = Instant::now();
    Channel {
        connection,
        io,
        pipe,
        codec: WebSocketContext::from_partially_read(rest, Role::Server, config),
        message_bytes,
        paused: false,
        largest: 0,
        heard: now,
        pinged: now,
    }
    .run();
}

fn config(message_bytes: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        // No bound is needed here: a write that does not complete ends the
        // connection, so that at most one message is ever buffered.
        .max_write_buffer_size(usize::MAX)
        .max_message_size(Some(message_bytes))
        .max_frame_size(Some(message_bytes))
}

/// What tungstenite reads from and writes to. Allows one read per `poll`; further
/// reads return `WouldBlock`, except inside a message. So the thread waits only in
/// `poll`, where its outbox and the deadlines can wake it.
struct Pipe<'a> {
    stream: &'a mut dyn Stream,
    may_read: bool,
    frames: Frames,
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !std::mem::take(&mut self.may_read) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.stream.read(buffer)?;
        self.frames.observe(&buffer[..count]);
        self.may_read = count == buffer.len() && self.frames.is_within_payload();
        Ok(count)
    }
}

impl Write for Pipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Why a connection ends.
enum End {
    /// The client is gone, or the closing handshake is done.
    Gone,
    /// We close it with a closing handshake.
    Close(CloseFrame),
    /// The client broke the protocol: what it sends cannot be read any more.
    Fail(CloseFrame),
}

impl End {
    fn fail(code: u16, reason: &'static str) -> End {
        End::Fail(frame(Close { code, reason }))
    }
}

impl From<WebSocketError> for End {
    fn from(_: WebSocketError) -> End {
        End::Gone
    }
}

struct Channel<'a> {
    connection: &'a mut Connection,
    io: ConnectionIo,
    pipe: Pipe<'a>,
    codec: WebSocketContext,
    /// The limit that the codec's configuration holds now.
    message_bytes: usize,
    /// Whether messages that have been read may wait because the client handler had
    /// no room.
    paused: bool,
    /// Bytes of the largest message since the buffers were last given back.
    largest: usize,
    /// When the client's last frame arrived.
    heard: Instant,
    /// When the last ping was sent.
    pinged: Instant,
}

impl Channel<'_> {
    fn run(mut self) {
        let Err(end) = self.serve_messages();
        let deadline = Instant::now() + CLOSE_TIME;
        self.pipe.stream.set_write_deadline(deadline);
        match end {
            End::Gone => {}
            End::Close(close) => self.close(close, deadline),
            End::Fail(close) => {
                // tungstenite must not read on from where it stopped, nor send an
                // answer of its own.
                self.codec = WebSocketContext::new(Role::Server, None);
                let closed = self.codec.close(&mut self.pipe, Some(close));
                if closed.is_ok() {
                    linger(self.pipe.stream);
                }
            }
        }
    }

    fn serve_messages(&mut self) -> Result<std::convert::Infallible, End> {
        let limits = self.connection.limits();
        let auth_deadline = Instant::now() + seconds(limits.auth_seconds);
        let ping_time = seconds(limits.ping_seconds);
        let dead_time = seconds(limits.dead_seconds);
        // Messages that came together with the handshake.
        self.read()?;
        loop {
            self.io.waker.prepare();
            // First: whoever reads that it has signed in does not make way for others.
            self.note_authentication();
            self.send_waiting()?;
            self.give_back_memory();

            // Pings depend on what the client sent, not on what it gets: a client
            // that only listens would otherwise never be pinged, and would be
            // considered dead while it receives events.
            let ping_at = self.heard.max(self.pinged) + ping_time;
            let dead_at = self.heard + dead_time;
            let is_authenticated = self.io.client_handler.is_authenticated();
            let deadline = match is_authenticated {
                true => ping_at.min(dead_at),
                false => auth_deadline,
            };
            if self.await_input(deadline)? {
                self.read()?;
            }
            let now = Instant::now();
            if now < deadline {
                continue;
            }
            if !self.io.client_handler.is_authenticated() {
                let close = self.io.client_handler.time_out();
                self.send_waiting()?;
                return Err(End::Close(frame(close)));
            }
            if now >= self.heard + dead_time {
                return Err(End::Gone);
            }
            if now >= self.heard.max(self.pinged) + ping_time {
                self.begin_write();
                self.codec
                    .write(&mut self.pipe, Message::Ping(Bytes::new()))?;
                self.codec.flush(&mut self.pipe)?;
                self.pinged = now;
            }
        }
    }

    /// Waits for input, a wake-up or the deadline. Returns whether there is input.
    /// While the handler has no room, input stays in the system's buffers, which
    /// slows the client down.
    fn await_input(&mut self, deadline: Instant) -> Result<bool, End> {
        let has_room = self.io.client_handler.has_room();
        if has_room && std::mem::take(&mut self.paused) {
            // What was read before the pause may hold whole messages.
            return Ok(true);
        }
        if has_room && self.pipe.stream.has_buffered() {
            self.pipe.may_read = true;
            return Ok(true);
        }
        self.paused |= !has_room;
        let interest = match has_room {
            true => Interest::Read,
            false => Interest::Hangup,
        };
        let (socket, waker) = (self.pipe.stream.as_fd(), Some(&*self.io.waker));
        match wait(socket, interest, waker, Some(deadline)) {
            Ok(woken) if has_room => {
                self.pipe.may_read = woken.ready;
                Ok(woken.ready)
            }
            Ok(woken) if !woken.gone => Ok(false),
            _ => Err(End::Gone),
        }
    }

    /// Handles every message that is complete.
    fn read(&mut self) -> Result<(), End> {
        self.begin_write();
        let before = self.pipe.frames.completed;
        let result = self.read_messages();
        if self.pipe.frames.completed > before {
            self.heard = Instant::now();
        }
        result
    }

    fn read_messages(&mut self) -> Result<(), End> {
        loop {
            if !self.io.client_handler.has_room() {
                self.paused = true;
                return Ok(());
            }
            let result = self.codec.read(&mut self.pipe);
            // A client that sends without a pause must not keep us here.
            self.pipe.may_read = false;
            if let Ok(message) = &result {
                self.largest = self.largest.max(message.len());
            }
            match result {
                Ok(Message::Text(text)) => {
                    self.connection.received += 1;
                    self.io.client_handler.receive(&text);
                    self.adopt_message_bytes();
                }
                Ok(Message::Binary(bytes)) => {
                    self.connection.received += 1;
                    self.io.client_handler.receive_binary(&bytes);
                }
                Ok(_) if self.pipe.frames.is_malformed => {
                    return Err(End::fail(1002, "WebSocket protocol error"));
                }
                // tungstenite does not know this code of the registry of RFC 6455
                // section 11.7, and would answer that it breaks the protocol.
                Ok(Message::Close(_)) if self.pipe.frames.close_code == BAD_GATEWAY => {
                    return Err(End::fail(BAD_GATEWAY, ""));
                }
                // Pings and closes are answered by the next read.
                Ok(_) => {}
                Err(WebSocketError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(WebSocketError::Capacity(_)) => {
                    self.io.client_handler.refuse(Error::too_large(format!(
                        "a message may have at most {} bytes",
                        self.message_bytes
                    )));
                    return Err(match self.send_waiting() {
                        Err(End::Gone) => End::Gone,
                        // Whatever the session wants: only this way of closing
                        // reads no more frames.
                        _ => End::fail(1009, "message too large"),
                    });
                }
                Err(WebSocketError::Utf8(_)) => return Err(End::fail(1007, "not UTF-8")),
                Err(WebSocketError::Protocol(
                    tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
                )) => return Err(End::Gone),
                Err(WebSocketError::Protocol(_)) => {
                    return Err(End::fail(1002, "WebSocket protocol error"));
                }
                Err(_) => return Err(End::Gone),
            }
        }
    }

    /// Sends what is in the outbox, all of it within one write deadline.
    fn send_waiting(&mut self) -> Result<(), End> {
        let taken = self.io.outbox.take();
        if !taken.items.is_empty() {
            self.begin_write();
            let Channel {
                io,
                pipe,
                codec,
                largest,
                ..
            } = self;
            let mut result = Ok(());
            let mut send = |message: Message| {
                *largest = (*largest).max(message.len());
                codec.write(pipe, message)
            };
            for item in taken.items {
                // A load ends with its item: then it is sent, or buffered as
                // the last thing that is.
                match item {
                    Item::Direct(Direct::Text(text), _load) => send(Message::text(text))?,
                    Item::Direct(Direct::Binary(bytes), _load) => send(Message::binary(bytes))?,
                    Item::Direct(Direct::Close { code, reason }, _) => {
                        codec.flush(pipe)?;
                        return Err(End::Close(passed_frame(code, reason)));
                    }
                    item => io.client_handler.arrange_messages(item, &mut |message| {
                        if result.is_ok() {
                            result = send(message);
                        }
                    }),
                }
            }
            result?;
            codec.flush(pipe)?;
        }
        match taken.close {
            Some(close) => Err(End::Close(frame(close))),
            None => Ok(()),
        }
    }

    fn begin_write(&mut self) {
        let deadline = self.connection.write_deadline();
        self.pipe.stream.set_write_deadline(deadline);
    }

    fn note_authentication(&mut self) {
        if self.io.client_handler.is_authenticated() {
            self.connection.admission.end_unauthenticated();
        }
        self.adopt_message_bytes();
    }

    fn adopt_message_bytes(&mut self) {
        let message_bytes = self.io.client_handler.message_bytes();
        if message_bytes != self.message_bytes {
            self.message_bytes = message_bytes;
            self.codec
                .set_config(|known| *known = config(message_bytes));
        }
    }

    /// Replaces buffers that a large message has enlarged; see [`Frames`].
    fn give_back_memory(&mut self) {
        if self.largest > KEPT_BYTES && self.pipe.frames.are_complete() {
            let config = Some(config(self.message_bytes));
            self.codec = WebSocketContext::new(Role::Server, config);
            self.largest = 0;
        }
    }

    /// The closing handshake, begun by us (RFC 6455 section 7.1.2).
    fn close(&mut self, close: CloseFrame, deadline: Instant) {
        if self.codec.close(&mut self.pipe, Some(close)).is_err() {
            return;
        }
        // A client may keep sending instead of closing.
        while Instant::now() < deadline {
            let result = self.codec.read(&mut self.pipe);
            self.pipe.may_read = false;
            match result {
                // Sent before our close arrived there.
                Ok(_) => {}
                Err(WebSocketError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    let pipe = &mut self.pipe;
                    pipe.may_read = pipe.stream.has_buffered();
                    if !pipe.may_read {
                        let socket = pipe.stream.as_fd();
                        match wait(socket, Interest::Read, None, Some(deadline)) {
                            Ok(woken) if woken.ready => pipe.may_read = true,
                            _ => return,
                        }
                    }
                }
                Err(_) => return,
            }
        }
    }
}

fn frame(close: Close) -> CloseFrame {
    CloseFrame {
        code: CloseCode::from(close.code),
        reason: close.reason.into(),
    }
}

/// Most bytes of a close frame's reason (RFC 6455 section 5.5).
const REASON_BYTES: usize = 123;

/// A close frame that another connection asked for.
fn passed_frame(code: u16, mut reason: String) -> CloseFrame {
    let code = Some(CloseCode::from(code))
        .filter(|code| code.is_allowed())
        .unwrap_or(CloseCode::Normal);
    reason.truncate(reason.floor_char_boundary(REASON_BYTES));
    CloseFrame {
        code,
        reason: Utf8Bytes::from(reason),
    }
}

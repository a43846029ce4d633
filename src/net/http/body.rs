//! Reads the bodies of HTTP requests (RFC 9112 sections 6 and 7).

use std::io;
use std::time::{Duration, Instant};

use base::error::Error;

use super::head::{Framing, check_newlines};
use crate::inbox::Inbox;
use crate::stream::{ReadTimeout, Stream};

/// Most bytes that are read into a body at once, and so allocated before they
/// have arrived.
const STEP: usize = 16 * 1024;
/// Longest line that announces a chunk, extensions included.
const CHUNK_LINE: usize = 256;
/// Most bytes and fields of the trailers, which are ignored.
const TRAILER_BYTES: usize = 4 * 1024;
const TRAILER_COUNT: usize = 16;

/// Why a body could not be read.
#[derive(Debug)]
pub enum BodyError {
    /// The connection failed; no answer can be sent.
    Lost,
    /// The client gets this error; then the connection must be closed.
    Refused(Error),
}

impl From<Error> for BodyError {
    fn from(error: Error) -> BodyError {
        BodyError::Refused(error)
    }
}

/// Refuses a body that announces more than `limit` bytes, before reading it.
///
/// # Errors
/// 413 over the limit.
pub fn check_length(framing: Framing, limit: usize) -> Result<(), Error> {
    match framing {
        Framing::Length(length) if length > limit as u64 => Err(too_large(limit)),
        _ => Ok(()),
    }
}

fn too_large(limit: usize) -> Error {
    Error::too_large(format!("the body may have at most {limit} bytes"))
}

/// What is left of a body.
enum Left {
    /// So many bytes of one whose length is known.
    Bytes(u64),
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line that announces the next chunk.
    NextChunk,
    Nothing,
}

/// A request's body as it arrives.
pub struct RequestBody<'a> {
    inbox: &'a mut Inbox,
    stream: &'a mut dyn Stream,
    /// What has arrived and was not taken yet.
    arrived: Vec<u8>,
    left: Left,
    limit: usize,
    /// Bytes that further chunks may have.
    room: u64,
    deadline: Instant,
    /// How long it may stand still.
    idle_time: Duration,
}

impl<'a> RequestBody<'a> {
    /// A body of at most `limit` bytes, which must arrive by the deadline, and none of whose
    /// reads waits longer than `idle_time`. What it announces has been checked.
    pub(super) fn new(
        framing: Framing,
        limit: usize,
        deadline: Instant,
        idle_time: Duration,
        inbox: &'a mut Inbox,
        stream: &'a mut dyn Stream,
    ) -> RequestBody<'a> {
        RequestBody {
            inbox,
            stream,
            arrived: Vec::new(),
            left: match framing {
                Framing::Length(length) => Left::Bytes(length),
                Framing::Chunked => Left::NextChunk,
            },
            limit,
            room: limit as u64,
            deadline,
            idle_time,
        }
    }

    /// How long the body is, unless it comes in chunks.
    pub fn length(&self) -> Option<u64> {
        match self.left {
            Left::Bytes(length) => Some(length + self.arrived.len() as u64),
            Left::Nothing => Some(self.arrived.len() as u64),
            Left::Chunk(_) | Left::NextChunk => None,
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`RequestBody::next_piece`].
    pub(super) fn read_all(&mut self) -> Result<Vec<u8>, BodyError> {
        self.fill(usize::MAX)?;
        Ok(std::mem::take(&mut self.arrived))
    }

    /// The next piece, of `most` bytes, or fewer at the end; none after it.
    ///
    /// # Errors
    /// 413 over the limit, 408 at the deadline, 400 for malformed chunks and for a body
    /// that ends too early. The handler returns it, and the connection is closed.
    pub fn next_piece(&mut self, most: usize) -> Result<Option<Vec<u8>>, BodyError> {
        self.fill(most)?;
        let piece = std::mem::take(&mut self.arrived);
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// Whether it was read to its end, so that the next request follows.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.left, Left::Nothing | Left::Bytes(0)) && self.arrived.is_empty()
    }

    /// Reads until `most` bytes have arrived, or all.
    fn fill(&mut self, most: usize) -> Result<(), BodyError> {
        while self.arrived.len() < most {
            match self.left {
                Left::Nothing => return Ok(()),
                Left::Bytes(0) => self.left = Left::Nothing,
                Left::Bytes(count) => self.left = Left::Bytes(self.take(count, most)?),
                Left::Chunk(0) => {
                    if !self.line(0)?.is_empty() {
                        return Err(malformed("a chunk is longer than it says").into());
                    }
                    self.end_line();
                    self.left = Left::NextChunk;
                }
                Left::Chunk(count) => self.left = Left::Chunk(self.take(count, most)?),
                Left::NextChunk => {
                    let size = chunk_size(self.line(CHUNK_LINE)?)?;
                    self.end_line();
                    if size == 0 {
                        self.skip_trailers()?;
                        self.left = Left::Nothing;
                        return Ok(());
                    }
                    let room = self.room.checked_sub(size);
                    self.room = room.ok_or_else(|| too_large(self.limit))?;
                    self.left = Left::Chunk(size);
                }
            }
        }
        Ok(())
    }

    /// Takes some of the next `count` bytes, until `most` have arrived; returns how
    /// many of them are left. Memory grows with what has arrived, not with what was
    /// announced.
    fn take(&mut self, count: u64, most: usize) -> Result<u64, BodyError> {
        let before = self.arrived.len();
        let wanted = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(most - before);
        let unread = self.inbox.unread();
        let read = if unread.is_empty() {
            self.arrived.resize(before + wanted.min(STEP), 0);
            self.limit_wait();
            let result = self.stream.read(&mut self.arrived[before..]);
            let read = result.as_ref().copied().unwrap_or(0);
            self.arrived.truncate(before + read);
            check_read(result)?;
            read
        } else {
            let read = wanted.min(unread.len());
            self.arrived.extend_from_slice(&unread[..read]);
            self.inbox.consume(read);
            read
        };
        Ok(count - read as u64)
    }

    fn limit_wait(&mut self) {
        let until = self.deadline.min(Instant::now() + self.idle_time);
        self.stream.set_read_timeout(ReadTimeout::Until(until));
    }

    /// Trailers must be well-formed headers. Not inlined: their array would stay on
    /// the stack of every connection.
    #[inline(never)]
    fn skip_trailers(&mut self) -> Result<(), BodyError> {
        loop {
            let mut trailers = [httparse::EMPTY_HEADER; TRAILER_COUNT];
            let unread = self.inbox.unread();
            let section = &unread[..unread.len().min(TRAILER_BYTES)];
            let parsed = httparse::parse_headers(section, &mut trailers);
            match parsed.map_err(|_| malformed("its trailers are malformed, or too many"))? {
                httparse::Status::Complete((length, _)) => {
                    check_newlines(&section[..length])?;
                    self.inbox.consume(length);
                    return Ok(());
                }
                httparse::Status::Partial if section.len() == TRAILER_BYTES => {
                    return Err(malformed("its trailers are too long").into());
                }
                httparse::Status::Partial => check_newlines(section)?,
            }
            self.limit_wait();
            check_read(self.inbox.fill(self.stream))?;
        }
    }

    /// The next line, without its CR LF, once it has arrived. It stays in the
    /// inbox until [`RequestBody::end_line`].
    fn line(&mut self, most: usize) -> Result<&[u8], BodyError> {
        loop {
            let unread = self.inbox.unread();
            let window = &unread[..unread.len().min(most + 2)];
            match window.iter().position(|&byte| byte == b'\n') {
                Some(end) if end > 0 && window[end - 1] == b'\r' => {
                    let line = end - 1;
                    if self.inbox.unread()[..line].contains(&b'\r') {
                        return Err(malformed("a line of the body has a bare CR").into());
                    }
                    return Ok(&self.inbox.unread()[..line]);
                }
                Some(_) => return Err(malformed("a line of the body ends in a bare LF").into()),
                None if unread.len() >= most + 2 => {
                    return Err(malformed("a line of the chunked body is too long").into());
                }
                None => {}
            }
            self.limit_wait();
            check_read(self.inbox.fill(self.stream))?;
        }
    }

    fn end_line(&mut self) {
        let line = self.inbox.unread().iter().position(|&byte| byte == b'\n');
        self.inbox.consume(line.map_or(0, |end| end + 1));
    }
}

fn check_read(result: io::Result<usize>) -> Result<(), BodyError> {
    match result {
        // The client may have ended only its own side, and read the answer.
        Ok(0) => Err(Error::invalid_request("the body ended before it was complete").into()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(timed_out().into()),
        Err(_) => Err(BodyError::Lost),
    }
}

fn timed_out() -> Error {
    Error::invalid_request("the body did not arrive in time").with_status(408)
}

fn malformed(what: &str) -> Error {
    Error::invalid_request(format!("the chunked body is malformed: {what}"))
}

/// Hexadecimal digits, then nothing or `;` and extensions, which are ignored.
fn chunk_size(line: &[u8]) -> Result<u64, Error> {
    let (digits, extension) = match line.iter().position(|&byte| byte == b';') {
        Some(end) => line.split_at(end),
        None => (line, &[][..]),
    };
    if extension
        .iter()
        .any(|byte| byte.is_ascii_control() && *byte != b'\t')
    {
        return Err(malformed("a chunk extension has control characters"));
    }
    if !(1..=16).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(malformed("a chunk size is not a hexadecimal number"));
    }
    Ok(digits.iter().fold(0, |size, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            _ => (digit | 0x20) - b'a' + 10,
        };
        size << 4 | u64::from(value)
    }))
}

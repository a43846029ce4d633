//! Reads the bodies of HTTP requests (RFC 9112 sections 6 and 7).

use std::io;
use std::time::Instant;

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

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// 413 over the limit, 408 at the deadline, 400 for malformed chunks and for a body
/// that ends too early.
pub fn read(
    framing: Framing,
    limit: usize,
    deadline: Instant,
    inbox: &mut Inbox,
    stream: &mut dyn Stream,
) -> Result<Vec<u8>, BodyError> {
    check_length(framing, limit)?;
    stream.set_read_timeout(ReadTimeout::Until(deadline));
    let mut reader = BodyReader {
        inbox,
        stream,
        body: Vec::new(),
    };
    match framing {
        // It fits: `check_length` has compared it with a usize.
        Framing::Length(length) => reader.take(length as usize)?,
        Framing::Chunked => reader.take_chunks(limit)?,
    }
    Ok(reader.body)
}

struct BodyReader<'a> {
    inbox: &'a mut Inbox,
    stream: &'a mut dyn Stream,
    body: Vec<u8>,
}

impl BodyReader<'_> {
    /// Appends the next `count` bytes to the body. Memory grows with what has
    /// arrived, not with what was announced.
    fn take(&mut self, mut count: usize) -> Result<(), BodyError> {
        let arrived = count.min(self.inbox.unread().len());
        self.body.extend_from_slice(&self.inbox.unread()[..arrived]);
        self.inbox.consume(arrived);
        count -= arrived;
        while count > 0 {
            let before = self.body.len();
            self.body.resize(before + count.min(STEP), 0);
            let result = self.stream.read(&mut self.body[before..]);
            let read = result.as_ref().copied().unwrap_or(0);
            self.body.truncate(before + read);
            count -= read;
            check_read(result)?;
        }
        Ok(())
    }

    fn take_chunks(&mut self, limit: usize) -> Result<(), BodyError> {
        loop {
            let size = chunk_size(self.line(CHUNK_LINE)?)?;
            self.end_line();
            if size == 0 {
                return self.skip_trailers();
            }
            if size > (limit - self.body.len()) as u64 {
                return Err(too_large(limit).into());
            }
            self.take(size as usize)?;
            if !self.line(0)?.is_empty() {
                return Err(malformed("a chunk is longer than it says").into());
            }
            self.end_line();
        }
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
            check_read(self.inbox.fill(self.stream))?;
        }
    }

    /// The next line, without its CR LF, once it has arrived. It stays in the
    /// inbox until [`BodyReader::end_line`].
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

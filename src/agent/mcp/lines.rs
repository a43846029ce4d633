//! What a program prints, cut into lines of bounded length.

use super::message::MESSAGE_BYTES;

/// Bytes of a line's buffer that are kept while no output arrives.
const KEPT_BYTES: usize = 64 * 1024;

/// Collects a program's output into lines of bounded length.
#[derive(Default)]
pub(super) struct IncomingLines {
    buffer: Vec<u8>,
    /// The line is longer than a message may be; its rest is dropped.
    is_too_long: bool,
}

/// A line, or what is known of one that is too long.
pub(super) enum Line<'a> {
    /// A line without white space around it.
    Whole(&'a [u8]),
    /// A message that is too long.
    TooLong,
    /// The beginning of something else that is too long.
    LongNoise(&'a [u8]),
}

impl IncomingLines {
    /// Takes more output, and passes on the lines that are complete.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(length) = rest.iter().position(|&byte| byte == b'\n') {
            if self.buffer.is_empty() && !self.is_too_long {
                take_line(&rest[..length], take);
            } else {
                self.keep(&rest[..length], take);
                self.end(take);
            }
            rest = &rest[length + 1..];
        }
        self.keep(rest, take);
    }

    fn keep(&mut self, bytes: &[u8], take: &mut dyn FnMut(Line<'_>)) {
        if self.is_too_long {
            return;
        }
        if self.buffer.len() + bytes.len() <= MESSAGE_BYTES {
            return self.buffer.extend_from_slice(bytes);
        }
        self.is_too_long = true;
        take(match self.buffer.trim_ascii_start().first() {
            Some(b'{' | b'[') => Line::TooLong,
            _ => Line::LongNoise(&self.buffer),
        });
        self.buffer = Vec::new();
    }

    /// Ends the line.
    pub(super) fn end(&mut self, take: &mut dyn FnMut(Line<'_>)) {
        if !std::mem::take(&mut self.is_too_long) {
            take_line(&self.buffer, take);
        }
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
    }
}

fn take_line(line: &[u8], take: &mut dyn FnMut(Line<'_>)) {
    let line = line.trim_ascii();
    if !line.is_empty() {
        take(Line::Whole(line));
    }
}

#[cfg(test)]
mod tests;

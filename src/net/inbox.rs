//! Bytes that have arrived on a connection and are not consumed yet.

use std::io::{self, Read};

/// Initial size of a buffer; most heads fit.
pub const FIRST_BYTES: usize = 2 * 1024;

/// A buffer that grows as bytes arrive. The caller bounds it.
#[derive(Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// What has arrived.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Removes the first `count` bytes of what has arrived.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Reads once, with the stream's read timeout. Returns the number of bytes; 0
    /// at the end of input.
    pub fn fill(&mut self, stream: &mut dyn Read) -> io::Result<usize> {
        if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            } else {
                self.bytes
                    .resize((self.bytes.len() * 2).max(FIRST_BYTES), 0);
            }
        }
        let count = stream.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// How much memory it holds.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// What has arrived, as a vector; frees the rest of the buffer.
    pub fn into_unread(mut self) -> Vec<u8> {
        self.bytes.truncate(self.end);
        self.bytes.drain(..self.start);
        self.bytes.shrink_to_fit();
        self.bytes
    }
}

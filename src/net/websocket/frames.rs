//! Follows the frame boundaries of a WebSocket's incoming bytes.
//!
//! tungstenite does not say what its buffers hold, and keeps them as large as
//! the largest message ever was: a mebibyte for a connection that then idles
//! for days. Its only way to give them back is a new `WebSocket` on the same
//! stream, which loses nothing exactly when no frame has been read in part.
//! This module tracks that. It also counts whole frames: a client that sends one
//! frame byte by byte does not count as alive.

/// The position of the input in the sequence of frames (RFC 6455 section 5.2).
#[derive(Debug, Default)]
pub struct Frames {
    header: [u8; 14],
    /// Bytes of `header` that have arrived.
    arrived: usize,
    /// Bytes of the payload that are still to come.
    payload: u64,
    /// Whether more fragments of a message are to come.
    fragmented: bool,
    completed: u64,
    largest: u64,
    /// The status code of the close frame.
    close_code: u16,
    is_malformed: bool,
}

/// The opcode of a close frame.
const CLOSE: u8 = 0x08;

impl Frames {
    /// Takes note of the next bytes.
    pub fn observe(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.payload > 0 {
                let skipped = bytes
                    .len()
                    .min(usize::try_from(self.payload).unwrap_or(usize::MAX));
                if self.header[0] & 0x0f == CLOSE {
                    self.read_close_code(&bytes[..skipped]);
                }
                self.payload -= skipped as u64;
                bytes = &bytes[skipped..];
                if self.payload == 0 {
                    self.completed += 1;
                }
                continue;
            }
            bytes = rest;
            self.header[self.arrived] = first;
            self.arrived += 1;
            self.end_header();
        }
    }

    /// Whether every frame and every message that began is complete.
    pub fn are_complete(&self) -> bool {
        self.arrived == 0 && self.payload == 0 && !self.fragmented
    }

    /// Whether a payload has begun and is not complete.
    pub fn is_within_payload(&self) -> bool {
        self.payload > 0
    }

    /// How many frames are complete.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Payload bytes of the largest frame.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Whether a control frame stated its length in a longer form than it may
    /// (RFC 6455 section 5.5), which tungstenite accepts.
    pub fn is_malformed(&self) -> bool {
        self.is_malformed
    }

    /// The status code of the close frame that has arrived, if it has one.
    pub fn close_code(&self) -> u16 {
        self.close_code
    }

    /// `bytes` are the next of a close frame's masked payload, which begins with
    /// the code.
    fn read_close_code(&mut self, bytes: &[u8]) {
        let length = u64::from(self.header[1] & 0x7f);
        let begun = usize::try_from(length.saturating_sub(self.payload)).unwrap_or(usize::MAX);
        for (place, byte) in (begun..2).zip(bytes) {
            let byte = byte ^ self.header[2 + place];
            self.close_code = self.close_code << 8 | u16::from(byte);
        }
    }

    fn end_header(&mut self) {
        if self.arrived < 2 {
            return;
        }
        let extended = match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if self.header[1] & 0x80 != 0 { 4 } else { 0 };
        if self.arrived < 2 + extended + mask {
            return;
        }
        self.arrived = 0;
        self.payload = match extended {
            0 => u64::from(self.header[1] & 0x7f),
            _ => self.header[2..2 + extended]
                .iter()
                .fold(0, |length, &byte| length << 8 | u64::from(byte)),
        };
        self.largest = self.largest.max(self.payload);
        let is_control = self.header[0] & 0x08 != 0;
        if is_control {
            self.is_malformed |= extended > 0;
        } else {
            self.fragmented = self.header[0] & 0x80 == 0;
        }
        if self.payload == 0 {
            self.completed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame.
    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match length {
            0..126 => bytes.push(0x80 | length as u8),
            126..65536 => {
                bytes.push(0x80 | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend([0xff; 4]);
        bytes.resize(bytes.len() + length, 0xff);
        bytes
    }

    #[test]
    fn boundaries_are_found_however_the_bytes_arrive() {
        let lengths = [0, 1, 125, 126, 65535, 65536, 3];
        let bytes: Vec<u8> = lengths.iter().flat_map(|&len| frame(0x81, len)).collect();
        for step in [1, 2, 7, 1000, bytes.len()] {
            let mut frames = Frames::default();
            for piece in bytes.chunks(step) {
                frames.observe(piece);
            }
            assert!(frames.are_complete());
            assert_eq!(frames.completed(), lengths.len() as u64);
            assert_eq!(frames.largest(), 65536);
        }
    }

    #[test]
    fn a_message_is_complete_with_its_last_fragment() {
        let mut frames = Frames::default();
        frames.observe(&frame(0x01, 5));
        assert!(!frames.are_complete());
        // A ping may come between fragments, as a separate frame.
        frames.observe(&frame(0x89, 0));
        assert!(!frames.are_complete());
        frames.observe(&frame(0x80, 5));
        assert!(frames.are_complete());
        frames.observe(&frame(0x81, 5)[..4]);
        assert!(!frames.are_complete());
    }
}

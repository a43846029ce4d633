//! Follows the frame boundaries of a WebSocket's incoming bytes.
//!
//! tungstenite does not say what its buffers hold, and keeps them as large as
//! the largest message ever was: a mebibyte for a connection that then idles
//! for days. Its only way to give them back is a new `WebSocket` on the same
//! stream, which loses nothing exactly when no frame has been read in part.
//! This module tracks that. It also counts whole frames: a client that sends one
//! frame byte by byte does not count as alive.

use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, OpCode};

/// Bytes of the longest header that a control frame may have, which states its length in
/// the shortest form (RFC 6455 section 5.5). tungstenite accepts the longer ones.
const CONTROL_HEADER: usize = 6;

/// The position of the input in the sequence of frames (RFC 6455 section 5.2).
#[derive(Debug, Default)]
pub struct Frames {
    /// The bytes of a header that has arrived in part, and those of a close frame's code.
    header: Vec<u8>,
    /// Bytes of the payload that are still to come.
    payload: u64,
    /// Whether more fragments of a message are to come.
    is_fragmented: bool,
    /// How many frames are complete.
    pub completed: u64,
    /// The status code of the close frame that has arrived, if it has one.
    pub close_code: u16,
    /// Whether a control frame had too long a header.
    pub is_malformed: bool,
}

impl Frames {
    /// Takes note of the next bytes.
    pub fn observe(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.payload > 0 {
                let most = usize::try_from(self.payload).unwrap_or(usize::MAX);
                let skipped = bytes.len().min(most);
                bytes = &bytes[skipped..];
                self.payload -= skipped as u64;
                self.completed += u64::from(self.payload == 0);
            } else {
                bytes = rest;
                self.header.push(first);
                self.end_header();
            }
        }
    }

    fn end_header(&mut self) {
        let mut cursor = Cursor::new(&self.header);
        // What tungstenite refuses ends the connection.
        let Ok(Some((header, length))) = FrameHeader::parse(&mut cursor) else {
            return;
        };
        let code = &self.header[cursor.position() as usize..];
        let is_close = header.opcode == OpCode::Control(Control::Close);
        if is_close && (code.len() as u64) < length.min(2) {
            return;
        }
        let mask = header.mask.unwrap_or_default();
        self.close_code = (code.iter().zip(mask))
            .fold(0, |known, (byte, mask)| known << 8 | u16::from(byte ^ mask));
        self.payload = length - code.len() as u64;
        self.completed += u64::from(self.payload == 0);
        if matches!(header.opcode, OpCode::Control(_)) {
            self.is_malformed |= self.header.len() - code.len() > CONTROL_HEADER;
        } else {
            self.is_fragmented = !header.is_final;
        }
        self.header.clear();
    }

    /// Whether every frame and every message that began is complete.
    pub fn are_complete(&self) -> bool {
        self.header.is_empty() && self.payload == 0 && !self.is_fragmented
    }

    /// Whether a payload has begun and is not complete.
    pub fn is_within_payload(&self) -> bool {
        self.payload > 0
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
            assert_eq!(frames.completed, lengths.len() as u64);
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

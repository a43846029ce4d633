//! A picture to show to a model: a red square, as PNG
//! (<https://www.w3.org/TR/png-3/>), without compression.

use crate::model::{FileReader, ModelFile};
use base::ids::AttachmentId;

/// Its name in English.
pub const COLOUR: &str = "red";
const RED: [u8; 3] = [0xff, 0, 0];
/// Pixels of a side; some models refuse pictures below 28.
const SIDE: u32 = 64;
/// What a model may count for it, at most.
const TOKENS: usize = 300;

/// The picture.
pub struct Picture(Vec<u8>);

impl Picture {
    /// Draws it.
    pub fn new() -> Picture {
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        let side = SIDE.to_be_bytes();
        // Eight bits for each pixel, from a palette; no filter, no interlacing.
        chunk(
            &mut png,
            b"IHDR",
            &[&side[..], &side, &[8, 3, 0, 0, 0]].concat(),
        );
        chunk(&mut png, b"PLTE", &RED);
        chunk(
            &mut png,
            b"IDAT",
            &stored(&vec![0; (SIDE * (SIDE + 1)) as usize]),
        );
        chunk(&mut png, b"IEND", &[]);
        Picture(png)
    }

    /// As the file of a message.
    pub fn file(&self) -> ModelFile {
        ModelFile {
            id: AttachmentId::from(1),
            name: "picture.png".to_owned(),
            media_type: "image/png".to_owned(),
            bytes: self.0.len() as u64,
            most_chars: 0,
            is_folded: false,
            tokens: TOKENS,
        }
    }
}

impl FileReader for Picture {
    fn bytes(&self, _: &ModelFile) -> Option<Vec<u8>> {
        Some(self.0.clone())
    }

    fn text(&self, _: &ModelFile) -> Option<String> {
        None
    }
}

fn chunk(png: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let begin = png.len();
    png.extend(name);
    png.extend(data);
    let sum = crc32(&png[begin..]);
    png.extend(sum.to_be_bytes());
}

/// A zlib stream of one stored block (RFC 1950, RFC 1951): at most 65,535 bytes.
fn stored(data: &[u8]) -> Vec<u8> {
    let length = data.len() as u16;
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(data);
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in data {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    stream.extend(((high << 16) | low).to_be_bytes());
    stream
}

fn crc32(data: &[u8]) -> u32 {
    let bits = |sum: u32| {
        (0..8).fold(sum, |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    };
    !data
        .iter()
        .fold(u32::MAX, |sum, byte| bits(sum ^ u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_sums_are_those_of_the_standards() {
        // The check value of CRC-32, and the end of every PNG.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let Picture(png) = Picture::new();
        assert!(png.ends_with(b"IEND\xae\x42\x60\x82"));
        // Adler-32 of "Wikipedia".
        assert!(stored(b"Wikipedia").ends_with(&[0x11, 0xe6, 0x03, 0x98]));
    }
}

//! What a file is, by its content. What its sender says is a hint: it only tells sound
//! from pictures in containers that hold both. Text is plain text, whatever is written
//! in it: neither HTML nor SVG is ever served as such.

/// The type of what is neither text nor known.
const UNKNOWN: &str = "application/octet-stream";
const TEXT: &str = "text/plain";

/// How much of a file's beginning tells its type.
pub const BEGINNING: usize = 64;

/// The type of a file that begins so, if it has the mark of one.
pub fn by_beginning(beginning: &[u8], declared: Option<&str>) -> Option<&'static str> {
    let at = |place: usize, mark: &[u8]| {
        let rest = beginning.get(place..);
        rest.is_some_and(|rest| rest.starts_with(mark))
    };
    let is_sound = declared.is_some_and(|declared| declared.starts_with("audio/"));
    Some(match beginning {
        _ if at(0, b"\x89PNG\r\n\x1a\n") => "image/png",
        _ if at(0, b"\xff\xd8\xff") => "image/jpeg",
        _ if at(0, b"GIF87a") || at(0, b"GIF89a") => "image/gif",
        _ if at(0, b"RIFF") && at(8, b"WEBP") => "image/webp",
        _ if at(0, b"%PDF-") => "application/pdf",
        _ if at(0, b"RIFF") && at(8, b"WAVE") => "audio/wav",
        _ if at(0, b"OggS") => "audio/ogg",
        _ if at(0, b"ID3") => "audio/mpeg",
        [0xff, second, third, ..] if is_mp3_frame(*second, *third) => "audio/mpeg",
        _ if at(4, b"ftyp") => match beginning.get(8..12)? {
            b"M4A " | b"M4B " => "audio/mp4",
            b"isom" | b"iso2" | b"iso4" | b"iso5" | b"iso6" | b"mp41" | b"mp42" | b"avc1"
            | b"M4V " | b"MSNV" | b"dash" => match is_sound {
                true => "audio/mp4",
                false => "video/mp4",
            },
            _ => return None,
        },
        // The document type stands among the first elements of EBML (RFC 8794).
        _ if at(0, b"\x1a\x45\xdf\xa3") && beginning.windows(4).any(|part| part == b"webm") => {
            match is_sound {
                true => "audio/webm",
                false => "video/webm",
            }
        }
        _ => return None,
    })
}

/// Whether these follow the first byte of an MPEG frame of layer III: with a version,
/// a bit rate and a sampling rate that exist.
fn is_mp3_frame(second: u8, third: u8) -> bool {
    let (version, layer) = (second >> 3 & 3, second >> 1 & 3);
    let (bit_rate, sampling_rate) = (third >> 4, third >> 2 & 3);
    second >> 5 == 7
        && version != 1
        && layer == 1
        && !matches!(bit_rate, 0 | 15)
        && sampling_rate != 3
}

/// Whether what comes piece by piece is plain text: UTF-8 without control characters
/// other than those of layout.
#[derive(Default)]
pub struct TextCheck {
    /// The beginning of a character that the last piece has cut.
    cut: Vec<u8>,
    is_other: bool,
}

impl TextCheck {
    /// Looks at the next piece. Returns whether it may still be text.
    pub fn next(&mut self, piece: &[u8]) -> bool {
        if self.is_other {
            return false;
        }
        let missing = match self.cut.is_empty() {
            true => 0,
            // The longest character has 4 bytes.
            false => piece.len().min(4 - self.cut.len()),
        };
        let joined = [&self.cut[..], &piece[..missing]].concat();
        let rest = match std::str::from_utf8(&joined) {
            Ok(_) => missing,
            Err(error) if error.valid_up_to() > 0 => error.valid_up_to() - self.cut.len(),
            Err(error) if error.error_len().is_none() && missing == piece.len() => {
                self.cut = joined;
                return true;
            }
            Err(_) => {
                self.is_other = true;
                return false;
            }
        };
        self.cut.clear();
        let rest = &piece[rest..];
        let valid = match std::str::from_utf8(rest) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => {
                self.is_other = true;
                return false;
            }
        };
        self.cut.extend_from_slice(&rest[valid..]);
        let is_layout = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c);
        let is_control = |byte: &u8| byte.is_ascii_control() && !is_layout(*byte);
        self.is_other = piece.iter().any(is_control);
        !self.is_other
    }

    /// The type of what had these pieces.
    pub fn media_type(self) -> &'static str {
        match self.is_other || !self.cut.is_empty() {
            true => UNKNOWN,
            false => TEXT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &[u8], declared: Option<&str>) -> &'static str {
        let beginning = &content[..content.len().min(BEGINNING)];
        by_beginning(beginning, declared).unwrap_or_else(|| {
            let mut check = TextCheck::default();
            check.next(content);
            check.media_type()
        })
    }

    #[test]
    fn a_type_is_that_of_the_content() {
        let mut padded = b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec();
        padded.splice(0..0, b"\n\n\n".iter().copied());
        for (content, media_type) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"GIF89a\x01\0", "image/gif"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
            (b"RIFF\x24\0\0\0AVI LIST", UNKNOWN),
            (b"%PDF-1.7\n%\xe2\xe3", "application/pdf"),
            (b"OggS\0\x02", "audio/ogg"),
            (b"ID3\x04\0", "audio/mpeg"),
            (b"\xff\xfb\x90\x64\0", "audio/mpeg"),
            (b"\xff\xfb\xf0\x64\0", UNKNOWN),
            (b"\xff\xf1\x50\x80", UNKNOWN),
            (b"\0\0\0\x20ftypM4A \0\0", "audio/mp4"),
            (b"\0\0\0\x20ftypisom\0\0", "video/mp4"),
            (b"\0\0\0\x20ftypheic\0\0", UNKNOWN),
            (b"\0\0\0\x20ftyp", UNKNOWN),
            (
                b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm",
                "video/webm",
            ),
            (
                b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x88matroska",
                UNKNOWN,
            ),
            (b"<!DOCTYPE html><script>alert(1)</script>", TEXT),
            (&padded, TEXT),
            (b"{\"a\": 1}\r\n\tb\x0c", TEXT),
            ("\u{feff}Grüße, 世界 🎉".as_bytes(), TEXT),
            (b"", TEXT),
            (b"a\0b", UNKNOWN),
            (b"\x1b[31mred", UNKNOWN),
            (b"caf\xe9", UNKNOWN),
            (b"\xc3", UNKNOWN),
            (b"MZ\x90\0", UNKNOWN),
            (b"PK\x03\x04", UNKNOWN),
        ] {
            for declared in [None, Some("text/html"), Some("image/svg+xml")] {
                assert_eq!(of(content, declared), media_type, "{content:?}");
            }
        }
        let webm = b"\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm";
        assert_eq!(of(webm, Some("audio/webm;codecs=opus")), "audio/webm");
        assert_eq!(of(b"\0\0\0\x20ftypmp42\0", Some("audio/mp4")), "audio/mp4");
    }

    #[test]
    fn text_is_text_wherever_it_is_cut() {
        let text = "aü世🎉\u{feff}b";
        for (content, is_text) in [
            (text.as_bytes().to_vec(), true),
            ([text.as_bytes(), b"\xf0\x9f\x8e"].concat(), false),
            ([text.as_bytes(), b"\x80"].concat(), false),
            ([b"\xe4\xb8", text.as_bytes()].concat(), false),
            ([text.as_bytes(), b"\0"].concat(), false),
        ] {
            for first in 0..=content.len() {
                for second in first..=content.len() {
                    let mut check = TextCheck::default();
                    for piece in [
                        &content[..first],
                        &content[first..second],
                        &content[second..],
                    ] {
                        check.next(piece);
                    }
                    let expected = if is_text { TEXT } else { UNKNOWN };
                    assert_eq!(check.media_type(), expected, "{first} {second}");
                }
            }
        }
    }
}

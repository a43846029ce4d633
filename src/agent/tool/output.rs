//! Tool output within bounds, as text for the model.

use std::borrow::Cow;

use serde_json::Value;

use super::definition::Arguments;
use base::clock::Timestamp;

/// Most characters of a tool's result that the model is shown.
pub const MAX_RESULT_CHARS: usize = 16_000;

/// Shortens a tool's result to [`MAX_RESULT_CHARS`], as [`cap_text`] does.
pub fn cap_result(text: String) -> String {
    cap_text(text, MAX_RESULT_CHARS)
}

/// Shortens a text to `most` characters: two thirds from its beginning, one
/// third from its end, and between them a note of how much is missing. A text
/// within the limit is returned unchanged.
pub fn cap_text(text: String, most: usize) -> String {
    // There are at least as many bytes as characters.
    if text.len() <= most {
        return text;
    }
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    let byte_of = |position| {
        text.char_indices()
            .nth(position)
            .map_or(text.len(), |(byte, _)| byte)
    };
    let missing = count - most;
    let head_chars = most / 3 * 2;
    let head = &text[..byte_of(head_chars)];
    let tail = &text[byte_of(head_chars + missing)..];
    format!("{head}\n[... {missing} characters left out ...]\n{tail}")
}

/// Characters of a longer text that the model sees at a time.
const PAGE_CHARS: usize = 15_000;

/// The part of a long text that begins at the argument `offset`, in characters,
/// with a note of its range and how to read on. A text that fits is returned
/// unchanged.
///
/// # Errors
/// The offset is beyond the text.
pub fn page(text: &str, arguments: &Arguments) -> Result<String, String> {
    let offset = arguments.get("offset").and_then(Value::as_i64).unwrap_or(0);
    let count = text.chars().count();
    let first = usize::try_from(offset)
        .ok()
        .filter(|&first| first < count.max(1))
        .ok_or_else(|| format!("the text has {count} characters: no offset {offset}"))?;
    let last = count.min(first + PAGE_CHARS);
    if last - first == count {
        return Ok(text.to_owned());
    }
    let shown: String = text.chars().skip(first).take(PAGE_CHARS).collect();
    let note = match last < count {
        true => format!("read on with offset {last}"),
        false => "this is the end".to_owned(),
    };
    Ok(format!(
        "{}\n[characters {first} to {last} of {count}; {note}]",
        shown.trim_end()
    ))
}

/// Bytes as text; None when they are binary. A character cut at the end is left
/// out, and invalid bytes are replaced.
pub fn text_of(mut bytes: Vec<u8>) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    drop_cut_character(&mut bytes);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes the beginning of a character from the end of a text that was cut.
fn drop_cut_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
}

/// A time to the minute, as in `2026-11-21 09:30 UTC`.
pub(super) fn minute(time: Timestamp) -> String {
    let text = time.to_string();
    match (text.get(..10), text.get(11..16)) {
        (Some(date), Some(minute)) => format!("{date} {minute} UTC"),
        _ => text,
    }
}

/// The first `most` characters of `text`, followed by an ellipsis when
/// something is missing.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// The beginning of an output of unknown length.
#[derive(Debug)]
pub(super) struct Captured {
    kept: Vec<u8>,
    limit: usize,
    total: u64,
}

impl Captured {
    /// Keeps at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Captured {
        Captured {
            kept: Vec::new(),
            limit,
            total: 0,
        }
    }

    /// Takes more output: keeps what still fits and counts the rest.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.limit - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.total += bytes.len() as u64;
    }

    /// Whether there was more than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.total > self.kept.len() as u64
    }

    /// Whether there was nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// What is kept, as it came.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.kept
    }

    /// The output as text for the model, without white space at its end, with
    /// a note where it was cut. Bytes that are not UTF-8 are replaced; output
    /// with a NUL is binary, and only its size is given.
    pub(super) fn into_text(self) -> String {
        let cut = self.is_cut();
        if self.kept.contains(&0) {
            let more = if cut { "at least " } else { "" };
            return format!("[binary output of {more}{} bytes]", self.total);
        }
        let mut kept = self.kept;
        if cut {
            drop_cut_character(&mut kept);
        }
        let length = kept.len();
        let (mut text, replaced) = match String::from_utf8(kept) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        text.truncate(text.trim_end().len());
        if text.is_empty() && !cut {
            // Some model APIs refuse an empty result.
            text.push_str("[no output]");
        }
        if replaced {
            text.push_str("\n[bytes that are not UTF-8 were replaced]");
        }
        if cut {
            text.push_str(&format!(
                "\n[output cut: only its first {length} bytes are shown]"
            ));
        }
        text
    }
}

/// The end of an output of unknown length.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Vec<u8>,
    limit: usize,
}

impl Tail {
    /// Keeps at most the last `limit` bytes.
    pub(super) fn new(limit: usize) -> Tail {
        Tail {
            kept: Vec::new(),
            limit,
        }
    }

    /// Takes more output, and drops its beginning beyond the limit.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.kept.len() + bytes.len()).saturating_sub(self.limit);
        self.kept.drain(..excess);
        self.kept.extend_from_slice(bytes);
    }

    /// The end of the output as text, without white space around it.
    pub(super) fn into_text(self) -> String {
        // The first bytes may be the end of a character that was cut.
        let start = self
            .kept
            .iter()
            .position(|byte| byte & 0xC0 != 0x80)
            .unwrap_or(0);
        String::from_utf8_lossy(&self.kept[start..])
            .replace('\0', "")
            .trim()
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_CHARS: usize = MAX_RESULT_CHARS / 3 * 2;

    #[test]
    fn a_result_within_the_limit_is_left_alone() {
        for text in [
            String::new(),
            "x".repeat(MAX_RESULT_CHARS),
            "ü".repeat(MAX_RESULT_CHARS),
        ] {
            assert_eq!(cap_result(text.clone()), text);
        }
    }

    #[test]
    fn a_long_result_keeps_its_beginning_and_its_end() {
        for filler in ["-", "ü", "🏠"] {
            let long = format!(
                "{}{}{}",
                "a".repeat(HEAD_CHARS),
                filler.repeat(123),
                "z".repeat(MAX_RESULT_CHARS - HEAD_CHARS)
            );
            let capped = cap_result(long);
            let (head, rest) = capped.split_once("\n[... ").unwrap();
            let (note, tail) = rest.split_once(" ...]\n").unwrap();
            assert_eq!(head, "a".repeat(HEAD_CHARS));
            assert_eq!(note, "123 characters left out");
            assert_eq!(tail, "z".repeat(MAX_RESULT_CHARS - HEAD_CHARS));
        }
    }

    #[test]
    fn shortening_counts_characters() {
        for (text, most, shortened) in [
            ("", 3, ""),
            ("üüü", 3, "üüü"),
            ("üüüü", 3, "üüü…"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(shorten(text, most), shortened);
        }
    }

    #[test]
    fn times_are_told_to_the_minute() {
        let time = Timestamp::from_millis(1_795_253_400_125);
        assert_eq!(minute(time), "2026-11-21 09:30 UTC");
    }

    #[test]
    fn output_becomes_text_with_notes() {
        let cases: [(&[&[u8]], usize, &str); 9] = [
            (&[], 10, "[no output]"),
            (&[b" \n"], 10, "[no output]"),
            (&[b"12", b"3\n"], 10, "123"),
            (&[b"0123456789"], 10, "0123456789"),
            (
                &[b"01234", b"56789", b"x"],
                10,
                "0123456789\n[output cut: only its first 10 bytes are shown]",
            ),
            (
                &["aüü".as_bytes()],
                4,
                "aü\n[output cut: only its first 3 bytes are shown]",
            ),
            (
                &[b"a\xFFb"],
                10,
                "a\u{FFFD}b\n[bytes that are not UTF-8 were replaced]",
            ),
            (&[b"a\0b"], 10, "[binary output of 3 bytes]"),
            (&[b"a\0b", b"cd"], 3, "[binary output of at least 5 bytes]"),
        ];
        for (pieces, limit, text) in cases {
            let mut captured = Captured::new(limit);
            for piece in pieces {
                captured.push(piece);
            }
            assert_eq!(captured.into_text(), text, "{pieces:?}");
        }
    }

    #[test]
    fn a_tail_keeps_the_end() {
        let cases: [(&[&[u8]], &str); 5] = [
            (&[], ""),
            (&[b"abc\n"], "abc"),
            (&[b"abc", b"def"], "cdef"),
            (&[b"abcdefgh"], "efgh"),
            (&["xüüb".as_bytes()], "üb"),
        ];
        for (pieces, text) in cases {
            let mut tail = Tail::new(4);
            for piece in pieces {
                tail.push(piece);
            }
            assert_eq!(tail.into_text(), text, "{pieces:?}");
        }
    }
}

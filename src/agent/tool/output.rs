//! Tool output within bounds, as text for the model.

use std::borrow::Cow;

use serde_json::Value;

use super::definition::Arguments;
use base::clock::Timestamp;
use base::measure::byte_count;
use store::KEPT_RESULT_BYTES;

/// Most characters of a tool's result that the model is shown.
pub const MAX_RESULT_CHARS: usize = 16_000;

/// Most bytes of a longer one that are kept, with room for the note that says so.
const KEPT_BYTES: usize = KEPT_RESULT_BYTES - 100;

/// Shortens a tool's result to [`MAX_RESULT_CHARS`]. One that is longer, and no [`page`]
/// yet, is given to `keep`, which keeps it whole and returns the path under which the tool
/// `read_file` finds it; then the result is its first page. Without a path, it is
/// shortened as [`cap_text`] does.
pub fn cap_result(text: String, keep: impl FnOnce(&str) -> Option<String>) -> String {
    let is_long = text.len() > MAX_RESULT_CHARS && text.chars().count() > MAX_RESULT_CHARS;
    if !is_long || cap_page(&text, MAX_RESULT_CHARS).is_some() {
        return cap_text(text, MAX_RESULT_CHARS);
    }
    let end = text.floor_char_boundary(KEPT_BYTES);
    let whole = match end < text.len() {
        true => {
            let note = format!("\n[only the first {end} bytes of {} are kept]", text.len());
            Cow::Owned(text[..end].to_owned() + &note)
        }
        false => Cow::Borrowed(&*text),
    };
    let Some(path) = keep(&whole) else {
        return cap_text(text, MAX_RESULT_CHARS);
    };
    let first = page(&whole, &Arguments::new()).expect("the text has a first page");
    format!("{first}\n[kept for 7 days: read_file with the path {path} and that offset]")
}

/// Shortens a text to `most` characters: two thirds from its beginning, one
/// third from its end, and between them a note of how much is missing. Of a [`page`],
/// only the end is left out, and its note says where to read on. A text within the
/// limit is returned unchanged.
pub fn cap_text(text: String, most: usize) -> String {
    // There are at least as many bytes as characters.
    if text.len() <= most {
        return text;
    }
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    if let Some(shorter) = cap_page(&text, most) {
        return shorter;
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
/// Most characters of a text without a note of its range. No limit cuts so little.
const BRIEF_CHARS: usize = 1_000;
/// Most bytes that follow the note of a range.
const AFTER_RANGE: usize = 300;
const RANGE: &str = "\n[characters ";

/// The part of a long text that begins at the argument `offset`, in characters,
/// with a note of its range and how to read on. A short text is returned unchanged.
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
    if count <= BRIEF_CHARS && first == 0 {
        return Ok(text.to_owned());
    }
    let last = count.min(first + PAGE_CHARS);
    let shown: String = text.chars().skip(first).take(PAGE_CHARS).collect();
    Ok(format!("{shown}{}", range(first, last, count)))
}

/// The note of a range.
fn range(first: usize, last: usize, count: usize) -> String {
    let note = match last < count {
        true => format!("read on with offset {last}"),
        false => "this is the end".to_owned(),
    };
    format!("{RANGE}{first} to {last} of {count}; {note}]")
}

/// Shortens what holds a [`page`] to `most` characters: the page loses its end, and
/// its note names the offset where that begins. None for another text.
fn cap_page(text: &str, most: usize) -> Option<String> {
    let place = text.rfind(RANGE)?;
    let note = &text[place..];
    let end = note.find(']')? + 1;
    let (note, after) = note.split_at(end);
    let mut numbers = note
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|digits| digits.parse::<usize>().ok());
    let (first, last, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let before = text[..place].chars().count();
    let shown = last.checked_sub(first)?;
    let head = before.checked_sub(shown)?;
    if after.len() > AFTER_RANGE || last > count {
        return None;
    }
    // The longest note there can be.
    let around = range(count, count - 1, count).len() + after.chars().count();
    let kept = most.checked_sub(head + around).filter(|&kept| kept > 0)?;
    let kept = kept.min(shown);
    let text: String = text.chars().take(head + kept).collect();
    Some(format!(
        "{text}{}{after}",
        range(first, first + kept, count)
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
pub(crate) struct Captured {
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
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.kept
    }

    /// The output as text for the model, without white space at its end, with
    /// a note where it was cut. Bytes that are not UTF-8 are replaced; output
    /// with a NUL is binary, and only its size is given.
    pub(super) fn into_text(self) -> String {
        let cut = self.is_cut();
        if self.kept.contains(&0) {
            let more = if cut { "at least " } else { "" };
            return format!("[binary output of {more}{}]", byte_count(self.total));
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
pub(crate) struct Tail {
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
    pub(crate) fn into_text(self) -> String {
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
            assert_eq!(cap_result(text.clone(), |_| panic!("it is short")), text);
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
            let capped = cap_result(long, |_| None);
            let (head, rest) = capped.split_once("\n[... ").unwrap();
            let (note, tail) = rest.split_once(" ...]\n").unwrap();
            assert_eq!(head, "a".repeat(HEAD_CHARS));
            assert_eq!(note, "123 characters left out");
            assert_eq!(tail, "z".repeat(MAX_RESULT_CHARS - HEAD_CHARS));
        }
    }

    #[test]
    fn of_a_very_long_result_the_beginning_is_kept() {
        let long = "ü".repeat(KEPT_RESULT_BYTES);
        let mut kept = String::new();
        let shown = cap_result(long, |text| {
            kept = text.to_owned();
            Some("res_1".to_owned())
        });
        assert!((KEPT_BYTES..=KEPT_RESULT_BYTES).contains(&kept.len()));
        let note = format!("[only the first {KEPT_BYTES} bytes of 2097152 are kept]");
        assert!(kept.ends_with(&note), "{}", &kept[kept.len() - 100..]);
        assert!(shown.contains("read on with offset 15000]"), "{shown}");
    }

    #[test]
    fn reading_on_shows_every_character_once_at_any_limit() {
        let text: String = (0..40_000)
            .map(|place| ['a', 'ü', ' ', '\n', '🏠'][place % 5])
            .collect();
        let around = |page: &str| format!("https://a.example/\n\n{page}\n[more is left out]");
        for most in [256, 1_000, 6_144, MAX_RESULT_CHARS] {
            let (mut read, mut offset) = (String::new(), Some(0));
            while let Some(at) = offset {
                let arguments = serde_json::json!({ "offset": at });
                let page = page(&text, arguments.as_object().unwrap()).unwrap();
                let shown = cap_text(around(&page), most);
                assert!(shown.chars().count() <= most, "{most}");
                let (shown, note) = shown.rsplit_once(RANGE).unwrap();
                read.push_str(shown.strip_prefix("https://a.example/\n\n").unwrap());
                let (_, next) = note.rsplit_once("; ").unwrap();
                offset = next
                    .strip_prefix("read on with offset ")
                    .map(|next| next.split(']').next().unwrap().parse().unwrap());
            }
            assert!(read == text, "{most}");
        }
        // A text that was read whole, too, tells where it is cut.
        let page = page(&"x".repeat(9_000), &Arguments::new()).unwrap();
        assert!(cap_text(page, 6_000).contains("of 9000; read on with offset 59"));
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
        let cases: [(&[&[u8]], usize, &str); 10] = [
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
            (&[b"\0"], 10, "[binary output of 1 byte]"),
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

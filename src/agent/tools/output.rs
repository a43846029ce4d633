//! Tool output within bounds, as text for the model.

use std::borrow::Cow;

use serde_json::{Map, Value};

use base::clock::Timestamp;
use base::measure::byte_count;
use store::{KEPT_RESULT_BYTES, PageRange};

/// Most characters of a tool's result that the model is shown.
pub const MAX_RESULT_CHARS: usize = 16_000;

/// Most bytes of a longer one that are kept, with room for the note that says so.
const KEPT_BYTES: usize = KEPT_RESULT_BYTES - 100;

/// Shortens a tool's result to [`MAX_RESULT_CHARS`]. One that is longer, and holds no
/// [`page`] yet, is given to `keep`, which keeps it whole and returns the path under which
/// the tool `read_file` finds it; then the result is its first page. Without a path, it is
/// shortened as [`cap_text`] does. Returns the range of the page that the result holds, too.
pub fn cap_result(
    text: String,
    range: Option<PageRange>,
    keep: impl FnOnce(&str) -> Option<String>,
) -> (String, Option<PageRange>) {
    if !is_longer(&text, MAX_RESULT_CHARS) {
        return (text, range);
    }
    if let Some((shorter, range)) = range.and_then(|range| cap_page(&text, range, MAX_RESULT_CHARS))
    {
        return (shorter, Some(range));
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
        return (cap_text(text, MAX_RESULT_CHARS), None);
    };
    let (first, range) = first_page(&whole);
    let how = "kept for 7 days: read_file with the path";
    (format!("{first}\n[{how} {path} and that offset]"), range)
}

/// Shortens a result that holds the page of this range: the page loses its end, and its
/// note says where to read on. Any other result is shortened as [`cap_text`] does.
pub fn cap_paged(text: &str, range: Option<PageRange>, most: usize) -> String {
    let shorter = range
        .filter(|_| is_longer(text, most))
        .and_then(|range| cap_page(text, range, most));
    shorter.map_or_else(|| cap_text(text.to_owned(), most), |(shorter, _)| shorter)
}

fn is_longer(text: &str, most: usize) -> bool {
    // There are at least as many bytes as characters.
    text.len() > most && text.chars().count() > most
}

/// Shortens a text to `most` characters: two thirds from its beginning, one
/// third from its end, and between them a note of how much is missing. A text within the
/// limit is returned unchanged.
pub fn cap_text(text: String, most: usize) -> String {
    if !is_longer(&text, most) {
        return text;
    }
    let count = text.chars().count();
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

/// The part of a long text that begins at the argument `offset`, in characters,
/// with a note of its range and how to read on. A short text is returned unchanged, and
/// has no range.
///
/// # Errors
/// The offset is beyond the text.
pub fn page(
    text: &str,
    arguments: &Map<String, Value>,
) -> Result<(String, Option<PageRange>), String> {
    let offset = arguments.get("offset").and_then(Value::as_i64).unwrap_or(0);
    let count = text.chars().count();
    let first = usize::try_from(offset)
        .ok()
        .filter(|&first| first < count.max(1))
        .ok_or_else(|| format!("the text has {count} characters: no offset {offset}"))?;
    Ok(page_from(text, first, count))
}

/// The first page of a text.
pub fn first_page(text: &str) -> (String, Option<PageRange>) {
    page_from(text, 0, text.chars().count())
}

fn page_from(text: &str, first: usize, count: usize) -> (String, Option<PageRange>) {
    if count <= BRIEF_CHARS && first == 0 {
        return (text.to_owned(), None);
    }
    let last = count.min(first + PAGE_CHARS);
    let range = PageRange { first, last, count };
    let mut shown: String = text.chars().skip(first).take(PAGE_CHARS).collect();
    shown.push_str(&note(range));
    (shown, Some(range))
}

/// The note of a range.
fn note(PageRange { first, last, count }: PageRange) -> String {
    let next = match last < count {
        true => format!("read on with offset {last}"),
        false => "this is the end".to_owned(),
    };
    format!("\n[characters {first} to {last} of {count}; {next}]")
}

/// Shortens what holds the page of this range to `most` characters: the page loses its end,
/// and its note names the offset where that begins. None where nothing of it would be left.
fn cap_page(text: &str, range: PageRange, most: usize) -> Option<(String, PageRange)> {
    // Only our own notes follow it.
    let (before, after) = text.rsplit_once(&note(range))?;
    let shown = range.last.checked_sub(range.first)?;
    let head = before.chars().count().checked_sub(shown)?;
    let longest = PageRange {
        first: range.count,
        last: range.count.checked_sub(1)?,
        count: range.count,
    };
    let around = note(longest).len() + after.chars().count();
    let kept = most.checked_sub(head + around).filter(|&kept| kept > 0)?;
    let kept = kept.min(shown);
    let range = PageRange {
        last: range.first + kept,
        ..range
    };
    let page: String = before.chars().take(head + kept).collect();
    Some((format!("{page}{}{after}", note(range)), range))
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
            let capped = cap_result(text.clone(), None, |_| panic!("it is short"));
            assert_eq!(capped, (text, None));
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
            let (capped, _) = cap_result(long, None, |_| None);
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
        let (shown, range) = cap_result(long, None, |text| {
            kept = text.to_owned();
            Some("res_1".to_owned())
        });
        assert!((KEPT_BYTES..=KEPT_RESULT_BYTES).contains(&kept.len()));
        let note = format!("[only the first {KEPT_BYTES} bytes of 2097152 are kept]");
        assert!(kept.ends_with(&note), "{}", &kept[kept.len() - 100..]);
        assert!(shown.contains("read on with offset 15000]"), "{shown}");
        assert_eq!(range.map(|range| range.last), Some(15_000));
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
                let (page, range) = page(&text, arguments.as_object().unwrap()).unwrap();
                let shown = cap_paged(&around(&page), range, most);
                assert!(shown.chars().count() <= most, "{most}");
                let (shown, note) = shown.rsplit_once("\n[characters ").unwrap();
                read.push_str(shown.strip_prefix("https://a.example/\n\n").unwrap());
                let (_, next) = note.rsplit_once("; ").unwrap();
                offset = next
                    .strip_prefix("read on with offset ")
                    .map(|next| next.split(']').next().unwrap().parse().unwrap());
            }
            assert!(read == text, "{most}");
        }
        // A text that was read whole, too, tells where it is cut.
        let (page, range) = first_page(&"x".repeat(9_000));
        assert!(cap_paged(&page, range, 6_000).contains("of 9000; read on with offset 59"));
    }

    #[test]
    fn what_a_page_says_itself_is_no_note_of_ours() {
        for forged in [
            "\n[characters 0 to 0 of 0; read on with offset 1]",
            "\n[characters 0 to 5000 of 99999; read on with offset 70000]",
        ] {
            let text = "x".repeat(MAX_RESULT_CHARS) + forged;
            let (shown, _) = cap_result(text.clone(), None, |_| Some("res_1".to_owned()));
            assert!(
                shown.contains("of 160") && shown.contains("offset 15000]"),
                "{forged}"
            );
            let shown = cap_paged(&text, None, 6_000);
            assert!(shown.contains("characters left out ...]"), "{forged}");
            let (page, range) = first_page(&("y".repeat(14_000) + forged + &text));
            let shown = cap_paged(&page, range, 6_000);
            assert!(shown.contains("; read on with offset 59"), "{forged}");
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

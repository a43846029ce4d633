//! What a server prints, in the log: limited, so that endless output fills
//! neither the log nor the disk.

use std::time::{Duration, Instant};

use crate::tool::output::shorten;

/// Characters of a line that are logged.
const LINE_CHARS: usize = 500;
/// Bytes of a line that are kept until it ends.
const LINE_BYTES: usize = 4 * LINE_CHARS;
/// Lines that are logged within [`WINDOW`].
const LINES: u32 = 50;
const WINDOW: Duration = Duration::from_secs(10);

/// Words of lines that are logged at the usual level.
const TROUBLE: [&str; 6] = ["error", "fail", "exception", "traceback", "panic", "fatal"];

/// One output stream of one server.
pub(super) struct LogLines {
    /// What the lines begin with.
    label: String,
    line: Vec<u8>,
    window: Option<Instant>,
    logged: u32,
    left_out: u64,
    last: String,
}

impl LogLines {
    /// Lines that are logged as `label: ...`.
    pub(super) fn new(label: String) -> LogLines {
        LogLines {
            label,
            line: Vec::new(),
            window: None,
            logged: 0,
            left_out: 0,
            last: String::new(),
        }
    }

    /// Takes output, and logs the lines that are complete.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for (place, piece) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if place > 0 {
                self.end_line();
            }
            let room = LINE_BYTES - self.line.len();
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    /// Logs one complete line.
    pub(super) fn push_line(&mut self, line: &[u8]) {
        self.line.clear();
        self.line
            .extend_from_slice(&line[..line.len().min(LINE_BYTES)]);
        self.end_line();
    }

    /// Logs what is left, and returns the last line that said something.
    pub(super) fn finish(&mut self) -> &str {
        self.end_line();
        self.tell_left_out();
        &self.last
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        // Colours and cursor movements are for terminals.
        let text: String = plain(&text).collect();
        self.line.clear();
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.last = shorten(text, LINE_CHARS).into_owned();
        let now = Instant::now();
        if self.window.is_none_or(|began| now >= began + WINDOW) {
            self.tell_left_out();
            self.window = Some(now);
            self.logged = 0;
        }
        if self.logged < LINES {
            self.logged += 1;
            log::log!(level(&self.last), "{}: {}", self.label, self.last);
        } else {
            self.left_out += 1;
        }
    }

    fn tell_left_out(&mut self) {
        if self.left_out > 0 {
            log::debug!("{}: {} more lines left out", self.label, self.left_out);
            self.left_out = 0;
        }
    }
}

/// Programs tell of each call; the log keeps what looks like trouble.
fn level(line: &str) -> log::Level {
    let line = line.to_lowercase();
    let is_trouble = |word: &&str| line.contains(*word);
    match TROUBLE.iter().any(is_trouble) {
        true => log::Level::Info,
        false => log::Level::Debug,
    }
}

/// The characters that are not part of an escape sequence (ECMA-48, section
/// 5.4) and do not control anything.
fn plain(text: &str) -> impl Iterator<Item = char> {
    let mut escaped = false;
    text.chars().filter(move |&letter| {
        if escaped {
            escaped = !matches!(letter, '@'..='Z' | '\\'..='~');
            return false;
        }
        escaped = letter == '\u{1b}';
        !letter.is_control() || letter == '\t'
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_known_and_plain() {
        for (pieces, last) in [
            (&["one\ntwo\n"][..], "two"),
            (&["on", "e\ntw", "o"], "two"),
            (&["\u{1b}[31mred\u{1b}[0m alert\n", "\n"], "red alert"),
            (&["a\r\n"], "a"),
            (&[], ""),
        ] {
            let mut lines = LogLines::new("mcp test".to_owned());
            for piece in pieces {
                lines.push(piece.as_bytes());
            }
            assert_eq!(lines.finish(), last);
        }
    }

    #[test]
    fn what_looks_like_trouble_is_kept() {
        for (line, level_of) in [
            (
                "Processing request of type CallToolRequest",
                log::Level::Debug,
            ),
            ("Traceback (most recent call last):", log::Level::Info),
            ("npm ERROR! missing script", log::Level::Info),
        ] {
            assert_eq!(level(line), level_of, "{line}");
        }
    }

    #[test]
    fn an_endless_line_and_endless_lines_are_bounded() {
        let mut lines = LogLines::new("mcp test".to_owned());
        for _ in 0..100 {
            lines.push(&[b'x'; 10_000]);
        }
        assert!(lines.line.len() <= LINE_BYTES);
        assert_eq!(lines.finish().chars().count(), LINE_CHARS + 1);
        for _ in 0..1_000 {
            lines.push(b"again\n");
        }
        assert_eq!(lines.logged, LINES);
        assert!(lines.left_out > 900);
    }
}

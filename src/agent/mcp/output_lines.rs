//! What a server's program prints, in lines of bounded length, and what of it is logged.

use std::time::{Duration, Instant};

use crate::tools::output::shorten;

/// Bytes of a line's buffer that are kept while no output arrives.
const KEPT_BYTES: usize = 64 * 1024;
/// Characters of a line that are logged.
const LOGGED_CHARS: usize = 500;
/// Bytes of a line that suffice for them.
pub(super) const LOGGED_BYTES: usize = 4 * LOGGED_CHARS;
/// Lines that are logged within [`WINDOW`].
const LINES: u32 = 50;
const WINDOW: Duration = Duration::from_secs(10);
/// Words of lines that are logged at the usual level.
const TROUBLE: [&str; 6] = ["error", "fail", "exception", "traceback", "panic", "fatal"];

/// Cuts output into lines.
pub(super) struct Lines {
    buffer: Vec<u8>,
    limit: usize,
    /// Whether the rest of the line is dropped: its beginning was passed on.
    is_cut: bool,
}

/// A line without white space around it.
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    /// Whether this is only the beginning of a line that is too long.
    pub(super) is_cut: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Lines {
        Lines {
            buffer: Vec::new(),
            limit,
            is_cut: false,
        }
    }

    /// Takes more output, and passes on the lines that are complete or too long.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Line<'_>)) {
        for (place, piece) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if place > 0 && !std::mem::take(&mut self.is_cut) {
                self.pass_on(false, take);
            }
            let room = self.limit - self.buffer.len();
            if self.is_cut {
                continue;
            }
            self.buffer
                .extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                self.is_cut = true;
                self.pass_on(true, take);
            }
        }
    }

    fn pass_on(&mut self, is_cut: bool, take: &mut dyn FnMut(Line<'_>)) {
        let text = self.buffer.trim_ascii();
        if !text.is_empty() {
            take(Line { text, is_cut });
        }
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
    }
}

/// Logs lines of one server, so that endless output fills neither the log nor the disk.
pub(super) struct LineLog {
    /// What the lines begin with.
    label: String,
    window: Instant,
    logged: u32,
    /// The last line that said something.
    pub(super) last: String,
}

impl LineLog {
    /// Lines that are logged as `label: ...`.
    pub(super) fn new(label: String) -> LineLog {
        LineLog {
            label,
            window: Instant::now(),
            logged: 0,
            last: String::new(),
        }
    }

    /// Logs a line.
    pub(super) fn push(&mut self, line: &[u8]) {
        let line = &line[..line.len().min(LOGGED_BYTES)];
        let text: String = plain(&String::from_utf8_lossy(line)).collect();
        if text.trim().is_empty() {
            return;
        }
        self.last = shorten(text.trim(), LOGGED_CHARS).into_owned();
        if self.window.elapsed() > WINDOW {
            (self.window, self.logged) = (Instant::now(), 0);
        }
        self.logged = self.logged.saturating_add(1);
        if self.logged <= LINES {
            log::log!(level(&self.last), "{}: {}", self.label, self.last);
        } else if self.logged == LINES + 1 {
            log::debug!("{}: more lines are left out", self.label);
        }
    }
}

/// Programs tell of each call; the log keeps what looks like trouble.
fn level(line: &str) -> log::Level {
    let line = line.to_lowercase();
    if TROUBLE.iter().any(|word| line.contains(word)) {
        log::Level::Info
    } else {
        log::Level::Debug
    }
}

/// The characters that are not part of an escape sequence (ECMA-48, section
/// 5.4) and do not control anything: those are for terminals.
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
    use super::super::message::MESSAGE_BYTES;
    use super::*;

    /// The lines that pieces become; one that is cut ends with `...`, a long one is given by
    /// its length.
    fn taken(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(MESSAGE_BYTES);
        let mut taken = Vec::new();
        let mut take = |line: Line<'_>| {
            let shown = match line.text.len() {
                0..=50 => String::from_utf8_lossy(line.text).into_owned(),
                length => length.to_string(),
            };
            taken.push(shown + if line.is_cut { "..." } else { "" });
        };
        for piece in pieces {
            lines.push(piece, &mut take);
        }
        lines.push(b"\n", &mut take);
        assert!(lines.buffer.capacity() <= KEPT_BYTES);
        taken
    }

    #[test]
    fn lines_are_whole_however_they_are_cut() {
        let text = b"{\"a\":1}\r\n\n  \nnoise\n{\"b\":\"\xc3\xbc\"}";
        for size in [1, 2, 5, 1000] {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(taken(&pieces), ["{\"a\":1}", "noise", "{\"b\":\"ü\"}"]);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_the_next_line_is_not() {
        let big = vec![b'x'; MESSAGE_BYTES];
        let cut = format!("{MESSAGE_BYTES}...");
        let pieces: [&[u8]; 4] = [b"{\"a\":\"", &big, &big, b"\"}\n{}\n"];
        assert_eq!(taken(&pieces), [cut.as_str(), "{}"]);
        assert_eq!(taken(&[&big, b"\n"]), [MESSAGE_BYTES.to_string()]);
        assert_eq!(taken(&[&big, b"x"]), [cut]);
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
    fn the_log_is_plain_and_bounded() {
        let mut log = LineLog::new("mcp test".to_owned());
        for (line, last) in [
            ("two", "two"),
            ("\u{1b}[31mred\u{1b}[0m alert\r", "red alert"),
            ("\u{1b}[0m", "red alert"),
        ] {
            log.push(line.as_bytes());
            assert_eq!(log.last, last);
        }
        log.push(&[b'x'; 10_000]);
        assert_eq!(log.last.chars().count(), LOGGED_CHARS + 1);
        for _ in 0..1_000 {
            log.push(b"again");
        }
        assert!(log.logged > LINES);
    }
}

//! Limits the lines that one client may cause, so that a stranger can neither fill
//! the disk nor push what happened before out of the log.
//!
//! A line that a client causes names it in the key [`PEER`] of its record, and so does one
//! that an MCP server may cause at will. Lines of one kind, by one place in the code, are
//! counted for each of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use log::kv::Key;
use log::{Level, Record};

/// The key of a record that says which client caused it.
const PEER: &str = "peer";
/// Most characters of a line that a client caused.
pub const CHARACTERS: usize = 300;
/// The time over which lines are counted.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// Kinds of lines of clients that are counted at a time, each for itself. Beyond
/// them, all clients together have the lines of one.
const SOURCES: usize = 64;

/// The client that caused a record.
pub fn peer(record: &Record) -> Option<String> {
    let value = record.key_values().get(Key::from_str(PEER))?;
    Some(value.to_string())
}

/// Counts lines.
#[derive(Default)]
pub struct LineLimit {
    sources: HashMap<Source, Written>,
}

/// Lines of one kind of one client; of all further clients without one.
#[derive(PartialEq, Eq, Hash)]
struct Source {
    module: &'static str,
    line: u32,
    peer: Option<String>,
}

struct Written {
    until: Instant,
    lines: u32,
    left_out: Option<LeftOut>,
}

/// Lines that were left out.
#[derive(Debug)]
pub struct LeftOut {
    /// The level of all of them.
    pub level: Level,
    /// Their target.
    pub target: String,
    text: String,
    count: u64,
}

impl LeftOut {
    /// The first of them, and how many more there are.
    pub fn text(&self) -> String {
        match self.count {
            1 => self.text.clone(),
            count => format!("{} (and {} more)", self.text, count - 1),
        }
    }
}

impl LineLimit {
    /// Whether a line that `peer` caused may be written: one of the first `most` within
    /// ten minutes.
    pub fn admit(&mut self, record: &Record, peer: String, most: u32, now: Instant) -> bool {
        let mut source = Source {
            module: record.module_path_static().unwrap_or_default(),
            line: record.line().unwrap_or_default(),
            peer: Some(peer),
        };
        if self.sources.len() >= SOURCES && !self.sources.contains_key(&source) {
            source.peer = None;
        }
        let written = self.sources.entry(source).or_insert(Written {
            until: now + WINDOW,
            lines: 0,
            left_out: None,
        });
        if written.lines < most {
            written.lines += 1;
            return true;
        }
        let left_out = written.left_out.get_or_insert_with(|| LeftOut {
            level: record.level(),
            target: record.target().to_owned(),
            text: shorten(&record.args().to_string()),
            count: 0,
        });
        left_out.count += 1;
        false
    }

    /// Ends the counts whose time is over, or all of them; returns what they left out.
    pub fn end(&mut self, now: Option<Instant>) -> Vec<LeftOut> {
        let is_over =
            |_: &Source, written: &mut Written| now.is_none_or(|now| now >= written.until);
        let over = self.sources.extract_if(is_over);
        over.filter_map(|(_, written)| written.left_out).collect()
    }
}

/// The beginning of a text of which clients decide the length.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(limit: &mut LineLimit, line: u32, peer: &str, now: Instant) -> bool {
        let args = format_args!("no token from {peer}");
        let mut builder = Record::builder();
        builder.module_path_static(Some("net")).line(Some(line));
        let record = builder.level(Level::Info).args(args).build();
        limit.admit(&record, peer.to_owned(), 3, now)
    }

    fn texts(left_out: Vec<LeftOut>) -> Vec<String> {
        left_out.iter().map(LeftOut::text).collect()
    }

    #[test]
    fn lines_of_one_kind_and_client_are_counted_and_told_later() {
        let mut limit = LineLimit::default();
        let now = Instant::now();
        let flood = (0..1000).filter(|_| admit(&mut limit, 1, "a", now));
        assert_eq!(flood.count(), 3);
        assert!(admit(&mut limit, 2, "a", now), "another kind");
        assert!(admit(&mut limit, 1, "b", now), "another client");
        assert!(limit.end(Some(now)).is_empty());
        let later = now + WINDOW;
        let told = texts(limit.end(Some(later)));
        assert_eq!(told, ["no token from a (and 996 more)"]);
        assert!(admit(&mut limit, 1, "a", later));
        assert!(texts(limit.end(None)).is_empty());
    }

    #[test]
    fn memory_is_bounded_and_so_are_lines_of_many_clients() {
        let mut limit = LineLimit::default();
        let now = Instant::now();
        let many = (0..10_000).filter(|peer| admit(&mut limit, 1, &peer.to_string(), now));
        assert_eq!(many.count(), SOURCES + 3);
        assert_eq!(limit.sources.len(), SOURCES + 1);
        let told = texts(limit.end(None));
        assert_eq!(told, ["no token from 67 (and 9932 more)"]);
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(shorten("short"), "short");
        let cut = shorten(&"ä".repeat(CHARACTERS + 1));
        assert_eq!(cut.chars().count(), CHARACTERS + 1);
        assert!(cut.ends_with("ä…"));
    }
}

//! Server-sent events, by the WHATWG HTML standard (section 9.2.6), with bounds
//! and one exception: an unfinished event at the end of the stream counts, because
//! some model servers forget the last blank line.

use std::time::Duration;

use net::http_client::{ClientError, ClientResponse};

/// Longest line and longest event, in bytes.
const EVENT_LIMIT: usize = 8 * 1024 * 1024;
/// Most bytes of one stream.
const STREAM_LIMIT: usize = 64 * 1024 * 1024;
const PIECE: usize = 8 * 1024;
/// Longest id of an event that is kept, in bytes.
const ID_LIMIT: usize = 1024;

/// Where the bytes come from.
pub trait Source {
    /// Reads at least one byte, or 0 at the end.
    ///
    /// # Errors
    /// When the connection fails or is too slow.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError>;
}

impl Source for ClientResponse {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
        ClientResponse::read(self, buffer)
    }
}

/// One event.
#[derive(Debug, PartialEq)]
pub struct Event<'a> {
    /// The `event:` field; empty when it was absent.
    pub name: &'a [u8],
    /// The `data:` lines, joined with line feeds.
    pub data: &'a [u8],
}

/// Reads events from a source.
pub struct EventStream<'a, S: Source> {
    source: &'a mut S,
    /// What was read; the lines before `line` are done.
    buffer: Vec<u8>,
    line: usize,
    /// Where the search for the end of the line continues.
    seen: usize,
    total: usize,
    ended: bool,
    /// The last line ended with CR: a LF that follows belongs to it.
    after_return: bool,
    first_line: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The `id:` field so far: it counts when its event is complete.
    id: String,
    position: Position,
}

/// Where a stream that breaks can be read on (`Last-Event-ID`), and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The `id:` field of the newest whole event that had one; empty before that.
    pub last_id: String,
    /// The `retry:` field.
    pub retry: Option<Duration>,
}

impl<'a, S: Source> EventStream<'a, S> {
    /// A reader at the beginning of the source.
    pub fn new(source: &'a mut S) -> EventStream<'a, S> {
        EventStream {
            source,
            buffer: Vec::new(),
            line: 0,
            seen: 0,
            total: 0,
            ended: false,
            after_return: false,
            first_line: true,
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: String::new(),
            position: Position::default(),
        }
    }

    /// Where the bytes come from.
    pub fn source(&mut self) -> &mut S {
        self.source
    }

    /// Where the stream can be read on.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The next event that has data; `None` at the end.
    ///
    /// # Errors
    /// Those of the source, and [`ClientError::TooLarge`] beyond a bound.
    pub fn next(&mut self) -> Result<Option<Event<'_>>, ClientError> {
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        loop {
            match self.next_line()? {
                Some((start, end)) if start == end => {
                    self.position.last_id.clone_from(&self.id);
                    if self.has_data {
                        break;
                    }
                    self.name.clear();
                }
                Some((start, end)) => self.take_field(start, end)?,
                None if self.has_data => break,
                None => return Ok(None),
            }
        }
        Ok(Some(Event {
            name: &self.name,
            data: &self.data,
        }))
    }

    /// The next line that is not blank; `None` at the end. For streams of JSON
    /// lines (NDJSON), which have no events.
    ///
    /// # Errors
    /// As [`EventStream::next`].
    pub fn next_json_line(&mut self) -> Result<Option<&[u8]>, ClientError> {
        while let Some((start, end)) = self.next_line()? {
            if !self.buffer[start..end].trim_ascii().is_empty() {
                return Ok(Some(&self.buffer[start..end]));
            }
        }
        Ok(None)
    }

    fn take_field(&mut self, start: usize, end: usize) -> Result<(), ClientError> {
        let mut line = &self.buffer[start..end];
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let (field, value) = match line.iter().position(|&byte| byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len() + value.len() > EVENT_LIMIT {
                    return Err(ClientError::TooLarge(EVENT_LIMIT));
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" => {
                let is_id = value.len() <= ID_LIMIT && value.iter().all(u8::is_ascii_graphic);
                if let Some(id) = std::str::from_utf8(value).ok().filter(|_| is_id) {
                    id.clone_into(&mut self.id);
                }
            }
            b"retry" => {
                let millis = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.position.retry = millis.map(Duration::from_millis).or(self.position.retry);
            }
            // A comment (an empty field name) or an unknown field.
            _ => {}
        }
        Ok(())
    }

    /// Where the next line begins and ends in the buffer.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, ClientError> {
        loop {
            if self.after_return && self.line < self.buffer.len() {
                self.after_return = false;
                if self.buffer[self.line] == b'\n' {
                    self.line += 1;
                    self.seen = self.line;
                }
            }
            let rest = &self.buffer[self.seen..];
            if let Some(length) = rest.iter().position(|&byte| matches!(byte, b'\n' | b'\r')) {
                let (start, end) = (self.line, self.seen + length);
                self.after_return = self.buffer[end] == b'\r';
                self.line = end + 1;
                self.seen = self.line;
                return Ok(Some((start, end)));
            }
            self.seen = self.buffer.len();
            if self.ended {
                let start = std::mem::replace(&mut self.line, self.buffer.len());
                return Ok((start < self.buffer.len()).then_some((start, self.buffer.len())));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), ClientError> {
        self.buffer.drain(..self.line);
        self.seen -= self.line;
        self.line = 0;
        if self.buffer.len() > EVENT_LIMIT {
            return Err(ClientError::TooLarge(EVENT_LIMIT));
        }
        let end = self.buffer.len();
        self.buffer.resize(end + PIECE, 0);
        let count = self.source.read(&mut self.buffer[end..]);
        self.buffer
            .truncate(end + count.as_ref().copied().unwrap_or(0));
        let count = count?;
        self.ended = count == 0;
        self.total += count;
        if self.total > STREAM_LIMIT {
            return Err(ClientError::TooLarge(STREAM_LIMIT));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pieces(Vec<Vec<u8>>);

    impl Source for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    fn events(mut source: Pieces) -> Vec<(String, String)> {
        let mut stream = EventStream::new(&mut source);
        let mut events = Vec::new();
        while let Some(event) = stream.next().unwrap() {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            events.push((text(event.name), text(event.data)));
        }
        events
    }

    #[test]
    fn the_standard_is_followed_however_the_bytes_are_cut() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")][..]),
            ("data:a\r\n\r\ndata:  b\r\n\r\n", &[("", "a"), ("", " b")]),
            ("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]),
            ("data: a\ndata: b\ndata\n\n", &[("", "a\nb\n")]),
            (": keep-alive\n\n\n\ndata: a\n\n", &[("", "a")]),
            (
                "event: error\nid: 7\nretry: 5\ndata: {}\n\n",
                &[("error", "{}")],
            ),
            ("event: lost\n\ndata: a\n\n", &[("", "a")]),
            ("\u{feff}data: a\n\n", &[("", "a")]),
            ("data: ü€😀\n\n", &[("", "ü€😀")]),
            (
                "data: a\n\ndata: unfinished",
                &[("", "a"), ("", "unfinished")],
            ),
            ("data: unfinished\r\n", &[("", "unfinished")]),
            ("", &[]),
        ] {
            for size in [1, 2, 3, 7, 4096] {
                let pieces = stream.as_bytes().chunks(size).map(<[u8]>::to_vec);
                let found = events(Pieces(pieces.collect()));
                let found: Vec<_> = found
                    .iter()
                    .map(|(n, d)| (n.as_str(), d.as_str()))
                    .collect();
                assert_eq!(found, expected, "{stream:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn the_place_to_read_on_is_the_newest_id() {
        let text = "id: 1\nretry: 50\ndata:\n\nid: 2\n\nid: \u{fc}\nretry: soon\ndata: a\n\nid: 3\ndata: b";
        let mut source = Pieces(vec![text.as_bytes().to_vec()]);
        let mut stream = EventStream::new(&mut source);
        while stream.next().unwrap().is_some() {}
        let position = stream.position();
        assert_eq!(position.last_id, "2");
        assert_eq!(position.retry, Some(Duration::from_millis(50)));
    }

    #[test]
    fn an_endless_line_is_refused() {
        struct Endless;
        impl Source for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
                buffer.fill(b'x');
                Ok(buffer.len())
            }
        }
        let error = EventStream::new(&mut Endless).next().unwrap_err();
        assert_eq!(error, ClientError::TooLarge(EVENT_LIMIT));
    }
}

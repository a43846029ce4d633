//! The text of iCalendar (RFC 5545): components with their properties, as they are written.

use std::borrow::Cow;
use std::fmt::{Display, Write};

/// Longest line, unfolded, in bytes: more is cut.
const LINE_BYTES: usize = 64 * 1024;
/// Most properties of a component: more are left out.
const PROPERTIES: usize = 2_000;
/// Most components inside each other.
const DEPTH: usize = 8;
/// Longest line that is written, in bytes (section 3.1).
const WRITTEN_BYTES: usize = 75;

/// An event, a time zone, or what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Component {
    /// In upper case, such as `VEVENT`.
    pub name: String,
    pub properties: Vec<Property>,
    pub children: Vec<Component>,
}

/// One line of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Property {
    /// In upper case.
    pub name: String,
    /// What stands between the name and the value, with its first semicolon.
    parameters: String,
    /// As it is written, which [`text`] reads.
    pub value: String,
}

impl Property {
    pub fn new(name: &str, value: impl Into<String>) -> Property {
        Property {
            name: name.to_owned(),
            parameters: String::new(),
            value: value.into(),
        }
    }

    pub fn with(mut self, parameter: &str, value: &str) -> Property {
        let _ = write!(self.parameters, ";{parameter}={value}");
        self
    }

    fn read(line: &str) -> Option<Property> {
        let mut is_quoted = false;
        let end = line.bytes().position(|byte| {
            is_quoted ^= byte == b'"';
            byte == b':' && !is_quoted
        })?;
        let (head, value) = (&line[..end], &line[end + 1..]);
        let (name, parameters) = head.split_at(head.find(';').unwrap_or(head.len()));
        (!name.is_empty()).then(|| Property {
            name: name.to_ascii_uppercase(),
            parameters: parameters.to_owned(),
            value: value.to_owned(),
        })
    }

    /// A parameter, without quotes.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut is_quoted = false;
        let parameters = self.parameters.split(|letter| {
            is_quoted ^= letter == '"';
            letter == ';' && !is_quoted
        });
        let mut pairs = parameters.filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value.trim_matches('"'))
    }
}

impl Component {
    pub fn new(name: &str) -> Component {
        Component {
            name: name.to_owned(),
            ..Component::default()
        }
    }

    /// The first property of this name.
    pub fn get(&self, name: &str) -> Option<&Property> {
        self.all(name).next()
    }

    /// All properties of this name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &Property> {
        self.properties.iter().filter(move |one| one.name == name)
    }

    /// The value of a property, as it is written.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(|property| property.value.as_str())
    }

    /// Puts a property in the place of all of its name.
    pub fn set(&mut self, property: Property) {
        self.remove(&property.name);
        self.properties.push(property);
    }

    pub fn remove(&mut self, name: &str) {
        self.properties.retain(|one| one.name != name);
    }

    /// The first component of a document, with all that it holds.
    pub fn parse(text: &[u8]) -> Option<Component> {
        let mut lines = Lines(text);
        lines.begin(0)
    }

    /// The component as text.
    pub fn write(&self) -> String {
        let mut text = String::new();
        self.write_to(&mut text);
        text
    }

    fn write_to(&self, text: &mut String) {
        fold(text, &format!("BEGIN:{}", self.name));
        for property in &self.properties {
            let Property {
                name,
                parameters,
                value,
            } = property;
            fold(text, &format!("{name}{parameters}:{value}"));
        }
        for child in &self.children {
            child.write_to(text);
        }
        fold(text, &format!("END:{}", self.name));
    }
}

/// The components of the calendars of a document, one at a time: a whole one may be large.
pub(super) fn components(text: &[u8]) -> impl Iterator<Item = Component> {
    let mut lines = Lines(text);
    std::iter::from_fn(move || lines.begin(1))
}

/// Whether a document can be a calendar.
pub(super) fn is_calendar(text: &[u8]) -> bool {
    let beginning = &text[..text.len().min(1_000)];
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let line = text.trim_ascii_start();
    let wanted = b"BEGIN:VCALENDAR";
    line.get(..wanted.len())
        .is_some_and(|line| line.eq_ignore_ascii_case(wanted))
}

/// What is left of a document.
struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    /// The next line, unfolded. Folding may lie within a letter.
    fn next(&mut self) -> Option<Cow<'a, str>> {
        let mut line: Cow<'a, [u8]> = Cow::Borrowed(self.piece()?);
        while let Some(b' ' | b'\t') = self.0.first() {
            let more = &self.piece()?[1..];
            let room = LINE_BYTES.saturating_sub(line.len());
            line.to_mut()
                .extend_from_slice(&more[..more.len().min(room)]);
        }
        Some(match line {
            Cow::Borrowed(line) => String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES)]),
            Cow::Owned(line) => Cow::Owned(String::from_utf8_lossy(&line).into_owned()),
        })
    }

    fn piece(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.iter().position(|byte| *byte == b'\n');
        let (line, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// The next component that begins, within at most this many others.
    fn begin(&mut self, outer: usize) -> Option<Component> {
        loop {
            let line = self.next()?;
            let Some(name) = after(&line, "BEGIN:") else {
                continue;
            };
            if outer == 0 || !name.eq_ignore_ascii_case("VCALENDAR") {
                let name = name.to_ascii_uppercase();
                return Some(self.component(name, DEPTH));
            }
        }
    }

    fn component(&mut self, name: String, depth: usize) -> Component {
        let mut component = Component::new(&name);
        while let Some(line) = self.next() {
            if let Some(name) = after(&line, "BEGIN:") {
                let name = name.to_ascii_uppercase();
                if depth > 0 {
                    let child = self.component(name, depth - 1);
                    if component.children.len() < PROPERTIES {
                        component.children.push(child);
                    }
                }
            } else if after(&line, "END:").is_some() {
                break;
            } else if component.properties.len() < PROPERTIES {
                component.properties.extend(Property::read(&line));
            }
        }
        component
    }
}

fn after<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let (begin, rest) = line.split_at_checked(start.len())?;
    begin.eq_ignore_ascii_case(start).then(|| rest.trim())
}

fn fold(text: &mut String, line: &str) {
    let mut length = 0;
    for letter in line.chars() {
        if length + letter.len_utf8() > WRITTEN_BYTES {
            text.push_str("\r\n ");
            length = 1;
        }
        text.push(letter);
        length += letter.len_utf8();
    }
    text.push_str("\r\n");
}

/// A value of text, without its escapes (section 3.3.11).
pub(super) fn text(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(escaped) => text.push(escaped),
                None => {}
            },
            letter => text.push(letter),
        }
    }
    text
}

/// A text as a value.
pub(super) fn escaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => value.push_str("\\n"),
            '\\' | ';' | ',' => value.extend(['\\', letter]),
            letter if letter.is_control() => {}
            letter => value.push(letter),
        }
    }
    value
}

/// A date or local time in the basic format of ISO 8601, as iCalendar writes them.
pub fn basic(time: impl Display) -> String {
    format!("{time:.0}").replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\n\
        SUMMARY;LANGUAGE=de;X-A=\"a:b;c\":Kaffee\\, Tee\\; und\\nM\r\n ilch\r\nBEGIN:VALARM\r\n\
        ACTION:DISPLAY\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

    #[test]
    fn a_document_is_read_and_written_as_it_was() {
        let calendar = Component::parse(EVENT.as_bytes()).unwrap();
        assert_eq!(calendar.value("VERSION"), Some("2.0"));
        let event = &calendar.children[0];
        let summary = event.get("SUMMARY").unwrap();
        assert_eq!(text(&summary.value), "Kaffee, Tee; und\nMilch");
        assert_eq!(escaped(&text(&summary.value)), summary.value);
        assert_eq!(summary.parameter("x-a"), Some("a:b;c"));
        assert_eq!(event.children[0].name, "VALARM");
        assert_eq!(
            Component::parse(calendar.write().as_bytes()).as_ref(),
            Some(&calendar)
        );
        let found: Vec<Component> = components(EVENT.as_bytes()).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(&found[0], event);
    }

    #[test]
    fn lines_are_folded_between_letters_and_unfolded_within_one() {
        let mut folded = String::new();
        fold(&mut folded, &format!("SUMMARY:{}", "ü".repeat(100)));
        assert!(
            folded.lines().all(|line| line.len() <= WRITTEN_BYTES),
            "{folded}"
        );
        let mut lines = Lines(folded.as_bytes());
        assert_eq!(
            lines.next().unwrap(),
            format!("SUMMARY:{}", "ü".repeat(100))
        );
        let mut split = Lines(b"A:\xc3\r\n \xbc\nB:\xff\n\tx");
        assert_eq!(split.next().unwrap(), "A:ü");
        assert_eq!(split.next().unwrap(), "B:\u{fffd}x");
    }

    #[test]
    fn what_is_broken_has_an_end() {
        let deep = "BEGIN:VEVENT\n".repeat(10_000);
        assert!(components(deep.as_bytes()).count() < 10_000);
        let long = format!("BEGIN:VEVENT\nSUMMARY:{}\n", "x\n ".repeat(100_000));
        let event = components(long.as_bytes()).next().unwrap();
        assert!(event.value("SUMMARY").unwrap().len() <= LINE_BYTES);
        for text in [
            "",
            "\n",
            "x",
            "BEGIN:",
            "END:VEVENT",
            "BEGIN:VCALENDAR",
            ":",
            ";:",
            "\"",
            "\\",
        ] {
            let _ = components(text.as_bytes()).count();
            let _ = super::text(text);
        }
        assert!(is_calendar(b"\xef\xbb\xbf\r\nbegin:vcalendar\r\n"));
        assert!(!is_calendar(b"<html>"));
    }
}

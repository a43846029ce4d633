//! The words that people read, in one file for each language.
//!
//! A line of the file is a key, a tab and a text with `{fields}`. Of what is counted there
//! are two texts, `KEY.one` and `KEY.other`. A phrase for what a tool does is an infinitive,
//! which every language can put behind "The assistant wants to".
//!
//! Keys that begin with `page.` are of the page alone, which gets them as files of its own
//! (src/hearth/build/words.rs); the program's words are without them.

mod said;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt::Display;
use std::sync::LazyLock;

use crate::gzip::unpack_text;

pub use said::Said;

/// The words of one language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words(&'static str);

/// The languages by their codes (ISO 639-1).
pub const LANGUAGES: [&str; 6] = ["en", "de", "fr", "es", "it", "nl"];

/// The words of a language, unpacked when somebody first reads it.
macro_rules! packed {
    ($file:literal) => {{
        static TEXT: LazyLock<String> =
            LazyLock::new(|| unpack_text(include_bytes!(concat!(env!("OUT_DIR"), "/", $file))));
        &TEXT
    }};
}

/// The code of the language that a tag names, such as `de` of `de-AT`, if it has words.
pub fn code_of(tag: &str) -> Option<&'static str> {
    let language = tag.split(['-', '_']).next().unwrap_or_default();
    let mut codes = LANGUAGES.into_iter();
    codes.find(|code| code.eq_ignore_ascii_case(language))
}

/// A phrase as the beginning of a sentence or alone.
pub fn capital(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// The code of the first language of an `Accept-Language` field (RFC 9110 section 12.5.4)
/// that has words, else of English. Browsers write what they prefer first.
pub fn accepted(field: &str) -> &'static str {
    let mut tags = field.split(',').filter_map(|tag| tag.split(';').next());
    tags.find_map(|tag| code_of(tag.trim())).unwrap_or("en")
}

impl Words {
    /// Those of English, which has all of them.
    pub const ENGLISH: Words = Words(include_str!(concat!(env!("OUT_DIR"), "/en.tsv")));

    /// Those of the language that a tag names, else of English.
    pub fn of(tag: &str) -> Words {
        Words(match code_of(tag) {
            Some("de") => packed!("de.tsv.gz"),
            Some("fr") => packed!("fr.tsv.gz"),
            Some("es") => packed!("es.tsv.gz"),
            Some("it") => packed!("it.tsv.gz"),
            Some("nl") => packed!("nl.tsv.gz"),
            _ => return Words::ENGLISH,
        })
    }

    /// The text of a key, if there is one.
    pub fn find(self, key: &str) -> Option<&'static str> {
        // The lines are sorted: half of what is left goes at each step.
        let mut left = self.0;
        while !left.is_empty() {
            let middle = left.floor_char_boundary(left.len() / 2);
            let start = left[..middle].rfind('\n').map_or(0, |end| end + 1);
            let line = left[start..].lines().next()?;
            let (found, text) = line.split_once('\t').unwrap_or((line, ""));
            left = match found.cmp(key) {
                Ordering::Equal => return Some(text),
                Ordering::Greater => &left[..start],
                Ordering::Less => left.get(start + line.len() + 1..)?,
            };
        }
        None
    }

    /// The text of a key that has no fields, else in English, else the key.
    pub fn word(self, key: &str) -> String {
        self.say(key, &[])
    }

    /// The text of a key with these values in its fields. What a value says is not looked
    /// at for fields.
    pub fn say(self, key: &str, fields: &[(&str, &str)]) -> String {
        let text = self.find(key).or_else(|| Words::ENGLISH.find(key));
        let mut rest = text.unwrap_or(key);
        let mut said = String::with_capacity(rest.len());
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            said.push_str(before);
            let value = fields.iter().find(|(field, _)| *field == name);
            said.push_str(value.map_or(name, |(_, value)| value));
            rest = after;
        }
        said.push_str(rest);
        said
    }

    /// The text of something that is counted, with the number in the field `count`.
    pub fn count(self, key: &str, count: impl Display) -> String {
        let count = count.to_string();
        let singular = self.find("language.one").unwrap_or("1");
        let form = match singular.split(' ').any(|number| number == count) {
            true => "one",
            false => "other",
        };
        self.say(&format!("{key}.{form}"), &[("count", &count)])
    }

    /// Several things as one: `a, b and c`.
    pub fn list(self, items: &[String]) -> String {
        match items {
            [] => String::new(),
            [only] => only.clone(),
            [before @ .., last] => {
                let before = before.join(", ");
                self.say("list.and", &[("before", &before), ("last", last)])
            }
        }
    }

    /// Those of a test, whose lines are sorted.
    #[cfg(any(test, feature = "testing"))]
    pub const fn from_lines(lines: &'static str) -> Words {
        Words(lines)
    }

    /// All keys, sorted.
    #[cfg(any(test, feature = "testing"))]
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        self.0
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default())
    }
}

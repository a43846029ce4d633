//! The rules for single values; `collections` has those for values of several parts.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::declaration::Rule;
use super::key_path::{KeyPath, is_comment};
use super::problems::with_nearest;
use super::reader::Reader;
use base::calendar::Zone;
use base::language::Said;
use base::secret::Secret;
use base::url::{MASK, Url};

/// What the file of words has for `key`, from the one to the other.
fn ranged(key: &'static str, least: impl Display, most: impl Display) -> Said {
    Said::of(
        key,
        &[("least", &least.to_string()), ("most", &most.to_string())],
    )
}

/// A whole number in a range.
pub(super) struct Integer<T> {
    range: RangeInclusive<u64>,
    output: PhantomData<T>,
}

/// A whole number in `range`, all of which `T` can hold.
pub(super) fn integer<T>(range: RangeInclusive<u64>) -> Integer<T> {
    Integer {
        range,
        output: PhantomData,
    }
}

impl<T: TryFrom<u64>> Rule for Integer<T> {
    type Output = T;

    fn expected(&self) -> Said {
        ranged("config.integer", self.range.start(), self.range.end())
    }

    fn schema(&self) -> Value {
        json!({ "type": "integer", "minimum": self.range.start(), "maximum": self.range.end() })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<T> {
        let number = |value: &Value| {
            let number = value.as_u64().filter(|number| self.range.contains(number));
            T::try_from(number?).ok()
        };
        reader.scalar(path, &self.expected(), value, number)
    }
}

/// A number in a range.
pub(super) struct Number(pub RangeInclusive<f64>);

impl Rule for Number {
    type Output = f64;

    fn expected(&self) -> Said {
        ranged("config.number", self.0.start(), self.0.end())
    }

    fn schema(&self) -> Value {
        json!({ "type": "number", "minimum": self.0.start(), "maximum": self.0.end() })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<f64> {
        let number = |value: &Value| value.as_f64().filter(|number| self.0.contains(number));
        reader.scalar(path, &self.expected(), value, number)
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Rule for Flag {
    type Output = bool;

    fn expected(&self) -> Said {
        Said::of("config.flag", &[])
    }

    fn schema(&self) -> Value {
        json!({ "type": "boolean" })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<bool> {
        reader.scalar(path, &self.expected(), value, Value::as_bool)
    }
}

/// A string of so many characters.
pub(super) struct Text(pub RangeInclusive<usize>);

impl Rule for Text {
    type Output = String;

    fn expected(&self) -> Said {
        ranged("config.text", self.0.start(), self.0.end())
    }

    fn schema(&self) -> Value {
        json!({ "type": "string", "minLength": self.0.start(), "maxLength": self.0.end() })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<String> {
        let expected = self.expected();
        let text = reader.text(path, &expected, value)?;
        let blank = *self.0.start() > 0 && text.trim().is_empty();
        let fits = !blank && self.0.contains(&text.chars().count());
        reader.demand(path, &expected, value, fits.then_some(text))
    }
}

/// A string that is read as a `T`.
pub(super) struct Parsed<T> {
    /// What it must be: a key of the file of words, or the words themselves.
    pub expected: &'static str,
    /// What it is read as; none when it is not what it must be.
    pub parse: fn(&str) -> Option<T>,
}

impl<T> Rule for Parsed<T> {
    type Output = T;

    fn expected(&self) -> Said {
        match self.expected.starts_with("config.") {
            true => Said::of(self.expected, &[]),
            false => self.expected.into(),
        }
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<T> {
        let expected = self.expected();
        let text = reader.text(path, &expected, value)?;
        reader.demand(path, &expected, value, (self.parse)(&text))
    }
}

impl<T> Parsed<T> {
    /// Whether a text is what it must be.
    pub fn fits(&self, text: &str) -> bool {
        (self.parse)(text).is_some()
    }
}

/// An absolute path of a directory, which does not depend on where the server was
/// started.
pub(super) const DIRECTORY: Parsed<PathBuf> = Parsed {
    expected: "an absolute path of a directory",
    parse: |text| (text.starts_with('/') && !text.contains('\0')).then(|| text.into()),
};

// Names. One that could be taken for a comment (`_x`, `$x`, `//`) is not valid,
// except that of an environment variable.

/// A name of the owner's choice, as accounts have.
pub(super) const NAME: Parsed<String> = Parsed {
    expected: "config.name",
    parse: |text| {
        let printable = text.chars().all(|letter| !letter.is_control());
        let fitting = !text.trim().is_empty() && text.chars().count() <= 64;
        (printable && fitting && !is_comment(text)).then(|| text.to_owned())
    },
};

/// An email address, as the key of a person.
pub(super) const EMAIL: Parsed<String> = Parsed {
    expected: "an email address in lower case",
    parse: |text| {
        let is_plain = !text.contains(char::is_whitespace) && text.to_lowercase() == text;
        let is_whole = text
            .split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
        (is_plain && is_whole && !is_comment(text)).then(|| text.to_owned())
    },
};

/// A tool's name.
pub(super) const TOOL_NAME: Parsed<String> = Parsed {
    expected: "a tool name (1 to 64 of A-Z a-z 0-9 _ -, not beginning with _)",
    parse: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(letter);
        (fits && !is_comment(text)).then(|| text.to_owned())
    },
};

/// An origin, as browsers and the programs that are made of one send it (RFC 6454, section
/// 6.2): `app://` and `chrome-extension://` too.
pub(super) const ORIGIN: Parsed<String> = Parsed {
    expected: "an origin such as https://home.example, in lower case and without a path",
    parse: |text| {
        let url = Url::parse(text).ok()?;
        (url.origin() == text).then(|| text.to_owned())
    },
};

/// A host name without scheme or port.
pub(super) const HOST: Parsed<String> = Parsed {
    expected: "a host name such as home.example, in lower case, without scheme and port",
    parse: |text| {
        let letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
        let fits = (1..=253).contains(&text.len()) && text.bytes().all(letter);
        (fits && text.split('.').all(|label| !label.is_empty())).then(|| text.to_owned())
    },
};

/// A time zone.
pub(super) const TIME_ZONE: Parsed<String> = Parsed {
    expected: "config.time_zone",
    parse: |text| Zone::named(text).ok().map(|_| text.to_owned()),
};

/// The name of an environment variable.
pub(super) const VARIABLE: Parsed<String> = Parsed {
    expected: "the name of an environment variable (A-Z a-z 0-9 _)",
    parse: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let fits = !text.is_empty() && text.bytes().all(letter);
        (fits && !text.as_bytes()[0].is_ascii_digit()).then(|| text.to_owned())
    },
};

/// The name of an HTTP header (RFC 9110, section 5.1).
pub(super) const HEADER: Parsed<String> = Parsed {
    expected: "the name of a header",
    parse: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let fits = !text.is_empty() && text.bytes().all(letter);
        (fits && !is_comment(text)).then(|| text.to_owned())
    },
};

/// A secret, never shown.
pub(super) struct SecretText;

impl Rule for SecretText {
    type Output = Secret;

    fn expected(&self) -> Said {
        "a string, best \"${NAME}\" to read it from the environment".into()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Secret> {
        reader.secret(path, value).map(Secret::new)
    }
}

/// One of some words, each with its meaning.
pub(super) struct Choice<T: 'static>(pub &'static [(&'static str, T)]);

/// Words that mean themselves.
pub(super) const fn words<const N: usize>(
    words: [&'static str; N],
) -> [(&'static str, &'static str); N] {
    let mut same = [("", ""); N];
    let mut place = 0;
    while place < N {
        same[place] = (words[place], words[place]);
        place += 1;
    }
    same
}

impl<T: Copy> Rule for Choice<T> {
    type Output = T;

    fn expected(&self) -> Said {
        let quoted = self.0.iter().map(|(word, _)| format!("{word:?}"));
        one_of(&quoted.collect::<Vec<_>>())
    }

    fn schema(&self) -> Value {
        json!({ "enum": self.words() })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<T> {
        let place = choose(&self.words(), &self.expected(), reader, path, value)?;
        self.0.get(place).map(|(_, chosen)| *chosen)
    }
}

impl<T> Choice<T> {
    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, _)| *word).collect()
    }
}

/// `a, b or c`.
fn one_of(words: &[String]) -> Said {
    match words {
        [before @ .., last] if !before.is_empty() => Said::of(
            "config.or",
            &[("before", &before.join(", ")), ("last", last)],
        ),
        _ => words.concat().into(),
    }
}

/// Reads one of `words`; returns its index.
pub(super) fn choose(
    words: &[&'static str],
    expected: &Said,
    reader: &mut Reader<'_>,
    path: &KeyPath,
    value: &Value,
) -> Option<usize> {
    let text = reader.text(path, expected, value)?;
    let place = words.iter().position(|word| *word == text);
    if place.is_none() {
        reader.mistyped(path, expected, value);
        if let Some(problem) = reader.problems.last_mut() {
            let message = problem.message.clone();
            problem.message = with_nearest(message, &text, words.iter().copied());
        }
    }
    place
}

/// An absolute URL of one of some schemes.
pub(super) struct UrlText(pub &'static [&'static str]);

impl Rule for UrlText {
    type Output = String;

    fn expected(&self) -> Said {
        let starts: Vec<String> = self.0.iter().map(|scheme| format!("{scheme}://")).collect();
        Said::of("config.url", &[]).with("starts", one_of(&starts))
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<String> {
        let expected = self.expected();
        let text = reader.text(path, &expected, value)?;
        let url = Url::parse(&text)
            .ok()
            .filter(|url| self.0.contains(&url.scheme.as_str()) && text.starts_with(&url.scheme));
        let Some(url) = url else {
            // The malformed text may hold a password.
            if text.contains('@') {
                reader.refuse(path, format_args!("must be {expected}"));
            } else {
                reader.mistyped(path, &expected, value);
            }
            return None;
        };
        if [&url.user, &url.query].contains(&&Some(MASK.to_owned())) {
            let advice =
                "leave it out to keep it, or give all of it, with user, password and query";
            reader.refuse(path, format_args!("is masked; {advice}"));
            return None;
        }
        if url.user.is_some() {
            reader.secrets.push(path.clone());
        }
        Some(text)
    }
}

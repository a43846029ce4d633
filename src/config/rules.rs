//! The rules for single values: what a setting must be. `collections` has those
//! for values of several parts.

use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde_json::Value;

use super::declaration::Rule;
use super::key_path::KeyPath;
use super::problems::suggestion;
use super::reader::Reader;
use base::secret::Secret;
use base::url::{MASK, Url};

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

    fn expected(&self) -> String {
        format!(
            "an integer from {} to {}",
            self.range.start(),
            self.range.end()
        )
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<T> {
        let resolved = reader.resolve(path, value)?;
        let fitting = whole_number(value, &resolved)
            .filter(|number| self.range.contains(number))
            .and_then(|number| T::try_from(number).ok());
        if fitting.is_none() {
            reader.mistyped(path, &self.expected(), value);
        }
        fitting
    }
}

fn whole_number(value: &Value, resolved: &Value) -> Option<u64> {
    match (resolved.as_u64(), resolved.as_str()) {
        // The environment holds text only, so its text may be a number.
        (None, Some(text)) if value.as_str() != Some(text) => text.trim().parse().ok(),
        (number, _) => number,
    }
}

/// A number in a range.
pub(super) struct Number(pub RangeInclusive<f64>);

impl Rule for Number {
    type Output = f64;

    fn expected(&self) -> String {
        format!("a number from {} to {}", self.0.start(), self.0.end())
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<f64> {
        let resolved = reader.resolve(path, value)?;
        let number = match (resolved.as_f64(), resolved.as_str()) {
            (None, Some(text)) if value.as_str() != Some(text) => text.trim().parse().ok(),
            (number, _) => number,
        };
        let fitting = number.filter(|number| self.0.contains(number));
        if fitting.is_none() {
            reader.mistyped(path, &self.expected(), value);
        }
        fitting
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Rule for Flag {
    type Output = bool;

    fn expected(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<bool> {
        let resolved = reader.resolve(path, value)?;
        let flag = match (resolved.as_bool(), resolved.as_str()) {
            (None, Some(text)) if value.as_str() != Some(text) => text.trim().parse().ok(),
            (flag, _) => flag,
        };
        if flag.is_none() {
            reader.mistyped(path, &self.expected(), value);
        }
        flag
    }
}

/// An absolute path of a directory.
pub(super) struct Directory;

impl Rule for Directory {
    type Output = PathBuf;

    fn expected(&self) -> String {
        "an absolute path of a directory".to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<PathBuf> {
        let text = reader.text(path, &self.expected(), value)?;
        if !text.starts_with('/') || text.contains('\0') {
            reader.mistyped(path, &self.expected(), value);
            return None;
        }
        Some(PathBuf::from(text))
    }
}

/// A string with so many characters.
pub(super) struct Text(pub RangeInclusive<usize>);

impl Rule for Text {
    type Output = String;

    fn expected(&self) -> String {
        let (least, most) = (self.0.start(), self.0.end());
        format!("a string of {least} to {most} characters")
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<String> {
        let expected = self.expected();
        let text = reader.text(path, &expected, value)?;
        let blank = *self.0.start() > 0 && text.trim().is_empty();
        if blank || !self.0.contains(&text.chars().count()) {
            reader.mistyped(path, &expected, value);
            return None;
        }
        Some(text)
    }
}

/// A string that must pass a check.
pub(super) struct Checked {
    /// What it must be.
    pub expected: &'static str,
    /// Whether it is.
    pub check: fn(&str) -> bool,
}

impl Rule for Checked {
    type Output = String;

    fn expected(&self) -> String {
        self.expected.to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<String> {
        let text = reader.text(path, self.expected, value)?;
        if !(self.check)(&text) {
            reader.mistyped(path, self.expected, value);
            return None;
        }
        Some(text)
    }
}

/// A secret, never shown.
pub(super) struct SecretText;

impl Rule for SecretText {
    type Output = Secret;

    fn expected(&self) -> String {
        "a string, best \"${NAME}\" to read it from the environment".to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Secret> {
        reader.secret(path, value).map(Secret::new)
    }
}

/// One of some words, each with what it stands for.
pub(super) struct Choice<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy> Rule for Choice<T> {
    type Output = T;

    fn expected(&self) -> String {
        one_of(&self.words())
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<T> {
        let place = choose(&self.words(), reader, path, value)?;
        self.0.get(place).map(|(_, chosen)| *chosen)
    }
}

impl<T> Choice<T> {
    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, _)| *word).collect()
    }
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.as_slice() {
        [only] => only.clone(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
        [] => String::new(),
    }
}

/// The place of the word that was chosen.
fn choose(
    words: &[&'static str],
    reader: &mut Reader<'_>,
    path: &KeyPath,
    value: &Value,
) -> Option<usize> {
    let expected = one_of(words);
    let text = reader.text(path, &expected, value)?;
    let place = words.iter().position(|word| *word == text);
    if place.is_none() {
        reader.mistyped(path, &expected, value);
        let hint = suggestion(&text, words.iter().copied());
        if let Some(problem) = reader.problems.last_mut() {
            problem.message.push_str(&hint);
        }
    }
    place
}

/// An absolute URL of one of some schemes.
pub(super) struct UrlText(pub &'static [&'static str]);

impl Rule for UrlText {
    type Output = String;

    fn expected(&self) -> String {
        let starts: Vec<String> = self.0.iter().map(|scheme| format!("{scheme}://")).collect();
        format!("a URL that begins with {}", starts.join(" or "))
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
                reader.problem(path, format!("\"{path}\" must be {expected}"));
            } else {
                reader.mistyped(path, &expected, value);
            }
            return None;
        };
        if url.user.as_deref() == Some(MASK) {
            reader.problem(
                path,
                format!("\"{path}\" is masked; give the real user and password in its place"),
            );
            return None;
        }
        if url.user.is_some() {
            reader.secrets.push(path.clone());
        }
        Some(text)
    }
}

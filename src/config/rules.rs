//! The rules that settings are declared with: what a value must be.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::address_patterns::AddressPatterns;
use super::declaration::{Declared, Rule, Section, SettingDoc, is_comment};
use super::key_path::KeyPath;
use super::problems::suggestion;
use super::reader::Reader;
use super::web_address::{MASK, WebAddress};
use crate::secret::Secret;

/// Most items of a list, and members of a map.
const ITEMS: usize = 1_000;

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
        let number = match (resolved.as_u64(), resolved.as_str()) {
            // The environment holds text only, so its text may be a number.
            (None, Some(text)) if value.as_str() != Some(text) => text.trim().parse().ok(),
            (number, _) => number,
        };
        let fitting = number
            .filter(|number| self.range.contains(number))
            .and_then(|number| T::try_from(number).ok());
        if fitting.is_none() {
            reader.mistyped(path, &self.expected(), value);
        }
        fitting
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
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("{word:?}")).collect();
        match words.as_slice() {
            [only] => only.clone(),
            [before @ .., last] => format!("{} or {last}", before.join(", ")),
            [] => String::new(),
        }
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<T> {
        let expected = self.expected();
        let text = reader.text(path, &expected, value)?;
        if let Some((_, chosen)) = self.0.iter().find(|(word, _)| *word == text) {
            return Some(*chosen);
        }
        reader.mistyped(path, &expected, value);
        let hint = suggestion(&text, self.0.iter().map(|(word, _)| *word));
        if let Some(problem) = reader.problems.last_mut() {
            problem.message.push_str(&hint);
        }
        None
    }
}

/// A rule for words, whose output is the word itself.
pub(super) struct Owned(pub Choice<&'static str>);

impl Rule for Owned {
    type Output = String;

    fn expected(&self) -> String {
        self.0.expected()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<String> {
        self.0.read(reader, path, value).map(str::to_owned)
    }
}

/// An absolute URL of one of some schemes.
pub(super) struct Url(pub &'static [&'static str]);

impl Rule for Url {
    type Output = String;

    fn expected(&self) -> String {
        let starts: Vec<String> = self.0.iter().map(|scheme| format!("{scheme}://")).collect();
        format!("a URL that begins with {}", starts.join(" or "))
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<String> {
        let expected = self.expected();
        let text = reader.text(path, &expected, value)?;
        let Some(address) =
            WebAddress::parse(&text).filter(|address| self.0.contains(&address.scheme))
        else {
            // The malformed text may hold a password.
            if text.contains('@') {
                reader.secrets.push(path.clone());
                reader.problem(path, format!("\"{path}\" must be {expected}"));
            } else {
                reader.mistyped(path, &expected, value);
            }
            return None;
        };
        if address.user == Some(MASK) {
            reader.problem(
                path,
                format!("\"{path}\" is masked; give the real user and password in its place"),
            );
            return None;
        }
        if address.user.is_some() {
            reader.secrets.push(path.clone());
        }
        Some(text)
    }
}

/// An array of so many items.
pub(super) struct List<R> {
    item: R,
    least: usize,
}

/// An array, maybe empty, whose items keep a rule.
pub(super) fn list<R: Rule>(item: R) -> List<R> {
    List { item, least: 0 }
}

/// An array of at least one item, each of which keeps a rule.
pub(super) fn filled_list<R: Rule>(item: R) -> List<R> {
    List { item, least: 1 }
}

impl<R: Rule> Rule for List<R> {
    type Output = Vec<R::Output>;

    fn expected(&self) -> String {
        let filled = if self.least > 0 {
            " of at least one item"
        } else {
            ""
        };
        format!("an array{filled}, each {}", self.item.expected())
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Self::Output> {
        let Some(items) = value.as_array() else {
            reader.mistyped(path, &self.expected(), value);
            return None;
        };
        if !(self.least..=ITEMS).contains(&items.len()) {
            let least = self.least;
            reader.problem(
                path,
                format!(
                    "\"{path}\" must have from {least} to {ITEMS} items, not {}",
                    items.len()
                ),
            );
            return None;
        }
        let read: Vec<Option<R::Output>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| self.item.read(reader, &path.index(index), item))
            .collect();
        read.into_iter().collect()
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.item.document_members(&format!("{key}[]"), docs);
    }
}

/// An object whose keys are names of the owner's choice.
pub(super) struct NamedMap<R, C> {
    /// What every value must be.
    pub value: R,
    /// What a key is called, and whether a text is one.
    pub key: Checked,
    /// What the members are collected in.
    pub output: PhantomData<C>,
}

/// An object from names to values that keep a rule, collected in a `C`.
pub(super) fn map_of<R: Rule, C>(key: Checked, value: R) -> NamedMap<R, C> {
    NamedMap {
        value,
        key,
        output: PhantomData,
    }
}

impl<R: Rule, C: FromIterator<(String, R::Output)>> Rule for NamedMap<R, C> {
    type Output = C;

    fn expected(&self) -> String {
        format!(
            "an object from {} to {}",
            self.key.expected,
            self.value.expected()
        )
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<C> {
        let expected = self.expected();
        let members = reader.members(path, &expected, value)?;
        if members.len() > ITEMS {
            reader.problem(path, format!("\"{path}\" has more than {ITEMS} members"));
            return None;
        }
        let mut read = Vec::with_capacity(members.len());
        for (key, value) in members.iter().filter(|(key, _)| !is_comment(key)) {
            let inner = path.key(key);
            if !(self.key.check)(key) {
                let expected = self.key.expected;
                reader.problem(&inner, format!("{key:?} in \"{path}\" is not {expected}"));
            }
            let value = self.value.read(reader, &inner, value);
            read.push(value.map(|value| (key.clone(), value)));
        }
        read.into_iter().collect()
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.value.document_members(&format!("{key}.NAME"), docs);
    }
}

/// Address patterns.
pub(super) struct Addresses;

impl Rule for Addresses {
    type Output = AddressPatterns;

    fn expected(&self) -> String {
        "an array of address patterns (<a>.<b>.<c>.*, one address, a network such as 10.0.0.0/8 \
         or fd00::/8, or *)"
            .to_owned()
    }

    fn read(
        &self,
        reader: &mut Reader<'_>,
        path: &KeyPath,
        value: &Value,
    ) -> Option<AddressPatterns> {
        struct Pattern;
        impl Rule for Pattern {
            type Output = AddressPatterns;

            fn expected(&self) -> String {
                "an address pattern".to_owned()
            }

            fn read(
                &self,
                reader: &mut Reader<'_>,
                path: &KeyPath,
                value: &Value,
            ) -> Option<AddressPatterns> {
                let text = reader.text(path, &self.expected(), value)?;
                complain(reader, path, AddressPatterns::parse(&[&text]))
            }
        }
        if !value.is_array() {
            reader.mistyped(path, &self.expected(), value);
            return None;
        }
        let lists = list(Pattern).read(reader, path, value)?;
        let patterns = lists.into_iter().flat_map(|list| list.0).collect();
        Some(AddressPatterns(patterns))
    }
}

/// Any JSON, with `${NAME}` resolved wherever it stands.
pub(super) struct Json;

impl Rule for Json {
    type Output = Value;

    fn expected(&self) -> String {
        "any JSON value".to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Value> {
        reader.resolve_all(path, value)
    }
}

/// An object whose settings are declared.
pub(super) struct Object<D>(PhantomData<D>);

/// An object that is the section `D`.
pub(super) fn object<D: Declared>() -> Object<D> {
    Object(PhantomData)
}

impl<D: Declared> Rule for Object<D> {
    type Output = D;

    fn expected(&self) -> String {
        let keys: Vec<&str> = D::SETTINGS.iter().map(|setting| setting.key).collect();
        match keys.len() {
            0..=8 => format!("an object with {}", keys.join(", ")),
            _ => "an object".to_owned(),
        }
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<D> {
        let members = reader.members(path, &self.expected(), value)?;
        read_section(reader, path, members, &[])
    }

    fn absent(&self) -> Option<D> {
        D::absent()
    }

    fn default_text(&self) -> String {
        match D::absent() {
            Some(_) => "the defaults of its members".to_owned(),
            None => "required".to_owned(),
        }
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        D::document(key, docs);
    }
}

/// Reads the section `D` from `members`; keys in `beside` belong to the caller.
pub(super) fn read_section<D: Declared>(
    reader: &mut Reader<'_>,
    path: &KeyPath,
    members: &Map<String, Value>,
    beside: &[&'static str],
) -> Option<D> {
    let mut section = Section {
        reader,
        path,
        members,
    };
    section.refuse_unknown::<D>(beside);
    D::read(&mut section)
}

/// The value, or none after having reported the error at `path`.
fn complain<T, E: Display>(
    reader: &mut Reader<'_>,
    path: &KeyPath,
    result: Result<T, E>,
) -> Option<T> {
    result
        .map_err(|error| reader.problem(path, format!("\"{path}\": {error}")))
        .ok()
}

/// A name of the owner's choice, as accounts have.
pub(super) const NAME: Checked = Checked {
    expected: "a name of 1 to 64 characters",
    check: |text| {
        let printable = text.chars().all(|letter| !letter.is_control());
        printable && !text.trim().is_empty() && text.chars().count() <= 64
    },
};

/// A tool's name.
pub(super) const TOOL_NAME: Checked = Checked {
    expected: "a tool name (1 to 64 of A-Z a-z 0-9 _ -)",
    check: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=64).contains(&text.len()) && text.bytes().all(letter)
    },
};

/// A web origin, as browsers send it (RFC 6454, section 6.2).
pub(super) const ORIGIN: Checked = Checked {
    expected: "an origin such as https://home.example, in lower case and without a path",
    check: |text| {
        WebAddress::parse(text).is_some_and(|address| {
            matches!(address.scheme, "http" | "https")
                && address.user.is_none()
                && address.origin() == text
        })
    },
};

/// A host name without scheme or port.
pub(super) const HOST: Checked = Checked {
    expected: "a host name such as home.example, without scheme and port",
    check: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        (1..=253).contains(&text.len())
            && text.bytes().all(letter)
            && text.split('.').all(|label| !label.is_empty())
    },
};

//! Reads values of the file: it resolves `${NAME}`, and collects what is wrong and
//! where secrets are.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::key_path::KeyPath;
use super::problems::Problem;
use base::language::Said;
use base::url::MASK;

/// Looks up an environment variable; tests bring their own.
pub(super) type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Shortest secret that is not warned about, in bytes.
const SECRET_BYTES: usize = 16;

/// What reading collects on its way through a file.
pub(super) struct Reader<'e> {
    environment: &'e Environment,
    /// What stops the file from being used.
    pub problems: Vec<Problem>,
    /// What the owner should know, but may want.
    pub warnings: Vec<Problem>,
    /// Paths of secrets, which are masked when the file is shown.
    pub secrets: Vec<KeyPath>,
    /// Paths of what may hold a secret, which are masked in a backup without secrets.
    pub private: Vec<KeyPath>,
    /// Whether the file itself contains a secret.
    pub holds_secret: bool,
}

impl<'e> Reader<'e> {
    /// A reader that has found nothing yet.
    pub fn new(environment: &'e Environment) -> Reader<'e> {
        Reader {
            environment,
            problems: Vec::new(),
            warnings: Vec::new(),
            secrets: Vec::new(),
            private: Vec::new(),
            holds_secret: false,
        }
    }

    /// Reports what stops the file from being used.
    pub fn problem(&mut self, path: &KeyPath, message: impl Into<Said>) {
        self.problems.push(Problem::of(path, message, false));
    }

    /// Reports what the owner should know.
    pub fn warn(&mut self, path: &KeyPath, message: impl Into<Said>) {
        self.warnings.push(Problem::of(path, message, false));
    }

    /// [`Reader::problem`] that begins with the path.
    pub fn refuse(&mut self, path: &KeyPath, wrong: impl fmt::Display) {
        self.problem(path, format!("\"{path}\" {wrong}"));
    }

    /// [`Reader::warn`] that begins with the path.
    pub fn caution(&mut self, path: &KeyPath, odd: impl fmt::Display) {
        self.warn(path, format!("\"{path}\" {odd}"));
    }

    /// Reports a value that is not what it must be. A value from the environment
    /// is named by its variable, because it may be secret.
    pub fn mistyped(&mut self, path: &KeyPath, expected: &Said, value: &Value) {
        let found = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().into(),
            Value::Array(_) => Said::of("config.array", &[]),
            Value::Object(_) => Said::of("config.object", &[]),
            Value::String(text) => match variable(text) {
                Some(name) => Said::of("config.variable", &[("name", name)]),
                None if text.chars().count() > 60 => Said::of("config.long_text", &[]),
                None => format!("{text:?}").into(),
            },
        };
        let message = Said::of("config.must", &[("path", &path.to_string())]);
        let message = message.with("expected", expected.clone());
        self.problem(path, message.with("found", found));
    }

    /// The value, or what the environment holds for a string that is wholly
    /// `${NAME}`; none after having reported that it holds nothing.
    pub fn resolve<'v>(&mut self, path: &KeyPath, value: &'v Value) -> Option<Cow<'v, Value>> {
        let Some(name) = value.as_str().and_then(variable) else {
            return Some(Cow::Borrowed(value));
        };
        match (self.environment)(name) {
            Some(text) => Some(Cow::Owned(Value::String(text))),
            None => {
                let message =
                    format!("\"{path}\" names the environment variable {name}, which is not set");
                self.problems.push(Problem::of(path, message, true));
                None
            }
        }
    }

    /// Parses a non-string value, or its text from the environment; reports a
    /// problem and returns `None` if it is not what is expected.
    pub fn scalar<T>(
        &mut self,
        path: &KeyPath,
        expected: &Said,
        value: &Value,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let resolved = match self.resolve(path, value)? {
            Cow::Owned(Value::String(text)) => {
                Cow::Owned(serde_json::from_str(&text).unwrap_or_default())
            }
            resolved => resolved,
        };
        self.demand(path, expected, value, read(&resolved))
    }

    /// Returns what was read; reports a problem if that is `None`.
    pub fn demand<T>(
        &mut self,
        path: &KeyPath,
        expected: &Said,
        value: &Value,
        read: Option<T>,
    ) -> Option<T> {
        if read.is_none() {
            self.mistyped(path, expected, value);
        }
        read
    }

    /// A copy of a value with every `${NAME}` inside it resolved.
    pub fn resolve_all(&mut self, path: &KeyPath, value: &Value) -> Option<Value> {
        match value {
            Value::Array(items) => {
                let items: Vec<Option<Value>> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.resolve_all(&path.index(index), item))
                    .collect();
                items.into_iter().collect::<Option<_>>().map(Value::Array)
            }
            Value::Object(members) => {
                let members: Vec<Option<(String, Value)>> = members
                    .iter()
                    .map(|(key, member)| {
                        let member = self.resolve_all(&path.key(key), member);
                        member.map(|member| (key.clone(), member))
                    })
                    .collect();
                let members: Option<Map<String, Value>> = members.into_iter().collect();
                members.map(Value::Object)
            }
            _ => self.resolve(path, value).map(Cow::into_owned),
        }
    }

    /// The text of a string, resolved.
    pub fn text(&mut self, path: &KeyPath, expected: &Said, value: &Value) -> Option<String> {
        match self.resolve(path, value)?.into_owned() {
            Value::String(text) => {
                if text.contains("${") && value.as_str() == Some(&text) {
                    self.caution(
                        path,
                        "contains \"${\", which is taken literally; only a value \
                             that is wholly ${NAME} is read from the environment",
                    );
                }
                Some(text)
            }
            _ => self.demand(path, expected, value, None),
        }
    }

    /// The text of a secret, resolved. Its path is recorded, and no problem shows it.
    pub fn secret(&mut self, path: &KeyPath, value: &Value) -> Option<String> {
        self.secrets.push(path.clone());
        if !value.is_string() {
            let expected = "a string, or \"${NAME}\" to read it from the environment";
            self.refuse(path, format_args!("must be {expected}"));
            return None;
        }
        let (scheme, value) = split_scheme(value);
        self.holds_secret |= value.as_str().is_some_and(|text| variable(text).is_none());
        let text = self.text(path, &"a string".into(), &value)?;
        if text.is_empty() {
            self.refuse(path, "must not be empty");
            return None;
        }
        if text == MASK {
            self.refuse(path, "is masked; give the real secret in its place");
            return None;
        }
        Some(format!("{scheme}{text}"))
    }

    /// Warns about a secret for this server that is short enough to guess.
    pub fn warn_if_short(&mut self, path: &KeyPath, secret: &str) {
        if secret.len() < SECRET_BYTES {
            self.caution(
                path,
                format_args!(
                    "has {} characters; a random one of at least 32 cannot be guessed",
                    secret.chars().count()
                ),
            );
        }
    }

    /// The members of an object.
    pub fn members<'v>(
        &mut self,
        path: &KeyPath,
        expected: &Said,
        value: &'v Value,
    ) -> Option<&'v Map<String, Value>> {
        self.demand(path, expected, value, value.as_object())
    }
}

/// A secret such as `Bearer ${NAME}`, as headers have it, as its first word with the space
/// behind it, and the rest; any other secret wholly as the rest.
fn split_scheme(value: &Value) -> (&str, Cow<'_, Value>) {
    let text = value.as_str().unwrap_or_default();
    match text.find(' ').map(|space| text.split_at(space + 1)) {
        Some((scheme, rest)) if variable(rest).is_some() => (scheme, Cow::Owned(rest.into())),
        _ => ("", Cow::Borrowed(value)),
    }
}

/// Whether a text is a `${NAME}`, or one behind a word such as `Bearer`: it is no secret.
pub(super) fn is_variable(text: &str) -> bool {
    variable(text).is_some() || !split_scheme(&text.into()).0.is_empty()
}

/// The NAME of a text that is wholly `${NAME}`.
pub fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let first = name.bytes().next()?;
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!first.is_ascii_digit() && name.bytes().all(rest)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_name_its_scheme() {
        let environment = |name: &str| (name == "KEY").then(|| "secret".to_owned());
        for (text, read, holds) in [
            ("${KEY}", Some("secret"), false),
            ("Bearer ${KEY}", Some("Bearer secret"), false),
            ("Bearer ${OTHER}", None, false),
            ("Bearer a ${KEY}", Some("Bearer a ${KEY}"), true),
            ("Bearer plain", Some("Bearer plain"), true),
        ] {
            let mut reader = Reader::new(&environment);
            let found = reader.secret(&KeyPath::top().key("x"), &text.into());
            assert_eq!(found.as_deref(), read, "{text}");
            assert_eq!(reader.holds_secret, holds, "{text}");
            assert_eq!(is_variable(text), !holds, "{text}");
        }
    }

    #[test]
    fn only_a_whole_text_names_a_variable() {
        for (text, name) in [
            ("${KEY}", Some("KEY")),
            ("${_k1}", Some("_k1")),
            ("Bearer ${KEY}", None),
            ("${KEY} ", None),
            ("${}", None),
            ("${1KEY}", None),
            ("${A}${B}", None),
            ("$KEY", None),
        ] {
            assert_eq!(variable(text), name, "{text}");
        }
    }
}

//! The path of a value in the configuration file: `channels[0].port`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use base::error::Error;

/// One step from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A member of an object.
    Key(String),
    /// An item of an array.
    Index(usize),
}

impl Step {
    /// The key; none of an item.
    pub fn text(&self) -> Option<&str> {
        match self {
            Step::Key(key) => Some(key),
            Step::Index(_) => None,
        }
    }
}

/// The way from the top of the file to a value. Its text is dotted; a key that
/// would be ambiguous there is written as a JSON string.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyPath(Vec<Step>);

impl KeyPath {
    /// The file's outermost object.
    pub fn top() -> KeyPath {
        KeyPath::default()
    }

    /// The member `key` of the value here.
    pub fn key(&self, key: &str) -> KeyPath {
        self.with(Step::Key(key.to_owned()))
    }

    /// The item `index` of the value here.
    pub fn index(&self, index: usize) -> KeyPath {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> KeyPath {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(step);
        KeyPath(steps)
    }

    /// The steps from the top.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The value around this one; none at the top.
    pub fn parent(&self) -> Option<KeyPath> {
        let (_, before) = self.0.split_last()?;
        Some(KeyPath(before.to_vec()))
    }

    /// The same place in terms of `document`: an item of an array that was
    /// named by its `name` member, by its `type` where it has no name, or by its number,
    /// becomes an index, and the `name` of a member of an object its key.
    pub fn settle(&self, document: &Value) -> KeyPath {
        let mut settled = KeyPath::top();
        let mut here = Some(document);
        for step in &self.0 {
            let step = match (here, step) {
                (Some(Value::Array(items)), Step::Key(name)) => items
                    .iter()
                    .position(|item| name_of(item) == Some(name))
                    .or_else(|| name.parse().ok())
                    .map_or_else(|| step.clone(), Step::Index),
                (Some(Value::Object(members)), Step::Key(name)) if !members.contains_key(name) => {
                    let mut named = members.iter();
                    let named = named.find(|(_, member)| member["name"] == name.as_str());
                    named.map_or_else(|| step.clone(), |(key, _)| Step::Key(key.clone()))
                }
                _ => step.clone(),
            };
            here = here.and_then(|value| descend(value, &step));
            settled.0.push(step);
        }
        settled
    }

    /// Whether this is that value, or in it.
    pub fn is_within(&self, other: &KeyPath) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether one of its steps is this key.
    pub fn names(&self, key: &str) -> bool {
        (self.0.iter()).any(|step| matches!(step, Step::Key(name) if name == key))
    }

    /// The value here, if there is one.
    pub fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(document, descend)
    }

    /// The same to be changed.
    pub fn find_mut<'v>(&self, document: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(document, |value, step| match step {
            Step::Key(key) => value.as_object_mut()?.get_mut(key),
            Step::Index(index) => value.as_array_mut()?.get_mut(*index),
        })
    }

    /// Puts `value` here and creates the objects around it; `null` removes.
    ///
    /// # Errors
    /// `invalid_request` with the path of a value that is not an object, or of an
    /// array without such an item.
    pub fn put(&self, document: &mut Value, value: Value) -> Result<(), Error> {
        let Some((last, before)) = self.0.split_last() else {
            return Err(Error::invalid_request("a key must be named"));
        };
        let mut here = document;
        let mut path = KeyPath::top();
        for step in before {
            path.0.push(step.clone());
            here = match (here, step) {
                (Value::Object(members), Step::Key(key)) => members
                    .entry(key.as_str())
                    .or_insert_with(|| Value::Object(Map::new())),
                (Value::Array(items), Step::Index(index)) if *index < items.len() => {
                    &mut items[*index]
                }
                _ => return Err(missing(&path)),
            };
        }
        match (here, last) {
            (Value::Object(members), Step::Key(key)) if value.is_null() => {
                members.shift_remove(key);
            }
            (Value::Object(members), Step::Key(key)) => {
                members.insert(key.clone(), value);
            }
            (Value::Array(items), Step::Index(index)) if *index < items.len() => {
                if value.is_null() {
                    items.remove(*index);
                } else {
                    items[*index] = value;
                }
            }
            (Value::Array(items), Step::Index(index)) if *index == items.len() => items.push(value),
            // A new item, under the name by which it will be found.
            (Value::Array(items), Step::Key(name)) if value.is_object() => {
                let mut item = Map::from_iter([("name".to_owned(), json!(name))]);
                item.extend(value.as_object().cloned().unwrap_or_default());
                items.push(item.into());
            }
            _ => return Err(missing(self)),
        }
        Ok(())
    }
}

/// The name of an item of an array.
fn name_of(item: &Value) -> Option<&str> {
    let name = item.get("name").or_else(|| item.get("type"));
    name.and_then(Value::as_str)
}

fn descend<'v>(value: &'v Value, step: &Step) -> Option<&'v Value> {
    match step {
        Step::Key(key) => value.as_object()?.get(key),
        Step::Index(index) => value.as_array()?.get(*index),
    }
}

/// Every string in the value at `path`, with its path.
pub(super) fn texts<'v>(path: &KeyPath, value: &'v Value) -> Vec<(KeyPath, &'v str)> {
    match value {
        Value::String(text) => vec![(path.clone(), text)],
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .flat_map(|(index, item)| texts(&path.index(index), item))
                .collect()
        }
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, member)| texts(&path.key(key), member))
            .collect(),
        _ => Vec::new(),
    }
}

fn missing(path: &KeyPath) -> Error {
    Error::invalid_request(format!("there is no place for \"{path}\" in the file"))
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if place > 0 {
                        f.write_str(".")?;
                    }
                    let plain = !key.is_empty() && !key.contains(['.', '[', ']', '"', ' ']);
                    if plain {
                        f.write_str(key)?;
                    } else {
                        write!(f, "{}", Value::from(key.as_str()))?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl FromStr for KeyPath {
    type Err = Error;

    /// Reads `limits.turn_seconds`, `channels[0].port` or
    /// `channels.webhook.accounts."my.name".secret`.
    fn from_str(text: &str) -> Result<KeyPath, Error> {
        let malformed = || {
            Error::invalid_request(format!(
                "{text:?} is not a key; a key looks like limits.turn_seconds or channels[0].port"
            ))
        };
        let mut path = KeyPath::top();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (index, after) = inside.split_once(']').ok_or_else(malformed)?;
                path.0
                    .push(Step::Index(index.parse().map_err(|_| malformed())?));
                rest = after;
                continue;
            }
            if !path.0.is_empty() {
                rest = rest.strip_prefix('.').ok_or_else(malformed)?;
            }
            let (key, after) = if rest.starts_with('"') {
                let mut quoted = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let key = quoted.next().and_then(Result::ok).ok_or_else(malformed)?;
                (key, &rest[quoted.byte_offset()..])
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            };
            if key.is_empty() {
                return Err(malformed());
            }
            path.0.push(Step::Key(key));
            rest = after;
        }
        if path.0.is_empty() {
            return Err(malformed());
        }
        Ok(path)
    }
}

/// The paths of the channels, in the order of the file, in both forms of `channels`.
pub(super) fn channel_places(members: &Value) -> Vec<KeyPath> {
    let place = KeyPath::top().key("channels");
    match members.get("channels") {
        Some(Value::Array(items)) => (0..items.len()).map(|index| place.index(index)).collect(),
        Some(Value::Object(named)) => named
            .keys()
            .filter(|key| !is_comment(key))
            .map(|key| place.key(key))
            .collect(),
        _ => Vec::new(),
    }
}

/// The path of a webhook account in a file.
pub(super) fn account_path(members: &Value, name: &str) -> Option<KeyPath> {
    let places = channel_places(members).into_iter();
    let mut accounts = places.map(|place| place.key("accounts").key(name));
    accounts.find(|path| path.find(members).is_some())
}

/// Whether a key is a comment: ignored, and kept in the file.
pub(super) fn is_comment(key: &str) -> bool {
    key.starts_with('_') || key.starts_with('$') || key == "//"
}

/// A word quoted for a shell, which may take brackets for a pattern.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/@+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        let word: String = word.chars().filter(|letter| !letter.is_control()).collect();
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_survives_its_text() {
        for text in [
            "model",
            "limits.turn_seconds",
            "channels[0].port",
            "channels.webhook.accounts.\"my.name\".secret",
            "a[1][2]",
        ] {
            let path: KeyPath = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", ".a", "a.", "a..b", "a[", "a[x]", "a[0]b", "\"a"] {
            assert!(text.parse::<KeyPath>().is_err(), "{text}");
        }
    }

    #[test]
    fn items_are_found_by_name_and_number() {
        let document = json!({"channels": [{"name": "lan", "port": 1}, {"port": 2}]});
        for (text, settled, found) in [
            ("channels.lan.port", "channels[0].port", json!(1)),
            ("channels.1.port", "channels[1].port", json!(2)),
            ("channels[1].port", "channels[1].port", json!(2)),
        ] {
            let path = text.parse::<KeyPath>().unwrap().settle(&document);
            assert_eq!(path.to_string(), settled);
            assert_eq!(path.find(&document), Some(&found));
        }
    }

    #[test]
    fn values_are_put_and_removed() {
        let mut document = json!({"a": 1, "list": [1, 2]});
        for (text, value) in [
            ("limits.turn_seconds", json!(5)),
            ("a", json!(null)),
            ("list[0]", json!(null)),
            ("list[1]", json!(3)),
        ] {
            text.parse::<KeyPath>()
                .unwrap()
                .put(&mut document, value)
                .unwrap();
        }
        assert_eq!(
            document,
            json!({"list": [2, 3], "limits": {"turn_seconds": 5}})
        );
        for text in ["list[9]", "list.x", "list[0].x"] {
            let path: KeyPath = text.parse().unwrap();
            assert!(path.put(&mut document, json!(1)).is_err(), "{text}");
        }
    }
}

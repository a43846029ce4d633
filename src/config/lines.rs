//! The line of each key in the file, and the keys that appear twice. The JSON parser
//! reports neither, and both help to find a mistake.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::key_path::KeyPath;

/// The lines of a text that is known to be JSON.
#[derive(Default)]
pub(super) struct Lines {
    /// Those on which the values begin.
    lines: BTreeMap<KeyPath, usize>,
    /// Keys that appear in their object more than once; the line of such a key is that
    /// of the last one.
    pub repeated: Vec<KeyPath>,
}

impl Lines {
    /// Walks a text that the JSON parser has accepted. (It limits nesting to 128
    /// levels, which bounds the recursion here.)
    pub fn of(text: &str) -> Lines {
        let mut found = Lines::default();
        let (mut counted, mut line) = (text.as_ptr() as usize, 1);
        // Values are met in the order of the text, of which each is a part.
        let mut line_of = |value: &RawValue| {
            let begin = value.get().as_ptr() as usize;
            let passed = &text.as_bytes()[counted - text.as_ptr() as usize..][..begin - counted];
            line += passed.iter().filter(|byte| **byte == b'\n').count();
            counted = begin;
            line
        };
        if let Ok(document) = serde_json::from_str(text) {
            found.note(&KeyPath::top(), document, &mut line_of);
        }
        found
    }

    /// The line of a key, or that of the nearest object around it.
    pub fn line(&self, path: &KeyPath) -> usize {
        match self.lines.get(path) {
            Some(&line) => line,
            None => path.parent().map_or(1, |parent| self.line(&parent)),
        }
    }

    fn note(
        &mut self,
        path: &KeyPath,
        value: &RawValue,
        line_of: &mut dyn FnMut(&RawValue) -> usize,
    ) {
        let inner: Vec<(KeyPath, &RawValue)> = match value.get().as_bytes().first() {
            Some(b'{') => {
                let members: Members = serde_json::from_str(value.get()).unwrap_or_default();
                let members = members.0.into_iter();
                members
                    .map(|(key, value)| (path.key(&key), value))
                    .collect()
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
                let items = items.into_iter().enumerate();
                items
                    .map(|(index, value)| (path.index(index), value))
                    .collect()
            }
            _ => return,
        };
        for (path, value) in inner {
            if self.lines.insert(path.clone(), line_of(value)).is_some() {
                self.repeated.push(path.clone());
            }
            self.note(&path, value, line_of);
        }
    }
}

/// The members of an object, those of a key that appears twice among them.
#[derive(Default)]
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Members<'t>, D::Error> {
        struct Reader;

        impl<'t> Visitor<'t> for Reader {
            type Value = Members<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Members<'t>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_line() {
        let text = r#"{
  "a": [1,
    {"b\n": "x, ]}\""}, [], {}
  ],
"c":
{
"d" : -1.5e3 }
,"c":true}
"#;
        let lines = Lines::of(text);
        let a = KeyPath::top().key("a");
        let c = KeyPath::top().key("c");
        for (path, line) in [
            (KeyPath::top(), 1),
            (a.clone(), 2),
            (a.index(0), 2),
            (a.index(1), 3),
            (a.index(1).key("b\n"), 3),
            (a.index(3), 3),
            (c.key("d"), 7),
            (c.key("absent"), 8),
        ] {
            assert_eq!(lines.line(&path), line, "{path}");
        }
        assert_eq!(lines.repeated, [c]);
    }
}

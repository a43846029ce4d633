//! Sentences that can be said in each language, also after they were stored.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Words;

/// A sentence for a person, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// The same in each language.
    Plain(String),
    /// A key of the file of words, and the values of its fields.
    Keyed(Cow<'static, str>, Vec<(Cow<'static, str>, Said)>),
}

impl Said {
    /// What the file of words has for `key`, with these values in its fields. The field `what`
    /// is a kind of thing, which has a noun in each language; the field `id` is for programs.
    pub fn of(key: impl Into<Cow<'static, str>>, fields: &[(&'static str, &str)]) -> Said {
        let said = Said::Keyed(key.into(), Vec::new());
        fields.iter().fold(said, |said, (name, value)| {
            let noun = format!("thing.{value}");
            match *name == "what" && Words::ENGLISH.find(&noun).is_some() {
                true => said.with(name, Said::of(noun, &[])),
                false => said.with(name, *value),
            }
        })
    }

    /// The same with one more field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Said>) -> Said {
        if let Said::Keyed(_, fields) = &mut self {
            fields.push((name.into(), value.into()));
        }
        self
    }

    /// Its key, where it has one: of a sentence around another one, that of the inner one.
    pub fn key(&self) -> Option<&str> {
        let Said::Keyed(key, fields) = self else {
            return None;
        };
        let mut inner = fields
            .iter()
            .filter(|(name, _)| name == "said" || name == "says");
        inner.find_map(|(_, said)| said.key()).or(Some(key))
    }

    /// As a person reads it: without ids, which end their sentence.
    pub fn in_words(&self, words: Words) -> String {
        let said = self.say(words, false);
        said.trim_end_matches([' ', '\u{a0}', ':']).to_owned()
    }

    fn say(&self, words: Words, has_ids: bool) -> String {
        let (key, fields) = match self {
            Said::Plain(text) => return text.clone(),
            Said::Keyed(key, fields) => (key, fields),
        };
        let fields = fields.iter().map(|(name, value)| match &**name {
            "id" if !has_ids => (&**name, String::new()),
            _ => (&**name, value.say(words, has_ids)),
        });
        let fields: Vec<(&str, String)> = fields.collect();
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, said)| (*name, &**said)).collect();
        words.say(key, &fields)
    }

    /// As it is stored: plain words as they are.
    pub fn to_stored(&self) -> String {
        match self {
            Said::Plain(text) => text.clone(),
            keyed @ Said::Keyed(..) => serde_json::to_string(keyed).unwrap_or(keyed.to_string()),
        }
    }

    /// What was stored, by an older version as plain words.
    pub fn from_stored(text: &str) -> Said {
        serde_json::from_str(text)
            .ok()
            .filter(|said| matches!(said, Said::Keyed(..)))
            .unwrap_or(Said::from(text))
    }
}

/// In English, as a program reads it.
impl fmt::Display for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.say(Words::ENGLISH, true))
    }
}

impl<T: Into<String>> From<T> for Said {
    fn from(text: T) -> Said {
        Said::Plain(text.into())
    }
}

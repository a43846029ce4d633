//! The text of a message for a model.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::value::{RawValue, to_raw_value};

/// A text of a message. Every request of its conversation shows it again: clones share it, and
/// it is written as JSON once.
#[derive(Clone)]
pub struct Text(Arc<Written>);

struct Written {
    text: String,
    json: OnceLock<Box<RawValue>>,
}

impl Text {
    /// As a string of JSON.
    pub fn json(&self) -> &RawValue {
        let write = || to_raw_value(&self.0.text).expect("every text is a string of JSON");
        self.0.json.get_or_init(write)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        let json = OnceLock::new();
        Text(Arc::new(Written { text, json }))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        text.to_owned().into()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.0.text == other.0.text
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(formatter)
    }
}

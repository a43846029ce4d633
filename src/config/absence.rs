//! What holds where a setting is not set: its default, nothing, or a refusal of
//! the file.

use serde_json::Value;

use super::declaration::{Rule, SettingDoc};
use super::key_path::KeyPath;
use super::reader::Reader;

/// The rule of a setting: it says what holds without a value, too.
pub(super) trait SettingRule: Rule {
    /// Whether there must be a value.
    fn is_required(&self) -> bool {
        false
    }

    /// What holds without a value. Where one is required it only keeps the
    /// place until the section has been read, or is refused.
    fn absent(self) -> Self::Output;

    /// [`SettingRule::absent`] in words.
    fn default_text(&self) -> String;
}

/// A rule with a default.
pub(super) struct Or<R: Rule> {
    /// What a value must be.
    pub rule: R,
    /// What holds without one.
    pub default: R::Output,
    /// What the documentation says of that.
    pub shown: Shown<R::Output>,
}

/// How the documentation shows a default.
pub(super) enum Shown<T> {
    /// As its JSON.
    Json(fn(&T) -> String),
    /// In words.
    Words(&'static str),
}

impl<R: Rule> Rule for Or<R> {
    type Output = R::Output;

    fn expected(&self) -> String {
        self.rule.expected()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<R::Output> {
        self.rule.read(reader, path, value)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.rule.document_members(key, docs);
    }
}

impl<R: Rule> SettingRule for Or<R> {
    fn absent(self) -> R::Output {
        self.default
    }

    fn default_text(&self) -> String {
        match self.shown {
            Shown::Json(text) => text(&self.default),
            Shown::Words(words) => words.to_owned(),
        }
    }
}

/// A rule for a setting that may be absent.
pub(super) struct Optional<R> {
    /// What a value must be.
    pub rule: R,
    /// What holds without one, in words.
    pub shown: &'static str,
}

impl<R: Rule> Rule for Optional<R> {
    type Output = Option<R::Output>;

    fn expected(&self) -> String {
        self.rule.expected()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Self::Output> {
        self.rule.read(reader, path, value).map(Some)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.rule.document_members(key, docs);
    }
}

impl<R: Rule> SettingRule for Optional<R> {
    fn absent(self) -> Option<R::Output> {
        None
    }

    fn default_text(&self) -> String {
        self.shown.to_owned()
    }
}

/// A rule for a setting that must be there.
pub(super) struct Required<R>(pub R);

impl<R: Rule> Rule for Required<R> {
    type Output = R::Output;

    fn expected(&self) -> String {
        self.0.expected()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<R::Output> {
        self.0.read(reader, path, value)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.0.document_members(key, docs);
    }
}

impl<R: Rule<Output: Default>> SettingRule for Required<R> {
    fn is_required(&self) -> bool {
        true
    }

    fn absent(self) -> R::Output {
        R::Output::default()
    }

    fn default_text(&self) -> String {
        "required".to_owned()
    }
}

//! How a section of the file is declared: once, with the name, type, rule and
//! sentence of documentation of each of its settings. The struct, its reader,
//! its defaults and its documentation are all made from that one declaration.

use serde::Serialize;
use serde_json::{Map, Value};

use super::absence::{Optional, Or, Required, SettingRule, Shown};
use super::key_path::KeyPath;
use super::problems::suggestion;
use super::reader::Reader;

/// What is to be known of one setting: a row of `hearth config keys` and of the
/// handbook's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingDoc {
    /// Where it stands: `limits.turn_seconds`, `channels[tcp].port`,
    /// `channels.webhook.accounts.NAME.secret`.
    pub key: String,
    /// What its value must be: `an integer from 1 to 256`.
    pub expects: String,
    /// The default as JSON or in words; `required` where there is none.
    pub default: String,
    /// What it does, in a sentence or two.
    pub documentation: String,
    /// Whether `update_config` may write it.
    pub writable: bool,
}

/// A setting of a section, beside its rule.
pub(super) struct Setting {
    pub key: &'static str,
    pub writable: bool,
}

/// What a value must be.
pub(super) trait Rule {
    /// The value as the house works with it.
    type Output;

    /// What a value must be, to go on `must be ...` with.
    fn expected(&self) -> String;

    /// Reads a value that is there; none after having reported what is wrong.
    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Self::Output>;

    /// Adds what is to be known of the settings inside this one, whose own key
    /// is `key`.
    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        let _ = (key, docs);
    }

    /// The rule with a default, of which the documentation shows the JSON.
    fn or(self, default: Self::Output) -> Or<Self>
    where
        Self: Sized,
        Self::Output: Serialize,
    {
        Or {
            rule: self,
            default,
            shown: Shown::Json(|default| {
                serde_json::to_string(default).expect("a default has a JSON text")
            }),
        }
    }

    /// The rule with a default that the documentation describes as `shown`.
    fn or_shown(self, default: Self::Output, shown: &'static str) -> Or<Self>
    where
        Self: Sized,
    {
        Or {
            rule: self,
            default,
            shown: Shown::Words(shown),
        }
    }

    /// The rule for a setting that may be absent; the documentation describes
    /// what holds then as `shown`.
    fn optional(self, shown: &'static str) -> Optional<Self>
    where
        Self: Sized,
    {
        Optional { rule: self, shown }
    }

    /// The rule for a setting that must be there.
    fn required(self) -> Required<Self>
    where
        Self: Sized,
        Self::Output: Default,
    {
        Required(self)
    }
}

/// A section whose settings are declared with [`section!`].
pub(super) trait Declared: Sized {
    /// The settings, in the order of the declaration.
    const SETTINGS: &'static [Setting];

    /// What holds without the section. Only for one none of whose settings is
    /// required.
    fn absent() -> Self;

    /// Reads all settings over what held without them. Returns whether all are
    /// well, after having reported everything that is wrong.
    fn fill(&mut self, section: &mut Section<'_, '_>) -> bool;

    /// Reads all settings; none after having reported everything that is wrong.
    fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        // In its place from the start: a value of its own for each setting
        // would be code of its own for what becomes of it when another fails.
        let mut read = Self::absent();
        read.fill(section).then_some(read)
    }

    /// Adds what is to be known of each setting; `key` is that of the section.
    fn document(key: &str, docs: &mut Vec<SettingDoc>);
}

/// The object that a section is read from.
pub(super) struct Section<'r, 'e> {
    pub reader: &'r mut Reader<'e>,
    pub path: &'r KeyPath,
    pub members: &'r Map<String, Value>,
}

impl Section<'_, '_> {
    /// Reads one setting over what held without it. Returns whether it is well,
    /// after having reported what is wrong with it.
    pub fn read<R: SettingRule>(&mut self, key: &str, rule: &R, setting: &mut R::Output) -> bool {
        self.read_described(key, rule, &mut |reader, path, value| {
            let read = rule.read(reader, path, value);
            read.map(|read| *setting = read).is_some()
        })
    }

    fn read_described(
        &mut self,
        key: &str,
        rule: &dyn Described,
        read: &mut dyn FnMut(&mut Reader<'_>, &KeyPath, &Value) -> bool,
    ) -> bool {
        let path = self.path.key(key);
        match self.members.get(key).filter(|value| !value.is_null()) {
            Some(value) => read(self.reader, &path, value),
            None if rule.is_required() => {
                let expected = rule.expected();
                self.reader
                    .problem(&path, format!("\"{path}\" is required: {expected}"));
                false
            }
            None => true,
        }
    }

    /// Reports every key that is neither a setting of `D`, nor among `beside`,
    /// nor a comment.
    pub fn refuse_unknown<D: Declared>(&mut self, beside: &[&'static str]) {
        self.refuse_beside(D::SETTINGS, beside);
    }

    fn refuse_beside(&mut self, settings: &[Setting], beside: &[&'static str]) {
        let known = || {
            let settings = settings.iter().map(|setting| setting.key);
            settings.chain(beside.iter().copied())
        };
        for key in self.members.keys().filter(|key| !is_comment(key)) {
            if known().any(|known| known == key) {
                continue;
            }
            let path = self.path.key(key);
            let place = match self.path.steps() {
                [] => String::new(),
                _ => format!(" in \"{}\"", self.path),
            };
            let hint = match suggestion(key, known()) {
                hint if hint.is_empty() && !place.is_empty() => {
                    format!(" (known there: {})", known().collect::<Vec<_>>().join(", "))
                }
                hint => hint,
            };
            self.reader
                .problem(&path, format!("unknown key {key:?}{place}{hint}"));
        }
    }
}

/// Whether a key is a comment: ignored by us, kept in the file.
pub(super) fn is_comment(key: &str) -> bool {
    key.starts_with('_') || key.starts_with('$') || key == "//"
}

/// Joins a key and the key of a setting inside it.
fn joined(key: &str, inner: &str) -> String {
    match key {
        "" => inner.to_owned(),
        _ => format!("{key}.{inner}"),
    }
}

/// What a rule tells of its setting, whatever type that has. Code for it is not
/// compiled anew for each rule.
trait Described {
    fn expected(&self) -> String;
    fn is_required(&self) -> bool;
    fn default_text(&self) -> String;
    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>);
}

impl<R: SettingRule> Described for R {
    fn expected(&self) -> String {
        Rule::expected(self)
    }

    fn is_required(&self) -> bool {
        SettingRule::is_required(self)
    }

    fn default_text(&self) -> String {
        SettingRule::default_text(self)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        Rule::document_members(self, key, docs);
    }
}

/// One row of documentation, and those of what is inside; `section` is the key
/// of the section that the setting is in.
pub(super) fn document_setting<T>(
    section: &str,
    setting: &Setting,
    rule: &impl SettingRule<Output = T>,
    doc_lines: &[&str],
    docs: &mut Vec<SettingDoc>,
) {
    document_described(section, setting, rule, doc_lines, docs);
}

fn document_described(
    section: &str,
    setting: &Setting,
    rule: &dyn Described,
    doc_lines: &[&str],
    docs: &mut Vec<SettingDoc>,
) {
    let key = joined(section, setting.key);
    docs.push(SettingDoc {
        key: key.clone(),
        expects: rule.expected(),
        default: rule.default_text(),
        documentation: sentence(doc_lines),
        writable: setting.writable,
    });
    rule.document_members(&key, docs);
}

fn sentence(doc_lines: &[&str]) -> String {
    let lines: Vec<&str> = doc_lines.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

/// Declares a section:
///
/// ```text
/// section! {
///     /// What the section is.
///     #[derive(Clone, Debug)]
///     pub struct Limits {
///         /// What the setting does.
///         pub turn_seconds: u64 = integer(1..=3600).or(300);
///     }
/// }
/// ```
///
/// `field("key")` names a key that differs from the field's name, and `,
/// writable` after a rule lets `update_config` write the setting.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $(#[derive($($derived:ident),*)])?
        $visible:vis struct $name:ident {$(
            $(#[doc = $doc:literal])+
            $field_visible:vis $field:ident $(($key:literal))? : $type:ty = $rule:expr $(, $flag:ident)?;
        )*}
    ) => {
        $(#[doc = $about])*
        $(#[derive($($derived),*)])?
        $visible struct $name {$(
            $(#[doc = $doc])+
            $field_visible $field: $type,
        )*}

        impl $crate::declaration::Declared for $name {
            const SETTINGS: &'static [$crate::declaration::Setting] = &[$(
                section!(@setting $field $($key)?; $($flag)?),
            )*];

            fn absent() -> $name {
                use $crate::absence::SettingRule as _;
                $name { $($field: $rule.absent(),)* }
            }

            fn fill(
                &mut self,
                section: &mut $crate::declaration::Section<'_, '_>,
            ) -> bool {
                let mut is_well = true;
                $(is_well &= section.read(section!(@key $field $($key)?), &$rule, &mut self.$field);)*
                is_well
            }

            fn document(key: &str, docs: &mut Vec<$crate::declaration::SettingDoc>) {
                $($crate::declaration::document_setting::<$type>(
                    key,
                    &section!(@setting $field $($key)?; $($flag)?),
                    &$rule,
                    &[$($doc),+],
                    docs,
                );)*
            }
        }
    };
    (@setting $field:ident $($key:literal)?; $($flag:ident)?) => {
        $crate::declaration::Setting {
            key: section!(@key $field $($key)?),
            writable: section!(@writable $($flag)?),
        }
    };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@writable) => { false };
    (@writable writable) => { true };
}
pub(super) use section;

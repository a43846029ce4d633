//! How a section of the file is declared: once, with the name, type, rule and
//! sentence of documentation of each of its settings. The struct, its reader,
//! its defaults and its documentation are all made from that one declaration.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::key_path::{KeyPath, is_comment};
use super::problems::with_nearest;
use super::reader::Reader;
use base::language::Said;

/// The documentation of one setting: a row of `hearth config keys` and of the
/// handbook's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingDoc {
    /// Its path: `limits.turn_seconds`, `channels[tcp].port`,
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

impl SettingDoc {
    /// It as a line of `settings.tsv`.
    pub fn line(&self) -> String {
        let writable = if self.writable { "writable" } else { "" };
        let columns = [&self.key, &self.expects, &self.default, &self.documentation];
        format!("{}\t{writable}", columns.map(String::as_str).join("\t"))
    }

    /// That of such a line.
    pub(super) fn of_line(line: &str) -> SettingDoc {
        let mut columns = line.split('\t').map(str::to_owned);
        let mut next = || columns.next().unwrap_or_default();
        SettingDoc {
            key: next(),
            expects: next(),
            default: next(),
            documentation: next(),
            writable: !next().is_empty(),
        }
    }
}

/// The key of a setting of a section.
pub(super) struct SettingKey {
    pub name: &'static str,
    pub writable: bool,
}

/// What a value must be.
pub(super) trait Rule: Sized {
    /// The parsed value.
    type Output;

    /// What a value must be, after the words `must be`.
    fn expected(&self) -> Said;

    /// The JSON Schema of a value.
    fn schema(&self) -> Value {
        json!({ "type": "string" })
    }

    /// Reads a value; none after having reported what is wrong.
    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Self::Output>;

    /// Adds the documentation of the settings inside this one, whose own key is
    /// `key`.
    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        let _ = (key, docs);
    }

    /// The rule with a further step: a check of the whole, or a conversion.
    fn then<T>(self, then: Step<Self::Output, T>) -> Then<Self, T> {
        Then { rule: self, then }
    }

    /// A setting with a default, which the documentation shows as JSON.
    fn or(self, default: Self::Output) -> Setting<Self, Self::Output>
    where
        Self::Output: Serialize,
    {
        let json = |default: &Self::Output| {
            serde_json::to_string(default).expect("a default has a JSON text")
        };
        Setting::new(self, default, |value| value, Absence::Json(json))
    }

    /// A setting with a default that the documentation describes as `shown`.
    fn or_shown(self, default: Self::Output, shown: &'static str) -> Setting<Self, Self::Output> {
        Setting::new(self, default, |value| value, Absence::Words(shown))
    }

    /// A setting that may be absent, which the documentation describes as `shown`.
    fn optional(self, shown: &'static str) -> Setting<Self, Option<Self::Output>> {
        Setting::new(self, None, Some, Absence::Words(shown))
    }

    /// A setting that must be there.
    fn required(self) -> Setting<Self, Self::Output>
    where
        Self::Output: Default,
    {
        Setting::new(
            self,
            Self::Output::default(),
            |value| value,
            Absence::Refused,
        )
    }
}

/// What [`Rule::then`] does with a value that was read; none after having reported
/// what is wrong with it.
pub(super) type Step<F, T> = fn(&mut Reader<'_>, &KeyPath, &Value, F) -> Option<T>;

/// A rule with a further step.
pub(super) struct Then<R: Rule, T> {
    rule: R,
    then: Step<R::Output, T>,
}

impl<R: Rule, T> Rule for Then<R, T> {
    type Output = T;

    fn expected(&self) -> Said {
        self.rule.expected()
    }

    fn schema(&self) -> Value {
        self.rule.schema()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<T> {
        let read = self.rule.read(reader, path, value)?;
        (self.then)(reader, path, value, read)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.rule.document_members(key, docs);
    }
}

/// A setting: the rule for its value, and its default.
pub(super) struct Setting<R: Rule, T> {
    rule: R,
    /// The value if none is given; a placeholder if one is required.
    default: T,
    /// From what the rule reads to what the section holds.
    wrap: fn(R::Output) -> T,
    absence: Absence<T>,
}

/// How the documentation describes a setting's default.
enum Absence<T> {
    /// It is required.
    Refused,
    /// The default as JSON.
    Json(fn(&T) -> String),
    /// In words.
    Words(&'static str),
}

impl<R: Rule, T> Setting<R, T> {
    fn new(rule: R, default: T, wrap: fn(R::Output) -> T, absence: Absence<T>) -> Setting<R, T> {
        Setting {
            rule,
            default,
            wrap,
            absence,
        }
    }

    /// What holds without a value.
    pub fn default(self) -> T {
        self.default
    }

    /// The JSON Schema of a value, of its absence, and of the name of a variable of the
    /// environment.
    fn schema(&self, documentation: String) -> Value {
        let mut schema = json!({
            "description": documentation,
            "anyOf": [self.rule.schema(), { "$ref": "#/$defs/unset_or_variable" }],
        });
        match self.absence {
            Absence::Refused => {}
            Absence::Json(text) => {
                schema["default"] = serde_json::from_str(&text(&self.default)).unwrap_or_default();
            }
            Absence::Words(words) => {
                schema["description"] = json!(format!("{documentation} Default: {words}."));
            }
        }
        schema
    }

    fn default_text(&self) -> String {
        match self.absence {
            Absence::Refused => "required".to_owned(),
            Absence::Json(text) => text(&self.default),
            Absence::Words(words) => words.to_owned(),
        }
    }
}

/// A section whose settings are declared with [`section!`].
pub(super) trait Declared: Sized {
    /// The settings, in the order of the declaration.
    const KEYS: &'static [SettingKey];

    /// The defaults. Only valid where no setting is required.
    fn absent() -> Self;

    /// Reads all settings over the defaults. Returns whether all are valid, after
    /// having reported everything that is wrong.
    fn fill(&mut self, section: &mut Section<'_, '_>) -> bool;

    /// Reads all settings; none after having reported everything that is wrong.
    fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        // Filled in place: a value for each setting would need code to drop it when
        // another one fails.
        let mut read = Self::absent();
        read.fill(section).then_some(read)
    }

    /// Adds the documentation of each setting; `key` is that of the section.
    fn document(key: &str, docs: &mut Vec<SettingDoc>);

    /// The JSON Schema of the section. It may also have the keys `beside`.
    fn schema(beside: &[&str]) -> Value;
}

/// The object that a section is read from.
pub(super) struct Section<'r, 'e> {
    pub reader: &'r mut Reader<'e>,
    pub path: &'r KeyPath,
    pub members: &'r Map<String, Value>,
}

impl Section<'_, '_> {
    /// Reads one setting into `target`, which holds its default. Returns whether it
    /// is valid, after having reported what is wrong with it.
    pub fn read<R: Rule, T>(&mut self, key: &str, setting: &Setting<R, T>, target: &mut T) -> bool {
        let expected = || setting.rule.expected();
        let required = matches!(setting.absence, Absence::Refused);
        let required = required.then_some(&expected as &dyn Fn() -> Said);
        self.read_member(key, required, &mut |reader, path, value| {
            let read = setting.rule.read(reader, path, value);
            read.map(|read| *target = (setting.wrap)(read)).is_some()
        })
    }

    /// [`Section::read`] without its types, so that it is compiled once; `required`
    /// says what a value must be that may not be missing.
    fn read_member(
        &mut self,
        key: &str,
        required: Option<&dyn Fn() -> Said>,
        read: &mut dyn FnMut(&mut Reader<'_>, &KeyPath, &Value) -> bool,
    ) -> bool {
        let path = self.path.key(key);
        let value = self.members.get(key).filter(|value| !value.is_null());
        match (value, required) {
            (Some(value), _) => read(self.reader, &path, value),
            (None, Some(expected)) => {
                let message = Said::of("config.required", &[("path", &path.to_string())]);
                self.reader
                    .problem(&path, message.with("expected", expected()));
                false
            }
            (None, None) => true,
        }
    }

    /// Reports every key that is not one of `keys`, in `beside`, or a comment.
    pub fn refuse_unknown(&mut self, keys: &[SettingKey], beside: &[&'static str]) {
        let known = || {
            let keys = keys.iter().map(|key| key.name);
            keys.chain(beside.iter().copied())
        };
        for key in self.members.keys().filter(|key| !is_comment(key)) {
            if known().any(|known| known == key) {
                continue;
            }
            let path = self.path.key(key);
            let (name, place) = (format!("{key:?}"), self.path.to_string());
            let is_top = self.path.steps().is_empty();
            let unknown = match is_top {
                true => Said::of("config.unknown", &[("key", &name)]),
                false => Said::of("config.unknown_in", &[("key", &name), ("place", &place)]),
            };
            let message = match with_nearest(unknown.clone(), key, known()) {
                same if same == unknown && !is_top => {
                    let known: Vec<&str> = known().collect();
                    let known = known.join(", ");
                    Said::of("config.known", &[("known", &known)]).with("said", unknown)
                }
                message => message,
            };
            self.reader.problem(&path, message);
        }
    }
}

/// What [`is_comment`] says, as a regular expression.
pub(super) const COMMENT: &str = r"^(_|\$|//$)";

/// Joins a key and the key of a setting inside it.
fn joined(key: &str, inner: &str) -> String {
    match key {
        "" => inner.to_owned(),
        _ => format!("{key}.{inner}"),
    }
}

/// Adds the documentation of a setting, and of those inside it; `section` is the
/// key of the section that it is in.
pub(super) fn document<T>(
    section: &str,
    key: &SettingKey,
    setting: &Setting<impl Rule, T>,
    doc_lines: &[&str],
    docs: &mut Vec<SettingDoc>,
) {
    let (expects, default) = (setting.rule.expected().to_string(), setting.default_text());
    let full = push_row(section, key, expects, default, doc_lines, docs);
    setting.rule.document_members(&full, docs);
}

/// Adds a row, and returns its key. Separate from [`document`], which the compiler repeats
/// for every rule.
fn push_row(
    section: &str,
    key: &SettingKey,
    expects: String,
    default: String,
    doc_lines: &[&str],
    docs: &mut Vec<SettingDoc>,
) -> String {
    let full = joined(section, key.name);
    docs.push(SettingDoc {
        key: full.clone(),
        expects,
        default,
        documentation: sentence(doc_lines),
        writable: key.writable,
    });
    full
}

/// Adds a setting to the JSON Schema of its section.
pub(super) fn describe<T>(
    schema: &mut Value,
    key: &str,
    setting: &Setting<impl Rule, T>,
    doc_lines: &[&str],
) {
    schema["properties"][key] = setting.schema(sentence(doc_lines));
    if let (Absence::Refused, Some(required)) =
        (&setting.absence, schema["required"].as_array_mut())
    {
        required.push(json!(key));
    }
}

/// The JSON Schema of a section that has no setting yet.
pub(super) fn section_schema(beside: &[&str]) -> Value {
    let beside: Map<String, Value> = beside
        .iter()
        .map(|&key| (key.to_owned(), json!({})))
        .collect();
    json!({
        "type": "object",
        "properties": beside,
        "required": [],
        "patternProperties": { COMMENT: {} },
        "additionalProperties": false,
    })
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
/// A section that derives `Serialize` is readable: so does `get_config` show it. What is
/// secret, and what may hold a secret, has a form in `readable` for that.
///
/// `field("key")` names a key that differs from the field's name, and `,
/// writable` after a rule lets `update_config` write the setting.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $(#[derive($($derived:ident),*)])?
        $visible:vis struct $name:ident {$(
            $(#[doc = $doc:literal])+
            $(#[serde($($serde:tt)+)])?
            $field_visible:vis $field:ident $(($key:literal))? : $type:ty = $rule:expr $(, $flag:ident)?;
        )*}
    ) => {
        $(#[doc = $about])*
        $(#[derive($($derived),*)])?
        $visible struct $name {$(
            $(#[doc = $doc])+
            $(#[serde($($serde)+)])?
            $field_visible $field: $type,
        )*}

        impl $crate::declaration::Declared for $name {
            const KEYS: &'static [$crate::declaration::SettingKey] = &[$(
                section!(@setting $field $($key)?; $($flag)?),
            )*];

            fn absent() -> $name {
                $name { $($field: $rule.default(),)* }
            }

            fn fill(
                &mut self,
                section: &mut $crate::declaration::Section<'_, '_>,
            ) -> bool {
                let mut is_valid = true;
                $(is_valid &= section.read(section!(@key $field $($key)?), &$rule, &mut self.$field);)*
                is_valid
            }

            fn document(key: &str, docs: &mut Vec<$crate::declaration::SettingDoc>) {
                $($crate::declaration::document::<$type>(
                    key,
                    &section!(@setting $field $($key)?; $($flag)?),
                    &$rule,
                    &[$($doc),+],
                    docs,
                );)*
            }

            fn schema(beside: &[&str]) -> serde_json::Value {
                let mut schema = $crate::declaration::section_schema(beside);
                $($crate::declaration::describe::<$type>(
                    &mut schema,
                    section!(@key $field $($key)?),
                    &$rule,
                    &[$($doc),+],
                );)*
                schema
            }
        }
    };
    (@setting $field:ident $($key:literal)?; $($flag:ident)?) => {
        $crate::declaration::SettingKey {
            name: section!(@key $field $($key)?),
            writable: section!(@writable $($flag)?),
        }
    };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@writable) => { false };
    (@writable writable) => { true };
}
pub(super) use section;

/// Makes what an empty file means the default of sections in which nothing is
/// required.
macro_rules! default_is_absent {
    ($($section:ty),*) => {$(
        impl Default for $section {
            fn default() -> $section {
                <$section as $crate::declaration::Declared>::absent()
            }
        }
    )*};
}
pub(super) use default_is_absent;

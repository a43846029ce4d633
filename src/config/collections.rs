//! The rules for values of several parts: lists, maps, sections.

use std::marker::PhantomData;

use serde_json::{Map, Value};

use super::absence::SettingRule;
use super::address_patterns::AddressPatterns;
use super::declaration::{Declared, Rule, Section, SettingDoc, is_comment};
use super::key_path::KeyPath;
use super::reader::Reader;
use super::rules::Checked;

/// Most items of a list, and members of a map.
const ITEMS: usize = 1_000;

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
        let items = items_of(self.least, &self.expected(), reader, path, value)?;
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            read.extend(self.item.read(reader, &path.index(index), item));
        }
        (read.len() == items.len()).then_some(read)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.item.document_members(&format!("{key}[]"), docs);
    }
}

/// The items of an array that has from `least` to [`ITEMS`].
fn items_of<'v>(
    least: usize,
    expected: &str,
    reader: &mut Reader<'_>,
    path: &KeyPath,
    value: &'v Value,
) -> Option<&'v [Value]> {
    let Some(items) = value.as_array() else {
        reader.mistyped(path, expected, value);
        return None;
    };
    if !(least..=ITEMS).contains(&items.len()) {
        reader.problem(
            path,
            format!(
                "\"{path}\" must have from {least} to {ITEMS} items, not {}",
                items.len()
            ),
        );
        return None;
    }
    Some(items)
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

impl<R: Rule, C: Default + Extend<(String, R::Output)>> Rule for NamedMap<R, C> {
    type Output = C;

    fn expected(&self) -> String {
        format!(
            "an object from {} to {}",
            self.key.expected,
            self.value.expected()
        )
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<C> {
        let (mut read, mut is_whole) = (C::default(), true);
        for (key, inner, value) in members_of(&self.key, &self.expected(), reader, path, value)? {
            match self.value.read(reader, &inner, value) {
                Some(value) => read.extend([(key.clone(), value)]),
                None => is_whole = false,
            }
        }
        is_whole.then_some(read)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        self.value.document_members(&format!("{key}.NAME"), docs);
    }
}

/// The members of an object with names of the owner's choice, each with where
/// it stands.
fn members_of<'v>(
    names: &Checked,
    expected: &str,
    reader: &mut Reader<'_>,
    path: &KeyPath,
    value: &'v Value,
) -> Option<Vec<(&'v String, KeyPath, &'v Value)>> {
    let members = reader.members(path, expected, value)?;
    if members.len() > ITEMS {
        reader.problem(path, format!("\"{path}\" has more than {ITEMS} members"));
        return None;
    }
    let mut found = Vec::with_capacity(members.len());
    for (key, value) in members {
        // What can be a name is one: programs have variables such as `_JAVA_OPTIONS`.
        if is_comment(key) && !(names.check)(key) {
            continue;
        }
        let inner = path.key(key);
        if !(names.check)(key) {
            let expected = names.expected;
            reader.problem(&inner, format!("{key:?} in \"{path}\" is not {expected}"));
        }
        found.push((key, inner, value));
    }
    Some(found)
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
                AddressPatterns::parse(&[&text])
                    .map_err(|error| reader.problem(path, format!("\"{path}\": {error}")))
                    .ok()
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

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        D::document(key, docs);
    }
}

impl<D: Declared> SettingRule for Object<D> {
    fn absent(self) -> D {
        D::absent()
    }

    fn default_text(&self) -> String {
        "the defaults of its members".to_owned()
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

//! The rules for values of several parts: lists, maps, sections.

use std::marker::PhantomData;

use serde_json::{Map, Value, json};

use super::address_patterns::AddressPatterns;
use super::declaration::{COMMENT, Declared, Rule, Section, Setting, SettingDoc, SettingKey};
use super::key_path::{KeyPath, is_comment};
use super::reader::Reader;
use super::rules::Parsed;
use base::language::Said;

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

    fn expected(&self) -> Said {
        let filled = if self.least > 0 {
            " of at least one item"
        } else {
            ""
        };
        format!("an array{filled}, each {}", self.item.expected()).into()
    }

    fn schema(&self) -> Value {
        let (item, least) = (self.item.schema(), self.least);
        json!({ "type": "array", "items": item, "minItems": least, "maxItems": ITEMS })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Self::Output> {
        let items = reader.demand(path, &self.expected(), value, value.as_array())?;
        if !(self.least..=ITEMS).contains(&items.len()) {
            let (least, found) = (self.least, items.len());
            reader.refuse(
                path,
                format_args!("must have from {least} to {ITEMS} items, not {found}"),
            );
            return None;
        }
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

/// An object whose keys are names of the owner's choice.
pub(super) struct NamedMap<R, C> {
    value: R,
    key: Parsed<String>,
    output: PhantomData<C>,
}

/// An object from names to values that keep a rule, collected in a `C`.
pub(super) fn map_of<R: Rule, C>(key: Parsed<String>, value: R) -> NamedMap<R, C> {
    NamedMap {
        value,
        key,
        output: PhantomData,
    }
}

impl<R: Rule, C: Default + Extend<(String, R::Output)>> Rule for NamedMap<R, C> {
    type Output = C;

    fn expected(&self) -> Said {
        format!(
            "an object from {} to {}",
            self.key.expected(),
            self.value.expected()
        )
        .into()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "patternProperties": { COMMENT: {} },
            "additionalProperties": self.value.schema(),
        })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<C> {
        let members = reader.members(path, &self.expected(), value)?;
        if members.len() > ITEMS {
            reader.refuse(path, format_args!("has more than {ITEMS} members"));
            return None;
        }
        let (mut read, mut is_whole) = (C::default(), true);
        for (key, value) in members {
            let (inner, fits) = (path.key(key), self.key.fits(key));
            // What can be a name is one: programs have variables such as `_JAVA_OPTIONS`.
            if is_comment(key) && !fits {
                continue;
            }
            if !fits {
                let expected = self.key.expected();
                reader.problem(&inner, format!("{key:?} in \"{path}\" is not {expected}"));
            }
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

/// Address patterns.
pub(super) fn addresses() -> impl Rule<Output = AddressPatterns> {
    const PATTERN: Parsed<AddressPatterns> = Parsed {
        expected: "an address pattern (<a>.<b>.<c>.*, one address, a network such as \
                   10.0.0.0/8 or fd00::/8, or *)",
        parse: |text| AddressPatterns::parse(&[text]).ok(),
    };
    list(PATTERN).then(|_, _, _, lists| {
        let networks = lists.into_iter().flat_map(|list| list.0);
        Some(AddressPatterns(networks.collect()))
    })
}

/// Any JSON, with every `${NAME}` resolved.
pub(super) struct Json;

impl Rule for Json {
    type Output = Value;

    fn expected(&self) -> Said {
        "any JSON value".into()
    }

    fn schema(&self) -> Value {
        json!({})
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Value> {
        reader.resolve_all(path, value)
    }
}

/// An object whose settings are declared.
pub(super) struct Object<D> {
    /// What it must be, where its keys do not say it best.
    expected: Option<&'static str>,
    /// Keys that it may have in addition to the declared ones.
    beside: &'static [&'static str],
    output: PhantomData<D>,
}

/// An object that is the section `D`.
pub(super) fn object<D: Declared>() -> Object<D> {
    Object {
        expected: None,
        beside: &[],
        output: PhantomData,
    }
}

/// The same, described as `expected`, and with keys `beside`, which the caller reads.
pub(super) fn object_as<D: Declared>(
    expected: &'static str,
    beside: &'static [&'static str],
) -> Object<D> {
    Object {
        expected: Some(expected),
        beside,
        output: PhantomData,
    }
}

/// The setting that is the section `D`.
pub(super) fn section_of<D: Declared>() -> Setting<Object<D>, D> {
    object().or_shown(D::absent(), "the defaults of its members")
}

impl<D: Declared> Rule for Object<D> {
    type Output = D;

    fn expected(&self) -> Said {
        match self.expected {
            Some(expected) => expected.into(),
            None => object_with(D::KEYS).into(),
        }
    }

    fn schema(&self) -> Value {
        D::schema(self.beside)
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<D> {
        let members = reader.members(path, &self.expected(), value)?;
        read_section(reader, path, members, self.beside)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        D::document(key, docs);
    }
}

/// What an object with these keys is called.
fn object_with(keys: &[SettingKey]) -> String {
    let keys: Vec<&str> = keys.iter().map(|key| key.name).collect();
    if keys.len() <= 8 {
        format!("an object with {}", keys.join(", "))
    } else {
        "an object".to_owned()
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
    section.refuse_unknown(D::KEYS, beside);
    D::read(&mut section)
}

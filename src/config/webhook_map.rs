//! `map` and `when` of a webhook account: how another system's JSON becomes a message,
//! and which of it does.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::collections::{Json, map_of};
use super::declaration::{Rule, section};
use super::key_path::KeyPath;
use super::reader::Reader;
use super::rules::Parsed;
use base::language::Said;

/// Longest template, in characters.
const TEMPLATE_CHARACTERS: usize = 10_000;

section! {
    /// How to find the parts of a message in JSON of another form.
    #[derive(Clone, Debug)]
    pub struct WebhookMap {
        /// The message that the assistant gets.
        pub message: Template = TEMPLATE.required();
        /// The speaker's name.
        pub user_id: Option<Template> = TEMPLATE.optional("none");
        /// The name of the conversation: requests with the same name continue it.
        pub conversation_id: Option<Template> = TEMPLATE
            .optional("every request begins a conversation");
    }
}

/// A text with places that are filled from a JSON document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A JSON pointer (RFC 6901); the empty one is the whole document.
    Pointer(String),
}

impl Template {
    /// Reads a template: a JSON pointer alone (`/sender/login`), or a text with
    /// pointers in braces (`Push to {/repository/name}`), `{}` being the whole
    /// document. Other braces are text.
    ///
    /// None when a pointer's brace is not closed.
    pub fn parse(text: &str) -> Option<Template> {
        if text.starts_with('/') && !text.contains(['{', '\n']) {
            return Some(Template(vec![Part::Pointer(text.to_owned())]));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find('{') {
            let (before, inside) = (&rest[..brace], &rest[brace + 1..]);
            plain.push_str(before);
            if !inside.starts_with(['/', '}']) {
                plain.push('{');
                rest = inside;
                continue;
            }
            let (pointer, after) = inside.split_once('}')?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Pointer(pointer.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Some(Template(parts))
    }

    /// Fills the places from `document`: a string is taken as it is, null and
    /// what is not there as nothing, anything else as its JSON. Stops soon
    /// after `most` bytes, for callers that refuse more than that anyway.
    pub fn fill(&self, document: &Value, most: usize) -> String {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Pointer(pointer) => match document.pointer(pointer) {
                    None | Some(Value::Null) => {}
                    Some(Value::String(text)) => filled.push_str(text),
                    Some(other) => filled.push_str(&other.to_string()),
                },
            }
            if filled.len() > most {
                break;
            }
        }
        filled
    }

    /// The pointers in it, in order.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Pointer(pointer) => Some(pointer.as_str()),
            Part::Text(_) => None,
        })
    }
}

/// In `when`, any value but null.
const ANYTHING: &str = "*";

/// Which events of another system an account takes: for each JSON pointer, the values
/// of which the body must have one there. No values: nothing, or null, must be there.
pub type WebhookFilter = BTreeMap<String, Vec<Value>>;

/// The first pointer of `filter` at which `document` has none of the values.
pub fn misfit<'f>(filter: &'f WebhookFilter, document: &Value) -> Option<&'f str> {
    let fits = |(pointer, values): &(&'f String, &Vec<Value>)| match document
        .pointer(pointer)
        .filter(|found| !found.is_null())
    {
        None => values.is_empty(),
        Some(found) => {
            let mut values = values.iter();
            values.any(|one| one == ANYTHING || is_same(one, found))
        }
    };
    let unfit = filter.iter().find(|entry| !fits(entry));
    unfit.map(|(pointer, _)| pointer.as_str())
}

/// Whether two values are the same; JSON tells no 1 from 1.0.
fn is_same(one: &Value, other: &Value) -> bool {
    let has_fraction = one.is_f64() || other.is_f64();
    one == other || has_fraction && one.as_f64().is_some() && one.as_f64() == other.as_f64()
}

/// The rule for `when`.
pub(super) fn filter() -> impl Rule<Output = WebhookFilter> {
    const POINTER: Parsed<String> = Parsed {
        expected: "a JSON pointer such as /action",
        parse: |text| text.starts_with('/').then(|| text.to_owned()),
    };
    map_of(POINTER, Values)
}

/// A text, a number, true or false, or a list of these.
struct Values;

impl Rule for Values {
    type Output = Vec<Value>;

    fn expected(&self) -> Said {
        "a text, a number, true or false, or a list of these (* is anything, [] nothing)".into()
    }

    fn schema(&self) -> Value {
        let plain = json!({ "type": ["string", "number", "boolean"] });
        json!({ "anyOf": [plain, { "type": "array", "items": plain }] })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Vec<Value>> {
        let values = match Json.read(reader, path, value)? {
            Value::Array(values) => values,
            one => vec![one],
        };
        let plain = |one: &Value| one.is_string() || one.is_number() || one.is_boolean();
        let all_plain = values.iter().all(plain).then_some(values);
        reader.demand(path, &self.expected(), value, all_plain)
    }
}

/// The rule for a template.
pub(super) const TEMPLATE: Parsed<Template> = Parsed {
    expected: "a JSON pointer such as /sender/name, or a text with pointers in braces such as \
               \"{/sender/name} says {/text}\"",
    parse: |text| {
        let fits = (1..=TEMPLATE_CHARACTERS).contains(&text.chars().count());
        Template::parse(text).filter(|_| fits)
    },
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_filled_from_a_document() {
        let document = json!({
            "action": "opened", "number": 7, "draft": false, "none": null,
            "issue": { "title": "It {/leaks}", "labels": ["bug"] }, "a/b": { "~": "odd" },
        });
        for (template, filled) in [
            ("/action", "opened"),
            ("/issue/title", "It {/leaks}"),
            ("/issue/labels/0", "bug"),
            ("/a~1b/~0", "odd"),
            ("/nothing", ""),
            ("plain", "plain"),
            (
                "#{/number} {/action}: {/issue/title}",
                "#7 opened: It {/leaks}",
            ),
            ("{/draft}{/none}{/nothing}.", "false."),
            ("{/issue/labels}", "[\"bug\"]"),
            ("{ \"a\": {/number} } {b} {", "{ \"a\": 7 } {b} {"),
        ] {
            let parsed = Template::parse(template).unwrap();
            assert_eq!(parsed.fill(&document, 1000), filled, "{template}");
        }
        let whole = Template::parse("It says: {}").unwrap();
        assert_eq!(whole.fill(&json!([1, "a"]), 1000), "It says: [1,\"a\"]");
    }

    #[test]
    fn an_open_brace_is_an_error_and_the_text_is_bounded() {
        assert_eq!(Template::parse("{/action"), None);
        let many = Template::parse(&"{}".repeat(1000)).unwrap();
        let filled = many.fill(&json!("x".repeat(100)), 250);
        assert_eq!(filled.len(), 300, "it ends with the place that goes over");
    }

    #[test]
    fn a_filter_names_the_pointer_that_does_not_fit() {
        let filter = WebhookFilter::from([
            (
                "/action".to_owned(),
                vec![json!("opened"), json!("reopened")],
            ),
            ("/comment".to_owned(), vec![]),
            ("/draft".to_owned(), vec![json!(false)]),
            ("/number".to_owned(), vec![json!(1), json!(2.5)]),
            ("/issue".to_owned(), vec![json!("*")]),
        ]);
        let mut good =
            json!({ "action": "reopened", "draft": false, "issue": {}, "comment": null });
        for number in [json!(1), json!(1.0), json!(2.5)] {
            good["number"] = number;
            assert_eq!(misfit(&filter, &good), None);
        }
        for (pointer, value) in [
            ("/action", json!("closed")),
            ("/action", Value::Null),
            ("/comment", json!({ "body": "x" })),
            ("/draft", json!("false")),
            ("/number", json!(1.5)),
            ("/number", json!("1")),
            ("/issue", Value::Null),
        ] {
            let mut document = good.clone();
            document[&pointer[1..]] = value;
            assert_eq!(misfit(&filter, &document), Some(pointer), "{document}");
        }
        assert_eq!(misfit(&filter, &json!([1])), Some("/action"));
    }

    #[test]
    fn its_pointers_can_be_listed() {
        let template = Template::parse("{/a} and {/b/c}").unwrap();
        assert_eq!(template.pointers().collect::<Vec<_>>(), ["/a", "/b/c"]);
    }
}

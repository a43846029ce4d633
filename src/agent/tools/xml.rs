//! XML, such as feeds, in the form of JSON: an element is an object of its children and its
//! attributes (`@name`), or the text where it has nothing else to say; children of one name are
//! a list. What is not well-formed is no document.

use serde_json::{Map, Value};

use super::readable;

/// Most elements inside each other.
const MAX_DEPTH: usize = 32;

/// An element that is not closed yet.
struct Element<'a> {
    /// Whether names lose their prefix, and text stays as it is.
    is_data: bool,
    name: &'a str,
    members: Map<String, Value>,
    text: String,
}

/// The document of a text that is XML.
pub(super) fn document(text: &str) -> Option<Value> {
    whole(text, false)
}

/// The same of a document that one program writes for another: names are without their prefix,
/// and text in which there is HTML stays as it is.
pub(super) fn data(text: &str) -> Option<Value> {
    whole(text, true)
}

fn whole(text: &str, is_data: bool) -> Option<Value> {
    let mut open = vec![Element::new("", is_data)];
    read(text, &mut open)?;
    let root = open.pop()?;
    open.is_empty().then_some(root.members.into())
}

/// The same of a text that may be cut off, or not well-formed from some place on.
pub(super) fn beginning(text: &str) -> Value {
    let mut open = vec![Element::new("", false)];
    let _ = read(text, &mut open);
    while open.len() > 1 {
        let name = open[open.len() - 1].name;
        close(&mut open, name);
    }
    open.pop().map_or(Value::Null, |root| root.members.into())
}

/// The children of one name: a list, or the only one.
pub(super) fn list(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// Reads elements; none where they are not well-formed.
fn read<'a>(text: &'a str, open: &mut Vec<Element<'a>>) -> Option<()> {
    let is_data = open.first()?.is_data;
    let local = |name: &'a str| match name.split_once(':') {
        Some((_, local)) if is_data => local,
        _ => name,
    };
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    if !rest.starts_with('<') {
        return None;
    }
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        let inside = open.last_mut()?;
        inside.text.push_str(&readable::decode_references(before));
        if let Some(plain) = tag.strip_prefix("<![CDATA[") {
            let (plain, after) = plain.split_once("]]>")?;
            inside.text.push_str(plain);
            rest = after;
            continue;
        }
        if tag.starts_with("<!--") {
            rest = tag.split_once("-->")?.1;
            continue;
        }
        let (tag, after) = tag[1..].split_at(end_of_tag(&tag[1..])?);
        rest = &after[1..];
        match tag.as_bytes().first()? {
            b'?' | b'!' => {}
            b'/' => close(open, local(tag[1..].trim()))?,
            _ => {
                let whole = tag.strip_suffix('/').unwrap_or(tag);
                let (name, attributes) = whole
                    .split_once(|letter: char| letter.is_ascii_whitespace())
                    .unwrap_or((whole, ""));
                let name = local(name);
                let mut element = Element::new(name, is_data);
                element.take_attributes(attributes);
                open.push(element);
                if tag.ends_with('/') {
                    close(open, name)?;
                }
            }
        }
        if open.len() > MAX_DEPTH {
            return None;
        }
    }
    Some(())
}

/// The place of the `>` that ends a tag; one in quotes is none.
fn end_of_tag(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.bytes().position(|byte| {
        match (quote, byte) {
            (None, b'>') => return true,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
        false
    })
}

fn close(open: &mut Vec<Element<'_>>, name: &str) -> Option<()> {
    let element = open.pop_if(|element| element.name == name)?;
    let members = &mut open.last_mut()?.members;
    let value = element.value();
    match members.get_mut(name) {
        None => {
            members.insert(name.to_owned(), value);
        }
        Some(Value::Array(items)) => items.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
    Some(())
}

impl<'a> Element<'a> {
    fn new(name: &'a str, is_data: bool) -> Element<'a> {
        Element {
            is_data,
            name,
            members: Map::new(),
            text: String::new(),
        }
    }

    fn take_attributes(&mut self, mut rest: &str) {
        while let Some((name, after)) = rest.split_once('=') {
            let after = after.trim_start();
            let Some(quote @ ('"' | '\'')) = after.chars().next() else {
                return;
            };
            let Some((value, after)) = after[1..].split_once(quote) else {
                return;
            };
            let value = readable::decode_references(value).into_owned();
            self.members
                .insert(format!("@{}", name.trim()), value.into());
            rest = after;
        }
    }

    fn value(self) -> Value {
        let has_children = self.members.keys().any(|name| !name.starts_with('@'));
        let text = match self.text.contains('<') && !self.is_data {
            // Feeds put HTML there.
            true => readable::page(&self.text).text,
            false => self.text.trim().to_owned(),
        };
        match has_children || text.is_empty() && !self.members.is_empty() {
            true => Value::Object(self.members),
            false => Value::String(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_become_members_and_what_is_broken_is_none() {
        let feed = "\u{feff}<?xml version='1.0'?><!DOCTYPE x>\n<!-- > --><a v=\"1>\" w='&amp;'>\
                    <b>one &lt;b&gt;bold&lt;/b&gt;</b><b><![CDATA[two & <i>slanted</i>]]></b>\
                    <c href='u'/><d href='u'>text</d><e><f/></e>\n</a>";
        let expected = json!({"a": {
            "@v": "1>", "@w": "&", "b": ["one bold", "two & slanted"],
            "c": {"@href": "u"}, "d": "text", "e": {"f": ""},
        }});
        let found = document(feed).map(|mut found| {
            // How HTML is written as text is tested elsewhere.
            for place in ["/a/b/0", "/a/b/1"] {
                let text = found.pointer_mut(place).unwrap();
                *text = text.as_str().unwrap().replace(['*', '_'], "").into();
            }
            found
        });
        assert_eq!(found, Some(expected));
        let answer = "<d:a xmlns:d='DAV:'><d:b>x &lt;b&gt;</d:b><c:b><![CDATA[<i>]]></c:b></d:a>";
        assert_eq!(
            data(answer),
            Some(json!({"a": {"@xmlns:d": "DAV:", "b": ["x <b>", "<i>"]}}))
        );
        let deep = format!("{}{}", "<a>".repeat(40), "</a>".repeat(40));
        for broken in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "</a>",
            "<a",
            "<a><![CDATA[",
            &deep,
        ] {
            assert_eq!(document(broken), None, "{broken}");
        }
        for (cut, expected) in [
            ("<a><b>1</b><b>2</b", json!({"a": {"b": ["1", "2"]}})),
            ("<a><b>1</b></c><b>2</b></a>", json!({"a": {"b": "1"}})),
            ("<a><b>1</b><![CDATA[", json!({"a": {"b": "1"}})),
            ("text", json!({})),
        ] {
            assert_eq!(beginning(cut), expected, "{cut}");
        }
    }
}

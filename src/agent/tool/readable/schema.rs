//! The JSON-LD of a page (schema.org) as short lines: opening hours, prices,
//! ingredients, whatever it describes.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::values::{Lines, MAX_DEPTH, MAX_ITEMS, clean, comparable, label};

/// Most bytes of the page's text that are searched for what data say again, and most
/// searches.
const MAX_COMPARED: usize = 100_000;
const MAX_SEARCHES: usize = 400;
/// Shorter values are said again: a price means little without its product.
const LEAST_REPEATED: usize = 40;

/// Members that say nothing to a reader of the page.
const SKIPPED: &str = "\
    url image logo thumbnail thumbnailUrl sameAs potentialAction mainEntityOfPage publisher \
    breadcrumb inLanguage isPartOf hasPart primaryImageOfPage contentUrl embedUrl keywords \
    articleSection wordCount interactionStatistic speakable copyrightHolder copyrightYear \
    license acquireLicensePage creditText copyrightNotice identifier isAccessibleForFree \
    comment commentCount review isRelatedTo isSimilarTo relatedLink significantLink \
    mentions hasMap articleBody position photo associatedMedia video maps geo encoding \
    uploadDate bestRating worstRating priceCurrency unitCode";
/// Types that say nothing of what the page is about.
const SKIPPED_TYPES: &str = "\
    BreadcrumbList WebSite SearchAction ImageObject SiteNavigationElement WPHeader WPFooter \
    WPSideBar ItemList";
/// Types of who publishes a page and of the page itself, which count with one of these
/// members.
const PUBLISHERS: &str = "\
    Organization NewsMediaOrganization Person WebPage Corporation AboutPage CollectionPage";
const OF_PUBLISHERS: &str = "\
    address openingHours openingHoursSpecification telephone";
/// Members whose value needs no name.
const PLAIN: &str = "\
    name text streetAddress addressLocality addressRegion postalCode addressCountry address \
    dayOfWeek acceptedAnswer itemListElement item headline";

/// Describes a page, beside its text.
pub(super) struct Description {
    pub(super) lines: Lines,
    /// The page's text with white space collapsed, in lower case.
    said: String,
    searches: usize,
}

impl Description {
    pub(super) fn beside(text: &str) -> Description {
        let end = text.floor_char_boundary(text.len().min(MAX_COMPARED));
        Description {
            lines: Lines::default(),
            said: comparable(&text[..end]),
            searches: 0,
        }
    }

    /// A member of microdata.
    pub(super) fn member(&mut self, name: &str, value: &str) {
        let value = clean(value);
        if !value.is_empty() && !is_skipped(name) && !self.says(&value) {
            self.lines.push(&format!("- {}: {value}", label(name)));
        }
    }

    /// Whether the page's text says this.
    fn says(&mut self, text: &str) -> bool {
        self.searches += 1;
        self.searches <= MAX_SEARCHES && self.said.contains(&comparable(text))
    }

    /// Something with a type, or a list of such.
    pub(super) fn entity(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH || self.lines.is_full() {
            return;
        }
        let members = match value {
            Value::Array(items) => {
                let items = items.iter().take(MAX_ITEMS);
                return items.for_each(|item| self.entity(item, depth + 1));
            }
            Value::Object(members) => members,
            _ => return,
        };
        for inner in ["@graph", "mainEntity", "mainEntityOfPage"] {
            if let Some(inner) = members.get(inner) {
                self.entity(inner, depth + 1);
            }
        }
        let kinds = types(members);
        let is = |names: &str| kinds.iter().any(|kind| has(names, kind));
        let has_more = || {
            OF_PUBLISHERS
                .split(' ')
                .any(|name| members.contains_key(name))
        };
        if kinds.is_empty() || is(SKIPPED_TYPES) || (is(PUBLISHERS) && !has_more()) {
            return;
        }
        let mut lines = Vec::new();
        for (key, value) in members {
            let is_title = matches!(key.as_str(), "name" | "headline" | "mainEntity" | "@graph");
            if is_title || is_skipped(key) {
                continue;
            }
            let text = written(key, value, members, 0);
            if text.is_empty() || (text.len() >= LEAST_REPEATED && self.is_said(value, 0)) {
                continue;
            }
            let space = if text.starts_with('\n') { "" } else { " " };
            lines.push(format!("- {}:{space}{text}", label(key)));
        }
        if lines.is_empty() {
            return;
        }
        let name = members.get("name").or(members.get("headline"));
        let name = name.and_then(Value::as_str).map(clean).unwrap_or_default();
        self.lines
            .push(format!("{}: {name}", kinds[0]).trim_end_matches([':', ' ']));
        for line in lines {
            self.lines.push(&line);
        }
    }

    /// Whether the page's text says all of a value.
    fn is_said(&mut self, value: &Value, depth: usize) -> bool {
        match value {
            _ if depth > MAX_DEPTH || self.said.is_empty() => false,
            Value::String(text) => {
                let text = clean(text);
                text.is_empty() || self.says(&text)
            }
            Value::Number(number) => self.says(&number.to_string()),
            Value::Array(items) => items
                .iter()
                .take(MAX_ITEMS)
                .all(|item| self.is_said(item, depth + 1)),
            Value::Object(members) => members
                .iter()
                .filter(|(key, _)| !is_skipped(key))
                .all(|(_, value)| self.is_said(value, depth + 1)),
            Value::Null | Value::Bool(_) => true,
        }
    }
}

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

fn is_skipped(key: &str) -> bool {
    key.starts_with('@') || has(SKIPPED, key)
}

fn types(members: &Map<String, Value>) -> Vec<&str> {
    let of = |value: &'_ Value| {
        value
            .as_str()
            .map(|name| name.rsplit(['/', ':']).next().unwrap_or(name).len())
    };
    match members.get("@type") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(|name| Some(&name.as_str()?[name.as_str()?.len() - of(name)?..]))
            .collect(),
        Some(name) => name
            .as_str()
            .zip(of(name))
            .map(|(text, length)| &text[text.len() - length..])
            .into_iter()
            .collect(),
        None => Vec::new(),
    }
}

/// A value on one line, or a list on several; empty when it says nothing.
fn written(key: &str, value: &Value, beside: &Map<String, Value>, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return String::new();
    }
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => with_unit(key, number.to_string(), beside),
        Value::String(text) => match clean(text) {
            text if text.is_empty() => text,
            text => with_unit(key, text, beside),
        },
        Value::Array(items) => {
            let items: Vec<String> = items
                .iter()
                .take(MAX_ITEMS)
                .map(|item| written(key, item, beside, depth + 1))
                .filter(|item| !item.is_empty())
                .collect();
            let is_short = items.iter().map(String::len).sum::<usize>() <= 100;
            match depth == 0 && items.len() > 1 && !is_short {
                true => items.iter().fold(String::new(), |mut text, item| {
                    let _ = write!(text, "\n  - {item}");
                    text
                }),
                false => items.join(if is_short { ", " } else { "; " }),
            }
        }
        Value::Object(members) => {
            let mut parts = Vec::new();
            for (key, value) in members {
                if is_skipped(key) {
                    continue;
                }
                let text = written(key, value, members, depth + 1);
                if text.is_empty() {
                    continue;
                }
                // Names first.
                match has(PLAIN, key) {
                    true if key == "name" => parts.insert(0, text),
                    true => parts.push(text),
                    false => parts.push(format!("{}: {text}", label(key))),
                }
            }
            parts.join(", ")
        }
    }
}

/// A number with its unit or currency, which stands beside it.
fn with_unit(key: &str, text: String, beside: &Map<String, Value>) -> String {
    let is_price = key.to_ascii_lowercase().ends_with("price");
    let unit = match key {
        _ if is_price => beside.get("priceCurrency"),
        "value" | "minValue" | "maxValue" => beside.get("currency"),
        _ => None,
    };
    match unit.and_then(Value::as_str) {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    }
}

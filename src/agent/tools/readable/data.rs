//! What a page says in data beside its text, as short lines: schema.org's JSON-LD (opening
//! hours, prices, ingredients), and, of pages that scripts fill in, the scripts' data.

use serde_json::{Map, Value};

use super::html::Tree;
use super::text::has;

/// Longest data that are read, in bytes of one script, and most scripts.
const MAX_SCRIPT: usize = 512 * 1024;
const MAX_SCRIPTS: usize = 20;
/// Most bytes that are written, longest value, most items of a list, and deepest value.
const MAX_BYTES: usize = 6_000;
const MAX_VALUE: usize = 1_500;
const MAX_ITEMS: usize = 60;
const MAX_DEPTH: usize = 10;
/// Most bytes of the page's text that are searched for what data say again, and most
/// searches.
const MAX_COMPARED: usize = 100_000;
const MAX_SEARCHES: usize = 400;
/// Shorter values are said again: a price means little without its product.
const LEAST_REPEATED: usize = 40;

/// Members of JSON-LD that say nothing to a reader of the page.
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
/// Types of who publishes a page and of the page itself, which count with one of these members.
const PUBLISHERS: &str = "\
    Organization NewsMediaOrganization Person WebPage Corporation AboutPage CollectionPage";
const OF_PUBLISHERS: [&str; 4] = [
    "address",
    "openingHours",
    "openingHoursSpecification",
    "telephone",
];
/// Members whose value needs no name.
const PLAIN: &str = "\
    name text streetAddress addressLocality addressRegion postalCode addressCountry address \
    dayOfWeek acceptedAnswer itemListElement item headline";
/// Words of members of scripts' data that are about the page's making.
const MACHINERY: &str = "\
    ad ads analytics asset assets banner breadcrumbs build class color config css csrf env experiments feature features flag flags footer hash header href i18n \
    icon id image images key lang legal locale menu messages nav navigation newsletter promo \
    query related route routes runtime script scripts seo session share slug social sponsored \
    src style styles theme token tracking translations type typename url uuid version";

/// The scripts of a page that hold data.
#[derive(Default)]
pub(super) struct Scripts<'a> {
    linked: Vec<&'a str>,
    others: Vec<&'a str>,
}

impl<'a> Scripts<'a> {
    /// Finds them.
    pub(super) fn of(tree: &Tree<'a>) -> Scripts<'a> {
        let mut scripts = Scripts::default();
        for (place, node) in tree.nodes.iter().enumerate() {
            let Some(tag) = node.tag.as_ref().filter(|tag| tag.name == "script") else {
                continue;
            };
            let content = tree.children(place).next();
            let content = content.map_or("", |text| tree.nodes[text].text.trim());
            let kind = tag.attribute("type").unwrap_or_default().split(';').next();
            let (list, data) = match kind.unwrap_or_default().trim() {
                "application/ld+json" => (&mut scripts.linked, Some(content)),
                "application/json" => (&mut scripts.others, Some(content)),
                "" | "text/javascript" | "application/javascript" => {
                    (&mut scripts.others, assigned(content))
                }
                _ => continue,
            };
            if list.len() < MAX_SCRIPTS && content.len() <= MAX_SCRIPT {
                list.extend(data);
            }
        }
        scripts
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.linked.is_empty() && self.others.is_empty()
    }

    /// The JSON-LD as lines, without long values that `text` says already.
    pub(super) fn described(&self, text: &str) -> String {
        let mut described = Description {
            text: String::new(),
            said: comparable(&text[..text.floor_char_boundary(MAX_COMPARED)]),
            searches: 0,
        };
        for script in &self.linked {
            if let Ok(value) = serde_json::from_str::<Value>(script) {
                described.entity(&value, 0);
            }
        }
        bounded(described.text)
    }

    /// The scripts' own data as lines.
    pub(super) fn raw(&self) -> String {
        let mut lines = String::new();
        for script in &self.others {
            let mut values = serde_json::Deserializer::from_str(script).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                let text = written("", &value, &Map::new(), 0, is_machinery);
                lines.push_str(&format!("- {text}\n"));
            }
        }
        bounded(lines)
    }
}

fn bounded(mut lines: String) -> String {
    lines.truncate(lines.floor_char_boundary(MAX_BYTES));
    lines.truncate(lines.trim_end_matches([' ', '\n', '-']).len());
    lines
}

/// What a script assigns to a member of the window, as in `window.__STATE__ = {...}`.
fn assigned(script: &str) -> Option<&str> {
    let starts = ["window.", "window[", "var "];
    let rest = starts.iter().find_map(|start| script.strip_prefix(start))?;
    let (name, value) = rest.split_once('=')?;
    let value = value.trim_start();
    (name.len() < 80 && value.starts_with(['{', '['])).then_some(value)
}

/// Describes a page, beside its text.
struct Description {
    text: String,
    /// The page's text with white space collapsed, in lower case.
    said: String,
    searches: usize,
}

impl Description {
    /// Something with a type, or a list of such.
    fn entity(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH || self.text.len() >= MAX_BYTES {
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
        let kinds = match members.get("@type") {
            Some(Value::Array(kinds)) => kinds.as_slice(),
            kind => kind.map_or(&[][..], std::slice::from_ref),
        };
        let kinds = kinds.iter().filter_map(Value::as_str);
        let kinds: Vec<&str> = kinds
            .flat_map(|name| name.rsplit(['/', ':']).take(1))
            .collect();
        let is = |names: &str| kinds.iter().any(|kind| has(names, kind));
        let has_more = OF_PUBLISHERS.iter().any(|name| members.contains_key(*name));
        if kinds.is_empty() || is(SKIPPED_TYPES) || (is(PUBLISHERS) && !has_more) {
            return;
        }
        let mut lines = String::new();
        for (key, value) in members {
            if is_skipped(key) || matches!(key.as_str(), "name" | "headline" | "mainEntity") {
                continue;
            }
            let text = written(key, value, members, 0, is_skipped);
            if !text.is_empty() && (text.len() < LEAST_REPEATED || !self.is_said(&text)) {
                let space = if text.starts_with('\n') { "" } else { " " };
                lines.push_str(&format!("- {}:{space}{text}\n", label(key)));
            }
        }
        if !lines.is_empty() {
            let name = members.get("name").or(members.get("headline"));
            let name = name.and_then(Value::as_str).map(clean).unwrap_or_default();
            let title = format!("{}: {name}", kinds[0]);
            let title = title.trim_end_matches([':', ' ']);
            self.text.push_str(&format!("{title}\n{lines}"));
        }
    }

    /// Whether the page's text says all of what was written of a value.
    fn is_said(&mut self, text: &str) -> bool {
        text.split(['\n', ';']).all(|part| {
            let part = comparable(part.trim_start_matches([' ', '-']));
            self.searches += 1;
            self.searches <= MAX_SEARCHES && self.said.contains(&part)
        })
    }
}

fn is_skipped(key: &str) -> bool {
    key.starts_with('@') || has(SKIPPED, key)
}

/// Whether a member of a script's data is not about the page's subject.
fn is_machinery(key: &str) -> bool {
    key.ends_with("Id") || label(key).split(' ').any(|word| has(MACHINERY, word))
}

/// A value on one line, or a list on several, without the members that are skipped; empty when
/// it says nothing.
fn written(
    key: &str,
    value: &Value,
    beside: &Map<String, Value>,
    depth: usize,
    is_skipped: fn(&str) -> bool,
) -> String {
    // A unit or currency stands beside its number.
    let unit = match key {
        "value" | "minValue" | "maxValue" => beside.get("currency"),
        _ if key.to_ascii_lowercase().ends_with("price") => beside.get("priceCurrency"),
        _ => None,
    };
    let unit = unit.and_then(Value::as_str).map(|unit| format!(" {unit}"));
    let unit = unit.unwrap_or_default();
    match value {
        _ if depth > MAX_DEPTH => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => format!("{number}{unit}"),
        Value::Null => String::new(),
        Value::String(text) => match clean(text) {
            text if text.is_empty() => text,
            text => text + &unit,
        },
        Value::Array(items) => {
            let items = items.iter().take(MAX_ITEMS);
            let items = items.map(|item| written(key, item, beside, depth + 1, is_skipped));
            let items: Vec<String> = items.filter(|item| !item.is_empty()).collect();
            let is_short = items.iter().map(String::len).sum::<usize>() <= 100;
            match is_short || depth > 0 || items.len() < 2 {
                true => items.join(if is_short { ", " } else { "; " }),
                false => items.iter().map(|item| format!("\n  - {item}")).collect(),
            }
        }
        Value::Object(members) => {
            let mut parts = Vec::new();
            for (key, value) in members.iter().filter(|(key, _)| !is_skipped(key)) {
                let text = written(key, value, members, depth + 1, is_skipped);
                match has(PLAIN, key) {
                    _ if text.is_empty() => {}
                    // Names first.
                    true if key == "name" => parts.insert(0, text),
                    true => parts.push(text),
                    false => parts.push(format!("{}: {text}", label(key))),
                }
            }
            parts.join(", ")
        }
    }
}

/// A member's name in words: `openingHours` is "opening hours".
fn label(key: &str) -> String {
    let mut words = String::new();
    for letter in key.chars().take(60) {
        if letter.is_uppercase() && !words.is_empty() && !words.ends_with(char::is_uppercase) {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words.replace(['_', '-'], " ")
}

/// A text without tags on one line; empty for an address on the web, and for what no person
/// would read.
fn clean(text: &str) -> String {
    let text = text.trim();
    let terms = ["https://schema.org/", "http://schema.org/"];
    if let Some(term) = terms.iter().find_map(|start| text.strip_prefix(start)) {
        return term.to_owned();
    }
    let is_code = text.len() > 40 && !text.contains(' ') && text.is_ascii();
    let starts = ["https://", "http://", "/", "#"];
    if is_code || starts.iter().any(|start| text.starts_with(start)) {
        return String::new();
    }
    let mut plain = Tree::parse(&text[..text.floor_char_boundary(4 * MAX_VALUE)]).text(0);
    plain.retain(|letter| !letter.is_control());
    let end = plain.floor_char_boundary(MAX_VALUE);
    if end < plain.len() {
        plain.truncate(end);
        plain.push('…');
    }
    plain
}

/// With white space collapsed, in lower case.
fn comparable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

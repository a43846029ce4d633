//! What a page says in data beside its text: schema.org's JSON-LD (opening hours,
//! prices, ingredients), and, of pages that scripts fill in, the scripts' data.

use serde_json::Value;

use super::schema::Description;
use super::tokens::{Tag, Token, Tokens};
use super::values::{Lines, MAX_DEPTH, MAX_ITEMS, clean, label};
use super::words::{Meaning, meaning};

/// Longest data that are read, in bytes of one script, and most scripts.
const MAX_SCRIPT: usize = 512 * 1024;
const MAX_SCRIPTS: usize = 20;
/// Words of members that are about the page's making.
const MACHINERY: &str = "\
    analytics asset assets banner build class color config css csrf env experiments feature \
    features flag flags footer hash header href i18n icon id image images key lang legal \
    locale menu messages nav navigation query route routes runtime script scripts seo \
    session slug src style styles theme token tracking translations type typename url uuid \
    version";

/// The scripts of a page that hold data.
#[derive(Default)]
pub(super) struct Scripts<'a> {
    linked: Vec<&'a str>,
    others: Vec<&'a str>,
}

impl<'a> Scripts<'a> {
    /// Whether the page is about what readers ask and answer.
    pub(super) fn is_forum(&self) -> bool {
        let is_named = |script: &&str| {
            script.contains("\"DiscussionForumPosting\"") || script.contains("\"QAPage\"")
        };
        self.linked.iter().any(is_named)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.linked.is_empty() && self.others.is_empty()
    }

    /// Finds them.
    pub(super) fn of(html: &'a str) -> Scripts<'a> {
        let mut scripts = Scripts::default();
        for token in Tokens::new(html) {
            let Token::Raw(tag, content) = token else {
                continue;
            };
            if !tag.is("script") || content.len() > MAX_SCRIPT {
                continue;
            }
            let content = content.trim();
            match kind(tag) {
                "application/ld+json" if scripts.linked.len() < MAX_SCRIPTS => {
                    scripts.linked.push(content);
                }
                "application/json" if scripts.others.len() < MAX_SCRIPTS => {
                    scripts.others.push(content);
                }
                "" | "text/javascript" | "application/javascript"
                    if scripts.others.len() < MAX_SCRIPTS =>
                {
                    scripts.others.extend(assigned(content));
                }
                _ => {}
            }
        }
        scripts
    }

    /// The JSON-LD as lines, without long values that `text` says already; else the
    /// `members` of microdata.
    pub(super) fn described(&self, text: &str, members: &[(String, String)]) -> String {
        let mut described = Description::beside(text);
        for script in &self.linked {
            if let Ok(value) = serde_json::from_str::<Value>(script) {
                described.entity(&value, 0);
            }
        }
        // Most pages with both say the same in both.
        if described.lines.is_empty() {
            for (name, value) in members {
                described.member(name, value);
            }
        }
        described.lines.text
    }

    /// The scripts' own data as lines.
    pub(super) fn raw(&self) -> String {
        let mut lines = Lines::default();
        for script in &self.others {
            let mut values = serde_json::Deserializer::from_str(script).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                any(&mut lines, "", &value, 0);
            }
        }
        lines.text
    }
}

fn kind(tag: Tag<'_>) -> &str {
    let kind = tag.attribute("type").unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// What a script assigns to a member of the window, as in `window.__STATE__ = {...}`.
fn assigned(script: &str) -> Option<&str> {
    let rest = script
        .strip_prefix("window.")
        .or_else(|| script.strip_prefix("window["))
        .or_else(|| script.strip_prefix("var "))?;
    let (name, value) = rest.split_once('=')?;
    let value = value.trim_start();
    (name.len() < 80 && value.starts_with(['{', '['])).then_some(value)
}

/// Any value: what it says in words and numbers, a line for each object.
fn any(lines: &mut Lines, name: &str, value: &Value, depth: usize) {
    if depth > 2 * MAX_DEPTH || lines.is_full() {
        return;
    }
    match value {
        Value::Array(items) => {
            let items = items.iter().take(MAX_ITEMS);
            items.for_each(|item| any(lines, name, item, depth + 1));
        }
        Value::Object(members) => {
            let mut said = Vec::new();
            for (key, value) in members {
                if let Some(text) = worded(key, value) {
                    said.push(format!("{}: {text}", label(key)));
                }
            }
            if !said.is_empty() {
                let name = label(name);
                let is_named = !name.is_empty();
                let line = format!(
                    "- {name}{}{}",
                    if is_named { ": " } else { "" },
                    said.join(", ")
                );
                lines.push(&line);
            }
            for (key, value) in members {
                let is_noise = meaning(key) == Some(Meaning::Noise) || is_machinery(key);
                if !is_noise && (value.is_array() || value.is_object()) {
                    any(lines, key, value, depth + 1);
                }
            }
        }
        Value::String(_) => {
            if let Some(text) = worded(name, value) {
                lines.push(&format!("- {}: {text}", label(name)));
            }
        }
        _ => {}
    }
}

/// A member's name that is not about the page's subject.
fn is_machinery(key: &str) -> bool {
    label(key)
        .split(' ')
        .any(|word| MACHINERY.split(' ').any(|known| known == word))
        || key.ends_with("Id")
}

/// A value of a script's data that a person would read.
fn worded(key: &str, value: &Value) -> Option<String> {
    if is_machinery(key) || meaning(key) == Some(Meaning::Noise) {
        return None;
    }
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => {
            let text = clean(text);
            let is_code = text.len() > 40 && !text.contains(' ') && text.is_ascii();
            let is_path = text.starts_with('/') || text.starts_with('#');
            (!text.is_empty() && !is_code && !is_path).then_some(text)
        }
        _ => None,
    }
}

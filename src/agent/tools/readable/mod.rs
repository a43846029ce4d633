//! The readable text of an HTML page: title, headings, paragraphs, lists,
//! tables, code and the text of links, in a light Markdown; without scripts,
//! styles, navigation, banners and what is hidden; and what it says in data.
//!
//! ```text
//! html       the page as a list of nodes
//! content    what each is worth: hidden (by attribute and style), beside the content, content
//! markdown   what is read, as lines
//! data       JSON-LD and scripts' data, as lines
//! ```
//!
//! It takes time in proportion to the page's length, and never fails. If a page marks its
//! main part, only that part is read, and more where that says little. Own code: libraries
//! cost 0.1 to 2.3 MB and 10 to 98 crates.

mod content;
mod data;
mod hidden;
mod html;
mod markdown;
mod text;

use content::{Worth, judge};
use data::Scripts;
use html::Tree;
use markdown::Writer;
pub(super) use text::{decode, decode_references};

/// With less text than this, in bytes, more of the page is read.
const ENOUGH: usize = 200;

/// What was read of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The page's title; empty when it has none.
    pub(super) title: String,
    /// Its text.
    pub(super) text: String,
    /// Its links in their order, as text and address; addresses may be relative.
    pub(super) links: Vec<(String, String)>,
    /// The base of relative addresses, when it is not the page's own address.
    pub(super) base: Option<String>,
}

/// Reads a page.
pub(super) fn page(html: &str) -> Page {
    let tree = Tree::parse(html);
    let scripts = Scripts::of(&tree);
    let worth = judge(&tree, !scripts.is_empty());
    let mut main = Vec::new();
    let mut place = 0;
    while let Some(node) = tree.nodes.get(place) {
        let role = node.tag.as_ref().and_then(|tag| tag.attribute("role"));
        let is_main =
            worth[place] == Worth::Content && (node.name() == "main" || role == Some("main"));
        main.extend(is_main.then_some(place));
        let is_over = is_main || worth[place] == Worth::Never;
        place = if is_over { node.end } else { place + 1 };
    }
    let read = |parts: &[usize], least: Worth| {
        let mut writer = Writer::default();
        for part in parts {
            writer.write(&tree, *part, |place| worth[place] < least);
        }
        writer.text.truncate(writer.text.trim_end().len());
        writer
    };
    let mut best = read(&main, Worth::Content);
    if best.text.len() < ENOUGH {
        best = read(&[0], Worth::Content);
    }
    // What was left out on purpose is read where there is hardly anything else.
    for least in [Worth::Doubtful, Worth::Beside] {
        let wider = read(&[0], least);
        if best.text.is_empty() || wider.text.len() > 4 * best.text.len().max(ENOUGH) {
            best = wider;
        }
    }
    let mut page = Page {
        links: best.links,
        ..Page::default()
    };
    let mut description = String::new();
    for (place, node) in tree.nodes.iter().enumerate() {
        let Some(tag) = &node.tag else {
            continue;
        };
        match &*tag.name {
            "title" if page.title.is_empty() && !tree.is_inside(place, &["svg"]) => {
                page.title = tree.text(place);
            }
            "base" => page.base = page.base.or_else(|| Some(tag.label("href"))),
            "meta" if description.is_empty() => {
                let name = tag
                    .attribute("name")
                    .or(tag.attribute("property"))
                    .unwrap_or_default();
                if ["description", "og:description"].contains(&&*name.to_ascii_lowercase()) {
                    description = tag.label("content");
                }
            }
            _ => {}
        }
    }
    let described = scripts.described(&best.text);
    let mut parts = Vec::new();
    // A page that is filled in by scripts has little but its description.
    let has_little = best.text.len() < ENOUGH;
    if has_little && !best.text.contains(&description) {
        parts.push(description);
    }
    if !described.is_empty() {
        parts.push(format!("[data of the page]\n{described}\n[end of data]"));
    } else if has_little {
        parts.push(scripts.raw());
    }
    parts.push(best.text);
    parts.retain(|part| !part.is_empty());
    page.text = parts.join("\n\n");
    page
}

#[cfg(test)]
mod tests;

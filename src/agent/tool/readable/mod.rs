//! The readable text of an HTML page: title, headings, paragraphs, lists,
//! tables, code and the text of links, in a light Markdown; without scripts,
//! styles, navigation and what is hidden.
//!
//! It is no browser: it reads the page once from front to back, keeps no tree,
//! takes time in proportion to the page's length, and never fails. A page
//! whose main part is marked gives that part alone. Own code: libraries cost 0.1 to
//! 2.3 MB and 10 to 98 crates, and keep a tree.

mod charset;
mod entities;
mod render;
mod tokens;

pub(super) use charset::decode;
use render::{Part, render};

/// A part with less text than this, in bytes, is taken for a mistake, and more
/// of the page is looked at.
const ENOUGH: usize = 200;
/// Most links that are kept.
const MAX_LINKS: usize = 200;

/// What is to be read of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The page's title; empty when it has none.
    pub(super) title: String,
    /// What it says.
    pub(super) text: String,
    /// Its links in their order, as text and address; addresses may be relative.
    pub(super) links: Vec<(String, String)>,
    /// What relative addresses start from, when not from the page's own address.
    pub(super) base: Option<String>,
    /// What the page says of itself to search engines.
    pub(super) description: String,
    /// Whether something that was left out went on to the page's end.
    pub(super) is_unclosed: bool,
}

/// Reads a page.
pub(super) fn page(html: &str) -> Page {
    let mut best = render(html, Part::Main);
    for part in [Part::Body, Part::Everything] {
        // What was left out on purpose is looked at only where nothing else is, or
        // where it has no end.
        let is_clear = part == Part::Body || best.is_unclosed || best.text.is_empty();
        if best.text.len() >= ENOUGH || !is_clear {
            break;
        }
        let page = render(html, part);
        if page.text.len() >= best.text.len() {
            best = page;
        }
    }
    // A page that a script would fill in has little beside its description.
    if !best.description.is_empty() && !best.text.contains(&best.description) {
        best.text = format!("{}\n\n{}", best.description, best.text)
            .trim_end()
            .to_owned();
    }
    best
}

#[cfg(test)]
mod tests;

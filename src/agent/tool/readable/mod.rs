//! The readable text of an HTML page: title, headings, paragraphs, lists,
//! tables, code and the text of links, in a light Markdown; without scripts,
//! styles, navigation and what is hidden.
//!
//! It is not a browser: it reads the page once from front to back, keeps no tree,
//! takes time in proportion to the page's length, and never fails. If a page marks
//! its main part, only that part is read. Own code: libraries cost 0.1 to
//! 2.3 MB and 10 to 98 crates, and keep a tree.

mod charset;
mod entities;
mod render;
mod tokens;

pub(super) use charset::decode;
use render::{Part, render};

/// With less text than this, in bytes, more of the page is read.
const ENOUGH: usize = 200;
/// Most links that are kept.
const MAX_LINKS: usize = 200;

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
    /// The description in its head.
    pub(super) description: String,
    /// Whether an element that was left out was never closed.
    pub(super) is_unclosed: bool,
}

/// Reads a page.
pub(super) fn page(html: &str) -> Page {
    let mut best = render(html, Part::Main);
    for part in [Part::Body, Part::Everything] {
        // What was left out on purpose is read only where there is nothing else,
        // or where it was never closed.
        let is_clear = part == Part::Body || best.is_unclosed || best.text.is_empty();
        if best.text.len() >= ENOUGH || !is_clear {
            break;
        }
        let page = render(html, part);
        if page.text.len() >= best.text.len() {
            best = page;
        }
    }
    // A page that is filled in by scripts has little but its description.
    if !best.description.is_empty() && !best.text.contains(&best.description) {
        best.text = format!("{}\n\n{}", best.description, best.text)
            .trim_end()
            .to_owned();
    }
    best
}

#[cfg(test)]
mod tests;

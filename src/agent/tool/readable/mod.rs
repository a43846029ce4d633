//! The readable text of an HTML page: title, headings, paragraphs, lists,
//! tables, code and the text of links, in a light Markdown; without scripts,
//! styles, navigation, banners and what is hidden; and what it says in data.
//!
//! It is not a browser: it reads the page from front to back, keeps no tree, takes
//! time in proportion to the page's length, and never fails. If a page marks its
//! main part, only that part is read. Own code: libraries cost 0.1 to
//! 2.3 MB and 10 to 98 crates, and keep a tree.

mod blocks;
mod charset;
mod data;
mod entities;
mod hidden;
mod links;
mod nesting;
mod phrases;
mod render;
mod schema;
mod selection;
mod tokens;
mod values;
mod words;
mod writer;

pub(super) use charset::decode;
use data::Scripts;
pub(super) use entities::decode as decode_references;
use render::render;
use selection::{Part, Reading};

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
    description: String,
    /// Names and values of its microdata that are not text.
    data: Vec<(String, String)>,
    /// Whether its readers write its content.
    is_forum: bool,
    /// Whether an element that was left out was never closed.
    is_unclosed: bool,
    /// Bytes that were left out for an element's names, as readers' comments, and
    /// as lists of links.
    named_left_out: usize,
    comments_left_out: usize,
    links_left_out: usize,
}

/// Reads a page.
pub(super) fn page(html: &str) -> Page {
    let scripts = Scripts::of(html);
    let mut best = part(html, Part::Main, &scripts);
    for wider in [Part::Body, Part::Everything] {
        // What was left out on purpose is read only where there is nothing else,
        // or where it was never closed.
        let is_clear = wider == Part::Body || best.is_unclosed || best.text.is_empty();
        if best.text.len() >= ENOUGH || !is_clear {
            break;
        }
        let page = part(html, wider, &scripts);
        if page.text.len() >= best.text.len() {
            best = page;
        }
    }
    let described = scripts.described(&best.text, &best.data);
    let mut parts = Vec::new();
    // A page that is filled in by scripts has little but its description.
    let has_little = best.text.len() < ENOUGH;
    if has_little && !best.text.contains(&best.description) {
        parts.push(std::mem::take(&mut best.description));
    }
    if !described.is_empty() {
        parts.push(format!("[data of the page]\n{described}\n[end of data]"));
    } else if has_little {
        parts.push(scripts.raw());
    }
    parts.push(std::mem::take(&mut best.text));
    if best.comments_left_out > 0 {
        parts.push("[comments of readers are left out]".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    best.text = parts.join("\n\n");
    best
}

/// Reads a part of a page, and again with what was left out if that is most of it.
fn part(html: &str, part: Part, scripts: &Scripts<'_>) -> Page {
    let mut reading = Reading {
        part,
        named: false,
        comments: scripts.is_forum(),
        links: false,
        unscripted: false,
    };
    let page = render(html, reading);
    let length = page.text.len();
    reading.named = page.named_left_out > 4 * length.max(ENOUGH);
    reading.comments |= page.is_forum || page.comments_left_out > length;
    reading.links = page.links_left_out > 2 * length;
    reading.unscripted = length < ENOUGH && part != Part::Main && scripts.is_empty();
    match reading.named
        || (reading.comments && page.comments_left_out > 0)
        || reading.links
        || reading.unscripted
    {
        true => render(html, reading),
        false => page,
    }
}

#[cfg(test)]
mod tests;

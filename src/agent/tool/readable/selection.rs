//! Which elements of a page are read.

use std::collections::HashMap;

use super::nesting::is_void;
use super::tokens::Tag;
use super::words::{Meaning, meaning};

/// What of a page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What is marked as the main part.
    Main,
    /// All but what is marked as navigation and the like.
    Body,
    /// Everything that is shown, for pages with tags that are not closed.
    Everything,
}

/// How a page is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) part: Part,
    /// Whether elements with the names of noise are read.
    pub(super) named: bool,
    /// Whether what readers wrote is read.
    pub(super) comments: bool,
    /// Whether lists of links are read.
    pub(super) links: bool,
    /// Whether what is for browsers without scripts is read.
    pub(super) unscripted: bool,
}

/// Where an element stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// In the main part, an article or a section.
    pub(super) is_article: bool,
    pub(super) is_quote: bool,
}

/// Why an element is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It is not shown, or is no text.
    Never,
    /// Unless a page has little else: navigation and the like.
    Role,
    /// By its names, or a header: unless the main part or headline is inside.
    Name(Meaning),
    /// Its text may be content.
    Button,
    /// It works like a button and may be content, too.
    Pressed,
    /// It is only read aloud. Beside figures that are drawn, it says what they are.
    Spoken,
}

/// Why an element is not part of the content.
pub(super) fn why_left_out<'a>(
    tag: Tag<'a>,
    reading: Reading,
    place: Place,
    names: &mut Names<'a>,
) -> Option<Why> {
    let is_one_of = |names: &[&str]| names.iter().any(|name| tag.is(name));
    if tag.is("button") {
        return Some(Why::Button);
    }
    if (tag.is("span") || tag.is("a")) && tag.attribute("role") == Some("button") {
        return Some(Why::Pressed);
    }
    if is_one_of(&[
        "template", "svg", "math", "object", "canvas", "audio", "video", "select", "datalist",
        "map",
    ]) || (tag.is("noscript") && !reading.unscripted)
    {
        return Some(Why::Never);
    }
    // Of wikis: notes' numbers, and links to edit a section.
    let is_of = |class: &str| tag.attribute("class").is_some_and(|it| it.contains(class));
    if (tag.is("sup") && is_of("reference")) || (tag.is("span") && is_of("editsection")) {
        return Some(Why::Never);
    }
    // What marks much of a page is more than noise.
    if is_one_of(&["html", "body", "main", "article"]) {
        return None;
    }
    let is_named = is_one_of(&[
        "div", "section", "aside", "ul", "ol", "p", "form", "header", "footer", "figure", "a",
        "li", "table", "details", "dl", "h2", "h3", "h4", "iframe",
    ]) || tag.name.contains('-');
    let meaning = is_named.then(|| names.meaning(tag)).flatten();
    match meaning {
        Some(Meaning::Noise) if !reading.named => return Some(Why::Name(Meaning::Noise)),
        Some(Meaning::Comments) if !reading.comments => {
            return Some(Why::Name(Meaning::Comments));
        }
        _ => {}
    }
    let role = tag.attribute("role").unwrap_or_default();
    if ["dialog", "alertdialog", "tooltip"].contains(&role) || tag.is("dialog") {
        return Some(Why::Never);
    }
    if reading.part == Part::Everything {
        return None;
    }
    let is_beside =
        tag.is("aside") && meaning != Some(Meaning::Note) || (tag.is("footer") && !place.is_quote);
    if is_beside || tag.is("nav") {
        return Some(Why::Role);
    }
    if tag.is("header") && !place.is_article && !reading.named {
        return Some(Why::Name(Meaning::Noise));
    }
    let roles = [
        "navigation",
        "banner",
        "contentinfo",
        "search",
        "menu",
        "menubar",
        "toolbar",
    ];
    // Of others, some never have an end tag.
    (roles.contains(&role) && !is_void(tag)).then_some(Why::Role)
}

/// Most names whose meaning is kept. Pages use the same ones over and over.
const MAX_KNOWN: usize = 4_000;

/// What the names of elements say.
#[derive(Default)]
pub(super) struct Names<'a> {
    known: HashMap<&'a str, Option<Meaning>>,
}

impl<'a> Names<'a> {
    /// What an element's names say.
    fn meaning(&mut self, tag: Tag<'a>) -> Option<Meaning> {
        let names = ["class", "id", "data-testid", "data-component"]
            .into_iter()
            .filter_map(|name| tag.attribute(name))
            .chain(tag.name.contains('-').then_some(tag.name));
        let mut found = None;
        for name in names {
            let said = match self.known.get(name) {
                Some(said) => *said,
                None => {
                    let said = meaning(name);
                    if self.known.len() < MAX_KNOWN {
                        self.known.insert(name, said);
                    }
                    said
                }
            };
            if said == Some(Meaning::Noise) {
                return said;
            }
            found = found.or(said);
        }
        found
    }
}

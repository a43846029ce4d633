//! The elements that are open, and which of them turn out to be no content when
//! they end: hardly anything but links, a request for consent, a form for an
//! address, links under a heading such as "Related stories".

use super::phrases::{is_about_tracking, leads_elsewhere};
use super::tokens::Tag;

/// Most open elements that are followed.
const MAX_OPEN: usize = 200;
/// Longest request for consent, longest form, and longest element around a form, in
/// bytes.
const MAX_BANNER: usize = 1_500;
const MAX_FORM: usize = 350;
const MAX_AROUND_FORM: usize = 220;
/// A shorter form has its words around it.
const MIN_PITCH: usize = 40;
/// Of a longer part under a heading, a share must be links.
const MAX_ELSEWHERE: usize = 2_000;
/// Links that are a list.
const MANY_LINKS: usize = 3;

const FOLLOWED: [&str; 18] = [
    "div", "section", "ul", "ol", "aside", "form", "header", "footer", "article", "main", "dl",
    "table", "nav", "figure", "details", "center", "fieldset", "body",
];
const NEVER_LINKS: [&str; 3] = ["main", "body", "table"];

/// How much was written so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    /// Bytes of text.
    pub(super) text: usize,
    /// Bytes of these that are in links.
    pub(super) linked: usize,
    pub(super) links: usize,
}

/// What an element holds, beside its text.
#[derive(Clone, Copy, Default)]
pub(super) struct Fields {
    pub(super) consent: bool,
    pub(super) address: bool,
    /// A field for more than an address.
    pub(super) more: bool,
    /// The page's headline.
    pub(super) headline: bool,
}

struct Block<'a> {
    name: &'a str,
    start: Written,
    fields: Fields,
    /// A heading in it over links to elsewhere: where it begins and ends, and its level.
    elsewhere: Option<(Written, usize, u8)>,
}

/// The elements that are open.
#[derive(Default)]
pub(super) struct Blocks<'a> {
    open: Vec<Block<'a>>,
    /// Open elements beyond the limit.
    beyond: usize,
    /// Whether lists of links are kept.
    pub(super) keeps_links: bool,
    /// Bytes of lists of links that were left out.
    pub(super) links_left_out: usize,
}

impl<'a> Blocks<'a> {
    pub(super) fn open(&mut self, tag: Tag<'a>, written: Written) {
        if !is_followed(tag.name) {
            return;
        }
        if self.open.len() == MAX_OPEN {
            self.beyond += 1;
            return;
        }
        self.open.push(Block {
            name: tag.name,
            start: written,
            fields: Fields::default(),
            elsewhere: None,
        });
    }

    /// Notes what the innermost element holds.
    pub(super) fn note(&mut self, fields: Fields) {
        if let Some(block) = self.open.last_mut() {
            block.fields.add(fields);
        }
    }

    /// Takes a heading that ended into account.
    pub(super) fn heading(&mut self, start: Written, text: &str, level: u8) {
        if leads_elsewhere(text.get(start.text..).unwrap_or_default())
            && let Some(block) = self.open.last_mut()
        {
            let from = block.elsewhere.map_or(start, |(from, ..)| from);
            block.elsewhere = Some((from, text.len(), level));
        }
    }

    /// What is to be kept when a heading begins that is no part of what stands
    /// under an earlier one.
    pub(super) fn before_heading(&mut self, level: u8, written: Written) -> Option<Written> {
        let block = self.open.last_mut()?;
        let (from, _, over) = block.elsewhere?;
        if level > over || !is_short_or_links(from, written) {
            return None;
        }
        block.elsewhere = None;
        Some(from)
    }

    /// What is to be kept of the text when an element ends; None for all.
    pub(super) fn close(
        &mut self,
        name: &str,
        text: &str,
        mut written: Written,
    ) -> Option<Written> {
        if !is_followed(name) {
            return None;
        }
        if self.beyond > 0 {
            self.beyond -= 1;
            return None;
        }
        let place = self
            .open
            .iter()
            .rposition(|block| block.name.eq_ignore_ascii_case(name))?;
        let mut kept = None;
        while self.open.len() > place {
            let block = self.open.pop()?;
            if let Some(fewer) = self.end(&block, text, written) {
                kept = Some(fewer);
                written = fewer;
            }
        }
        kept
    }

    fn end(&mut self, block: &Block<'a>, text: &str, written: Written) -> Option<Written> {
        let mut fields = block.fields;
        let body = text.get(block.start.text..written.text).unwrap_or_default();
        let is_consent = fields.consent
            && !fields.headline
            && body.len() <= MAX_BANNER
            && is_about_tracking(body);
        let is_form = fields.address
            && !fields.more
            && !fields.headline
            && body.len()
                <= match block.name.eq_ignore_ascii_case("form") {
                    true => MAX_FORM,
                    false => MAX_AROUND_FORM,
                }
            && !NEVER_LINKS
                .iter()
                .any(|name| block.name.eq_ignore_ascii_case(name))
            && !block.name.eq_ignore_ascii_case("article");
        let is_links = !fields.headline && self.is_links(block, written);
        let mut kept = None;
        if is_consent {
            fields.consent = false;
            kept = Some(block.start);
        } else if is_form {
            // What the form is for may stand before it.
            fields.address = body.trim().len() < MIN_PITCH;
            kept = Some(block.start);
        } else if is_links && !self.keeps_links {
            self.links_left_out += body.len();
            kept = Some(block.start);
        } else if let Some((from, end, level)) = block.elsewhere {
            let is_alone = text
                .get(end..written.text)
                .is_none_or(|rest| rest.trim().is_empty());
            if is_alone {
                // The links follow outside.
                if let Some(parent) = self.open.last_mut() {
                    parent.elsewhere.get_or_insert((from, end, level));
                }
            } else if is_short_or_links(from, written) {
                kept = Some(from);
            }
        }
        let is_list = ["ul", "ol"]
            .iter()
            .any(|name| block.name.eq_ignore_ascii_case(name));
        if let Some(parent) = self.open.last_mut() {
            parent.fields.add(fields);
            // The text may go on behind a list.
            if let Some((from, ..)) = parent.elsewhere
                && is_list
                && is_short_or_links(from, written)
            {
                parent.elsewhere = None;
                kept = Some(from);
            }
        }
        kept
    }

    /// Whether an element holds hardly anything but links.
    fn is_links(&self, block: &Block<'a>, written: Written) -> bool {
        let links = written.links.saturating_sub(block.start.links);
        let linked = written.linked.saturating_sub(block.start.linked);
        // A mark and a line break come with each.
        let text = (written.text.saturating_sub(block.start.text)).saturating_sub(3 * links);
        links >= MANY_LINKS
            && linked * 10 >= text * 7
            && !NEVER_LINKS
                .iter()
                .any(|name| block.name.eq_ignore_ascii_case(name))
    }
}

impl Fields {
    fn add(&mut self, others: Fields) {
        self.consent |= others.consent;
        self.address |= others.address;
        self.more |= others.more;
        self.headline |= others.headline;
    }
}

fn is_followed(name: &str) -> bool {
    name.contains('-')
        || FOLLOWED
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
}

fn is_short_or_links(from: Written, written: Written) -> bool {
    let length = written.text.saturating_sub(from.text);
    let linked = written.linked.saturating_sub(from.linked);
    length <= MAX_ELSEWHERE || linked * 4 >= length
}

//! HTML as a list of nodes in the order of the page. As in browsers, nothing is an
//! error: anything but a tag is text, and end tags that are missing are implied, so that
//! what is hidden ends where it does in a browser, or later.

use std::borrow::Cow;

use super::text::{collapsed, has};

/// Elements that end a paragraph, and are not ended by the end tag of an inline element around
/// them (of those that the HTML standard, 13.2.4.2, calls special).
const BLOCKS: &str = "\
    address article aside blockquote body center dd details dialog dir div dl dt fieldset \
    figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main \
    menu nav ol p pre search section summary table tbody td tfoot th thead tr ul";
/// Those that do not end a paragraph.
const OTHER_BLOCKS: &str = "\
    applet button caption marquee noscript object option select template";
/// Elements without content.
const VOID: &str = "area base br col embed hr img input link meta source track wbr";
/// Elements whose content is text up to their own end tag (HTML standard, 13.1.2).
const RAW: &str = "script style textarea title iframe noembed noframes xmp";
/// Parts of tables: an end tag inside one ends nothing outside.
const OF_TABLES: &str = "table caption thead tbody tfoot tr td th template";
/// Most nodes that are kept; the rest of a page is not read.
const MAX_NODES: usize = 200_000;
/// Longest tag in which quotes count; a longer one has an unclosed quote.
const MAX_TAG: usize = 64 * 1024;
/// Longest text that is looked at as a whole, in bytes.
const MAX_TEXT: usize = 2_000;
/// Most open elements, and nodes of a text, among which one is looked for.
const MAX_SEARCH: usize = 500;

/// An element's start tag.
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: Cow<'a, str>,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// An attribute's value, with its character references; empty for one without a value.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&'a str> {
        let is_space = |letter: char| letter.is_ascii_whitespace();
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|letter| is_space(letter) || letter == '/');
            let first = rest.chars().next()?.len_utf8();
            let end = rest[first..].find(|letter| is_space(letter) || matches!(letter, '=' | '/'));
            let (name, after) = rest.split_at(end.map_or(rest.len(), |end| first + end));
            let after = after.trim_ascii_start();
            let value;
            (value, rest) = match after.strip_prefix('=').map(str::trim_ascii_start) {
                None => ("", after),
                Some(after) => match after.chars().next() {
                    Some(quote @ ('"' | '\'')) => {
                        after[1..].split_once(quote).unwrap_or((&after[1..], ""))
                    }
                    _ => after.split_at(after.find(is_space).unwrap_or(after.len())),
                },
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
        }
    }

    /// An attribute's value as text on one line, empty where there is none.
    pub(super) fn label(&self, attribute: &str) -> String {
        self.attribute(attribute).map(collapsed).unwrap_or_default()
    }

    /// The level of a heading.
    pub(super) fn heading(&self) -> Option<u8> {
        match self.name.as_bytes() {
            [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
            _ => None,
        }
    }
}

/// An element or a text.
pub(super) struct Node<'a> {
    /// None for a text.
    pub(super) tag: Option<Tag<'a>>,
    /// Whether it stands on lines of its own.
    pub(super) is_block: bool,
    /// With its character references.
    pub(super) text: &'a str,
    /// The place of the element around it.
    pub(super) parent: usize,
    /// The place behind its last descendant.
    pub(super) end: usize,
}

impl Node<'_> {
    /// The name of an element, empty for a text.
    pub(super) fn name(&self) -> &str {
        self.tag.as_ref().map_or("", |tag| &tag.name)
    }
}

/// A page. The first node is around all others.
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
}

impl<'a> Tree<'a> {
    /// Reads a page.
    pub(super) fn parse(html: &'a str) -> Tree<'a> {
        let mut parser = Parser {
            rest: html,
            nodes: Vec::new(),
            open: Vec::new(),
            quotes_are_broken: false,
        };
        parser.push(None, "");
        parser.open.push(0);
        while !parser.rest.is_empty() && parser.nodes.len() < MAX_NODES {
            parser.next();
        }
        parser.end(0);
        Tree {
            nodes: parser.nodes,
        }
    }

    /// The nodes directly inside an element.
    pub(super) fn children(&self, place: usize) -> impl Iterator<Item = usize> {
        let end = self.nodes[place].end;
        let in_time = move |child: &usize| *child < end;
        let first = Some(place + 1).filter(in_time);
        std::iter::successors(first, move |&child| {
            Some(self.nodes[child].end).filter(in_time)
        })
    }

    /// Whether one of these elements is around a node.
    pub(super) fn is_inside(&self, place: usize, names: &[&str]) -> bool {
        let parent = |&place: &usize| (place > 0).then(|| self.nodes[place].parent);
        std::iter::successors(Some(place), parent)
            .skip(1)
            .take(MAX_SEARCH)
            .any(|around| names.contains(&self.nodes[around].name()))
    }

    /// The beginning of the text in an element, on one line.
    pub(super) fn text(&self, place: usize) -> String {
        let mut text = String::new();
        let inside = &self.nodes[place..self.nodes[place].end];
        for node in inside.iter().take(MAX_SEARCH) {
            let is_apart = node.is_block || node.name() == "br";
            let more = if is_apart { " " } else { node.text };
            let room = MAX_TEXT.saturating_sub(text.len());
            text.push_str(&more[..more.floor_char_boundary(room)]);
        }
        collapsed(&text)
    }
}

struct Parser<'a> {
    rest: &'a str,
    nodes: Vec<Node<'a>>,
    /// The open elements, outermost first.
    open: Vec<usize>,
    /// Whether quotes in tags no longer count, since one was not closed. Otherwise
    /// every tag of a broken page would be searched to the page's end.
    quotes_are_broken: bool,
}

impl<'a> Parser<'a> {
    fn next(&mut self) {
        match self.rest.as_bytes() {
            [b'<', b'!', b'-', b'-', ..] => {
                self.take(4);
                self.take_until("-->");
            }
            [b'<', b'!' | b'?', ..] => {
                self.take_until(">");
            }
            [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                let tag = &self.take_until(">")[2..];
                let end = tag.find(|letter: char| is_after_name(letter) || letter == '>');
                self.close(&lower(&tag[..end.unwrap_or(tag.len())]));
            }
            [b'<', letter, ..] if letter.is_ascii_alphabetic() => match self.end_of_tag() {
                Some(end) => {
                    let inside = &self.take(end + 1)[1..end];
                    let split = inside.find(is_after_name).unwrap_or(inside.len());
                    let (name, attributes) = inside.split_at(split);
                    let name = lower(name);
                    self.open(Tag { name, attributes });
                }
                None => self.text(self.rest.len()),
            },
            // At least one letter: a `<` that begins nothing is text.
            _ => {
                let first = self.rest.chars().next().map_or(1, char::len_utf8);
                let end = self.rest[first..].find('<').map(|end| end + first);
                self.text(end.unwrap_or(self.rest.len()));
            }
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn take_until(&mut self, end: &str) -> &'a str {
        let place = self.rest.find(end).map(|place| place + end.len());
        self.take(place.unwrap_or(self.rest.len()))
    }

    fn text(&mut self, length: usize) {
        let text = self.take(length);
        self.push(None, text);
    }

    fn push(&mut self, tag: Option<Tag<'a>>, text: &'a str) {
        let parent = self.open.last().copied().unwrap_or_default();
        let end = self.nodes.len() + 1;
        let name = tag.as_ref().map_or("", |tag| &tag.name);
        self.nodes.push(Node {
            is_block: has(BLOCKS, name) || has(OTHER_BLOCKS, name),
            tag,
            text,
            parent,
            end,
        });
    }

    fn open(&mut self, tag: Tag<'a>) {
        let name = tag.name.clone();
        let in_list = |around: &Node<'_>| {
            around.is_block && !matches!(around.name(), "div" | "address" | "p")
        };
        let in_table = |around: &Node<'_>| around.name() == "table";
        match &*name {
            "li" => self.end_implied("li", in_list),
            "dt" | "dd" => self.end_implied("dt dd", in_list),
            "td" | "th" => self.end_implied("td th", in_table),
            "tr" => self.end_implied("tr td th", in_table),
            "thead" | "tbody" | "tfoot" => {
                self.end_implied("thead tbody tfoot tr td th", in_table);
            }
            "a" => self.end_implied("a", |around| around.is_block),
            _ => {}
        }
        if has(BLOCKS, &name) {
            self.end_implied("p", |around| around.is_block);
        }
        self.push(Some(tag), "");
        if has(VOID, &name) {
            return;
        }
        self.open.push(self.nodes.len() - 1);
        if has(RAW, &name) {
            let length = self.end_of_raw(&name);
            self.text(length);
            self.take_until(">");
            self.end(self.open.len() - 1);
        }
    }

    /// Ends the outermost of these elements, up to one that holds them.
    fn end_implied(&mut self, names: &str, holds: impl Fn(&Node<'_>) -> bool) {
        let mut ended = None;
        for (place, &node) in self.open.iter().enumerate().rev().take(MAX_SEARCH) {
            let node = &self.nodes[node];
            if has(names, node.name()) {
                ended = Some(place);
            } else if holds(node) {
                break;
            }
        }
        if let Some(place) = ended {
            self.end(place);
        }
    }

    fn close(&mut self, name: &str) {
        let is_block = has(BLOCKS, name) || has(OTHER_BLOCKS, name);
        let is_of_table = has(OF_TABLES, name);
        for (place, &node) in self.open.iter().enumerate().rev().take(MAX_SEARCH) {
            let node = &self.nodes[node];
            if node.name() == name {
                return self.end(place);
            }
            if node.is_block && (!is_block || (!is_of_table && has(OF_TABLES, node.name()))) {
                return;
            }
        }
    }

    /// Ends an open element and those inside it.
    fn end(&mut self, place: usize) {
        for node in self.open.drain(place..) {
            self.nodes[node].end = self.nodes.len();
        }
    }

    /// Where the tag at the beginning ends: the place of its `>`.
    fn end_of_tag(&mut self) -> Option<usize> {
        if !self.quotes_are_broken {
            let mut quote = None;
            for (place, byte) in self.rest.bytes().enumerate().take(MAX_TAG) {
                match (quote, byte) {
                    (None, b'>') => return Some(place),
                    // A quote counts only where a value begins.
                    (None, b'"' | b'\'') if self.rest[..place].trim_ascii_end().ends_with('=') => {
                        quote = Some(byte);
                    }
                    (Some(open), byte) if open == byte => quote = None,
                    _ => {}
                }
            }
            self.quotes_are_broken = true;
        }
        self.rest.find('>')
    }

    /// The length of a raw element's content, up to its end tag.
    fn end_of_raw(&self, name: &str) -> usize {
        let is_end = |place: &usize| {
            let after = &self.rest.as_bytes()[place + 2..];
            let start = after.get(..name.len()).unwrap_or_default();
            let next = after.get(name.len()).copied().unwrap_or(b'>');
            start.eq_ignore_ascii_case(name.as_bytes())
                && (next == b'>' || is_after_name(char::from(next)))
        };
        let ends = self.rest.match_indices("</").map(|(place, _)| place);
        ends.into_iter().find(is_end).unwrap_or(self.rest.len())
    }
}

fn is_after_name(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '/'
}

fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

//! Splits HTML into text and tags. As in browsers, nothing is an error: anything
//! but a tag is text.

/// Longest tag in which quotes count; a longer one has an unclosed quote.
const MAX_TAG: usize = 64 * 1024;

/// Elements whose content is text up to their own end tag (HTML standard,
/// 13.1.2: raw text and escapable raw text).
const RAW: [&str; 8] = [
    "script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp",
];

/// A piece of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text, with its character references.
    Text(&'a str),
    /// A start tag.
    Open(Tag<'a>),
    /// An end tag, by its name as it is written.
    Close(&'a str),
    /// An element whose whole content is text.
    Raw(Tag<'a>, &'a str),
}

/// A start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// The name as it is written.
    pub(super) name: &'a str,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// Whether the tag has this name, in lower case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// An attribute's value, with its character references; empty for one
    /// without a value.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&'a str> {
        let mut rest = self.attributes;
        loop {
            rest = rest
                .trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == '/');
            if rest.is_empty() {
                return None;
            }
            let end = rest
                .char_indices()
                .skip(1)
                .find(|(_, letter)| letter.is_ascii_whitespace() || matches!(letter, '=' | '/'))
                .map_or(rest.len(), |(end, _)| end);
            let name = &rest[..end];
            rest = rest[end..].trim_ascii_start();
            let mut value = "";
            if let Some(after) = rest.strip_prefix('=') {
                let after = after.trim_ascii_start();
                let (found, left) = match after.chars().next() {
                    Some(quote @ ('"' | '\'')) => {
                        after[1..].split_once(quote).unwrap_or((&after[1..], ""))
                    }
                    _ => {
                        let end = after.find(|letter: char| letter.is_ascii_whitespace());
                        after.split_at(end.unwrap_or(after.len()))
                    }
                };
                (value, rest) = (found, left);
            }
            if name.eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
        }
    }
}

/// The pieces of a page, in order.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// Whether quotes in tags no longer count, since one was not closed. Otherwise
    /// every tag of a broken page would be searched to the page's end.
    quotes_are_broken: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(html: &'a str) -> Tokens<'a> {
        Tokens {
            rest: html,
            quotes_are_broken: false,
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
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

    /// The content of a raw element up to its end tag, which is taken too.
    fn raw_content(&mut self, name: &str) -> &'a str {
        let mut from = 0;
        while let Some(found) = self.rest[from..].find("</") {
            let place = from + found;
            let after = &self.rest.as_bytes()[place + 2..];
            let is_end = after
                .get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
                && after
                    .get(name.len())
                    .is_none_or(|next| next.is_ascii_whitespace() || matches!(next, b'>' | b'/'));
            if is_end {
                let content = self.take(place);
                let end = self.rest.find('>').map_or(self.rest.len(), |end| end + 1);
                self.take(end);
                return content;
            }
            from = place + 2;
        }
        self.take(self.rest.len())
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let bytes = self.rest.as_bytes();
            match bytes {
                [] => return None,
                [b'<', b'!', b'-', b'-', ..] => {
                    let end = self.rest[4..].find("-->").map(|end| end + 7);
                    self.take(end.unwrap_or(self.rest.len()));
                }
                [b'<', b'!' | b'?', ..] => {
                    let end = self.rest.find('>').map(|end| end + 1);
                    self.take(end.unwrap_or(self.rest.len()));
                }
                [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                    let end = self.rest.find('>');
                    let tag = self.take(end.map_or(self.rest.len(), |end| end + 1));
                    let name = &tag[2..];
                    let end = name.find(|letter: char| {
                        letter.is_ascii_whitespace() || matches!(letter, '>' | '/')
                    });
                    return Some(Token::Close(&name[..end.unwrap_or(name.len())]));
                }
                [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                    let Some(end) = self.end_of_tag() else {
                        return Some(Token::Text(self.take(self.rest.len())));
                    };
                    let inside = &self.take(end + 1)[1..end];
                    let split = inside
                        .find(|letter: char| letter.is_ascii_whitespace() || letter == '/')
                        .unwrap_or(inside.len());
                    let (name, attributes) = inside.split_at(split);
                    let tag = Tag { name, attributes };
                    return Some(match RAW.iter().any(|raw| tag.is(raw)) {
                        true => Token::Raw(tag, self.raw_content(name)),
                        false => Token::Open(tag),
                    });
                }
                _ => {
                    // At least one letter: a `<` that begins nothing is text.
                    let first = self.rest.chars().next().map_or(1, char::len_utf8);
                    let end = self.rest[first..].find('<').map(|end| end + first);
                    return Some(Token::Text(self.take(end.unwrap_or(self.rest.len()))));
                }
            }
        }
    }
}

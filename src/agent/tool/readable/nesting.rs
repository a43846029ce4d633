//! An element that is left out, and where it ends.

use super::tokens::{Tag, Token};

/// Elements whose end tag may be missing, what holds them, and whose start ends them.
const OPTIONAL: [(&str, &[&str], &[&str]); 8] = [
    ("li", &["ul", "ol", "menu"], &["li"]),
    ("dt", &["dl"], &["dt", "dd"]),
    ("dd", &["dl"], &["dt", "dd"]),
    ("td", &["table"], &["td", "th", "tr", "tbody", "tfoot"]),
    ("th", &["table"], &["td", "th", "tr", "tbody", "tfoot"]),
    ("tr", &["table"], &["tr", "tbody", "tfoot"]),
    ("tbody", &["table"], &["tbody", "tfoot"]),
    ("p", &[], &PARAGRAPH_ENDS),
];
/// What begins after a paragraph (HTML standard, 13.1.2.4).
const PARAGRAPH_ENDS: [&str; 28] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "details",
    "div",
    "dl",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];
/// Elements without content.
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

/// Whether an element has no content.
pub(super) fn is_void(tag: Tag<'_>) -> bool {
    VOID.iter().any(|name| tag.is(name))
}

/// Whether a tag ends an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is inside.
    No,
    /// It is the end tag.
    With,
    /// It is behind the element.
    Before,
}

/// An element that is open, and how many of its name are open inside it.
pub(super) struct Nesting {
    name: String,
    depth: usize,
    holders: &'static [&'static str],
    /// What begins behind it; none when it must have an end tag.
    enders: &'static [&'static str],
    /// Open elements inside it that hold others of its name.
    held: usize,
}

impl Nesting {
    pub(super) fn of(tag: Tag<'_>) -> Nesting {
        let optional = OPTIONAL.iter().find(|(name, ..)| tag.is(name));
        let (holders, enders) = optional.map_or((&[][..], &[][..]), |(_, h, e)| (*h, *e));
        Nesting {
            name: tag.name.to_ascii_lowercase(),
            depth: 1,
            holders,
            enders,
            held: 0,
        }
    }

    /// Takes a tag into account.
    pub(super) fn take(&mut self, token: Token<'_>) -> End {
        let among =
            |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let has_end = self.enders.is_empty();
        match token {
            Token::Open(tag) if has_end => self.depth += usize::from(tag.is(&self.name)),
            Token::Close(name) if has_end => {
                self.depth -= usize::from(name.eq_ignore_ascii_case(&self.name));
            }
            Token::Open(tag) if among(self.holders, tag.name) => self.held += 1,
            Token::Open(tag) if self.held == 0 && among(self.enders, tag.name) => {
                return End::Before;
            }
            Token::Close(name) if self.held == 0 && name.eq_ignore_ascii_case(&self.name) => {
                return End::With;
            }
            Token::Close(name) if among(self.holders, name) => match self.held {
                0 => return End::Before,
                _ => self.held -= 1,
            },
            Token::Close(name) if self.holders.is_empty() && among(&PARAGRAPH_ENDS, name) => {
                return End::Before;
            }
            _ => {}
        }
        match self.depth {
            0 => End::With,
            _ => End::No,
        }
    }
}

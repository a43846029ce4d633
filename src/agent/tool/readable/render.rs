//! From tags to lines of text.

use super::entities::decode;
use super::tokens::{Tag, Token, Tokens};
use super::{MAX_LINKS, Page};

/// Deepest nesting of lists and quotes that is shown.
const MAX_DEPTH: usize = 8;
/// Longest description of an image, and longest text of a link, in bytes.
const MAX_LABEL: usize = 300;

/// What of a page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What is marked as the main part.
    Main,
    /// All but what is marked as navigation and the like.
    Body,
    /// Everything, for pages with tags that are not closed.
    Everything,
}

/// Reads a part of a page.
pub(super) fn render(html: &str, part: Part) -> Page {
    let mut renderer = Renderer {
        part,
        page: Page::default(),
        inside: None,
        skipped: None,
        breaks: 0,
        has_space: false,
        marker: String::new(),
        lists: Vec::new(),
        quotes: 0,
        articles: 0,
        preformatted: 0,
        codes: 0,
        is_first_cell: true,
        link: None,
    };
    for token in Tokens::new(html) {
        renderer.take(token);
    }
    renderer.end()
}

/// An element that is open, and how many of its name are open inside it.
struct Nesting {
    name: String,
    depth: usize,
}

impl Nesting {
    fn of(tag: Tag<'_>) -> Nesting {
        Nesting {
            name: tag.name.to_ascii_lowercase(),
            depth: 1,
        }
    }

    /// Takes a tag into account; whether the element is closed by it.
    fn is_closed_by(&mut self, token: Token<'_>) -> bool {
        match token {
            Token::Open(tag) if tag.is(&self.name) => self.depth += 1,
            Token::Close(name) if name.eq_ignore_ascii_case(&self.name) => self.depth -= 1,
            _ => {}
        }
        self.depth == 0
    }
}

struct Renderer {
    part: Part,
    page: Page,
    /// The main part, while it is open.
    inside: Option<Nesting>,
    /// What is left out, while it is open.
    skipped: Option<Nesting>,
    /// Line breaks to write before the next text.
    breaks: usize,
    /// Whether white space is to be written before the next text.
    has_space: bool,
    /// What the next text's line begins with: of a heading, of an item.
    marker: String,
    /// The open lists; the next number of those that count.
    lists: Vec<Option<u32>>,
    quotes: usize,
    articles: usize,
    preformatted: usize,
    codes: usize,
    is_first_cell: bool,
    /// The open link: its address, and where its text begins.
    link: Option<(String, usize)>,
}

impl Renderer {
    fn take(&mut self, token: Token<'_>) {
        if let Some(skipped) = &mut self.skipped {
            if skipped.is_closed_by(token) {
                self.skipped = None;
            }
            return;
        }
        if let Token::Raw(tag, content) = token {
            if tag.is("title") && self.page.title.is_empty() {
                self.page.title = collapsed(content);
            }
            return;
        }
        if let Token::Open(tag) = token {
            self.take_note(tag);
        }
        if self.part == Part::Main && !self.is_inside(token) {
            return;
        }
        if let Token::Open(tag) = token
            && self.is_left_out(tag)
        {
            self.skipped = Some(Nesting::of(tag));
            return;
        }
        match token {
            Token::Text(text) => self.text(text),
            Token::Open(tag) => self.open(tag),
            Token::Close(name) => self.close(&name.to_ascii_lowercase()),
            Token::Raw(..) => {}
        }
    }

    /// Whether a token is inside the main part, not counting its own tags.
    fn is_inside(&mut self, token: Token<'_>) -> bool {
        match (&mut self.inside, token) {
            (Some(inside), token) => {
                if !inside.is_closed_by(token) {
                    return true;
                }
                self.inside = None;
                self.break_lines(2);
            }
            (None, Token::Open(tag)) => {
                if tag.is("main") || tag.attribute("role") == Some("main") {
                    self.inside = Some(Nesting::of(tag));
                }
            }
            (None, _) => {}
        }
        false
    }

    /// What a page says of itself in its head.
    fn take_note(&mut self, tag: Tag<'_>) {
        if tag.is("base") && self.page.base.is_none() {
            self.page.base = tag.attribute("href").map(collapsed);
        }
        let is_description = |name: &str| {
            name.eq_ignore_ascii_case("description") || name.eq_ignore_ascii_case("og:description")
        };
        let name = tag.attribute("name").or(tag.attribute("property"));
        if tag.is("meta") && self.page.description.is_empty() && name.is_some_and(is_description) {
            self.page.description = tag.attribute("content").map(collapsed).unwrap_or_default();
        }
    }

    /// Whether an element is not part of the content.
    fn is_left_out(&self, tag: Tag<'_>) -> bool {
        let is_one_of = |names: &[&str]| names.iter().any(|name| tag.is(name));
        if is_one_of(&[
            "template", "svg", "math", "object", "canvas", "audio", "video", "select", "datalist",
            "button", "map",
        ]) {
            return true;
        }
        if self.part == Part::Everything {
            return false;
        }
        if is_one_of(&["nav", "footer", "aside", "dialog"])
            || (tag.is("header") && self.inside.is_none() && self.articles == 0)
        {
            return true;
        }
        // Of others, some may lack an end tag, or never have one.
        let is_container = is_one_of(&[
            "div", "section", "span", "ul", "ol", "table", "form", "a", "article", "figure", "sup",
        ]);
        let roles = ["navigation", "banner", "contentinfo", "search", "dialog"];
        is_container
            && (tag.attribute("hidden").is_some()
                || tag.attribute("aria-hidden") == Some("true")
                || tag
                    .attribute("role")
                    .is_some_and(|role| roles.contains(&role)))
    }

    fn open(&mut self, tag: Tag<'_>) {
        let name = tag.name.to_ascii_lowercase();
        match name.as_str() {
            "br" => self.line_break(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.break_lines(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.marker = format!("{} ", "#".repeat(level));
            }
            "ul" | "ol" | "menu" => {
                self.break_lines(if self.lists.is_empty() { 2 } else { 1 });
                if self.lists.len() < MAX_DEPTH {
                    let start = tag.attribute("start").and_then(|start| start.parse().ok());
                    self.lists.push((name == "ol").then(|| start.unwrap_or(1)));
                }
            }
            "li" => {
                self.break_lines(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                self.marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        format!("{indent}{}. ", *number - 1)
                    }
                    _ => format!("{indent}- "),
                };
            }
            "dd" => {
                self.break_lines(1);
                "  ".clone_into(&mut self.marker);
            }
            "blockquote" => {
                self.break_lines(2);
                self.quotes = (self.quotes + 1).min(MAX_DEPTH);
            }
            "pre" => {
                self.break_lines(2);
                if self.preformatted == 0 {
                    self.push("```");
                    self.break_lines(1);
                }
                self.preformatted += 1;
            }
            "code" | "kbd" | "samp" if self.preformatted == 0 => {
                self.push("`");
                self.codes += 1;
            }
            "tr" => {
                self.break_lines(1);
                self.is_first_cell = true;
            }
            "td" | "th" => {
                self.has_space = false;
                if !std::mem::replace(&mut self.is_first_cell, false) {
                    self.push(" |");
                    self.has_space = true;
                }
            }
            "img" => {
                let label = tag.attribute("alt").map(collapsed).unwrap_or_default();
                if (1..=MAX_LABEL).contains(&label.len()) {
                    self.text(&format!("[image: {label}]"));
                }
            }
            "a" => {
                let address = tag.attribute("href").map(collapsed).unwrap_or_default();
                self.link = is_followable(&address).then_some((address, self.page.text.len()));
            }
            "article" => {
                self.articles += 1;
                self.break_lines(2);
            }
            other => self.break_around(other),
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.marker.clear();
                self.break_lines(2);
            }
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.marker.clear();
                self.break_lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            "li" | "dd" => {
                self.marker.clear();
                self.break_lines(1);
            }
            "blockquote" => {
                self.break_lines(2);
                self.quotes = self.quotes.saturating_sub(1);
            }
            "pre" if self.preformatted > 0 => {
                self.preformatted -= 1;
                if self.preformatted == 0 {
                    let end = self.page.text.trim_end().len();
                    self.page.text.truncate(end);
                    self.breaks = 0;
                    self.break_lines(1);
                    self.push("```");
                    self.break_lines(2);
                }
            }
            "code" | "kbd" | "samp" if self.codes > 0 => self.end_code(),
            "a" => self.end_link(),
            "article" => {
                self.articles = self.articles.saturating_sub(1);
                self.break_lines(2);
            }
            other => self.break_around(other),
        }
    }

    fn text(&mut self, raw: &str) {
        let text = decode(raw);
        for letter in text.chars() {
            match letter {
                // Marks that show nothing and may hide something.
                '\u{AD}'
                | '\u{200B}'..='\u{200F}'
                | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{2069}'
                | '\u{FEFF}' => {}
                '\n' if self.preformatted > 0 => self.breaks += 1,
                '\r' if self.preformatted > 0 => {}
                space if space.is_whitespace() && self.preformatted == 0 => self.has_space = true,
                control if control.is_control() && control != '\t' => {}
                letter => {
                    self.flush();
                    self.page.text.push(letter);
                }
            }
        }
    }

    /// Writes a mark of our own.
    fn push(&mut self, mark: &str) {
        self.flush();
        self.page.text.push_str(mark);
    }

    /// Writes the breaks, the line's beginning or the space that are due.
    fn flush(&mut self) {
        let text = &mut self.page.text;
        if text.is_empty() {
            self.breaks = 0;
        }
        let is_new_line = text.is_empty() || self.breaks > 0;
        if is_new_line {
            // A page may have thousands of empty lines.
            let breaks = self.breaks.min(if self.preformatted > 0 { 4 } else { 2 });
            text.extend(std::iter::repeat_n('\n', breaks));
            text.push_str(&"> ".repeat(self.quotes));
        } else if self.has_space {
            text.push(' ');
        }
        if !self.marker.is_empty() {
            text.push_str(&std::mem::take(&mut self.marker));
        }
        self.breaks = 0;
        self.has_space = false;
    }

    fn break_lines(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
        if count > 0 {
            self.has_space = false;
        }
    }

    fn break_around(&mut self, name: &str) {
        // A paragraph in a list item does not start a new line.
        let most = if self.lists.is_empty() { 2 } else { 1 };
        self.break_lines(breaks_around(name).min(most));
    }

    fn line_break(&mut self) {
        self.breaks = (self.breaks + 1).min(2);
        self.has_space = false;
    }

    fn end_code(&mut self) {
        self.codes -= 1;
        // It was empty.
        if self.page.text.ends_with('`') {
            self.page.text.pop();
        } else {
            self.page.text.push('`');
        }
    }

    fn end_link(&mut self) {
        let Some((address, start)) = self.link.take() else {
            return;
        };
        if self.page.links.len() == MAX_LINKS {
            return;
        }
        let label = self.page.text.get(start..).unwrap_or_default();
        let label = collapsed(label.trim_start_matches(['#', '-', '>', '`', ' ', '\n']));
        if (1..=MAX_LABEL).contains(&label.len()) {
            self.page.links.push((label, address));
        }
    }

    fn end(mut self) -> Page {
        let end = self.page.text.trim_end().len();
        self.page.text.truncate(end);
        self.page.is_unclosed = self.skipped.is_some();
        self.page
    }
}

/// Line breaks before and after an element that has no other effect.
fn breaks_around(name: &str) -> usize {
    match name {
        "p" | "table" | "dl" | "figure" | "section" | "main" | "form" | "details" | "hr" => 2,
        "div" | "header" | "footer" | "aside" | "nav" | "dt" | "caption" | "figcaption"
        | "summary" | "address" | "fieldset" | "legend" | "thead" | "tbody" | "option" | "body" => {
            1
        }
        _ => 0,
    }
}

/// Whether an address leads to another page.
fn is_followable(address: &str) -> bool {
    let scheme = address
        .split_once(':')
        .map(|(scheme, _)| scheme)
        .filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    !address.is_empty()
        && !address.starts_with('#')
        && scheme.is_none_or(|scheme| {
            scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
        })
}

/// A text with its references replaced, on one line.
fn collapsed(raw: &str) -> String {
    let text = decode(raw);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

//! Goes through a page's tags, leaves out what is not its content, and has the
//! rest written.

use super::blocks::{Blocks, Fields, Written};
use super::entities::decode;
use super::hidden::{Rules, is_figure, is_spoken};
use super::links::{is_elsewhere, is_followable};
use super::nesting::{End, Nesting, is_void};
use super::phrases::{is_action, is_consent};
use super::selection::{Names, Part, Place, Reading, Why, why_left_out};
use super::tokens::{Tag, Token, Tokens};
use super::words::{Meaning, is_forum};
use super::writer::Writer;
use super::{MAX_LINKS, Page};

/// Longest description of an image, and longest text of a link or button, in bytes.
const MAX_LABEL: usize = 300;

/// Most values of microdata.
const MAX_DATA: usize = 40;

/// Reads a part of a page.
pub(super) fn render(html: &str, reading: Reading) -> Page {
    let mut renderer = Renderer {
        reading,
        page: Page::default(),
        writer: Writer::default(),
        rules: Rules::default(),
        names: Names::default(),
        blocks: Blocks::default(),
        inside: None,
        skipped: None,
        articles: 0,
        heading: None,
        link: None,
        linked: 0,
        links: 0,
    };
    renderer.blocks.keeps_links = reading.links;
    for token in Tokens::new(html) {
        renderer.take(token);
    }
    renderer.end()
}

/// What is left out, while it is open.
struct Skipped {
    nesting: Nesting,
    why: Why,
    /// A button's text.
    label: String,
}

struct Renderer<'a> {
    reading: Reading,
    page: Page,
    writer: Writer,
    rules: Rules<'a>,
    names: Names<'a>,
    blocks: Blocks<'a>,
    /// The main part, while it is open.
    inside: Option<Nesting>,
    skipped: Option<Skipped>,
    articles: usize,
    /// Where the open heading begins, and its level.
    heading: Option<(Written, u8)>,
    /// The open link: its address, and where its text begins.
    link: Option<(String, Written)>,
    linked: usize,
    links: usize,
}

impl<'a> Renderer<'a> {
    fn take(&mut self, token: Token<'a>) {
        if self.is_skipped(token) {
            return;
        }
        if let Token::Raw(tag, content) = token {
            if tag.is("title") && self.page.title.is_empty() {
                self.page.title = collapsed(content);
            } else if tag.is("style") {
                self.rules.read(content);
            } else if tag.is("textarea") {
                self.blocks.note(Fields {
                    more: true,
                    ..Fields::default()
                });
            }
            return;
        }
        if let Token::Open(tag) = token {
            self.take_note(tag);
            if is_spoken(tag) {
                self.skip(tag, Why::Spoken);
                return;
            }
            if self.rules.hide(tag) {
                self.skip(tag, Why::Never);
                return;
            }
        }
        if self.reading.part == Part::Main && !self.is_inside(token) {
            return;
        }
        if let Token::Open(tag) = token
            && let Some(why) = why_left_out(tag, self.reading, self.place(), &mut self.names)
        {
            self.skip(tag, why);
            return;
        }
        match token {
            Token::Text(text) => self.writer.text(text),
            Token::Open(tag) => self.open(tag),
            Token::Close(name) => self.close(name),
            Token::Raw(..) => {}
        }
    }

    fn skip(&mut self, tag: Tag<'a>, why: Why) {
        // A tick or a cross in a table.
        if tag.is("svg") && tag.attribute("role") == Some("img") && self.link.is_none() {
            self.image(tag.attribute("aria-label"));
        }
        if why == Why::Spoken {
            self.writer.text(" ");
        }
        if !is_void(tag) {
            self.skipped = Some(Skipped {
                nesting: Nesting::of(tag),
                why,
                label: String::new(),
            });
        }
    }

    /// Whether a token belongs to what is left out.
    fn is_skipped(&mut self, token: Token<'a>) -> bool {
        let Some(skipped) = &mut self.skipped else {
            return false;
        };
        if let Token::Text(text) = token {
            match skipped.why {
                Why::Name(Meaning::Comments) => self.page.comments_left_out += text.trim().len(),
                Why::Name(_) => self.page.named_left_out += text.trim().len(),
                Why::Button | Why::Pressed | Why::Spoken
                    if skipped.label.len() + text.len() <= MAX_LABEL =>
                {
                    skipped.label.push_str(text);
                }
                _ => {}
            }
            return true;
        }
        if let Token::Open(tag) = token
            && let Why::Name(Meaning::Noise) = skipped.why
            && (tag.is("h1") || tag.is("main"))
            && !self.rules.hide(tag)
        {
            // It was named for something beside the content.
            self.skipped = None;
            return false;
        }
        let end = skipped.nesting.take(token);
        if end == End::No {
            return true;
        }
        if let Some(Skipped { why, label, .. }) = self.skipped.take() {
            let label = collapsed(&label);
            let is_read = self.reading.part != Part::Main || self.inside.is_some();
            match why {
                Why::Button if is_read => self.button(&label, false),
                Why::Pressed if is_read => self.button(&label, true),
                Why::Spoken if is_read && is_figure(&label) => {
                    self.writer.text(" ");
                    self.writer.text(&label);
                }
                _ => {}
            }
        }
        end == End::With
    }

    /// A button's text is content where it is a heading or a question.
    fn button(&mut self, label: &str, is_text: bool) {
        let consent = is_consent(label);
        let is_text = is_text && !consent && !is_action(label);
        if is_text || self.heading.is_some() || label.ends_with(['?', '？']) {
            self.writer.text(label);
        }
        self.blocks.note(Fields {
            consent,
            ..Fields::default()
        });
    }

    /// Whether a token is inside the main part, not counting its own tags.
    fn is_inside(&mut self, token: Token<'_>) -> bool {
        match (&mut self.inside, token) {
            (Some(inside), token) => {
                if inside.take(token) == End::No {
                    return true;
                }
                self.inside = None;
                self.writer.break_lines(2);
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
        if tag.is("body") || tag.is("html") {
            self.page.is_forum |= tag.attribute("class").is_some_and(is_forum);
        }
        if let Some(name) = tag.attribute("itemprop") {
            self.take_data(name, tag);
        }
        if tag.is("base") && self.page.base.is_none() {
            self.page.base = tag.attribute("href").map(collapsed);
        }
        let is_description = |name: &str| {
            name.eq_ignore_ascii_case("description") || name.eq_ignore_ascii_case("og:description")
        };
        if !tag.is("meta") || !self.page.description.is_empty() {
            return;
        }
        let name = tag.attribute("name").or(tag.attribute("property"));
        if name.is_some_and(is_description) {
            self.page.description = tag.attribute("content").map(collapsed).unwrap_or_default();
        }
    }

    /// What microdata say beside the text.
    fn take_data(&mut self, name: &str, tag: Tag<'_>) {
        let value = match () {
            () if tag.is("meta") => tag.attribute("content"),
            () if tag.is("link") => tag.attribute("href"),
            () => None,
        };
        if let Some(value) = value
            && value.len() <= MAX_LABEL
            && self.page.data.len() < MAX_DATA
        {
            self.page.data.push((name.to_owned(), collapsed(value)));
        }
    }

    fn place(&self) -> Place {
        Place {
            is_article: self.inside.is_some() || self.articles > 0,
            is_quote: self.writer.is_quote(),
        }
    }

    fn written(&self) -> Written {
        Written {
            text: self.writer.text.len(),
            linked: self.linked,
            links: self.links,
        }
    }

    /// Forgets what was written since.
    fn keep(&mut self, kept: Option<Written>) {
        if let Some(kept) = kept {
            self.writer.keep(kept.text);
            (self.linked, self.links) = (kept.linked, kept.links);
        }
    }

    fn open(&mut self, tag: Tag<'a>) {
        self.blocks.open(tag, self.written());
        if tag.is("img") {
            self.image(tag.attribute("alt"));
        } else if tag.is("a") {
            self.end_link();
            let address = tag.attribute("href").map(collapsed).unwrap_or_default();
            self.link = Some((address, self.written()));
        } else if tag.is("input") {
            self.input(tag);
        } else if let Some(level) = heading_level(tag.name) {
            let kept = self.blocks.before_heading(level, self.written());
            self.keep(kept);
            self.heading = Some((self.written(), level));
            self.blocks.note(Fields {
                headline: level == 1,
                ..Fields::default()
            });
        } else if tag.is("article") || tag.is("section") {
            self.articles += 1;
        }
        self.writer.open(tag);
    }

    fn image(&mut self, label: Option<&str>) {
        let label = label.map(collapsed).unwrap_or_default();
        if (1..=MAX_LABEL).contains(&label.len()) {
            self.writer.text(&format!("[image: {label}]"));
        }
    }

    fn input(&mut self, tag: Tag<'_>) {
        let kind = tag.attribute("type").unwrap_or_default();
        let is = |names: &[&str]| names.iter().any(|name| kind.eq_ignore_ascii_case(name));
        let label = tag.attribute("value").unwrap_or_default();
        let is_mail = |name: &str| name.to_ascii_lowercase().contains("mail");
        let is_named = is(&["", "text"]) && tag.attribute("name").is_some_and(is_mail);
        self.writer.text(" ");
        self.blocks.note(Fields {
            consent: is(&["submit", "button"]) && is_consent(label),
            address: is_named || is(&["email", "tel"]),
            more: is(&["password", "date", "number"]),
            headline: false,
        });
    }

    fn close(&mut self, name: &'a str) {
        if name.eq_ignore_ascii_case("a") {
            self.end_link();
        } else if name.eq_ignore_ascii_case("article") || name.eq_ignore_ascii_case("section") {
            self.articles = self.articles.saturating_sub(1);
        } else if heading_level(name).is_some()
            && let Some((start, level)) = self.heading.take()
        {
            self.blocks.heading(start, &self.writer.text, level);
        }
        self.writer.close(&name.to_ascii_lowercase());
        let written = self.written();
        let kept = self.blocks.close(name, &self.writer.text, written);
        self.keep(kept);
    }

    fn end_link(&mut self) {
        let Some((address, start)) = self.link.take() else {
            return;
        };
        let label = self.writer.text.get(start.text..).unwrap_or_default();
        let label = collapsed(label.trim_start_matches(['#', '-', '>', '`', ' ', '\n']));
        if label.is_empty() {
            return;
        }
        self.blocks.note(Fields {
            consent: is_consent(&label),
            ..Fields::default()
        });
        if is_action(&label) && self.reading.part != Part::Everything {
            self.keep(Some(start));
            return;
        }
        if is_elsewhere(&address) {
            self.linked += label.len();
            self.links += 1;
        }
        let is_kept = is_followable(&address) && label.len() <= MAX_LABEL;
        if is_kept && self.page.links.len() < MAX_LINKS {
            self.page.links.push((label, address));
        }
    }

    fn end(mut self) -> Page {
        let mut text = self.writer.text;
        text.truncate(text.trim_end().len());
        self.page.text = text;
        self.page.links_left_out = self.blocks.links_left_out;
        self.page.is_unclosed = self
            .skipped
            .is_some_and(|skipped| skipped.why != Why::Never);
        self.page
    }
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h' | b'H', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

/// A text with its references replaced, on one line.
fn collapsed(raw: &str) -> String {
    let text = decode(raw);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

//! Writes elements and their text as lines in a light Markdown.

use super::entities::decode;
use super::tokens::Tag;

/// Deepest nesting of lists and quotes that is shown.
const MAX_DEPTH: usize = 8;

/// What was written, and what is due before the next text.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) text: String,
    /// Line breaks to write before the next text.
    breaks: usize,
    /// Whether white space is to be written before the next text.
    has_space: bool,
    /// What the next text's line begins with: of a heading, of an item.
    marker: String,
    /// The open lists; the next number of those that count.
    lists: Vec<Option<u32>>,
    quotes: usize,
    preformatted: usize,
    codes: usize,
    /// Whether the row that is open has a cell.
    has_cell: bool,
}

impl Writer {
    /// Whether the text is in a quote.
    pub(super) fn is_quote(&self) -> bool {
        self.quotes > 0
    }

    /// Forgets all but the beginning.
    pub(super) fn keep(&mut self, length: usize) {
        self.text.truncate(length);
        self.marker.clear();
        self.break_lines(2);
    }

    pub(super) fn open(&mut self, tag: Tag<'_>) {
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
                self.has_cell = false;
            }
            "td" | "th" => {
                self.has_space = false;
                if std::mem::replace(&mut self.has_cell, true) {
                    self.push(" |");
                    self.has_space = true;
                }
            }
            other => self.break_around(other),
        }
    }

    pub(super) fn close(&mut self, name: &str) {
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
                    let end = self.text.trim_end().len();
                    self.text.truncate(end);
                    self.breaks = 0;
                    self.break_lines(1);
                    self.push("```");
                    self.break_lines(2);
                }
            }
            "code" | "kbd" | "samp" if self.codes > 0 => self.end_code(),
            other => self.break_around(other),
        }
    }

    pub(super) fn text(&mut self, raw: &str) {
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
                    self.text.push(letter);
                }
            }
        }
    }

    /// Writes a mark of our own.
    fn push(&mut self, mark: &str) {
        self.flush();
        self.text.push_str(mark);
    }

    /// Writes the breaks, the line's beginning or the space that are due.
    fn flush(&mut self) {
        let text = &mut self.text;
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

    pub(super) fn break_lines(&mut self, count: usize) {
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
        if self.text.ends_with('`') {
            self.text.pop();
        } else {
            self.text.push('`');
        }
    }
}

/// Line breaks before and after an element that has no other effect.
fn breaks_around(name: &str) -> usize {
    match name {
        "p" | "table" | "dl" | "article" | "figure" | "section" | "main" | "form" | "details"
        | "hr" => 2,
        "div" | "header" | "footer" | "aside" | "nav" | "dt" | "caption" | "figcaption"
        | "summary" | "address" | "fieldset" | "legend" | "thead" | "tbody" | "option" | "body" => {
            1
        }
        _ => 0,
    }
}

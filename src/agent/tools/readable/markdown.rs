//! Writes elements and their text as lines in a light Markdown.

use super::content::is_elsewhere;
use super::html::{Tag, Tree};
use super::text::{decode_references, has};

/// Deepest nesting of lists and quotes that is shown.
const MAX_DEPTH: usize = 8;
/// Elements with an empty line around them.
const APART: &str = "\
    h1 h2 h3 h4 h5 h6 p table dl ul ol menu blockquote pre article figure section main form \
    details hr";
/// Elements on lines of their own.
const ON_LINES: &str = "\
    div header footer aside nav li dt dd tr caption figcaption summary address fieldset legend \
    thead tbody option body";
/// Longest description of an image, and longest text of a link, in bytes.
const MAX_LABEL: usize = 300;
/// Most links that are kept.
pub(super) const MAX_LINKS: usize = 200;
/// Longest cell that becomes a part of its row's line, in bytes and in nodes; a longer one is a
/// part of the page's layout.
const MAX_CELL: usize = 400;
const MAX_CELL_NODES: usize = 100;
/// Most columns that are followed, and most bytes that cells over several rows repeat.
const MAX_COLUMNS: usize = 100;
const MAX_REPEATED: usize = 50_000;

/// What was written, and what is due before the next text.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) text: String,
    /// Links in their order, as text and address.
    pub(super) links: Vec<(String, String)>,
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
    /// The open tables.
    tables: Vec<Table>,
    /// Bytes that cells over several rows have repeated.
    repeated: usize,
    is_heading: bool,
    /// Where the text of an open cell begins that stays on its row's line.
    cell: Option<usize>,
    /// The open link: its address, and where its text begins.
    link: Option<(String, usize)>,
}

/// A table, at one of its columns.
#[derive(Default)]
struct Table {
    column: usize,
    /// What cells above say in columns, and in how many rows more.
    above: Vec<(usize, String)>,
}

impl Writer {
    /// Writes what is in an element, but for what is left out.
    pub(super) fn write(
        &mut self,
        tree: &Tree<'_>,
        element: usize,
        is_left_out: impl Fn(usize) -> bool,
    ) {
        let mut open = Vec::new();
        let mut place = element;
        while place < tree.nodes[element].end {
            self.close_before(tree, &mut open, place);
            let node = &tree.nodes[place];
            match &node.tag {
                None => self.text(node.text),
                Some(tag) if tag.name == "svg" || is_left_out(place) => {
                    if !is_left_out(place) {
                        self.image(&tag.label("aria-label"));
                    }
                    self.break_around(&tag.name);
                    place = node.end;
                    continue;
                }
                Some(tag) => {
                    self.open(tree, place, tag);
                    open.push(place);
                }
            }
            place += 1;
        }
        self.close_before(tree, &mut open, place);
        self.break_lines(2);
    }

    /// Closes the elements that end before a place.
    fn close_before(&mut self, tree: &Tree<'_>, open: &mut Vec<usize>, place: usize) {
        while let Some(last) = open.pop_if(|last| tree.nodes[*last].end <= place) {
            if let Some(tag) = &tree.nodes[last].tag {
                self.close(tag);
            }
        }
    }

    fn open(&mut self, tree: &Tree<'_>, place: usize, tag: &Tag<'_>) {
        let name = &*tag.name;
        self.break_around(name);
        match name {
            "img" => self.image(&tag.label("alt")),
            "input" => self.has_space = true,
            "a" => self.link = Some((tag.label("href"), self.text.len())),
            _ if self.cell.is_some() && !is_code(name) => {}
            "br" if self.is_heading => self.has_space = true,
            "br" => self.breaks = (self.breaks + 1).min(2),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(tag.heading().unwrap_or_default());
                self.marker = format!("{} ", "#".repeat(level));
                self.is_heading = true;
            }
            "ul" | "ol" | "menu" if self.lists.len() < MAX_DEPTH => {
                let start = tag.attribute("start").and_then(|start| start.parse().ok());
                self.lists.push((name == "ol").then(|| start.unwrap_or(1)));
            }
            "li" => {
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                self.marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        format!("{indent}{}. ", *number - 1)
                    }
                    _ => format!("{indent}- "),
                };
            }
            "dd" => "  ".clone_into(&mut self.marker),
            "blockquote" => self.quotes = (self.quotes + 1).min(MAX_DEPTH),
            "pre" => {
                if self.preformatted == 0 {
                    self.push("```");
                    self.break_lines(1);
                }
                self.preformatted += 1;
            }
            _ if is_code(name) && self.preformatted == 0 => {
                self.push("`");
                self.codes += 1;
            }
            "table" => self.tables.push(Table::default()),
            "tr" => {
                if let Some(table) = self.tables.last_mut() {
                    table.column = 0;
                }
            }
            "td" | "th" => self.open_cell(tree, place),
            _ => {}
        }
    }

    fn close(&mut self, tag: &Tag<'_>) {
        let name = &*tag.name;
        match name {
            "a" => self.end_link(),
            "td" | "th" => self.close_cell(tag),
            _ if self.cell.is_some() && !is_code(name) => {}
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.marker.clear();
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" | "dd" => {
                self.marker.clear();
                self.is_heading = false;
            }
            "blockquote" => self.quotes = self.quotes.saturating_sub(1),
            "pre" if self.preformatted > 0 => {
                self.preformatted -= 1;
                if self.preformatted == 0 {
                    self.text.truncate(self.text.trim_end().len());
                    self.breaks = 1;
                    self.push("```");
                }
            }
            _ if is_code(name) && self.codes > 0 => {
                self.codes -= 1;
                // It was empty.
                if self.text.ends_with('`') {
                    self.text.pop();
                } else {
                    self.text.push('`');
                }
            }
            "table" => {
                self.tables.pop();
            }
            "tr" => self.repeat_cells(),
            _ => {}
        }
        self.break_around(name);
    }

    fn open_cell(&mut self, tree: &Tree<'_>, place: usize) {
        self.repeat_cells();
        self.separate_cell();
        let inside = &tree.nodes[place..tree.nodes[place].end];
        let is_layout = |name: &str| matches!(name, "table" | "pre" | "h1" | "h2" | "h3");
        let is_line = inside.len() <= MAX_CELL_NODES
            && inside.iter().map(|node| node.text.len()).sum::<usize>() <= MAX_CELL
            && !inside.iter().any(|node| is_layout(node.name()));
        self.cell = is_line.then_some(self.text.len());
    }

    fn close_cell(&mut self, tag: &Tag<'_>) {
        let start = self.cell.take();
        let Some(table) = self.tables.last_mut() else {
            return;
        };
        let number = |name| {
            tag.attribute(name)
                .and_then(|number| number.trim().parse().ok())
        };
        let rows: usize = number("rowspan").unwrap_or(1);
        if let Some(start) = start.filter(|_| rows != 1 && table.column < MAX_COLUMNS) {
            let text = self.text[start..]
                .trim_start_matches(['\n', '>', ' '])
                .trim_end();
            let least = table.above.len().max(table.column + 1);
            table.above.resize_with(least, Default::default);
            // None is all that follow.
            table.above[table.column] = (rows.wrapping_sub(1), text.to_owned());
        }
        table.column += number("colspan").unwrap_or(1).clamp(1, MAX_COLUMNS);
    }

    /// Writes what cells above say in the columns from here.
    fn repeat_cells(&mut self) {
        while let Some(table) = self.tables.last_mut()
            && let Some((rows, text)) = table.above.get_mut(table.column)
            && *rows > 0
            && self.repeated < MAX_REPEATED
        {
            *rows -= 1;
            let text = text.clone();
            self.separate_cell();
            self.push(&text);
            self.repeated += text.len() + 2;
            if let Some(table) = self.tables.last_mut() {
                table.column += 1;
            }
        }
    }

    fn separate_cell(&mut self) {
        self.has_space = false;
        if self.tables.last().is_some_and(|table| table.column > 0) {
            self.push(" |");
            self.has_space = true;
        }
    }

    fn image(&mut self, label: &str) {
        if (1..=MAX_LABEL).contains(&label.len()) {
            self.push(&format!("[image: {label}]"));
        }
    }

    fn end_link(&mut self) {
        let Some((address, start)) = self.link.take() else {
            return;
        };
        let label = self.text.get(start..).unwrap_or_default();
        let label = label.trim_start_matches(['#', '-', '>', '`', ' ', '\n']);
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_kept = is_elsewhere(&address) && !address.starts_with('#');
        if is_kept && (1..=MAX_LABEL).contains(&label.len()) && self.links.len() < MAX_LINKS {
            self.links.push((label, address));
        }
    }

    fn text(&mut self, raw: &str) {
        for letter in decode_references(raw).chars() {
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
        if text.is_empty() || self.breaks > 0 {
            // A page may have thousands of empty lines.
            let breaks = self.breaks.min(if self.preformatted > 0 { 4 } else { 2 });
            text.extend(std::iter::repeat_n('\n', breaks));
            text.push_str(&"> ".repeat(self.quotes));
        } else if self.has_space {
            text.push(' ');
        }
        text.push_str(&std::mem::take(&mut self.marker));
        self.breaks = 0;
        self.has_space = false;
    }

    fn break_lines(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
        if count > 0 {
            self.has_space = false;
        }
    }

    /// Breaks the line before or after an element; in a cell, a space does.
    fn break_around(&mut self, name: &str) {
        let breaks = breaks_around(name);
        if self.cell.is_some() {
            self.has_space |= breaks > 0 || name == "br";
        } else {
            // A paragraph in a list item does not start a new line.
            self.break_lines(breaks.min(if self.lists.is_empty() { 2 } else { 1 }));
        }
    }
}

fn is_code(name: &str) -> bool {
    has("code kbd samp", name)
}

/// Line breaks before and after an element.
fn breaks_around(name: &str) -> usize {
    2 * usize::from(has(APART, name)) + usize::from(has(ON_LINES, name))
}

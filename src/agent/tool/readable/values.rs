//! Values of data as people write them.

use super::entities::decode;
use super::tokens::{Token, Tokens};

/// Longest value, in bytes.
const MAX_VALUE: usize = 1_500;
/// Most bytes that are written.
const MAX_BYTES: usize = 6_000;
/// Most items of a list.
pub(super) const MAX_ITEMS: usize = 60;
/// Deepest value.
pub(super) const MAX_DEPTH: usize = 8;

/// Lines within bounds.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) text: String,
}

impl Lines {
    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= MAX_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn push(&mut self, line: &str) {
        let room = MAX_BYTES.saturating_sub(self.text.len() + 1);
        if room == 0 {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&line[..line.floor_char_boundary(room)]);
    }
}

/// A member's name in words: `openingHours` is "opening hours".
pub(super) fn label(key: &str) -> String {
    let mut words = String::new();
    for letter in key.chars().take(60) {
        if letter.is_uppercase() && !words.is_empty() && !words.ends_with(char::is_uppercase) {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words.replace(['_', '-'], " ")
}

/// A text without tags on one line, a duration and a time as people write them;
/// empty for an address on the web.
pub(super) fn clean(text: &str) -> String {
    let text = text.trim();
    let term = text
        .strip_prefix("https://schema.org/")
        .or_else(|| text.strip_prefix("http://schema.org/"));
    if let Some(term) = term {
        return term.to_owned();
    }
    if text.starts_with("https://") || text.starts_with("http://") || text.starts_with("//") {
        return String::new();
    }
    if let Some(text) = duration(text).or_else(|| time(text)) {
        return text;
    }
    let mut plain = String::new();
    for token in Tokens::new(text) {
        match token {
            Token::Text(text) => plain.push_str(&decode(text)),
            Token::Open(tag) if tag.is("b") || tag.is("i") || tag.is("a") || tag.is("em") => {}
            Token::Open(_) => plain.push(' '),
            Token::Close(_) | Token::Raw(..) => {}
        }
        if plain.len() > MAX_VALUE {
            break;
        }
    }
    let end = plain.floor_char_boundary(MAX_VALUE);
    let is_cut = end < plain.len();
    let words: Vec<&str> = plain[..end]
        .split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    format!("{}{}", words.join(" "), if is_cut { "…" } else { "" })
}

/// ISO 8601's `PT1H30M` as "1 h 30 min".
fn duration(text: &str) -> Option<String> {
    let rest = text.strip_prefix('P')?;
    let mut parts = Vec::new();
    let (mut number, mut is_time) = (String::new(), false);
    for letter in rest.chars().take(30) {
        let unit = match letter {
            'T' => {
                is_time = true;
                continue;
            }
            digit if digit.is_ascii_digit() || digit == '.' => {
                number.push(digit);
                continue;
            }
            'Y' => "years",
            'W' => "weeks",
            'D' => "days",
            'M' if !is_time => "months",
            'H' => "h",
            'M' => "min",
            'S' => "s",
            _ => return None,
        };
        if number.parse::<f64>().ok()? != 0.0 {
            parts.push(format!("{number} {unit}"));
        }
        number.clear();
    }
    (number.is_empty() && !parts.is_empty()).then(|| parts.join(" "))
}

/// ISO 8601's `2026-06-12T18:50:00-04:00` as "2026-06-12 18:50 -04:00".
fn time(text: &str) -> Option<String> {
    let (date, time) = text.split_once('T')?;
    let is_date = date.len() == 10
        && date
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-');
    let (minute, rest) = (time.get(..5)?, time.get(5..)?);
    if !is_date || text.len() > 40 || minute.as_bytes()[2] != b':' {
        return None;
    }
    let zone = rest
        .find(['+', '-', 'Z'])
        .map_or("", |place| &rest[place..]);
    let zone = if zone == "Z" { "UTC" } else { zone };
    Some(format!("{date} {minute} {zone}").trim_end().to_owned())
}

/// With white space collapsed, in lower case.
pub(super) fn comparable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

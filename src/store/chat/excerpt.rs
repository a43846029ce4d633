//! The part of a search result that shows the match.

use crate::chat::search::index;
use crate::home::recall::terms::{Kind, fold};

/// Bytes of a text that are searched for the words.
const SEARCHED: usize = 32 * 1024;

/// At most `most` characters of a text, on one line and without Markdown, around the first
/// of these words in any form, or what begins with it. If there is none, the beginning of
/// the text.
pub fn excerpt(text: &str, wanted: &[String], most: usize) -> String {
    let wanted: Vec<(&str, String)> = wanted
        .iter()
        .map(|word| (word.as_str(), term_of(word)))
        .collect();
    let text = without_markdown(&text[..text.floor_char_boundary(SEARCHED)]);
    let place = words(&text).find(|(_, word)| {
        let (word, term) = (fold(word), term_of(word));
        wanted.iter().any(|(wanted, of_wanted)| {
            let is_within = !wanted.is_ascii() && word.contains(wanted);
            term == *of_wanted || word.starts_with(wanted) || is_within
        })
    });
    let begin = match place {
        Some((place, _)) if text[..place].chars().count() > most / 2 => {
            let before = text[..place].char_indices().rev().nth(most / 4);
            let before = before.map_or(0, |(before, _)| before);
            // From the beginning of a word.
            let gap = text[before..place].find(char::is_whitespace);
            before + gap.unwrap_or(0)
        }
        _ => 0,
    };
    let mut line = String::from(if begin > 0 { "…" } else { "" });
    for (number, word) in text[begin..].split_whitespace().enumerate() {
        if number > 0 {
            line.push(' ');
        }
        line.extend(word.chars().take(most + 1));
        // No character has more than four bytes.
        if line.len() > 4 * most {
            break;
        }
    }
    if line.chars().count() > most {
        line = line.chars().take(most.saturating_sub(1)).collect();
        line.push('…');
    }
    line
}

fn term_of(word: &str) -> String {
    let mut term = String::new();
    index::to_term(Kind::Word, &fold(word), &mut term);
    term
}

/// A text without the signs of Markdown, as far as an excerpt needs that: marks of emphasis and
/// code, headings, quotes, and the addresses of links.
fn without_markdown(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let heading = line.trim_start().trim_start_matches(['#', '>']);
        let mut rest = match heading.len() < line.trim_start().len() && heading.starts_with(' ') {
            true => heading,
            false => line,
        };
        while let Some(place) = rest.find(['*', '`', '~', '_', '[', ']', '!']) {
            let (before, sign) = rest.split_at(place);
            plain.push_str(before);
            let after = &sign[1..];
            let is_within =
                before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
            let is_kept = match sign.as_bytes()[0] {
                b'_' => is_within,
                b'~' => !sign.starts_with("~~") && !before.ends_with('~'),
                b'!' => !sign.starts_with("!["),
                b'[' => !sign.contains("]("),
                b']' => !sign.starts_with("]("),
                _ => false,
            };
            if is_kept {
                plain.push_str(&sign[..1]);
            }
            let address = sign
                .strip_prefix("](")
                .and_then(|address| address.split_once(')'));
            rest = address.map_or(after, |(_, after)| after);
        }
        plain.push_str(rest);
    }
    plain
}

/// The words of a text and where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    text.split(|letter: char| !letter.is_alphanumeric())
        .map(move |word| {
            let place = from;
            from += word.len();
            // Skip the separator.
            from += text[from..].chars().next().map_or(0, char::len_utf8);
            (place, word)
        })
        .filter(|(_, word)| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_the_first_word_that_was_looked_for() {
        let long = format!("{}the boiler hums {}", "la ".repeat(100), "lo ".repeat(100));
        for (text, query, most, expected) in [
            ("the boiler hums", "boiler", 40, "the boiler hums"),
            ("two\n lines  here", "lines", 40, "two lines here"),
            (
                &long,
                "BOIL",
                40,
                "…la la the boiler hums lo lo lo lo lo l…",
            ),
            (&long, "chimney", 10, "la la la …"),
            ("größe zählt", "ZÄHLT", 40, "größe zählt"),
            ("", "x", 10, ""),
            ("a word", "", 10, "a word"),
            ("all the **paintings**", "painted", 40, "all the paintings"),
            (
                "## Bins\n> `take` them [out](https://a.b/c) _now_, a_b",
                "x",
                60,
                "Bins take them out now, a_b",
            ),
            ("3 * 4! [x] ~5", "x", 60, "3 4! [x] ~5"),
            ("我们的花园很大", "花园", 40, "我们的花园很大"),
            ("abcdefghijklmnop", "abc", 5, "abcd…"),
            ("a bcdefghijklmnop", "a", 5, "a bc…"),
        ] {
            let found = excerpt(text, &[fold(query)], most);
            assert_eq!(found, expected, "{query}");
            assert!(found.chars().count() <= most, "{found}");
        }
    }

    #[test]
    fn no_text_breaks_it() {
        let letters = ['a', ' ', 'ß', 'İ', '茶', '\n', '🦀', '.', '\u{301}'];
        for number in 0..2_000_usize {
            let text: String = (0..number % 23)
                .map(|place| letters[(number * 7 + place * place) % letters.len()])
                .collect();
            for most in [1, 2, 5, 9] {
                let found = excerpt(&text, &["a".to_owned(), "茶".to_owned()], most);
                assert!(found.chars().count() <= most, "{text:?} {found:?}");
            }
        }
    }
}

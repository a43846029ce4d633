//! The part of a search result that shows the match.

/// Bytes of a text that are searched for the words. If they occur only later, the
/// excerpt is the beginning of the text.
const SEARCHED: usize = 32 * 1024;

/// At most `most` characters of a text, on one line, around the first word that
/// begins with a word of `query` in any case. If there is none, for example because
/// only the accents differ, the beginning of the text.
pub fn excerpt(text: &str, query: &str, most: usize) -> String {
    let wanted: Vec<String> = words(query)
        .map(|(_, word)| word.to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let searched = &text[..text.floor_char_boundary(SEARCHED)];
    let place = words(searched).find(|(_, word)| {
        let word = word.to_lowercase();
        wanted.iter().any(|wanted| word.starts_with(wanted))
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
            ("abcdefghijklmnop", "abc", 5, "abcd…"),
            ("a bcdefghijklmnop", "a", 5, "a bc…"),
        ] {
            let found = excerpt(text, query, most);
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
                let found = excerpt(&text, "a ß 茶", most);
                assert!(found.chars().count() <= most, "{text:?} {found:?}");
            }
        }
    }
}

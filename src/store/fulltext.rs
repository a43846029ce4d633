//! Turning the words of a person into a safe full-text query.
//!
//! FTS5 has its own query language (AND, NEAR, column names, ...). Every word is
//! quoted, so that none of it applies and nothing is a syntax error
//! (<https://www.sqlite.org/fts5.html>, section 3.1).

/// Most words of a query; the rest is ignored.
const MOST_WORDS: usize = 32;

/// A query for texts with all words; none if there are no words.
pub(crate) fn every_word(text: &str) -> Option<String> {
    let words: Vec<String> = words(text).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The query of [`every_word`] with the last word as a prefix, because a person may
/// still be typing it. None if that would match nearly every text.
pub(crate) fn while_typing(every_word: &str) -> Option<String> {
    let (_, last) = every_word.rsplit_once(' ').unwrap_or(("", every_word));
    (last.len() > "\"x\"".len()).then(|| format!("{every_word}*"))
}

/// A query for texts with any of the words, each as a prefix.
pub(crate) fn any_word(text: &str) -> Option<String> {
    let words: Vec<String> = words(text).map(|word| word + "*").collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

/// A query for texts with any of the significant words: those of at least three
/// letters, and all that are not ASCII. Longer ones are prefixes.
pub(crate) fn significant_words(text: &str) -> Option<String> {
    let words: Vec<String> = words(text)
        .filter_map(|word| {
            let letters = word.chars().filter(|letter| letter.is_alphanumeric());
            match letters.count() {
                0..=2 if word.is_ascii() => None,
                3 if word.is_ascii() => Some(word),
                _ => Some(word + "*"),
            }
        })
        .collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

/// The words as FTS5 strings. A word has at least one letter or digit.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| word.contains(char::is_alphanumeric))
        .take(MOST_WORDS)
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_words_tell_nothing() {
        for (text, query) in [
            ("is it ok?", None),
            (
                "when is the bin day",
                Some("\"when\"* OR \"the\" OR \"bin\" OR \"day\""),
            ),
            ("茶", Some("\"茶\"*")),
        ] {
            assert_eq!(significant_words(text).as_deref(), query, "{text:?}");
        }
    }

    #[test]
    fn words_are_quoted() {
        for (text, every, any) in [
            (
                "red fox",
                Some("\"red\" \"fox\""),
                Some("\"red\"* OR \"fox\"*"),
            ),
            (
                "say \"hi",
                Some("\"say\" \"\"\"hi\""),
                Some("\"say\"* OR \"\"\"hi\"*"),
            ),
            (
                "a AND b",
                Some("\"a\" \"AND\" \"b\""),
                Some("\"a\"* OR \"AND\"* OR \"b\"*"),
            ),
            (
                "nul\0byte",
                Some("\"nul\" \"byte\""),
                Some("\"nul\"* OR \"byte\"*"),
            ),
            ("", None, None),
            (" ** - \" ", None, None),
        ] {
            assert_eq!(every_word(text).as_deref(), every, "{text:?}");
            assert_eq!(any_word(text).as_deref(), any, "{text:?}");
        }
        for (query, typing) in [
            ("\"red\" \"fox\"", Some("\"red\" \"fox\"*")),
            ("\"red\" \"f\"", None),
            ("\"fo\"", Some("\"fo\"*")),
        ] {
            assert_eq!(while_typing(query).as_deref(), typing);
        }
    }
}

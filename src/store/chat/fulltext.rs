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
    fn words_are_quoted() {
        for (text, every) in [
            ("red fox", Some("\"red\" \"fox\"")),
            ("say \"hi", Some("\"say\" \"\"\"hi\"")),
            ("a AND b", Some("\"a\" \"AND\" \"b\"")),
            ("nul\0byte", Some("\"nul\" \"byte\"")),
            ("", None),
            (" ** - \" ", None),
        ] {
            assert_eq!(every_word(text).as_deref(), every, "{text:?}");
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

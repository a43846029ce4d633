//! From a person's words to a full-text query that cannot be anything else.
//!
//! FTS5 has a query language of its own (AND, NEAR, column names, ...). Each
//! word is quoted, so that none of it is reachable and nothing is a syntax
//! error (<https://www.sqlite.org/fts5.html>, section 3.1).

/// Most words of a query that count.
const MOST_WORDS: usize = 32;

/// A query for texts that hold all words, the last one as a prefix: a person
/// may still be typing it. None when there is no word in it.
pub(super) fn every_word(text: &str) -> Option<String> {
    let words: Vec<String> = words(text).collect();
    let last = words.last()?;
    // A prefix of one letter of an alphabet fits nearly every text, slowly.
    let is_prefix = last.len() > "\"x\"".len();
    Some(words.join(" ") + if is_prefix { "*" } else { "" })
}

/// A query for texts that hold any of the words, each as a prefix.
pub(super) fn any_word(text: &str) -> Option<String> {
    let words: Vec<String> = words(text).map(|word| word + "*").collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

/// The words as FTS5 strings. What holds no letter and no digit is no word.
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
        for (text, every, any) in [
            (
                "red fox",
                Some("\"red\" \"fox\"*"),
                Some("\"red\"* OR \"fox\"*"),
            ),
            (
                "say \"hi",
                Some("\"say\" \"\"\"hi\"*"),
                Some("\"say\"* OR \"\"\"hi\"*"),
            ),
            (
                "a AND b",
                Some("\"a\" \"AND\" \"b\""),
                Some("\"a\"* OR \"AND\"* OR \"b\"*"),
            ),
            (
                "nul\0byte",
                Some("\"nul\" \"byte\"*"),
                Some("\"nul\"* OR \"byte\"*"),
            ),
            ("", None, None),
            (" ** - \" ", None, None),
        ] {
            assert_eq!(every_word(text).as_deref(), every, "{text:?}");
            assert_eq!(any_word(text).as_deref(), any, "{text:?}");
        }
    }
}

//! Other words by which a memory is found, as whoever stores it gives them.

use rusqlite::Row;

use crate::engine::failure::Outcome;
use crate::home::forgetting::plain;
use base::visible::label;

/// Most search words of a memory, and most characters of all of them.
const MOST_SEARCH_WORDS: usize = 16;
const MOST_SEARCH_CHARACTERS: usize = 240;
/// What parts them in the database.
const SEPARATOR: &str = "\n";

/// Search words without white space at their ends, without what is not seen, and without
/// those that repeat one, as many as are kept.
pub(crate) fn clean(search_words: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut left = MOST_SEARCH_CHARACTERS;
    for word in search_words {
        let seen = label(&word.replace(char::is_control, " "));
        let parts: Vec<&str> = seen.split_whitespace().collect();
        let word: String = parts
            .join(" ")
            .chars()
            .take(MOST_SEARCH_CHARACTERS)
            .collect();
        let is_known = kept.iter().any(|known| plain(known) == plain(&word));
        if is_known || !word.contains(char::is_alphanumeric) {
            continue;
        }
        match left.checked_sub(word.chars().count()) {
            Some(rest) if kept.len() < MOST_SEARCH_WORDS => left = rest,
            _ => break,
        }
        kept.push(word);
    }
    kept
}

/// The column of search words that are clean; empty if there are none.
pub(crate) fn to_column(search_words: &[String]) -> Option<String> {
    (!search_words.is_empty()).then(|| search_words.join(SEPARATOR))
}

/// The search words of a memory's row.
pub(crate) fn of_row(row: &Row<'_>) -> Outcome<Vec<String>> {
    let words: Option<String> = row.get("search_words")?;
    let words = words.iter().flat_map(|words| words.split(SEPARATOR));
    Ok(words.map(str::to_owned).collect())
}

//! The full-text index of messages and titles.
//!
//! SQLite stores and finds terms; which terms a text has is decided here. What is stored was
//! made by these rules, so a change of them needs a migration that empties the index and sets
//! the keys of [`PARTS`]: then it is made again in the background.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use rusqlite::{Connection, params};

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{each_row, value};
use crate::home::recall::lexicon::Lexicon;
use crate::home::recall::terms::{Kind, each_term, fold};
use base::error::Result;
use base::ids::{ConversationId, MessageId};

/// Most messages, and about the most text, that one write adds in the background.
const AT_ONCE: i64 = 250;
const BYTES_AT_ONCE: usize = 512 * 1024;
/// Most bytes of a term: what is longer is no word.
const LONGEST: usize = 40;

/// Adds a message.
pub(crate) fn add(write: &Write<'_>, id: MessageId, text: &str) -> Outcome<()> {
    write.execute(MESSAGES.add, params![id, terms_of(text)])?;
    Ok(())
}

/// Adds the title that a conversation has now.
pub(crate) fn add_title(write: &Write<'_>, id: ConversationId) -> Outcome<()> {
    let sql = "SELECT title FROM conversations WHERE id = ?1";
    let title: Option<String> = value(write.connection, sql, params![id])?;
    write.execute(
        TITLES.add,
        params![id, terms_of(&title.unwrap_or_default())],
    )?;
    Ok(())
}

/// The terms of a text, each once, with spaces between them.
fn terms_of(text: &str) -> String {
    let mut terms: BTreeSet<String> = BTreeSet::new();
    let mut term = String::new();
    each_word(text, &mut |kind, word| {
        to_term(kind, word, &mut term);
        if !terms.contains(&term) {
            terms.insert(term.clone());
        }
    });
    let terms: Vec<String> = terms.into_iter().collect();
    terms.join(" ")
}

/// Calls `take` with each word and run of characters of a text, folded.
pub(super) fn each_word(text: &str, take: &mut dyn FnMut(Kind, &str)) {
    const NO_STOP_WORDS: Lexicon = Lexicon::EMPTY;
    each_term(&NO_STOP_WORDS, &fold(text), take);
}

/// Makes `term` what a folded word is indexed by.
pub(crate) fn to_term(kind: Kind, word: &str, term: &mut String) {
    term.clear();
    term.push_str(&word[..word.floor_char_boundary(LONGEST)]);
    if kind == Kind::Word && word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        strip_endings(term);
    }
}

/// What a form of a word may end with, of English, German, French, Spanish and Norwegian
/// together: one of each row at most. The number is how much must be left.
const ENDINGS: [&[(&str, usize)]; 3] = [
    &[("ungen", 4), ("s", 3)],
    &[
        ("ing", 3),
        ("ed", 3),
        ("ment", 4),
        ("ness", 4),
        ("ung", 4),
        ("lich", 4),
        ("keit", 4),
        ("heit", 4),
        ("ly", 4),
        ("ful", 4),
        ("ion", 4),
    ],
    &[("ern", 4), ("ene", 3), ("er", 4), ("en", 3), ("em", 4)],
];

/// Takes off what forms of a word differ by. It need not be a word any more: the same is done
/// to what is looked for.
fn strip_endings(word: &mut String) {
    // A German participle: "gekauft" beside "kaufen".
    if word.len() > 5 && word.starts_with("ge") && (word.ends_with('t') || word.ends_with("en")) {
        let end = word.len() - if word.ends_with('t') { 1 } else { 2 };
        if end >= 5 && has_vowel(&word[2..end]) {
            word.truncate(end);
            word.drain(..2);
        }
    }
    for endings in ENDINGS {
        let ending = endings.iter().find(|(ending, least)| {
            let Some(left) = word.strip_suffix(ending) else {
                return false;
            };
            let is_other = match *ending {
                "s" => left.ends_with(['s', 'u', 'i']),
                "ed" => left.ends_with('e'),
                "ion" => !left.ends_with(['t', 's']),
                _ => false,
            };
            left.len() >= *least && has_vowel(left) && !is_other
        });
        if let Some((ending, _)) = ending {
            word.truncate(word.len() - ending.len());
        }
    }
    while word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    let bytes = word.as_bytes();
    let is_double = bytes.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
    if is_double {
        word.pop();
    }
    if word.len() > 2 && word.ends_with('y') {
        word.pop();
        word.push('i');
    }
}

fn has_vowel(word: &str) -> bool {
    word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// One of the indexes.
struct Part {
    /// Where it is kept before what it is still to be made.
    key: &'static str,
    /// The newest texts before that.
    texts: &'static str,
    /// Adds one.
    add: &'static str,
}

const MESSAGES: Part = Part {
    key: "unindexed_before",
    texts: "SELECT id, content FROM messages WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
    add: "INSERT OR REPLACE INTO message_terms (rowid, terms) VALUES (?1, ?2)",
};

const TITLES: Part = Part {
    key: "untitled_before",
    texts: "SELECT id, title FROM conversations WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
    add: "INSERT OR REPLACE INTO title_terms (rowid, terms) VALUES (?1, ?2)",
};

/// The part that is still to be made, and before what; there may be another one.
fn unfinished(connection: &Connection) -> Outcome<Option<(Part, i64)>> {
    for part in [TITLES, MESSAGES] {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        if let Some(before) = value(connection, sql, params![part.key])? {
            return Ok(Some((part, before)));
        }
    }
    Ok(None)
}

/// Whether older messages are not found yet.
pub(super) fn is_unfinished(connection: &Connection) -> Outcome<bool> {
    Ok(unfinished(connection)?.is_some())
}

impl Store {
    /// Adds the newest titles, or messages, that are missing in the full-text index, and returns
    /// whether there may be more. An upgrade leaves them.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn index_messages(&self) -> Result<bool> {
        if !self.look(is_unfinished)?.uncommitted() {
            return Ok(false);
        }
        self.write(|write| {
            let Some((part, before)) = unfinished(write.connection)? else {
                return Ok(false);
            };
            let mut texts: Vec<(i64, String)> = Vec::new();
            let mut bytes = 0;
            let batch = params![before, AT_ONCE];
            each_row(write.connection, part.texts, batch, &mut |row| {
                let text: String = row.get(1)?;
                bytes += text.len();
                texts.push((row.get(0)?, text));
                Ok(match bytes < BYTES_AT_ONCE {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
            // SQLite writes what comes in rising order at once.
            for (id, text) in texts.iter().rev() {
                write.execute(part.add, params![id, terms_of(text)])?;
            }
            match texts.last() {
                Some((oldest, _)) => write.execute(
                    "UPDATE meta SET value = ?2 WHERE key = ?1",
                    params![part.key, oldest],
                )?,
                None => write.execute("DELETE FROM meta WHERE key = ?1", params![part.key])?,
            };
            is_unfinished(write.connection)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is stored in households was made by these rules: see the top of this file.
    #[test]
    fn forms_of_a_word_have_one_term() {
        for forms in [
            &[
                "paint",
                "paints",
                "painted",
                "painting",
                "paintings",
                "painter",
            ][..],
            &["move", "moved", "moving", "moves"],
            &["run", "running", "runs"],
            &["activity", "activities"],
            &["study", "studied", "studying", "studies"],
            &["class", "classes"],
            &["speed", "speeding"],
            &["listen", "listening", "listened"],
            &["celebrate", "celebration", "celebrated"],
            &["Buch", "Bücher", "Büchern"],
            &["Kind", "Kinder", "Kindern", "Kindes"],
            &["kaufen", "gekauft", "kaufe"],
            &["Wohnung", "Wohnungen"],
            &["manger", "mangé", "mange"],
            &["ciudad", "ciudades"],
            &["bil", "bilen", "bilene", "biler"][..2],
        ] {
            let terms: BTreeSet<String> = forms.iter().map(|form| terms_of(form)).collect();
            assert_eq!(terms.len(), 1, "{forms:?} {terms:?}");
        }
        for (text, terms) in [
            ("The red bus, at 5!", "5 at bus red the"),
            ("Anna's ring", "anna ring s"),
            ("花园里", "园 园里 花 花园 里"),
            ("サウナ", "ウナ サウ"),
            ("", ""),
        ] {
            assert_eq!(terms_of(text), terms, "{text}");
        }
        for other in [
            ["paint", "pain"],
            ["thing", "the"],
            ["bring", "br"],
            ["plan", "plant"],
        ] {
            assert_ne!(terms_of(other[0]), terms_of(other[1]));
        }
    }
}

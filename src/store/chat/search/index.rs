//! The full-text index of messages and titles.
//!
//! SQLite stores and finds terms; which terms a text has is decided here. What is stored was
//! made by these rules, so a change of them needs a migration that empties the index and sets
//! the keys of [`OLD`]: then it is made again in the background.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use rusqlite::{Connection, params};

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::meta;
use crate::engine::query::Statements;
use crate::home::recall::lexicon::Lexicon;
use crate::home::recall::terms::{Kind, each_term, fold};
use base::error::Result;
use base::ids::{ConversationId, MessageId};

/// Most messages, and about the most text, that one write adds in the background.
const AT_ONCE: i64 = 250;
const BYTES_AT_ONCE: usize = 512 * 1024;
/// Most such writes that a search waits for.
const MOST_FOR_A_SEARCH: usize = 40;
/// Most bytes of a term: what is longer is no word.
const LONGEST: usize = 40;

/// Adds a message. What only goes to the end of a conversation is added later: see [`NEW`].
pub(crate) fn add(write: &Write<'_>, id: MessageId, text: &str) -> Outcome<()> {
    write.run(ADD_MESSAGE, params![id, terms_of(text)])
}

/// Adds the title that a conversation has now.
pub(crate) fn add_title(write: &Write<'_>, id: ConversationId) -> Outcome<()> {
    let sql = "SELECT title FROM conversations WHERE id = ?1";
    let title: Option<String> = write.value(sql, params![id])?;
    write.run(ADD_TITLE, params![id, terms_of(&title.unwrap_or_default())])
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

/// Texts that are still to be indexed.
struct Part {
    /// The key of how far it is.
    key: &'static str,
    /// The next texts from there on.
    texts: &'static str,
    /// Adds one.
    add: &'static str,
    /// Whether it is done once there are no more.
    ends: bool,
}

const ADD_MESSAGE: &str = "INSERT OR REPLACE INTO message_terms (rowid, terms) VALUES (?1, ?2)";
const ADD_TITLE: &str = "INSERT OR REPLACE INTO title_terms (rowid, terms) VALUES (?1, ?2)";

/// What came last. A turn would wait for it, and one text alone costs as much as many.
const NEW: [Part; 2] = [
    Part {
        key: "titled_to",
        texts: "SELECT id, title FROM conversations WHERE id > ?1 ORDER BY id LIMIT ?2",
        add: ADD_TITLE,
        ends: false,
    },
    Part {
        key: "indexed_to",
        texts: "SELECT id, content FROM messages WHERE id > ?1 ORDER BY id LIMIT ?2",
        add: ADD_MESSAGE,
        ends: false,
    },
];

/// What an upgrade left, the newest first.
const OLD: [Part; 2] = [
    Part {
        key: "untitled_before",
        texts: "SELECT id, title FROM conversations WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
        add: ADD_TITLE,
        ends: true,
    },
    Part {
        key: "unindexed_before",
        texts: "SELECT id, content FROM messages WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
        add: ADD_MESSAGE,
        ends: true,
    },
];

/// How far a part is, if it has anything left.
fn unfinished(connection: &Connection, part: &Part) -> Outcome<Option<i64>> {
    let Some(at) = meta::get(connection, part.key)? else {
        return Ok(None);
    };
    let left = part.ends || connection.exists(part.texts, params![at, 1])?;
    Ok(left.then_some(at))
}

/// Whether older messages are not found yet.
pub(super) fn is_unfinished(connection: &Connection) -> Outcome<bool> {
    any_unfinished(connection, &OLD)
}

fn any_unfinished(connection: &Connection, parts: &[Part]) -> Outcome<bool> {
    for part in parts {
        if unfinished(connection, part)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds the next texts of the first part that has any.
fn add_some(write: &Write<'_>, parts: &[Part]) -> Outcome<()> {
    write.adds_to_the_end();
    for part in parts {
        let Some(at) = unfinished(write.connection, part)? else {
            continue;
        };
        let mut texts: Vec<(i64, String)> = Vec::new();
        let mut bytes = 0;
        let batch = params![at, AT_ONCE];
        write.each_row(part.texts, batch, &mut |row| {
            let text: String = row.get(1)?;
            bytes += text.len();
            texts.push((row.get(0)?, text));
            Ok(match bytes < BYTES_AT_ONCE {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        match texts.last() {
            Some((last, _)) => meta::set(write, part.key, last)?,
            None => meta::remove(write, part.key)?,
        }
        // SQLite writes what comes in rising order at once.
        texts.sort_unstable_by_key(|(id, _)| *id);
        for (id, text) in &texts {
            write.execute(part.add, params![id, terms_of(text)])?;
        }
        break;
    }
    Ok(())
}

impl Store {
    /// Adds some of the messages and titles that are missing in the full-text index, and
    /// returns whether there may be more: new ones first, then what an upgrade left.
    pub fn index_messages(&self) -> Result<bool> {
        for parts in [&NEW, &OLD] {
            let look = |connection: &Connection| any_unfinished(connection, parts);
            if self.look(look)?.uncommitted() {
                self.write(|write| add_some(write, parts))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds what a search must find now: all that is new, unless that takes too long. Without
    /// anything new it does not wait for the writer.
    pub(crate) fn index_new(&self) {
        for _ in 0..MOST_FOR_A_SEARCH {
            let has_new = self.read(|connection| any_unfinished(connection, &NEW));
            if !(self.is_writable() && has_new.unwrap_or(false)) {
                return;
            }
            if let Err(error) = self.write(|write| add_some(write, &NEW)) {
                return log::warn!("a search does not find the newest messages: {error}");
            }
        }
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

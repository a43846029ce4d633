//! Searching messages by their words.
//!
//! FTS5 has its own query language (AND, NEAR, column names, ...). Every word is
//! quoted, so that none of it applies and nothing is a syntax error
//! (<https://www.sqlite.org/fts5.html>, section 3.1).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, Row, params};

use crate::chat::messages::{Message, PAGE, Page, find_message, message_columns, page_of_messages};
use crate::engine::failure::Outcome;
use crate::engine::query::{row, rows};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{BELONGS, Seen, Sight};
use base::error::Result;
use base::ids::{ConversationId, MessageId};

/// Most words of a query; the rest is ignored.
const MOST_WORDS: usize = 32;

impl Snapshot<'_> {
    /// Messages with all words of `query`, newest first, at most `limit`, 1,000, and
    /// about 4 MiB of text. When that finds fewer, the last word also matches as a
    /// prefix.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn search_messages(&self, query: &str, limit: usize) -> Result<Vec<Message>> {
        let Some(query) = every_word(query) else {
            return Ok(Vec::new());
        };
        let limit = limit.min(PAGE);
        let (connection, sight) = self.parts();
        let search = |query: &str| search(connection, sight, query, limit);
        // Searching for a common prefix costs far more than for a word.
        let (found, is_full) = search(&query)?;
        match while_typing(&query) {
            Some(query) if !is_full => Ok(search(&query)?.0),
            _ => Ok(found),
        }
    }
}

/// The newest messages with the words of a query that are seen, as
/// [`page_of_messages`].
fn search(
    connection: &Connection,
    sight: &Sight,
    query: &str,
    limit: usize,
) -> Outcome<(Vec<Message>, bool)> {
    match sight.seen() {
        Seen::All => {
            let parameters = params![query, limit as i64 + 1];
            return page_of_messages(connection, SEARCH_MESSAGES, parameters, limit);
        }
        Seen::Of(audiences) if audiences.is_empty() => return Ok((Vec::new(), false)),
        Seen::Of(_) | Seen::OfAccount(_) => {}
    }
    let mut known: HashMap<ConversationId, bool> = HashMap::new();
    let mut sees = |conversation: ConversationId| -> Outcome<bool> {
        Ok(match known.entry(conversation) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let seen = |row: &Row<'_>| sight.sees_row(row);
                let seen = row(connection, BELONGS, params![conversation], seen)?;
                *unknown.insert(seen.unwrap_or_default())
            }
        })
    };
    let mut page = Page::new(limit);
    let mut until = i64::MAX;
    let mut patience = FIRST_PATIENCE;
    let mut spans: Option<Vec<(i64, i64)>> = None;
    // Again for each part that is skipped.
    loop {
        let mut statement = connection.prepare_cached(SEARCH_IDS)?;
        let mut rows = statement.query(params![query, until])?;
        let mut hidden = 0;
        let skip_to = loop {
            let Some(found) = rows.next()? else {
                break None;
            };
            let id: MessageId = found.get(0)?;
            if !sees(found.get(1)?)? {
                hidden += 1;
                if hidden < patience {
                    continue;
                }
                hidden = 0;
                let spans = match &mut spans {
                    Some(spans) => spans,
                    None => spans.insert(seen_spans(connection, sight)?),
                };
                patience = PATIENCE;
                match newest_within(spans, id.as_i64()) {
                    Some(until) if until == id.as_i64() => continue,
                    other => break other,
                }
            }
            hidden = 0;
            // The text is read only now.
            if let Some(message) = find_message(connection, id)? {
                if !page.has_room(message.content.len()) {
                    return Ok((page.messages, true));
                }
                page.messages.push(message);
            }
        };
        match skip_to {
            Some(place) => until = place,
            None => return Ok((page.messages, false)),
        }
    }
}

/// Found messages in a row that are not seen, before the search looks where those are
/// that may be. For nearly everybody it is over by then.
const FIRST_PATIENCE: usize = 1000;

/// The same once it knows.
const PATIENCE: usize = 32;

/// Most conversations whose places are looked up. Who sees more of them finds enough.
const MOST_SPANS: usize = 1000;

/// From which to which message the conversations last that are seen.
fn seen_spans(connection: &Connection, sight: &Sight) -> Outcome<Vec<(i64, i64)>> {
    const EVERYWHERE: (i64, i64) = (i64::MIN, i64::MAX);
    let Seen::Of(audiences) = sight.seen() else {
        return Ok(vec![EVERYWHERE]);
    };
    let mut spans = Vec::new();
    for audience in audiences {
        let parameters = params![audience, MOST_SPANS as i64 + 1];
        let span = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        spans.extend(rows(connection, SPANS, parameters, span)?);
        if spans.len() > MOST_SPANS {
            return Ok(vec![EVERYWHERE]);
        }
    }
    Ok(spans)
}

/// The newest place of these spans that is at most `place`.
fn newest_within(spans: &[(i64, i64)], place: i64) -> Option<i64> {
    let before = spans.iter().filter(|(first, _)| *first <= place);
    before.map(|(_, last)| place.min(*last)).max()
}

pub(crate) const SPANS: &str = "SELECT ifnull((SELECT min(id) FROM messages \
         WHERE conversation_id = c.id), c.latest), c.latest \
     FROM conversations c INDEXED BY conversations_by_audience \
     WHERE c.audience_id = ?1 LIMIT ?2";

/// The full-text index returns rows in the order of their ids, so `LIMIT` ends the
/// search early; CROSS JOIN keeps SQLite from reordering the join.
pub(crate) const SEARCH_MESSAGES: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages_fts f CROSS JOIN messages m ON m.id = f.rowid \
     WHERE messages_fts MATCH ?1 AND m.hidden_with IS NULL ORDER BY f.rowid DESC LIMIT ?2"
);

/// The same without the messages themselves, for one who does not see all of them.
pub(crate) const SEARCH_IDS: &str = "SELECT m.id, m.conversation_id FROM messages_fts f \
     CROSS JOIN messages m ON m.id = f.rowid \
     WHERE messages_fts MATCH ?1 AND f.rowid <= ?2 AND m.hidden_with IS NULL \
     ORDER BY f.rowid DESC";

/// A query for texts with all words; none if there are no words.
fn every_word(text: &str) -> Option<String> {
    let words: Vec<String> = words(text).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The query of [`every_word`] with the last word as a prefix, because a person may
/// still be typing it. None if that would match nearly every text.
fn while_typing(every_word: &str) -> Option<String> {
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

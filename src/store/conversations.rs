//! Conversations and their messages.

use rusqlite::{Connection, Row, params};

use super::failure::Outcome;
use super::*;
use base::ids::{ConversationId, MessageId, TurnId};
use protocol::command::ConversationCursor;

/// Most rows of one page, whatever a caller asks for.
const PAGE: usize = 1000;
/// Most text of one page of messages, in bytes: a client's connection holds the
/// page in memory.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Longest title made from a message, in characters.
const TITLE_CHARACTERS: usize = 60;

impl Store {
    /// A conversation.
    ///
    /// # Errors
    /// `not_found`.
    pub fn conversation(&self, id: ConversationId) -> Result<Conversation> {
        self.read(|connection| find(connection, id))
    }

    /// A page of at most 1,000 conversations, newest activity first.
    pub fn conversations(
        &self,
        limit: usize,
        after: Option<ConversationCursor>,
    ) -> Result<ConversationPage> {
        let limit = limit.min(PAGE);
        let before = after.map_or(i64::MAX, |cursor| cursor.0.as_i64());
        let mut conversations = self.read(|connection| {
            rows(
                connection,
                PAGE_OF_CONVERSATIONS,
                params![before, limit as i64 + 1],
                conversation_from_row,
            )
        })?;
        // The one beyond the page tells whether there is a next page.
        let next = (conversations.len() > limit)
            .then(|| {
                conversations.truncate(limit);
                conversations.last()
            })
            .flatten()
            .map(|last| ConversationCursor(last.latest));
        Ok(ConversationPage {
            conversations,
            next,
        })
    }

    /// The latest `limit` messages (at most 1,000, and about 4 MiB of text, but
    /// always one) before `before`, oldest first.
    ///
    /// # Errors
    /// `not_found`.
    pub fn messages(
        &self,
        id: ConversationId,
        limit: usize,
        before: Option<MessageId>,
    ) -> Result<MessagePage> {
        let limit = limit.min(PAGE);
        let before = before.map_or(i64::MAX, MessageId::as_i64);
        let (mut messages, has_more) = self.read(|connection| {
            let page = page_of_messages(
                connection,
                PAGE_OF_MESSAGES,
                params![id, before, limit as i64 + 1],
                limit,
            )?;
            if page.0.is_empty() {
                find(connection, id)?;
            }
            Ok(page)
        })?;
        messages.reverse();
        Ok(MessagePage { messages, has_more })
    }

    /// The next `limit` messages (at most 1,000, and about 4 MiB of text, but
    /// always one) after `after`, oldest first. Empty at the end.
    pub fn messages_after(
        &self,
        id: ConversationId,
        limit: usize,
        after: Option<MessageId>,
    ) -> Result<Vec<Message>> {
        let limit = limit.min(PAGE);
        let after = after.map_or(i64::MIN, MessageId::as_i64);
        self.read(|connection| {
            let page = page_of_messages(
                connection,
                "SELECT * FROM messages
                 WHERE conversation_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
                params![id, after, limit as i64],
                limit,
            )?;
            Ok(page.0)
        })
    }

    /// One message.
    ///
    /// # Errors
    /// `not_found`.
    pub fn message(&self, id: MessageId) -> Result<Message> {
        self.read(|connection| {
            row(
                connection,
                "SELECT * FROM messages WHERE id = ?",
                params![id],
                message_from_row,
            )?
            .ok_or_else(|| Error::not_found(format!("there is no message {id}")).into())
        })
    }

    /// Gives a conversation a title.
    ///
    /// # Errors
    /// `not_found`.
    pub fn rename_conversation(&self, id: ConversationId, title: &str) -> Result<()> {
        let title = title.to_owned();
        self.write(move |write| {
            match write.execute(
                "UPDATE conversations SET title = ?2 WHERE id = ?1",
                params![id, title],
            )? {
                0 => Err(not_found(id).into()),
                _ => Ok(()),
            }
        })
    }

    /// Deletes a conversation and everything in it, its undelivered callbacks too.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` while a turn of it is unfinished.
    pub fn delete_conversation(&self, id: ConversationId) -> Result<()> {
        self.write(move |write| {
            let unfinished = row(
                write.connection,
                "SELECT 1 FROM turns INDEXED BY turns_unfinished
                 WHERE conversation_id = ? AND finished_at IS NULL",
                params![id],
                |_| Ok(()),
            )?;
            if unfinished.is_some() {
                return Err(Error::invalid_request(
                    "the conversation has a turn under way; wait for its end or cancel it first",
                )
                .into());
            }
            // The rest goes with it: foreign keys cascade, and triggers keep
            // the full-text index.
            match write.execute("DELETE FROM conversations WHERE id = ?", params![id])? {
                0 => Err(not_found(id).into()),
                _ => Ok(()),
            }
        })
    }

    /// Messages that hold all words of `query`, newest first, at most `limit`,
    /// 1,000, and about 4 MiB of text. Only where there are fewer than that, the
    /// last word may also be the beginning of one.
    pub fn search_messages(&self, query: &str, limit: usize) -> Result<Vec<Message>> {
        let Some(query) = fulltext::every_word(query) else {
            return Ok(Vec::new());
        };
        let limit = limit.min(PAGE);
        self.read(|connection| {
            let search = |query: &str| {
                let parameters = params![query, limit as i64 + 1];
                page_of_messages(connection, SEARCH_MESSAGES, parameters, limit)
            };
            // A common word as a prefix costs far more than the word itself.
            let (found, is_full) = search(&query)?;
            match fulltext::while_typing(&query) {
                Some(query) if !is_full => Ok(search(&query)?.0),
                _ => Ok(found),
            }
        })
    }
}

/// The first messages of a statement, at most `limit` and no more text than a
/// page holds, but always one; and whether there are more rows.
fn page_of_messages(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    limit: usize,
) -> Outcome<(Vec<Message>, bool)> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut messages: Vec<Message> = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        bytes += length(row, "content")?;
        if messages.len() == limit || (bytes > PAGE_BYTES && !messages.is_empty()) {
            return Ok((messages, true));
        }
        messages.push(message_from_row(row)?);
    }
    Ok((messages, false))
}

pub(super) const PAGE_OF_CONVERSATIONS: &str =
    "SELECT * FROM conversations WHERE latest < ?1 ORDER BY latest DESC LIMIT ?2";

pub(super) const PAGE_OF_MESSAGES: &str = "SELECT * FROM messages \
     WHERE conversation_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";

/// The full-text index gives its rows in the order of their ids, so `LIMIT`
/// ends the search early; CROSS JOIN keeps SQLite from turning it around.
pub(super) const SEARCH_MESSAGES: &str = "SELECT m.* FROM messages_fts f \
     CROSS JOIN messages m ON m.id = f.rowid \
     WHERE messages_fts MATCH ?1 ORDER BY f.rowid DESC LIMIT ?2";

pub(super) fn find(connection: &Connection, id: ConversationId) -> Outcome<Conversation> {
    row(
        connection,
        "SELECT * FROM conversations WHERE id = ?",
        params![id],
        conversation_from_row,
    )?
    .ok_or_else(|| not_found(id).into())
}

fn not_found(id: ConversationId) -> Error {
    Error::not_found(format!("there is no conversation {id}"))
}

/// A message's place: the conversation it is part of from now on.
pub(super) struct Place {
    pub conversation_id: ConversationId,
    pub external_name: Option<String>,
}

/// The conversation for a new message; made when the target asks for it.
pub(super) fn place(write: &Write<'_>, new: &NewTurn) -> Outcome<Place> {
    match &new.target {
        Target::Existing(id) => row(
            write.connection,
            "SELECT external_name FROM conversations WHERE id = ?",
            params![id],
            |row| {
                Ok(Place {
                    conversation_id: *id,
                    external_name: row.get(0)?,
                })
            },
        )?
        .ok_or_else(|| not_found(*id).into()),
        Target::New => create(write, new, None, new.account.as_deref(), None),
        Target::ReplayedHistory(replayed_history) => {
            replayed_history::place(write, new, replayed_history)
        }
        Target::Named { account, name } => {
            let known = row(
                write.connection,
                "SELECT id FROM conversations WHERE account = ?1 AND external_name = ?2",
                params![account, name],
                |row| row.get(0),
            )?;
            match known {
                Some(conversation_id) => Ok(Place {
                    conversation_id,
                    external_name: Some(name.clone()),
                }),
                None => create(write, new, None, Some(account), Some(name)),
            }
        }
    }
}

/// Makes a conversation. One of a webhook account that the caller did not name
/// is called by its id, so that the caller can go on with it by the name that
/// the callback tells. `first` is its first message, where that is not the new one.
pub(super) fn create(
    write: &Write<'_>,
    new: &NewTurn,
    first: Option<&str>,
    account: Option<&str>,
    name: Option<&str>,
) -> Outcome<Place> {
    let conversation_id: ConversationId = write.id();
    let external_name = match (account, name) {
        (Some(_), None) => Some(conversation_id.to_string()),
        (_, name) => name.map(str::to_owned),
    };
    write.execute(
        "INSERT INTO conversations
             (id, title, channel, account, external_name, created_at, updated_at, message_count, latest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 0, 0)",
        params![
            conversation_id,
            title(first.unwrap_or(&new.message)),
            new.channel,
            account,
            external_name,
            write.now,
        ],
    )?;
    Ok(Place {
        conversation_id,
        external_name,
    })
}

/// The first line of a message that is not empty, cut at 60 characters.
fn title(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty());
    let cut: String = line
        .unwrap_or_default()
        .chars()
        .take(TITLE_CHARACTERS)
        .collect();
    cut.trim_end().to_owned()
}

/// Stores a message and makes it its conversation's newest.
pub(super) fn insert_message(
    write: &Write<'_>,
    conversation_id: ConversationId,
    turn_id: TurnId,
    role: Role,
    content: String,
    speaker: Option<String>,
) -> Outcome<Message> {
    let message = Message {
        id: write.id(),
        conversation_id,
        turn_id: Some(turn_id),
        role,
        content,
        speaker,
        created_at: write.now,
    };
    write.execute(
        "INSERT INTO messages (id, conversation_id, turn_id, role, content, speaker, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            message.id,
            conversation_id,
            turn_id,
            role,
            message.content,
            message.speaker,
            message.created_at,
        ],
    )?;
    write.execute(
        "UPDATE conversations
         SET updated_at = ?2, message_count = message_count + 1, latest = ?3 WHERE id = ?1",
        params![conversation_id, message.created_at, message.id],
    )?;
    Ok(message)
}

fn conversation_from_row(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation {
        id: row.get("id")?,
        title: row.get("title")?,
        channel: row.get("channel")?,
        external_name: row.get("external_name")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        message_count: row.get::<_, i64>("message_count")?.unsigned_abs(),
        latest: row.get("latest")?,
    })
}

pub(super) fn message_from_row(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get("id")?,
        conversation_id: row.get("conversation_id")?,
        turn_id: row.get("turn_id")?,
        role: row.get("role")?,
        content: row.get("content")?,
        speaker: row.get("speaker")?,
        created_at: row.get("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_at_60_characters() {
        for (message, expected) in [
            ("hello", "hello"),
            ("\n\n  first \nsecond", "first"),
            (&"ä".repeat(61), &"ä".repeat(60)),
            (&format!("{} b", "a".repeat(59)), &"a".repeat(59)),
            ("one\r\ntwo", "one"),
        ] {
            assert_eq!(title(message), expected);
        }
    }
}

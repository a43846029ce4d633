//! Conversations: the list, and creating, renaming and deleting one.

use rusqlite::{Connection, Row, params};

use crate::database::Store;
use crate::failure::Outcome;
use crate::job::Write;
use crate::query::{self, check_changed, row, rows};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ConversationId, MessageId};
use protocol::command::ConversationCursor;

/// Most conversations of one page, whatever a caller asks for.
const PAGE: usize = 1000;

/// Longest title made from a message, in characters.
const TITLE_CHARACTERS: usize = 60;

/// A conversation.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// Rises with time.
    pub id: ConversationId,
    /// The first line of the first message, truncated, until a person renames it.
    pub title: String,
    /// Where it came from: `websocket`, `lines`, `webhook:ACCOUNT`, ...
    pub channel: String,
    /// For a webhook conversation, the caller's own name for it.
    pub external_name: Option<String>,
    /// When its first message was stored.
    pub created_at: Timestamp,
    /// When its newest message was stored.
    pub updated_at: Timestamp,
    /// Messages of both roles.
    pub message_count: u64,
    /// The id of its newest message: orders the list and is its cursor.
    pub latest: MessageId,
}

/// A page of conversations, newest activity first.
#[derive(Clone, Debug)]
pub struct ConversationPage {
    /// At most as many as requested.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins; `None` on the last.
    pub next: Option<ConversationCursor>,
}

impl Store {
    /// A conversation.
    ///
    /// # Errors
    /// `not_found`.
    pub fn conversation(&self, id: ConversationId) -> Result<Conversation> {
        self.read(|connection| find(connection, id))
    }

    /// The conversation that a webhook account calls by this name.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn conversation_named(&self, account: &str, name: &str) -> Result<Option<ConversationId>> {
        self.read(|connection| {
            row(
                connection,
                CONVERSATION_NAMED,
                params![account, name],
                |row| row.get(0),
            )
        })
    }

    /// A page of at most 1,000 conversations, newest activity first.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
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
        // One row more than the page: then there is a next page.
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

    /// Changes the title of a conversation.
    ///
    /// # Errors
    /// `not_found`.
    pub fn rename_conversation(&self, id: ConversationId, title: &str) -> Result<()> {
        let title = title.to_owned();
        self.write(move |write| {
            let renamed = write.execute(
                "UPDATE conversations SET title = ?2 WHERE id = ?1",
                params![id, title],
            )?;
            check_changed(renamed, "conversation", id)
        })
    }

    /// Deletes a conversation and everything in it, its undelivered callbacks too.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` while it has an unfinished turn.
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
                    "the conversation has an unfinished turn; wait until it ends or cancel it first",
                )
                .into());
            }
            // Foreign keys delete the rest, and triggers update the full-text
            // index.
            let deleted = write.execute("DELETE FROM conversations WHERE id = ?", params![id])?;
            check_changed(deleted, "conversation", id)
        })
    }
}

pub(crate) const PAGE_OF_CONVERSATIONS: &str =
    "SELECT * FROM conversations WHERE latest < ?1 ORDER BY latest DESC LIMIT ?2";

pub(crate) const CONVERSATION_NAMED: &str =
    "SELECT id FROM conversations WHERE account = ?1 AND external_name = ?2";

pub(crate) fn find(connection: &Connection, id: ConversationId) -> Outcome<Conversation> {
    query::find(
        connection,
        "conversation",
        "SELECT * FROM conversations WHERE id = ?",
        id,
        conversation_from_row,
    )
}

/// The conversation of a new message.
pub(crate) struct Placement {
    pub conversation_id: ConversationId,
    pub external_name: Option<String>,
}

/// Creates a conversation and takes its title from `message`. One of a webhook
/// account that the caller did not name gets its id as its name, so that the
/// caller can continue it by the name in the callback.
pub(crate) fn create(
    write: &Write<'_>,
    channel: &str,
    message: &str,
    account: Option<&str>,
    name: Option<&str>,
) -> Outcome<Placement> {
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
            title(message),
            channel,
            account,
            external_name,
            write.now,
        ],
    )?;
    Ok(Placement {
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

fn conversation_from_row(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    let created_at: Timestamp = row.get("created_at")?;
    Ok(Conversation {
        id: row.get("id")?,
        title: row.get("title")?,
        channel: row.get("channel")?,
        external_name: row.get("external_name")?,
        created_at,
        // Earlier in the row of one that was created while the clock was ahead.
        updated_at: created_at.max(row.get("updated_at")?),
        message_count: row.get::<_, i64>("message_count")?.unsigned_abs(),
        latest: row.get("latest")?,
    })
}

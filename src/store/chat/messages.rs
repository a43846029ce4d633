//! Messages, and pages of them.

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

use crate::chat::conversations;
use crate::engine::durability::Durable;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{self, Statements, length, words};
use crate::files;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{SEEN_COLUMNS, select_seen};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{ConversationId, MessageId, TurnId};
use base::reply::FinishReason;
use protocol::record::Attachment;

/// Most messages of one page, whatever a caller asks for.
pub(crate) const PAGE: usize = 1000;

/// Most text of one page, in bytes: a client's connection holds the page in
/// memory.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Who wrote a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or a program on behalf of one.
    #[default]
    User,
    /// The model.
    Assistant,
}

words! { Role {
    User: "user",
    Assistant: "assistant",
} }

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Rises with time, also across conversations.
    pub id: MessageId,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The turn that it began or ended.
    pub turn_id: Option<TurnId>,
    /// Who wrote it.
    pub role: Role,
    /// The whole text, never cut.
    pub content: String,
    /// The signed-in user's name, or the webhook's `user_id` and account, as
    /// [`by_webhook`](base::people::by_webhook) has it.
    pub speaker: Option<String>,
    /// The message that it answers, if that is not the one before it.
    pub in_reply_to: Option<MessageId>,
    /// All its versions, oldest first, if it was written anew.
    pub versions: Vec<MessageId>,
    /// Why it is not whole, if it is a reply that was cut.
    pub finish_reason: Option<FinishReason>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// The files that it carries.
    pub attachments: Vec<Attachment>,
}

/// A page of messages, oldest first.
#[derive(Clone, Debug)]
pub struct MessagePage {
    /// At most as many as requested.
    pub messages: Vec<Message>,
    /// Whether older ones exist.
    pub has_more: bool,
}

impl Snapshot<'_> {
    /// The latest `limit` messages (at most 1,000, and about 4 MiB of text, but
    /// always one) before `before`, oldest first.
    ///
    /// # Errors
    /// `not_found`: no such conversation, or no such message in it.
    pub fn messages(
        &self,
        id: ConversationId,
        limit: usize,
        before: Option<MessageId>,
    ) -> Result<MessagePage> {
        self.page(id, limit, before, PAGE_OF_MESSAGES)
    }

    /// The same of those that are not shown: other versions, and what followed them.
    ///
    /// # Errors
    /// As [`Snapshot::messages`].
    pub fn hidden_messages(
        &self,
        id: ConversationId,
        limit: usize,
        before: Option<MessageId>,
    ) -> Result<MessagePage> {
        self.page(id, limit, before, PAGE_OF_HIDDEN)
    }

    /// The messages around one, about as many before it as after it: at most `limit` (at most
    /// 1,000) and about 4 MiB of text, oldest first; and whether newer ones exist.
    ///
    /// # Errors
    /// As [`Snapshot::messages`].
    pub fn messages_around(
        &self,
        id: ConversationId,
        limit: usize,
        around: MessageId,
    ) -> Result<(MessagePage, bool)> {
        let limit = limit.min(PAGE);
        let after = limit / 2;
        let mut page = self.page(id, limit - after, Some(around), UNTIL_MESSAGE)?;
        let parameters = params![id, around, after + 1];
        let (newer, has_newer) =
            page_of_messages(self.connection(), NEWER_MESSAGES, parameters, after)?;
        page.messages.extend(newer);
        Ok((page, has_newer))
    }

    /// What the person who reads has begun more than one of their own latest conversations
    /// with: at most three, the most frequent first.
    pub fn repeated_openings(&self) -> Result<Vec<String>> {
        match self.sight.viewer.user_id() {
            Some(user) => Ok(self.values(REPEATED_OPENINGS, params![user])?),
            None => Ok(Vec::new()),
        }
    }

    fn page(
        &self,
        id: ConversationId,
        limit: usize,
        before: Option<MessageId>,
        sql: &'static str,
    ) -> Result<MessagePage> {
        let limit = limit.min(PAGE);
        let until = before.map_or(i64::MAX, MessageId::as_i64);
        conversations::check_seen(&self.sight, id)?;
        let parameters = params![id, until, limit + 1];
        let (mut messages, has_more) = page_of_messages(self.connection(), sql, parameters, limit)?;
        if let Some(before) = before
            && !self.exists(IN_CONVERSATION, params![before, id])?
        {
            return Err(query::not_found("message", before).into());
        }
        messages.reverse();
        Ok(MessagePage { messages, has_more })
    }

    /// One message.
    ///
    /// # Errors
    /// `not_found`.
    pub fn message(&self, id: MessageId) -> Result<Durable<Message>> {
        self.durable(|sight| {
            let from_row = |row: &Row<'_>| message_from_row(sight.connection(), row, SEEN_COLUMNS);
            Ok(sight.find_seen("message", MESSAGE, id, from_row)?.0)
        })
    }
}

/// The first messages of a statement, at most `limit` and [`PAGE_BYTES`] of text,
/// but always one; and whether there are more rows.
pub(crate) fn page_of_messages(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    limit: usize,
) -> Outcome<(Vec<Message>, bool)> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut page = Page::new(limit);
    while let Some(row) = rows.next()? {
        if !page.has_room(length(row, "content")?) {
            return Ok((page.messages, true));
        }
        page.messages.push(message_from_row(connection, row, 0)?);
    }
    Ok((page.messages, false))
}

/// Messages up to a number, and [`PAGE_BYTES`] of text, but always one.
pub(crate) struct Page<T = Message> {
    pub messages: Vec<T>,
    limit: usize,
    bytes: usize,
}

impl<T> Page<T> {
    pub fn new(limit: usize) -> Page<T> {
        Page {
            messages: Vec::new(),
            limit,
            bytes: 0,
        }
    }

    /// Whether a message of this length fits; it is then to be added.
    pub fn has_room(&mut self, length: usize) -> bool {
        self.bytes += length;
        self.messages.len() < self.limit && (self.bytes <= PAGE_BYTES || self.messages.is_empty())
    }
}

/// The columns that [`message_from_row`] reads, by their places: looking for their names
/// takes as long as the rest of reading a row. The table is `m` unless it is named.
macro_rules! message_columns {
    () => {
        crate::chat::messages::message_columns!("m")
    };
    ($table:literal) => {
        concat!(
            $table,
            ".id, ",
            $table,
            ".conversation_id, ",
            $table,
            ".turn_id, ",
            $table,
            ".role, ",
            $table,
            ".content, ",
            $table,
            ".speaker, ",
            $table,
            ".in_reply_to, ",
            $table,
            ".created_at, ",
            $table,
            ".attachment_count, ",
            $table,
            ".finish_reason, ",
            $table,
            ".version_of"
        )
    };
}

pub(crate) use message_columns;

/// How many [`message_columns`] there are.
pub(crate) const MESSAGE_COLUMNS: usize = 11;

const MESSAGE: &str = select_seen!(
    "c",
    message_columns!(),
    " FROM messages m CROSS JOIN conversations c ON c.id = m.conversation_id WHERE m.id = ?"
);

pub(crate) const IN_CONVERSATION: &str =
    "SELECT 1 FROM messages WHERE id = ?1 AND conversation_id = ?2";

pub(crate) const PAGE_OF_MESSAGES: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m \
     WHERE conversation_id = ?1 AND id < ?2 AND hidden_with IS NULL ORDER BY id DESC LIMIT ?3"
);

/// The same with this message.
pub(crate) const UNTIL_MESSAGE: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m \
     WHERE conversation_id = ?1 AND id <= ?2 AND hidden_with IS NULL ORDER BY id DESC LIMIT ?3"
);

pub(crate) const NEWER_MESSAGES: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m \
     WHERE conversation_id = ?1 AND id > ?2 AND hidden_with IS NULL ORDER BY id LIMIT ?3"
);

pub(crate) const PAGE_OF_HIDDEN: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages m \
     WHERE conversation_id = ?1 AND id < ?2 AND hidden_with IS NOT NULL ORDER BY id DESC LIMIT ?3"
);

/// Short ones that the person wrote, with no file.
pub(crate) const REPEATED_OPENINGS: &str = "SELECT m.content \
     FROM (SELECT id FROM conversations WHERE owner_id = ?1 ORDER BY id DESC LIMIT 300) newest \
     CROSS JOIN messages m ON m.id = (SELECT id FROM messages o \
         WHERE o.conversation_id = newest.id AND o.hidden_with IS NULL ORDER BY o.id LIMIT 1) \
     CROSS JOIN turns t ON t.id = m.turn_id \
     WHERE m.role = 'user' AND m.attachment_count = 0 AND length(m.content) <= 80 \
         AND t.user_id = ?1 AND t.schedule_id IS NULL AND NOT t.is_composed \
     GROUP BY lower(trim(m.content)) HAVING count(*) > 1 \
     ORDER BY count(*) DESC, max(m.id) DESC LIMIT 3";

pub(crate) const VERSIONS: &str = "SELECT id FROM messages WHERE version_of = ?1 ORDER BY id";

/// The versions of a message, oldest first.
pub(crate) fn versions_of(connection: &Connection, root: MessageId) -> Outcome<Vec<MessageId>> {
    connection.values(VERSIONS, params![root])
}

pub(crate) fn find_message(connection: &Connection, id: MessageId) -> Outcome<Option<Message>> {
    connection.row(
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM messages m WHERE m.id = ?"
        ),
        params![id],
        |row| message_from_row(connection, row, 0),
    )
}

/// A message to store.
pub(crate) struct NewMessage {
    pub role: Role,
    pub content: String,
    pub speaker: Option<String>,
    pub in_reply_to: Option<MessageId>,
    pub finish_reason: Option<FinishReason>,
}

impl NewMessage {
    /// A whole one, which answers the one before it, if any.
    pub fn plain(role: Role, content: String, speaker: Option<String>) -> NewMessage {
        NewMessage {
            role,
            content,
            speaker,
            in_reply_to: None,
            finish_reason: None,
        }
    }
}

/// Stores a message as the newest of its conversation.
pub(crate) fn insert_message(
    write: &Write<'_>,
    conversation_id: ConversationId,
    turn_id: TurnId,
    new: NewMessage,
) -> Outcome<Message> {
    let message = Message {
        id: write.id(),
        conversation_id,
        turn_id: Some(turn_id),
        role: new.role,
        content: new.content,
        speaker: new.speaker,
        in_reply_to: new.in_reply_to,
        versions: Vec::new(),
        finish_reason: new.finish_reason,
        created_at: write.now,
        attachments: Vec::new(),
    };
    let finish_reason = new.finish_reason.map(FinishReason::as_str);
    write.insert(
        "messages",
        &[
            ("id", &message.id),
            ("conversation_id", &conversation_id),
            ("turn_id", &turn_id),
            ("role", &message.role),
            ("content", &message.content),
            ("speaker", &message.speaker),
            ("created_at", &message.created_at),
            ("in_reply_to", &message.in_reply_to),
            ("finish_reason", &finish_reason),
        ],
    )?;
    write.execute(
        "UPDATE conversations
         SET updated_at = ?2, message_count = message_count + 1, latest = ?3 WHERE id = ?1",
        params![conversation_id, message.created_at, message.id],
    )?;
    Ok(message)
}

/// A message from the [`message_columns`] of a row, from this column on.
pub(crate) fn message_from_row(
    connection: &Connection,
    row: &Row<'_>,
    first: usize,
) -> Outcome<Message> {
    let id = row.get(first)?;
    Ok(Message {
        id,
        conversation_id: row.get(first + 1)?,
        turn_id: row.get(first + 2)?,
        role: row.get(first + 3)?,
        content: row.get(first + 4)?,
        speaker: row.get(first + 5)?,
        in_reply_to: row.get(first + 6)?,
        finish_reason: match row.get_ref(first + 9)?.as_str_or_null()? {
            Some(name) => FinishReason::parse(name),
            None => None,
        },
        created_at: row.get(first + 7)?,
        versions: match row.get(first + 10)? {
            Some(root) => versions_of(connection, root)?,
            None => Vec::new(),
        },
        attachments: match row.get(first + 8)? {
            0 => Vec::new(),
            _ => files::of_message(connection, id)?,
        },
    })
}

//! What an export holds beyond what people are shown.

use rusqlite::{Row, params};

use crate::audience::Directory;
use crate::conversations;
use crate::database::Store;
use crate::memories::{self, Memory};
use crate::messages::{MESSAGE_COLUMNS, Message, PAGE, Page, message_columns, message_from_row};
use crate::query::{length, row, rows};
use crate::viewer::{Viewer, seen_columns};
use base::error::Result;
use base::ids::{ConversationId, MemoryId, MessageId};
use base::surface::Surface;

/// What an export holds of a conversation beside the conversation itself.
#[derive(Clone, Debug)]
pub struct ConversationDetails {
    /// Where its replies are read.
    pub surface: Option<Surface>,
    /// Whether text from outside was ever shown to the model in it.
    pub is_outside: bool,
    /// How each person keeps it.
    pub marks: Vec<KeptMarks>,
}

/// How one person keeps a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptMarks {
    /// The person's name.
    pub user: String,
    /// Kept at the top of the list.
    pub is_pinned: bool,
    /// Left out of the list.
    pub is_archived: bool,
    /// The newest message that the person has seen.
    pub read_until: Option<MessageId>,
}

/// A message, shown or not.
#[derive(Clone, Debug)]
pub struct ExportedMessage {
    /// The message itself.
    pub message: Message,
    /// The oldest of its versions, if it was written anew.
    pub version_of: Option<MessageId>,
    /// The version that it goes with, if it is not shown.
    pub hidden_with: Option<MessageId>,
    /// The person whose turn it began.
    pub asked_by: Option<String>,
    /// The channel of the turn that it began.
    pub channel: Option<String>,
}

impl Store {
    /// What else an export holds of a conversation: of the marks, all of them for the server,
    /// and otherwise the viewer's own.
    ///
    /// # Errors
    /// `not_found`.
    pub fn conversation_details(
        &self,
        viewer: &Viewer,
        id: ConversationId,
    ) -> Result<ConversationDetails> {
        self.read(|connection| {
            conversations::check_seen(connection, &viewer.sight(connection)?, id)?;
            let user = viewer.user_id();
            let marks = rows(connection, MARKS_OF, params![id, user], |row| {
                Ok(KeptMarks {
                    user: row.get(0)?,
                    is_pinned: row.get(1)?,
                    is_archived: row.get(2)?,
                    read_until: row.get(3)?,
                })
            })?;
            let found = row(connection, DETAILS, params![id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            let (surface, is_outside) = found.unwrap_or_default();
            Ok(ConversationDetails {
                surface,
                is_outside,
                marks,
            })
        })
    }

    /// The next `limit` messages (at most 1,000, and about 4 MiB of text, but always one)
    /// after `after`, oldest first, those that are not shown among them. Empty at the end.
    ///
    /// # Errors
    /// `not_found`: no such conversation.
    pub fn messages_after(
        &self,
        viewer: &Viewer,
        id: ConversationId,
        limit: usize,
        after: Option<MessageId>,
    ) -> Result<Vec<ExportedMessage>> {
        let limit = limit.min(PAGE);
        let after = after.map_or(i64::MIN, MessageId::as_i64);
        self.read(|connection| {
            conversations::check_seen(connection, &viewer.sight(connection)?, id)?;
            let mut statement = connection.prepare_cached(MESSAGES_AFTER)?;
            let mut rows = statement.query(params![id, after, limit as i64])?;
            let mut page = Page::new(limit);
            while let Some(row) = rows.next()? {
                if !page.has_room(length(row, "content")?) {
                    break;
                }
                page.messages.push(ExportedMessage {
                    message: message_from_row(connection, row, 0)?,
                    version_of: row.get(MESSAGE_COLUMNS - 1)?,
                    hidden_with: row.get(MESSAGE_COLUMNS)?,
                    asked_by: row.get(MESSAGE_COLUMNS + 1)?,
                    channel: row.get(MESSAGE_COLUMNS + 2)?,
                });
            }
            Ok(page.messages)
        })
    }

    /// The next `limit` memories that are seen after `after`, oldest first.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn memories_after(
        &self,
        viewer: &Viewer,
        after: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<Memory>> {
        let after = after.map_or(i64::MIN, MemoryId::as_i64);
        self.read(|connection| {
            let (sight, mut directory) = (viewer.sight(connection)?, Directory::default());
            let from_row = |row: &Row<'_>| memories::from_row(connection, &mut directory, row);
            sight.rows(connection, MEMORIES_AFTER, params![after], limit, from_row)
        })
    }
}

const MARKS_OF: &str = "SELECT u.name, k.is_pinned, k.is_archived, k.read_until \
     FROM conversation_marks k INDEXED BY conversation_marks_by_conversation \
     CROSS JOIN users u ON u.id = k.user_id \
     WHERE k.conversation_id = ?1 AND ifnull(?2, u.id) = u.id ORDER BY u.id";

const DETAILS: &str = "SELECT surface, has_outside_text FROM conversations WHERE id = ?";

const MESSAGES_AFTER: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", m.hidden_with, u.name, t.channel FROM messages m \
     LEFT JOIN turns t ON t.id = m.turn_id AND t.message_id = m.id \
     LEFT JOIN users u ON u.id = t.user_id \
     WHERE m.conversation_id = ?1 AND m.id > ?2 ORDER BY m.id LIMIT ?3"
);

const MEMORIES_AFTER: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    ", m.* FROM memories m WHERE id > ?1 ORDER BY id"
);

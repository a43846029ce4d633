//! How people keep their conversations: what each has pinned, archived and read; and the
//! model and the instructions that one's owner chose.

use rusqlite::{Connection, params};

use crate::chat::conversations::{self, Conversation, Marks};
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::sight::audience::{self, Readers};
use crate::sight::viewer::{Sight, Viewer};
use base::error::Result;
use base::ids::{ConversationId, UserId};

/// What to change of a conversation; nothing of what is absent.
#[derive(Clone, Debug, Default)]
pub struct ConversationChange {
    /// For whoever changes it.
    pub pinned: Option<bool>,
    /// The same.
    pub archived: Option<bool>,
    /// The model to ask; empty for the household's.
    pub model: Option<String>,
    /// In addition to the system prompt; empty for none.
    pub instructions: Option<String>,
}

impl Store {
    /// Changes how a person keeps a conversation, or for everybody what its owner may choose.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it, for the model and the
    /// instructions.
    pub fn change_conversation(
        &self,
        viewer: &Viewer,
        id: ConversationId,
        change: ConversationChange,
    ) -> Result<(Conversation, Readers)> {
        self.write_for(viewer, move |write, sight| {
            let thing = conversations::check_seen(sight, id)?;
            if let Some(user) = sight.viewer.user_id() {
                for (column, value) in [
                    ("is_pinned", change.pinned),
                    ("is_archived", change.archived),
                ] {
                    let Some(value) = value else { continue };
                    let sql = format!(
                        "INSERT INTO conversation_marks (user_id, conversation_id, {column})
                         VALUES (?1, ?2, ?3)
                         ON CONFLICT (user_id, conversation_id) DO UPDATE SET {column} = ?3"
                    );
                    write.execute(&sql, params![user, id, value])?;
                }
            }
            if change.model.is_some() || change.instructions.is_some() {
                conversations::check_change(sight, id)?;
                let chosen = |text: Option<String>| text.filter(|text| !text.is_empty());
                if change.model.is_some() {
                    write.execute(
                        "UPDATE conversations SET model = ?2 WHERE id = ?1",
                        params![id, chosen(change.model)],
                    )?;
                }
                if change.instructions.is_some() {
                    write.execute(
                        "UPDATE conversations SET instructions = ?2 WHERE id = ?1",
                        params![id, chosen(change.instructions)],
                    )?;
                }
            }
            let mut changed = conversations::find(sight, id)?;
            add(sight, [&mut changed])?;
            Ok((
                changed,
                audience::readers(write.connection, thing.audience_id)?,
            ))
        })
    }

    /// Notes that a person has seen all there is of a conversation. Returns who sees it if
    /// that is new.
    ///
    /// # Errors
    /// `not_found`.
    pub fn mark_read(&self, viewer: &Viewer, id: ConversationId) -> Result<Option<Readers>> {
        self.write_for(viewer, move |write, sight| {
            let thing = conversations::check_seen(sight, id)?;
            let changed = write.execute(
                "INSERT INTO conversation_marks (user_id, conversation_id, read_until)
                 SELECT ?1, id, latest FROM conversations WHERE id = ?2 AND ?1 IS NOT NULL
                 ON CONFLICT (user_id, conversation_id)
                 DO UPDATE SET read_until = excluded.read_until
                 WHERE ifnull(read_until, 0) < excluded.read_until",
                params![sight.viewer.user_id(), id],
            )?;
            Ok(match changed {
                0 => None,
                _ => Some(audience::readers(write.connection, thing.audience_id)?),
            })
        })
    }
}

/// Adds what the viewer has noted about these conversations.
pub(crate) fn add<'a>(
    sight: &Sight<'_>,
    conversations: impl IntoIterator<Item = &'a mut Conversation>,
) -> Outcome<()> {
    let Some(user) = sight.viewer.user_id() else {
        return Ok(());
    };
    for conversation in conversations {
        conversation.marks = of(sight.connection(), user, conversation)?;
    }
    Ok(())
}

pub(crate) const MARKS: &str = "SELECT is_pinned, is_archived, read_until \
     FROM conversation_marks WHERE user_id = ?1 AND conversation_id = ?2";

/// Whether a message came after this version, and not by a turn of the person's own.
pub(crate) const IS_NEWS: &str = "SELECT t.user_id IS NOT ?2 FROM messages m \
     CROSS JOIN turns t ON t.id = m.turn_id \
     WHERE m.id = ?1 AND m.id > (SELECT value FROM meta WHERE key = 'unread_since')";

fn of(connection: &Connection, user: UserId, conversation: &Conversation) -> Outcome<Marks> {
    let latest = conversation.latest;
    let parameters = params![user, conversation.id];
    let noted: Option<(bool, bool, Option<i64>)> =
        connection.row(MARKS, parameters, |row| Ok(row.try_into()?))?;
    let (is_pinned, is_archived, read_until) = noted.unwrap_or_default();
    let is_unread = match read_until {
        // All of its messages may have been deleted.
        _ if conversation.message_count == 0 => false,
        Some(read_until) => latest.as_i64() > read_until,
        None => connection
            .value(IS_NEWS, params![latest, user])?
            .unwrap_or(false),
    };
    Ok(Marks {
        is_pinned,
        is_archived,
        is_unread,
    })
}

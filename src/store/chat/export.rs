//! The records of an export, which an import takes back, and the reads that fill them.

use std::ops::ControlFlow;

use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use crate::chat::conversations::{self, Conversation};
use crate::chat::messages::{MESSAGE_COLUMNS, PAGE, Page, Role, message_columns, message_from_row};
use crate::engine::query::{Statements, length};
use crate::home::memories::{self, Memory};
use crate::home::trigger::WatchedCall;
use crate::sight::audience::Audience;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::select_seen;
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{ConversationId, MemoryId, MessageId, ScheduleId};
use base::reply::{FinishReason, Surface};
use protocol::record::Attachment;

/// A conversation, without its messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExportedConversation {
    /// Its id; none of another assistant's, and in files that call it `id` alone.
    pub conversation_id: Option<ConversationId>,
    /// The same.
    pub id: Option<ConversationId>,
    /// Its title.
    pub title: String,
    /// Where it came from.
    pub channel: Option<String>,
    /// Null for nobody's.
    pub owner: Option<String>,
    /// Absent in files that are older than audiences.
    pub audience: Option<Audience>,
    /// The webhook account whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// That account's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_name: Option<String>,
    /// The model that is asked in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What its owner wants of the assistant in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Where its replies are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// Whether text from outside was ever shown to the model in it; absent in files of versions
    /// that did not write it.
    pub outside: Option<bool>,
    /// How people keep it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<ExportedMarks>,
    /// When it began.
    pub created_at: Timestamp,
    /// When its newest message was stored.
    pub updated_at: Option<Timestamp>,
}

impl ExportedConversation {
    /// One of which nothing else is known.
    pub fn new(title: String, created_at: Timestamp) -> ExportedConversation {
        ExportedConversation {
            title,
            created_at,
            ..ExportedConversation::default()
        }
    }
}

/// How one person keeps a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedMarks {
    /// The person's name.
    pub user: String,
    /// Kept at the top of the list.
    #[serde(default)]
    pub pinned: bool,
    /// Left out of the list.
    #[serde(default)]
    pub archived: bool,
    /// The newest message that the person has seen.
    pub read_until: Option<MessageId>,
}

/// A message, shown or not.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExportedMessage {
    /// Its id; none of another assistant's, and in files that call it `id` alone.
    pub message_id: Option<MessageId>,
    /// The same.
    pub id: Option<MessageId>,
    /// Who wrote it.
    pub role: Role,
    /// The name of who wrote it.
    pub speaker: Option<String>,
    /// When it was written.
    pub timestamp: Timestamp,
    /// The whole text.
    pub content: String,
    /// The message that it answers, if that is not the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<MessageId>,
    /// Why it is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// What all its versions have in common, if it has other versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_of: Option<MessageId>,
    /// The version that it goes with, if it is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_with: Option<MessageId>,
    /// The person whose turn it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// The channel of the turn that it began, if that is not the conversation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

impl ExportedMessage {
    /// One of which nothing else is known.
    pub fn new(role: Role, content: String, timestamp: Timestamp) -> ExportedMessage {
        ExportedMessage {
            role,
            timestamp,
            content,
            ..ExportedMessage::default()
        }
    }
}

/// A memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedMemory {
    /// Its id.
    pub memory_id: Option<MemoryId>,
    /// One fact.
    pub content: String,
    /// Other words by which it is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search_words: Vec<String>,
    /// Who said it, as it is shown.
    pub speaker: Option<String>,
    /// The person whose it is.
    pub owner: Option<String>,
    /// Who sees it.
    pub audience: Option<Audience>,
    /// Where it was said.
    pub channel: Option<String>,
    /// The webhook account through which it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Whether text from outside may be in it.
    pub outside: bool,
    /// When it was first remembered.
    pub created_at: Timestamp,
}

/// A schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedSchedule {
    /// Its id.
    pub schedule_id: Option<ScheduleId>,
    /// What it asks the assistant, or tells as it is.
    pub prompt: String,
    /// Whether its text is sent as it is.
    #[serde(default)]
    pub is_said: bool,
    /// The person whose it is.
    pub owner: Option<String>,
    /// Who made it, as it is shown, if that is not its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// Who sees it.
    pub audience: Option<Audience>,
    /// The conversation in which it runs.
    pub conversation_id: Option<ConversationId>,
    /// The channel of its turns.
    pub channel: String,
    /// Whether a model wrote its text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_composed: bool,
    /// A webhook account that also gets the replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// When it runs, if it does so repeatedly.
    pub cron: Option<String>,
    /// The next time, or the only one.
    pub next_at: Option<Timestamp>,
    /// Whether that was given as a wait.
    #[serde(default)]
    pub is_wait: bool,
    /// The only time as it was given on the household's clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_at: Option<String>,
    /// What it waits for in place of a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The calls that run first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_if_changed: Vec<WatchedCall>,
    /// When its next time was computed.
    pub planned_at: Timestamp,
    /// When it last ran.
    pub last_at: Option<Timestamp>,
    /// Whether it does not run until it is resumed.
    pub paused: bool,
    /// Whether its runs are as careful as with text from outside.
    pub outside: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Snapshot<'_> {
    /// A conversation as it is exported: with all marks for the server, and otherwise with the
    /// viewer's own.
    ///
    /// # Errors
    /// `not_found`.
    pub fn exported_conversation(&self, one: Conversation) -> Result<ExportedConversation> {
        let id = one.id;
        conversations::check_seen(&self.sight, id)?;
        let user = self.sight.viewer.user_id();
        let marks = self.rows(MARKS_OF, params![id, user], |row| {
            Ok(ExportedMarks {
                user: row.get(0)?,
                pinned: row.get(1)?,
                archived: row.get(2)?,
                read_until: row.get(3)?,
            })
        })?;
        let details = self.row(DETAILS, params![id], |row| Ok(row.try_into()?))?;
        let (surface, outside): (Option<Surface>, bool) = details.unwrap_or_default();
        Ok(ExportedConversation {
            conversation_id: Some(id),
            id: Some(id),
            title: one.title,
            channel: Some(one.channel),
            owner: one.owner,
            audience: Some(one.audience),
            account: one.account,
            external_name: one.external_name,
            model: one.model,
            instructions: one.instructions,
            surface: surface.map(|surface| surface.as_str().to_owned()),
            outside: Some(outside),
            marks,
            created_at: one.created_at,
            updated_at: Some(one.updated_at),
        })
    }

    /// The next `limit` messages (at most 1,000, and about 4 MiB of text, but always one)
    /// after `after`, oldest first, with their files, those that are not shown among them.
    /// Empty at the end.
    ///
    /// # Errors
    /// `not_found`: no such conversation.
    pub fn messages_after(
        &self,
        id: ConversationId,
        limit: usize,
        after: Option<MessageId>,
    ) -> Result<Vec<(ExportedMessage, Vec<Attachment>)>> {
        let limit = limit.min(PAGE);
        let after = after.map_or(i64::MIN, MessageId::as_i64);
        conversations::check_seen(&self.sight, id)?;
        let mut page = Page::new(limit);
        let parameters = params![id, after, limit];
        self.each_row(MESSAGES_AFTER, parameters, &mut |row| {
            if !page.has_room(length(row, "content")?) {
                return Ok(ControlFlow::Break(()));
            }
            let message = message_from_row(self.connection(), row, 0)?;
            let exported = ExportedMessage {
                message_id: Some(message.id),
                id: Some(message.id),
                role: message.role,
                speaker: message.speaker,
                timestamp: message.created_at,
                content: message.content,
                in_reply_to: message.in_reply_to,
                finish_reason: message.finish_reason,
                version_of: row.get(MESSAGE_COLUMNS - 1)?,
                hidden_with: row.get(MESSAGE_COLUMNS)?,
                asked_by: row.get(MESSAGE_COLUMNS + 1)?,
                channel: row.get(MESSAGE_COLUMNS + 2)?,
            };
            page.messages.push((exported, message.attachments));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(page.messages)
    }

    /// The next `limit` memories that are seen after `after`, oldest first.
    pub fn memories_after(&self, after: Option<MemoryId>, limit: usize) -> Result<Vec<Memory>> {
        let after = after.map_or(i64::MIN, MemoryId::as_i64);
        let from_row = |row: &Row<'_>| memories::from_row(&self.sight.directory, row);
        Ok(self
            .sight
            .seen_rows(MEMORIES_AFTER, params![after], limit, from_row)?)
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

const MEMORIES_AFTER: &str = select_seen!("m", "m.* FROM memories m WHERE id > ?1 ORDER BY id");

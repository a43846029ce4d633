//! Import conversations from elsewhere.

use std::collections::VecDeque;

use rusqlite::params;

use crate::attachments::imported::AttachmentImport;
use crate::audience::{Audience, UnknownName, intern};
use crate::database::Store;
use crate::failure::Outcome;
use crate::job::Write;
use crate::messages::Role;
use crate::query::row;
use crate::turns::TurnState;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{self, ConversationId, MessageId, TurnId, UserId};
use base::visible::label;

/// Prefix of the source until its import is complete.
const PARTIAL: &str = "partial:";
/// Ids of one millisecond in several conversations differ by a random number below
/// this.
const SPREAD: i64 = 1 << 20;

/// A conversation to import, without its messages.
#[derive(Clone, Debug)]
pub struct ImportedConversation {
    /// Its name at the source, such as `chatgpt:1b2c`. It is imported once.
    pub source: String,
    /// The id to use, if it is free.
    pub id: Option<ConversationId>,
    /// Its title.
    pub title: String,
    /// The channel to store.
    pub channel: String,
    /// The person whose it becomes.
    pub owner: Option<UserId>,
    /// Who sees it. Names that nobody has are left out.
    pub audience: Audience,
    /// When it began.
    pub created_at: Timestamp,
}

/// A message to import.
#[derive(Clone, Debug)]
pub struct ImportedMessage {
    /// The id to use, if it is free and keeps ids in the order of messages.
    pub id: Option<MessageId>,
    /// Who wrote it.
    pub role: Role,
    /// The whole text.
    pub content: String,
    /// The name of who wrote it.
    pub speaker: Option<String>,
    /// When it was written; a time in the future counts as now.
    pub created_at: Timestamp,
    /// The `id` of the message that it answers, if that is not the one before it.
    pub in_reply_to: Option<MessageId>,
}

/// A conversation that is being imported. A crash before [`Import::finish`] leaves
/// a part of it, which the next import replaces.
pub struct Import {
    store: Store,
    id: ConversationId,
    source: String,
    channel: String,
    last: Last,
}

/// Most questions without a reply of which one can come late: more than may wait for a
/// person at a time.
const MOST_QUESTIONS: usize = 1_000;

/// The last ids, after which the next message continues.
#[derive(Default)]
struct Last {
    message: i64,
    turn: i64,
    /// The turn of the last message, if it still has no reply.
    open: Option<TurnId>,
    /// The newest messages of people without a reply.
    questions: VecDeque<Question>,
}

struct Question {
    /// As the file names it.
    exported: Option<MessageId>,
    message: MessageId,
    turn: TurnId,
}

impl Last {
    /// The question that a message of the assistant answers, which has its reply now.
    fn answer(&mut self, in_reply_to: Option<MessageId>) -> Option<Question> {
        let open = self.open.take();
        let place = self.questions.iter().position(|one| match in_reply_to {
            Some(_) => one.exported == in_reply_to,
            None => Some(one.turn) == open,
        });
        self.questions.remove(place?)
    }
}

impl Store {
    /// Begins to import a conversation; none when it has been imported before.
    ///
    /// # Errors
    /// `invalid_request` for a private one without an owner;
    /// `server_error` when the database cannot be written.
    pub fn begin_import(&self, new: ImportedConversation) -> Result<Option<Import>> {
        let (source, channel) = (new.source.clone(), new.channel.clone());
        let begun = self.write(move |write| begin(write, &new))?;
        Ok(begun.map(|id| Import {
            store: self.clone(),
            id,
            source,
            channel,
            last: Last::default(),
        }))
    }
}

fn begin(write: &Write<'_>, new: &ImportedConversation) -> Outcome<Option<ConversationId>> {
    let partial = format!("{PARTIAL}{}", new.source);
    write.execute(
        "DELETE FROM conversations WHERE imported_from = ?",
        params![&partial],
    )?;
    let known = row(
        write.connection,
        "SELECT 1 FROM conversations WHERE imported_from = ?1 OR id = ?2",
        params![new.source, new.id],
        |_| Ok(()),
    )?;
    if known.is_some() {
        return Ok(None);
    }
    let created_at = new.created_at.min(write.now);
    let wanted = new.id.map(ConversationId::as_i64);
    let id = free_id(write, "conversations", wanted, created_at, 0)?;
    write.execute(
        "INSERT INTO conversations (id, title, channel, created_at, updated_at, message_count,
             latest, imported_from, imported_at, owner_id, audience_id)
         VALUES (?1, ?2, ?3, ?4, ?4, 0, 0, ?5, ?6, ?7, ?8)",
        params![
            id,
            label(&new.title),
            new.channel,
            created_at,
            partial,
            write.now,
            new.owner,
            intern(write, new.owner, &new.audience, UnknownName::Skip)?,
        ],
    )?;
    Ok(Some(ConversationId::from(id)))
}

impl Import {
    /// The id of the conversation.
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// Adds messages, in order. One call is one transaction: pass a few hundred at
    /// most.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn add(&mut self, messages: Vec<ImportedMessage>) -> Result<()> {
        let (id, channel) = (self.id, self.channel.clone());
        let mut last = std::mem::take(&mut self.last);
        self.last = self.store.write(move |write| {
            for message in &messages {
                append(write, id, &channel, message, &mut last)?;
            }
            Ok(last)
        })?;
        Ok(())
    }

    /// Begins a file of the message that was added last.
    ///
    /// # Errors
    /// `not_found` before the first message; `server_error` when the database cannot be
    /// written.
    pub fn begin_attachment(
        &self,
        name: &str,
        declared_type: Option<String>,
    ) -> Result<AttachmentImport> {
        if self.last.message == 0 {
            return Err(Error::not_found("no message comes before the attachment"));
        }
        let message = MessageId::from(self.last.message);
        AttachmentImport::begin(&self.store, message, name, declared_type)
    }

    /// Marks the import as complete.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn finish(self) -> Result<()> {
        let Import {
            store, id, source, ..
        } = self;
        store.write(move |write| {
            write.execute(
                "UPDATE conversations SET imported_from = ?2 WHERE id = ?1",
                params![id, source],
            )?;
            Ok(())
        })
    }
}

/// Each message of a person becomes a turn, and the next one of the assistant its
/// reply, because the model is shown turns.
fn append(
    write: &Write<'_>,
    conversation: ConversationId,
    channel: &str,
    message: &ImportedMessage,
    last: &mut Last,
) -> Outcome<()> {
    let at = message.created_at.min(write.now);
    let wanted = message.id.map(MessageId::as_i64);
    let id = free_id(write, "messages", wanted, at, last.message)?;
    last.message = id;
    let mut answered = None;
    let turn = match message.role {
        Role::User => {
            let turn = free_id(write, "turns", None, at, last.turn)?;
            last.turn = turn;
            write.execute(
                "INSERT INTO turns (id, conversation_id, state, channel, message_id, created_at,
                     started_at, finished_at, ended)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, ?5)",
                params![turn, conversation, TurnState::Done, channel, id, at],
            )?;
            last.open = Some(TurnId::from(turn));
            last.questions.push_back(Question {
                exported: message.id,
                message: MessageId::from(id),
                turn: TurnId::from(turn),
            });
            if last.questions.len() > MOST_QUESTIONS {
                last.questions.pop_front();
            }
            last.open
        }
        Role::Assistant => {
            if let Some(question) = last.answer(message.in_reply_to) {
                answered = message.in_reply_to.map(|_| question.message);
                write.execute(
                    "UPDATE turns SET reply_id = ?2, finished_at = ?3, ended = NULL WHERE id = ?1",
                    params![question.turn, id, at],
                )?;
                Some(question.turn)
            } else {
                None
            }
        }
    };
    write.execute(
        "INSERT INTO messages (id, conversation_id, turn_id, role, content, speaker, created_at,
             in_reply_to)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            id,
            conversation,
            turn,
            message.role,
            message.content,
            message.speaker,
            at,
            answered,
        ],
    )?;
    write.execute(
        "UPDATE conversations SET updated_at = max(updated_at, ?2),
             message_count = message_count + 1, latest = ?3 WHERE id = ?1",
        params![conversation, at, id],
    )?;
    Ok(())
}

/// A free id of the time `at`, above `last`. `wanted` is not used if it lies in the
/// future: all later ids would have to be above it.
fn free_id(
    write: &Write<'_>,
    table: &str,
    wanted: Option<i64>,
    at: Timestamp,
    last: i64,
) -> Outcome<i64> {
    let select = format!("SELECT 1 FROM {table} WHERE id = ?");
    let mut is_taken = write.prepare(&select)?;
    let present = ids::first_at(write.now);
    if let Some(wanted) = wanted
        && wanted > last
        && wanted < present
        && !is_taken.exists([wanted])?
    {
        return Ok(wanted);
    }
    let random = i64::from(u32::from_le_bytes(base::secret::random_bytes::<4>())) % SPREAD;
    let mut id = (ids::first_at(at) + random).max(last + 1);
    while is_taken.exists([id])? {
        id += 1;
    }
    Ok(id)
}

//! Importing conversations that were exported, here or elsewhere.

use std::collections::{HashMap, VecDeque};

use rusqlite::{Connection, params};

use crate::chat::export::{ExportedConversation, ExportedMarks, ExportedMessage};
use crate::chat::messages::Role;
use crate::chat::search::index;
use crate::chat::turns::TurnState;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::files::imported::AttachmentImport;
use crate::files::{self, UploadLimits};
use crate::keep::purge;
use crate::sight::audience::{self, Audience, Readers, UnknownName, intern};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{self, AttachmentId, AudienceId, ConversationId, MessageId, TurnId, UserId};
use base::people::by_webhook;
use base::reply::{FinishReason, Surface};
use base::visible::label;

/// The channel of conversations from other assistants.
pub const IMPORT_CHANNEL: &str = "import";
/// Prefix of the source until its import is complete.
const PARTIAL: &str = "partial:";
/// Ids of one millisecond in several conversations differ by a random number below
/// this.
const SPREAD: i64 = 1 << 20;

/// Whose something becomes that is imported. What its record says of its owner and audience
/// counts as this says.
#[derive(Clone, Debug)]
pub struct Ownership {
    /// The person whose it becomes.
    pub owner: Option<UserId>,
    /// Who sees it. Names that nobody has are left out.
    pub audience: Audience,
    /// Imported once for this person, whatever others import.
    pub copy_for: Option<UserId>,
}

/// A conversation that is being imported. A crash before [`Import::finish`] leaves
/// a part of it, which the next import replaces.
pub struct Import {
    store: Store,
    id: ConversationId,
    name: String,
    channel: String,
    account: Option<String>,
    updated_at: Option<Timestamp>,
    last: Last,
    is_finished: bool,
}

/// Most questions without a reply of which one can come late: more than may wait for a
/// person at a time.
const MOST_QUESTIONS: usize = 1_000;

/// Most messages with versions of one conversation.
const MOST_VERSIONS: usize = 10_000;

/// The last ids, after which the next message continues.
#[derive(Default)]
struct Last {
    message: i64,
    turn: i64,
    /// The turn of the last message, if it still has no reply.
    open: Option<TurnId>,
    /// The newest messages of people without a reply.
    questions: VecDeque<Question>,
    /// The messages that have versions, by their ids in the file, and the oldest version of
    /// each by what the file calls all of them.
    versions: HashMap<MessageId, MessageId>,
    roots: HashMap<MessageId, MessageId>,
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

    /// What all versions of this message have in common, and with which one it is hidden.
    /// Only what was imported with it is named: a file may name anything.
    fn version(
        &mut self,
        message: &ExportedMessage,
        id: MessageId,
    ) -> (Option<MessageId>, Option<MessageId>) {
        let root = (message
            .version_of
            .filter(|_| self.versions.len() < MOST_VERSIONS))
        .map(|root| *self.roots.entry(root).or_insert(id));
        if let (Some(_), Some(exported)) = (root, message.id) {
            self.versions.insert(exported, id);
        }
        let hidden = message
            .hidden_with
            .and_then(|with| self.versions.get(&with));
        (root, hidden.copied())
    }
}

impl Store {
    /// Begins to import a conversation with this name at the source, such as `chatgpt:1b2c`;
    /// none when it has been imported before. Its id is used if it is free, its name at its
    /// account where no other has it, and the marks of these people.
    ///
    /// # Errors
    /// `invalid_request` for a private one without an owner;
    /// `server_error` when the database cannot be written.
    pub fn begin_import(
        &self,
        source: &str,
        new: ExportedConversation,
        marks: Vec<(UserId, ExportedMarks)>,
        ownership: Ownership,
    ) -> Result<Option<Import>> {
        let (source, name) = (source.to_owned(), name_of(source, ownership.copy_for));
        let channel = new
            .channel
            .clone()
            .unwrap_or_else(|| IMPORT_CHANNEL.to_owned());
        let (account, updated_at) = (new.account.clone(), new.updated_at);
        let (stored_name, stored_channel) = (name.clone(), channel.clone());
        self.delete_partial(&name)?;
        let begun = self.write(move |write| {
            let names = (source.as_str(), stored_name.as_str());
            begin(write, names, &stored_channel, &new, &marks, &ownership)
        })?;
        Ok(begun.map(|id| Import {
            store: self.clone(),
            id,
            name,
            channel,
            account,
            updated_at,
            last: Last::default(),
            is_finished: false,
        }))
    }

    /// Stores a conversation of one message for its owner alone, in one commit: nobody finds
    /// it empty. None when one of this name is there already.
    pub fn add_notice(
        &self,
        name: &str,
        new: ExportedConversation,
        message: ExportedMessage,
        owner: UserId,
    ) -> Result<Option<(ConversationId, Readers)>> {
        let name = name.to_owned();
        let ownership = Ownership {
            owner: Some(owner),
            audience: Audience::Private,
            copy_for: None,
        };
        self.write(move |write| {
            let channel = new.channel.as_deref().unwrap_or(IMPORT_CHANNEL);
            let Some(id) = begin(write, (&name, &name), channel, &new, &[], &ownership)? else {
                return Ok(None);
            };
            let mut last = Last::default();
            append(write, id, (channel, None), (&message, None), &mut last)?;
            write.execute(
                "UPDATE conversations SET imported_from = ?2 WHERE id = ?1",
                params![id, name],
            )?;
            Ok(Some((id, audience::readers_of(write.connection, id)?)))
        })
    }

    /// Deletes what an import of this name has left without an end, in parts.
    fn delete_partial(&self, name: &str) -> Result<()> {
        let select = "SELECT id FROM conversations WHERE imported_from = ?";
        let found = |connection: &Connection| -> Outcome<Option<ConversationId>> {
            connection.value(select, params![partial_of(name)])
        };
        while let Some(id) = self.read(found)? {
            self.write(move |write| purge::delete_part(write, id))?;
        }
        Ok(())
    }
}

impl Ownership {
    pub(crate) fn intern(&self, write: &Write<'_>) -> Outcome<AudienceId> {
        intern(write, self.owner, &self.audience, UnknownName::Skip)
    }
}

/// What a conversation is called that was imported from this source.
pub(crate) fn name_of(source: &str, copy_for: Option<UserId>) -> String {
    match copy_for {
        Some(user) => format!("{source} for {user}"),
        None => source.to_owned(),
    }
}

/// The same until its import is complete.
fn partial_of(name: &str) -> String {
    format!("{PARTIAL}{name}")
}

fn begin(
    write: &Write<'_>,
    (source, name): (&str, &str),
    channel: &str,
    new: &ExportedConversation,
    marks: &[(UserId, ExportedMarks)],
    ownership: &Ownership,
) -> Outcome<Option<ConversationId>> {
    // The id alone proves nothing: somebody else's conversation may have taken it.
    let known = write.exists(
        "SELECT 1 FROM conversations WHERE imported_from = ?1
         UNION ALL
         SELECT 1 FROM conversations WHERE imported_from = ?2 AND owner_id IS ?4
         UNION ALL
         SELECT 1 FROM conversations WHERE id = ?3 AND owner_id IS ?4",
        params![name, source, new.id, ownership.owner],
    )?;
    if known {
        return Ok(None);
    }
    let created_at = new.created_at.min(write.now);
    let wanted = new.id.map(ConversationId::as_i64);
    let id = free_id(write, "conversations", wanted, created_at, 0)?;
    // Its place in lists until a message has one: pages of lists need a place of its own for
    // each, those without messages included.
    write.execute(
        "INSERT INTO conversations (id, title, channel, created_at, updated_at, message_count,
             latest, imported_from, imported_at, owner_id, audience_id, account, external_name,
             model, instructions, surface, has_outside_text)
         VALUES (?1, ?2, ?3, ?4, ?4, 0, ?1, ?5, ?6, ?7, ?8, ?9,
             (SELECT ?10 WHERE NOT EXISTS (
                 SELECT 1 FROM conversations WHERE account = ?9 AND external_name = ?10)),
             ?11, ?12, ?13, ?14)",
        params![
            id,
            label(&new.title),
            channel,
            created_at,
            partial_of(name),
            write.now,
            ownership.owner,
            ownership.intern(write)?,
            new.account,
            new.external_name,
            new.model,
            new.instructions,
            new.surface.as_deref().and_then(Surface::parse),
            new.outside.unwrap_or(true),
        ],
    )?;
    index::add_title(write, id.into())?;
    for (user, marks) in marks {
        write.execute(
            "INSERT OR IGNORE INTO conversation_marks
                 (user_id, conversation_id, is_pinned, is_archived, read_until)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![user, id, marks.pinned, marks.archived, marks.read_until],
        )?;
    }
    Ok(Some(ConversationId::from(id)))
}

impl Import {
    /// The id of the conversation.
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// Adds messages, in order, with the people whose turns they begin. An id is kept if it is
    /// free and keeps the order of messages; a time in the future counts as now. One call is
    /// one transaction: pass a few hundred at most.
    pub fn add(&mut self, messages: Vec<(ExportedMessage, Option<UserId>)>) -> Result<()> {
        let id = self.id;
        let (channel, account) = (self.channel.clone(), self.account.clone());
        let mut last = std::mem::take(&mut self.last);
        self.last = self.store.write(move |write| {
            for (message, asked_by) in &messages {
                let source = (channel.as_str(), account.as_deref());
                append(write, id, source, (message, *asked_by), &mut last)?;
            }
            Ok(last)
        })?;
        Ok(())
    }

    /// Begins a file of the message that was added last, with this id if it is free.
    ///
    /// # Errors
    /// `not_found` before the first message; `server_error` when the database cannot be
    /// written, and 507 without space.
    pub fn begin_attachment(
        &self,
        id: Option<AttachmentId>,
        name: &str,
        declared_type: Option<String>,
        bytes: u64,
        limits: UploadLimits,
    ) -> Result<AttachmentImport> {
        if self.last.message == 0 {
            return Err(Error::not_found("no message comes before the attachment"));
        }
        let (name, declared) = (name.to_owned(), declared_type.clone());
        let message = MessageId::from(self.last.message);
        let id = self.store.write(move |write| {
            let wanted = id.map(AttachmentId::as_i64);
            let id = free_id(write, ATTACHMENT_IDS, wanted, write.now, 0)?.into();
            files::imported::begin(write, id, message, &name, declared, bytes, &limits)?;
            Ok(id)
        })?;
        Ok(AttachmentImport::new(
            &self.store,
            id,
            message,
            declared_type,
        ))
    }

    /// Marks the import as complete. Returns who sees the conversation.
    pub fn finish(mut self) -> Result<Readers> {
        let (id, name, updated_at) = (self.id, self.name.clone(), self.updated_at);
        let readers = self.store.write(move |write| {
            let updated_at = updated_at.map(|at| at.min(write.now));
            write.execute(
                "UPDATE conversations SET imported_from = ?2,
                     updated_at = max(updated_at, ifnull(?3, updated_at)) WHERE id = ?1",
                params![id, name, updated_at],
            )?;
            audience::readers_of(write.connection, id)
        })?;
        self.is_finished = true;
        Ok(readers)
    }
}

impl Drop for Import {
    /// Deletes what has no end.
    fn drop(&mut self) {
        if !self.is_finished
            && let Err(error) = self.store.delete_partial(&self.name)
        {
            // The next import of it does so.
            log::warn!("half a conversation stays: {error}");
        }
    }
}

/// Each message of a person becomes a turn, and the next one of the assistant its
/// reply, because the model is shown turns.
fn append(
    write: &Write<'_>,
    conversation: ConversationId,
    (channel, account): (&str, Option<&str>),
    (message, asked_by): (&ExportedMessage, Option<UserId>),
    last: &mut Last,
) -> Outcome<()> {
    let at = message.timestamp.min(write.now);
    let wanted = message.id.map(MessageId::as_i64);
    let id = free_id(write, "messages", wanted, at, last.message)?;
    last.message = id;
    let mut answered = None;
    let mut speaker = message.speaker.clone();
    let turn = match message.role {
        Role::User => {
            let turn = free_id(write, "turns", None, at, last.turn)?;
            last.turn = turn;
            let channel = message.channel.as_deref().unwrap_or(channel);
            let caller = channel.strip_prefix("webhook:");
            // Files of earlier versions leave out the account.
            speaker = speaker.map(|name| caller.map_or(name.clone(), |it| by_webhook(&name, it)));
            write.insert(
                "turns",
                &[
                    ("id", &turn),
                    ("conversation_id", &conversation),
                    ("state", &TurnState::Done),
                    ("channel", &channel),
                    ("message_id", &id),
                    ("created_at", &at),
                    ("started_at", &at),
                    ("finished_at", &at),
                    ("ended", &id),
                    ("user_id", &asked_by),
                    ("account", &account.filter(|_| caller.is_some())),
                ],
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
    let (version_of, hidden_with) = last.version(message, MessageId::from(id));
    let finish_reason = message.finish_reason.map(FinishReason::as_str);
    write.insert(
        "messages",
        &[
            ("id", &id),
            ("conversation_id", &conversation),
            ("turn_id", &turn),
            ("role", &message.role),
            ("content", &message.content),
            ("speaker", &speaker),
            ("created_at", &at),
            ("in_reply_to", &answered),
            ("finish_reason", &finish_reason),
            ("version_of", &version_of),
            ("hidden_with", &hidden_with),
        ],
    )?;
    index::add(write, MessageId::from(id), &message.content)?;
    // What is counted is what is shown.
    write.run(
        "UPDATE conversations SET updated_at = max(updated_at, ?2),
             message_count = message_count + (?4 IS NULL), latest = ?3 WHERE id = ?1",
        params![conversation, at, id, hidden_with],
    )
}

/// The ids of attachments, also of deleted ones whose pieces are there for a while.
const ATTACHMENT_IDS: &str = "(SELECT id FROM attachments
    UNION ALL SELECT id FROM deleted_attachments
    UNION ALL SELECT attachment_id FROM attachment_pieces)";

/// A free id of the time `at`, above `last`. `wanted` is not used if it lies in the
/// future: all later ids would have to be above it.
pub(crate) fn free_id(
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

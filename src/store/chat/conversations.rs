//! Conversations: finding, creating, renaming and deleting one.

use rusqlite::{Row, params};

use crate::chat::search::index;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::sight::audience::{self, Audience, Directory, Readers};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{BELONGS, Belongs, Sight, Viewer, seen_columns};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, MessageId, UserId};
use base::reply::Surface;
use base::visible::label;

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
    /// The person who began it; absent for one of a webhook account, and for one of
    /// somebody who was removed.
    pub owner: Option<String>,
    /// The same person.
    pub owner_id: Option<UserId>,
    /// The webhook account whose it is, or that gets its replies.
    pub account: Option<String>,
    /// Who sees it.
    pub audience: Audience,
    /// The same people.
    pub readers: Readers,
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
    /// The model that is asked in it, if its owner chose one.
    pub model: Option<String>,
    /// What its owner wants of the assistant in it.
    pub instructions: Option<String>,
    /// What the viewer has noted about it, in lists.
    pub marks: Marks,
}

/// What one person has noted about a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Kept at the top of the list.
    pub is_pinned: bool,
    /// Left out of the list.
    pub is_archived: bool,
    /// Whether it has messages that this person has not seen.
    pub is_unread: bool,
}

impl Snapshot<'_> {
    /// A conversation.
    ///
    /// # Errors
    /// `not_found`.
    pub fn conversation(&self, id: ConversationId) -> Result<Conversation> {
        Ok(find(&self.sight, id)?)
    }
}

impl Store {
    /// The conversation that this person began through a linked sender of an account, which
    /// calls it by this name.
    pub fn conversation_of_sender(
        &self,
        owner: UserId,
        account: &str,
        name: &str,
    ) -> Result<Option<ConversationId>> {
        self.read(|connection| connection.value(BY_SENDER, params![owner, account, name]))
    }

    /// The conversation that a webhook account calls by this name.
    pub fn conversation_named(&self, account: &str, name: &str) -> Result<Option<ConversationId>> {
        self.read(|connection| connection.value(CONVERSATION_NAMED, params![account, name]))
    }

    /// Changes the title of a conversation. Returns who sees it.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it.
    pub fn rename_conversation(
        &self,
        viewer: &Viewer,
        id: ConversationId,
        title: &str,
    ) -> Result<Readers> {
        let title = label(title);
        self.write_for(viewer, move |write, sight| {
            let thing = check_change(sight, id)?;
            write.execute(
                "UPDATE conversations SET title = ?2 WHERE id = ?1",
                params![id, title],
            )?;
            index::add_title(write, id)?;
            audience::readers(write.connection, thing.audience_id)
        })
    }

    /// Gives a conversation that began with this message, and has only its reply yet, a title
    /// in place of the first line of the message. Returns who sees it, or nobody if a person
    /// has renamed it.
    pub fn give_title(
        &self,
        id: ConversationId,
        message: &str,
        new_title: &str,
    ) -> Result<Option<Readers>> {
        let (usual, new_title) = (title(message), label(new_title));
        self.write(move |write| {
            let changed = write.execute(
                "UPDATE conversations SET title = ?3 WHERE id = ?1 AND title = ?2",
                params![id, usual, new_title],
            )?;
            let sight = Viewer::server().sight(write.connection)?;
            Ok(match changed {
                0 => None,
                _ => {
                    index::add_title(write, id)?;
                    let thing = check_seen(&sight, id)?;
                    Some(audience::readers(write.connection, thing.audience_id)?)
                }
            })
        })
    }

    /// Whether a conversation has just its first message and the reply, and no title but the
    /// first line of the message.
    pub fn is_untitled(&self, id: ConversationId, message: &str) -> Result<bool> {
        let usual = title(message);
        self.read(|connection| connection.exists(UNTITLED, params![id, usual]))
    }

    /// Deletes a conversation and everything in it, its undelivered callbacks too.
    /// Returns who saw it.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it;
    /// `invalid_request` while it has an unfinished turn.
    pub fn delete_conversation(&self, viewer: &Viewer, id: ConversationId) -> Result<Readers> {
        self.write_for(viewer, move |write, sight| {
            let thing = check_seen(sight, id)?;
            sight.check_delete("conversation", &thing)?;
            check_no_turn(write, id, MessageId::from(0))?;
            // Foreign keys delete the rest, and triggers update the full-text
            // index.
            write.execute("DELETE FROM conversations WHERE id = ?", params![id])?;
            audience::readers(write.connection, thing.audience_id)
        })
    }
}

/// In the order in which [`conversation_from_row`] reads them.
macro_rules! conversation_columns {
    () => {
        concat!(
            seen_columns!("c"),
            ", c.id, c.title, c.channel, c.external_name, c.created_at, c.updated_at, \
             c.message_count, c.latest, c.model, c.instructions "
        )
    };
}

pub(crate) use conversation_columns;

pub(crate) const BY_SENDER: &str = "SELECT id FROM conversations \
     WHERE owner_id = ?1 AND sender_account = ?2 AND external_name = ?3";

pub(crate) const CONVERSATION_NAMED: &str =
    "SELECT id FROM conversations WHERE account = ?1 AND external_name = ?2";

const UNTITLED: &str =
    "SELECT 1 FROM conversations WHERE id = ?1 AND title = ?2 AND message_count = 2";

const CONVERSATION: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    "FROM conversations c WHERE c.id = ?"
);

pub(crate) fn find(sight: &Sight<'_>, id: ConversationId) -> Outcome<Conversation> {
    let from_row = |row: &Row<'_>| conversation_from_row(&sight.directory, row);
    let (found, _) = sight.find_seen("conversation", CONVERSATION, id, from_row)?;
    Ok(found)
}

/// The owner of a conversation and its audience.
///
/// # Errors
/// `not_found`, also for one that is not seen.
pub(crate) fn check_seen(sight: &Sight<'_>, id: ConversationId) -> Outcome<Belongs> {
    let (_, thing) = sight.find_seen("conversation", BELONGS, id, |_| Ok(()))?;
    Ok(thing)
}

/// The same for one that is going to change.
///
/// # Errors
/// `unauthorized` for who may see and not change it.
pub(crate) fn check_change(sight: &Sight<'_>, id: ConversationId) -> Outcome<Belongs> {
    let thing = check_seen(sight, id)?;
    sight.check_change("conversation", &thing)?;
    Ok(thing)
}

/// Notes that text from outside is among what the model is shown in a conversation.
pub(crate) fn note_outside_text(write: &Write<'_>, id: ConversationId) -> Outcome<()> {
    write.run(
        "UPDATE conversations SET has_outside_text = 1 WHERE id = ?",
        params![id],
    )
}

/// Checks that no turn of a conversation is unfinished.
///
/// # Errors
/// `invalid_request`.
pub(crate) fn check_no_turn(
    write: &Write<'_>,
    id: ConversationId,
    since: MessageId,
) -> Outcome<()> {
    let unfinished = write.exists(
        "SELECT 1 FROM turns INDEXED BY turns_unfinished
         WHERE conversation_id = ?1 AND finished_at IS NULL AND message_id >= ?2",
        params![id, since],
    )?;
    if unfinished {
        return Err(Error::refused("error.unfinished_turn", &[]).into());
    }
    Ok(())
}

/// The conversation of a new message.
pub(crate) struct Placement {
    pub conversation_id: ConversationId,
    pub external_name: Option<String>,
    pub audience_id: AudienceId,
    pub surface: Option<Surface>,
    pub model: Option<String>,
    pub instructions: Option<String>,
}

/// A conversation to create.
pub(crate) struct NewConversation<'a> {
    pub channel: &'a str,
    /// Its title is made from this.
    pub message: &'a str,
    pub account: Option<&'a str>,
    /// The account's name for it.
    pub name: Option<&'a str>,
    /// The account through whose linked sender the owner begins it.
    pub sender_account: Option<&'a str>,
    pub owner: Option<UserId>,
    pub audience_id: AudienceId,
    pub surface: Option<Surface>,
}

/// Creates a conversation. One of a webhook account that the caller did not name gets
/// its id as its name, so that the caller can continue it by the name in the callback.
pub(crate) fn create(write: &Write<'_>, new: NewConversation<'_>) -> Outcome<Placement> {
    let conversation_id: ConversationId = write.id();
    let external_name = match (new.account.or(new.sender_account), new.name) {
        (Some(_), None) => Some(conversation_id.to_string()),
        (_, name) => name.map(str::to_owned),
    };
    write.insert(
        "conversations",
        &[
            ("id", &conversation_id),
            ("title", &title(new.message)),
            ("channel", &new.channel),
            ("account", &new.account),
            ("external_name", &external_name),
            ("created_at", &write.now),
            ("updated_at", &write.now),
            ("message_count", &0),
            ("latest", &0),
            ("owner_id", &new.owner),
            ("audience_id", &new.audience_id),
            ("surface", &new.surface),
            ("sender_account", &new.sender_account),
        ],
    )?;
    Ok(Placement {
        conversation_id,
        external_name,
        audience_id: new.audience_id,
        surface: new.surface,
        model: None,
        instructions: None,
    })
}

/// The first line of a message in which something is seen, cut at 60 characters.
pub(crate) fn title(message: &str) -> String {
    let mut lines = message.lines().map(label);
    let line = lines.find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    let cut: String = line.chars().take(TITLE_CHARACTERS).collect();
    cut.trim_end().to_owned()
}

pub(crate) fn conversation_from_row(
    directory: &Directory<'_>,
    row: &Row<'_>,
) -> Outcome<Conversation> {
    let thing = Belongs::from_row(row)?;
    let created_at: Timestamp = row.get(7)?;
    Ok(Conversation {
        id: row.get(3)?,
        title: row.get(4)?,
        channel: row.get(5)?,
        owner: directory.name(thing.owner_id)?,
        owner_id: thing.owner_id,
        account: thing.account,
        audience: directory.audience(thing.owner_id, thing.audience_id)?,
        readers: directory.readers(thing.audience_id)?,
        external_name: row.get(6)?,
        created_at,
        // Earlier in the row of one that was created while the clock was ahead.
        updated_at: created_at.max(row.get(8)?),
        message_count: row.get(9)?,
        latest: row.get(10)?,
        model: row.get(11)?,
        instructions: row.get(12)?,
        marks: Marks::default(),
    })
}

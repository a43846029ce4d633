//! Messages that were written anew, and messages that are deleted.
//!
//! All versions of a message name the oldest of them. One is shown, with what follows it.
//! Each of the others, and what follows it, names the version that it is hidden with: so all
//! come back by one statement.

use rusqlite::{Connection, params};

use crate::chat::conversations;
use crate::chat::messages::{Role, versions_of};
use crate::chat::search::index;
use crate::engine::database::Store;
use crate::engine::failure::{Failure, Outcome};
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row, not_found};
use crate::sight::audience::{self, Readers};
use crate::sight::viewer::{Sight, Viewer, select_seen};
use base::error::{Error, Result};
use base::ids::{ConversationId, MessageId, TurnId, UserId};

/// Most versions of one message.
const MOST_VERSIONS: usize = 100;

/// What a change of the messages of a conversation came to.
#[derive(Clone, Debug)]
pub struct Rearranged {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Who sees it.
    pub readers: Readers,
    /// The turns that were deleted with their messages.
    pub deleted: Vec<TurnId>,
}

/// A message as a change finds it.
struct Place {
    conversation_id: ConversationId,
    turn_id: Option<TurnId>,
    role: Role,
    version_of: Option<MessageId>,
    hidden_with: Option<MessageId>,
    asker: Option<UserId>,
}

impl Store {
    /// Shows a version of a message, with what follows it, instead of the one that is shown.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` for a message that has no versions, for one that goes
    /// with another version, and while the conversation has an unfinished turn.
    pub fn select_version(&self, viewer: &Viewer, id: MessageId) -> Result<Rearranged> {
        let write = move |write: &Write<'_>, sight: &Sight<'_>| {
            let place = find(sight, id)?;
            let Some(root) = place.version_of else {
                return Err(refused("error.no_versions", id));
            };
            conversations::check_no_turn(write, place.conversation_id, root)?;
            let titles = usual_titles(write.connection, root)?;
            match place.hidden_with {
                None => {}
                Some(with) if with == id => {
                    // Unless all that is shown of the conversation goes with another version
                    // of an earlier message.
                    let shown = shown_version(write.connection, root)?
                        .ok_or_else(|| refused("error.version_follows", id))?;
                    hide(write, place.conversation_id, shown)?;
                    show(write, place.conversation_id, id)?;
                }
                Some(with) => return Err(refused("error.version_goes_with", with)),
            }
            retitle(write, place.conversation_id, &titles)?;
            rearranged(write, sight, place.conversation_id, Vec::new())
        };
        self.rearrange(|| self.write_for(viewer, write))
    }

    /// Deletes a message with the other one of its turn, for good. One that has versions goes
    /// with all that follows it, and the version before it is shown. Those who asked may do so,
    /// and those who may change the conversation.
    ///
    /// # Errors
    /// `not_found`; `unauthorized`; `invalid_request` while the conversation has an
    /// unfinished turn.
    pub fn delete_message(&self, viewer: &Viewer, id: MessageId) -> Result<Rearranged> {
        let write = move |write: &Write<'_>, sight: &Sight<'_>| {
            let place = find(sight, id)?;
            let conversation = place.conversation_id;
            check_own(sight, &place)?;
            if let Some(with) = place.hidden_with
                && place.version_of.is_some()
                && with != id
            {
                return Err(refused("error.version_goes_with", with));
            }
            let question = match place.role {
                Role::User => id,
                Role::Assistant => question_of(write.connection, &place)?.unwrap_or(id),
            };
            conversations::check_no_turn(write, conversation, question)?;
            let titles = usual_titles(write.connection, question)?;
            let root = version_of(write.connection, question)?;
            forget_view(write, conversation, question)?;
            let deleted = match root {
                Some(root) => delete_version(write, sight, conversation, question, root)?,
                None => delete_exchange(write, question, place.turn_id)?,
            };
            recount(write, conversation)?;
            retitle(write, conversation, &titles)?;
            rearranged(write, sight, conversation, deleted)
        };
        self.rearrange(|| self.write_for(viewer, write))
    }
}

/// Hides a message of a person, and what follows it, because a new version of it is about to
/// be stored. Returns the oldest version.
///
/// # Errors
/// `not_found`; `unauthorized` for who neither asked nor may change the conversation;
/// `invalid_request`.
pub(crate) fn make_room(
    write: &Write<'_>,
    sight: &Sight<'_>,
    conversation: ConversationId,
    id: MessageId,
) -> Outcome<MessageId> {
    let place = find(sight, id)?;
    if place.conversation_id != conversation {
        return Err(not_found("message", id));
    }
    check_own(sight, &place)?;
    match (place.role, place.hidden_with) {
        (Role::Assistant, _) => return Err(refused("error.is_reply", id)),
        (Role::User, Some(_)) => return Err(refused("error.written_anew", id)),
        (Role::User, None) => {}
    }
    conversations::check_no_turn(write, conversation, id)?;
    let root = place.version_of.unwrap_or(id);
    if versions_of(write.connection, root)?.len() >= MOST_VERSIONS {
        return Err(refused("error.versions_full", id));
    }
    write.execute(
        "UPDATE messages SET version_of = ?2 WHERE id = ?1 AND version_of IS NULL",
        params![id, root],
    )?;
    hide(write, conversation, id)?;
    Ok(root)
}

fn refused(key: &'static str, id: MessageId) -> Failure {
    let fields = [
        ("most", &*MOST_VERSIONS.to_string()),
        ("id", &id.to_string()),
    ];
    Error::refused(key, &fields).into()
}

/// Notes that a message is a version of another one.
pub(crate) fn note(
    write: &Write<'_>,
    conversation: ConversationId,
    id: MessageId,
    root: MessageId,
) -> Outcome<Vec<MessageId>> {
    write.execute(
        "UPDATE messages SET version_of = ?2 WHERE id = ?1",
        params![id, root],
    )?;
    let titles = usual_titles(write.connection, root)?;
    retitle(write, conversation, &titles)?;
    versions_of(write.connection, root)
}

fn find(sight: &Sight<'_>, id: MessageId) -> Outcome<Place> {
    let (place, _) = sight.find_seen("message", PLACE, id, |row| {
        Ok(from_row!(row => Place {
            conversation_id, turn_id, role, version_of, hidden_with, asker
        }))
    })?;
    Ok(place)
}

const PLACE: &str = select_seen!(
    "c",
    "m.conversation_id, m.turn_id, m.role, m.version_of, m.hidden_with, t.user_id AS asker \
     FROM messages m CROSS JOIN conversations c ON c.id = m.conversation_id \
     LEFT JOIN turns t ON t.id = m.turn_id WHERE m.id = ?"
);

/// Checks that somebody may replace or delete a message: who asked, and who may change the
/// conversation.
fn check_own(sight: &Sight<'_>, place: &Place) -> Outcome<()> {
    if place.asker.is_none() || place.asker != sight.viewer.user_id() {
        conversations::check_change(sight, place.conversation_id)?;
    }
    Ok(())
}

fn version_of(connection: &Connection, id: MessageId) -> Outcome<Option<MessageId>> {
    let found = connection.value("SELECT version_of FROM messages WHERE id = ?", params![id])?;
    Ok(found.flatten())
}

fn question_of(connection: &Connection, place: &Place) -> Outcome<Option<MessageId>> {
    connection.value(
        "SELECT message_id FROM turns WHERE id = ?",
        params![place.turn_id],
    )
}

fn shown_version(connection: &Connection, root: MessageId) -> Outcome<Option<MessageId>> {
    connection.value(
        "SELECT id FROM messages WHERE version_of = ? AND hidden_with IS NULL",
        params![root],
    )
}

/// Hides the version of a message that is shown, and what follows it. The late reply to an
/// earlier message does not.
fn hide(write: &Write<'_>, conversation: ConversationId, from: MessageId) -> Outcome<()> {
    write.execute(
        "UPDATE messages SET hidden_with = ?2
         WHERE conversation_id = ?1 AND id >= ?2 AND hidden_with IS NULL
             AND ifnull((SELECT message_id FROM turns WHERE id = turn_id), id) >= ?2",
        params![conversation, from],
    )?;
    recount(write, conversation)?;
    forget_view(write, conversation, from)
}

/// Shows a hidden version, and what follows it.
fn show(write: &Write<'_>, conversation: ConversationId, id: MessageId) -> Outcome<()> {
    write.execute(
        "UPDATE messages SET hidden_with = NULL WHERE hidden_with = ?",
        params![id],
    )?;
    recount(write, conversation)
}

/// What is counted is what is shown.
pub(crate) fn recount(write: &Write<'_>, conversation: ConversationId) -> Outcome<()> {
    write.run(
        "UPDATE conversations
         SET message_count = (
                 SELECT count(*) FROM messages
                 WHERE conversation_id = ?1 AND hidden_with IS NULL),
             latest = ifnull((SELECT max(id) FROM messages WHERE conversation_id = ?1), latest)
         WHERE id = ?1",
        params![conversation],
    )
}

/// The titles that a conversation has by itself if it begins with this message, or with
/// another version of it. The oldest version names them all even when it was deleted.
fn usual_titles(connection: &Connection, id: MessageId) -> Outcome<Vec<String>> {
    connection.rows(
        "SELECT content FROM messages
         WHERE id = ?1 OR version_of = ifnull((SELECT version_of FROM messages WHERE id = ?1), ?1)",
        params![id],
        |row| Ok(conversations::title(&row.get::<_, String>(0)?)),
    )
}

/// Takes the title from the message that is now the first one, if it was taken from one
/// that had these: what is deleted would still be read there.
fn retitle(write: &Write<'_>, conversation: ConversationId, former: &[String]) -> Outcome<()> {
    let sql = "SELECT title FROM conversations WHERE id = ?";
    let title: Option<String> = write.value(sql, params![conversation])?;
    if !title.is_some_and(|title| former.contains(&title)) {
        return Ok(());
    }
    let first: Option<String> = write.value(
        "SELECT content FROM messages
         WHERE conversation_id = ? AND role = 'user' AND hidden_with IS NULL ORDER BY id LIMIT 1",
        params![conversation],
    )?;
    write.execute(
        "UPDATE conversations SET title = ?2 WHERE id = ?1",
        params![
            conversation,
            conversations::title(&first.unwrap_or_default())
        ],
    )?;
    index::add_title(write, conversation)
}

/// A summary that covers the message is made anew, without it.
fn forget_view(write: &Write<'_>, conversation: ConversationId, from: MessageId) -> Outcome<()> {
    write.execute(
        "DELETE FROM conversation_summaries WHERE conversation_id = ?1 AND ifnull((
             SELECT ifnull(reply_id, ended) FROM turns
             WHERE id = conversation_summaries.turn_id), ?2) >= ?2",
        params![conversation, from],
    )?;
    write.run(
        "UPDATE conversations SET hidden_until = 0, shortened_until = 0
         WHERE id = ?1 AND max(hidden_until, shortened_until) >= ?2",
        params![conversation, from],
    )
}

/// Deletes the messages of a turn, and what its model and tools did.
pub(crate) fn delete_exchange(
    write: &Write<'_>,
    question: MessageId,
    turn: Option<TurnId>,
) -> Outcome<Vec<TurnId>> {
    write.execute(
        "DELETE FROM messages WHERE id = ?1 OR id IN (
             SELECT reply_id FROM turns WHERE id = ?2)",
        params![question, turn],
    )?;
    write.execute("DELETE FROM turns WHERE id = ?", params![turn])?;
    Ok(turn.into_iter().collect())
}

/// Deletes a version with all that follows it, also what is hidden there, and shows the
/// version before it if it was shown.
///
/// # Errors
/// `unauthorized` if others asked what follows, for who may not change the conversation.
fn delete_version(
    write: &Write<'_>,
    sight: &Sight<'_>,
    conversation: ConversationId,
    id: MessageId,
    root: MessageId,
) -> Outcome<Vec<TurnId>> {
    let was_shown = shown_version(write.connection, root)? == Some(id);
    if was_shown {
        hide(write, conversation, id)?;
    }
    let (mut doomed, mut turns) = (vec![id], Vec::new());
    while let Some(version) = doomed.pop() {
        // A message that follows may have versions of its own, which are hidden with
        // themselves.
        let others: Vec<MessageId> = write.values(
            "SELECT o.id FROM messages m INDEXED BY messages_hidden
             CROSS JOIN messages o INDEXED BY messages_by_version ON o.version_of = m.version_of
             WHERE m.hidden_with = ?1 AND m.version_of <> ?2 AND o.hidden_with = o.id",
            params![version, root],
        )?;
        doomed.extend(others);
        let is_of_others = write.exists(
            "SELECT 1 FROM messages m INDEXED BY messages_hidden
             LEFT JOIN turns t ON t.id = m.turn_id
             WHERE m.hidden_with = ?1 AND m.role = 'user' AND t.user_id IS NOT ?2",
            params![version, sight.viewer.user_id()],
        )?;
        if is_of_others {
            conversations::check_change(sight, conversation)?;
        }
        turns.extend(write.values::<TurnId>(
            "DELETE FROM turns WHERE id IN (
                 SELECT turn_id FROM messages INDEXED BY messages_hidden WHERE hidden_with = ?)
             RETURNING id",
            params![version],
        )?);
        write.execute(
            "DELETE FROM messages WHERE hidden_with = ?",
            params![version],
        )?;
    }
    let left = versions_of(write.connection, root)?;
    let before = left
        .iter()
        .rev()
        .find(|version| **version < id)
        .or(left.first());
    if let (true, Some(version)) = (was_shown, before) {
        show(write, conversation, *version)?;
    }
    if let [only] = left[..] {
        write.execute(
            "UPDATE messages SET version_of = NULL WHERE id = ?",
            params![only],
        )?;
    }
    Ok(turns)
}

fn rearranged(
    write: &Write<'_>,
    sight: &Sight<'_>,
    conversation_id: ConversationId,
    deleted: Vec<TurnId>,
) -> Outcome<Rearranged> {
    let thing = conversations::check_seen(sight, conversation_id)?;
    Ok(Rearranged {
        conversation_id,
        readers: audience::readers(write.connection, thing.audience_id)?,
        deleted,
    })
}

//! Conversations of clients that send the whole history with every message instead
//! of an id.
//!
//! The chat continues in the conversation that ends in that history. An unknown
//! history (edited, branched or begun elsewhere) becomes a new conversation, so
//! that the model sees what the client shows.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use crate::chat::conversations::Placement;
use crate::chat::messages::{NewMessage, Role, insert_message};
use crate::chat::turns::TurnState;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::people::tokens::Credential;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, seen_columns};
use base::error::Result;
use base::ids::{AudienceId, ConversationId, TurnId, UserId};
use base::secret::sha256;

/// A history that a client sends instead of a conversation id.
#[derive(Clone, Debug)]
pub struct ReplayedHistory {
    /// What sends it: it continues only what this credential began, while the same people
    /// see it.
    pub credential: Credential,
    /// The earlier messages, oldest first.
    pub history: Vec<Exchange>,
    /// The client's own name for the chat, which is its conversation whatever the history
    /// says.
    pub chat: Option<String>,
    /// Instructions for this turn, in addition to the system prompt.
    pub instructions: Option<String>,
}

/// A message and its reply, as the client sends them. Neither is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The message.
    pub message: String,
    /// The reply.
    pub reply: String,
}

/// The end of what a client was told instead of a reply, because somebody had to be asked.
pub const REPLY_FOLLOWS: &str = "The reply will be in the conversation there.";

/// The message that follows a history, and whose it is.
pub(crate) struct Following<'a> {
    pub message: &'a str,
    pub channel: &'a str,
    pub owner: Option<UserId>,
    pub speaker: Option<&'a str>,
}

/// Most conversations that are compared with a history.
const MOST_CANDIDATES: usize = 8;

/// Most exchanges of a history that are compared and stored: the newest.
const MOST_EXCHANGES: usize = 200;

/// A history of this many exchanges may lack the beginning of its conversation:
/// clients drop old messages.
const ENOUGH_EXCHANGES: usize = 4;

impl Snapshot<'_> {
    /// The conversation that a message with this history continues, if there is one.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn conversation_replayed(
        &self,
        replayed: &ReplayedHistory,
    ) -> Result<Option<ConversationId>> {
        let (connection, sight) = self.parts();
        let found = find(connection, sight, replayed, newest(&replayed.history))?;
        Ok(found.map(|(conversation_id, _)| conversation_id))
    }
}

/// The conversation that a new message continues, and whether its history was stored.
/// `create` makes one that begins with this message.
pub(crate) fn place(
    write: &Write<'_>,
    sight: &Sight,
    replayed: &ReplayedHistory,
    new: &Following<'_>,
    create: impl FnOnce(&str) -> Outcome<Placement>,
) -> Outcome<(Placement, bool)> {
    let history = newest(&replayed.history);
    let (placement, has_history) = match find(write.connection, sight, replayed, history)? {
        Some((conversation_id, audience_id)) => {
            let placement = Placement {
                conversation_id,
                external_name: None,
                audience_id,
                surface: None,
                model: None,
                instructions: None,
            };
            (placement, false)
        }
        None => {
            let first = replayed.history.first();
            let placement = create(first.map_or(new.message, |first| &first.message))?;
            for exchange in history {
                store(write, new, placement.conversation_id, exchange)?;
            }
            // Nobody can tell what a history that the client brings along quotes: it
            // may have been edited, and its marks with it.
            if !history.is_empty() {
                write.execute(
                    "UPDATE conversations SET has_outside_text = 1 WHERE id = ?",
                    params![placement.conversation_id],
                )?;
            }
            (placement, !history.is_empty())
        }
    };
    write.execute(
        "INSERT INTO retold_conversations
             (conversation_id, user_id, token_id, audience_id, newest)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (conversation_id) DO UPDATE SET newest = ?5",
        params![
            placement.conversation_id,
            replayed.credential.user_id,
            replayed.credential.token_id,
            placement.audience_id,
            match &replayed.chat {
                Some(chat) => mark_of(chat),
                None => sha256(new.message.as_bytes()),
            }
        ],
    )?;
    Ok((placement, has_history))
}

/// What stands in the place of the newest message of a conversation that the client names.
fn mark_of(chat: &str) -> [u8; 32] {
    sha256(format!("\0chat\0{chat}").as_bytes())
}

fn newest(history: &[Exchange]) -> &[Exchange] {
    &history[history.len().saturating_sub(MOST_EXCHANGES)..]
}

/// The credential's conversation that the client names, or else the newest that ends in this
/// history.
fn find(
    connection: &Connection,
    sight: &Sight,
    replayed: &ReplayedHistory,
    history: &[Exchange],
) -> Outcome<Option<(ConversationId, AudienceId)>> {
    let mark = match (&replayed.chat, history.last()) {
        (Some(chat), _) => mark_of(chat),
        (None, Some(last)) => sha256(last.message.as_bytes()),
        (None, None) => return Ok(None),
    };
    let candidates = sight.rows(
        connection,
        CANDIDATES,
        params![
            replayed.credential.user_id,
            mark,
            replayed.credential.token_id
        ],
        MOST_CANDIDATES,
        |row| Ok((row.get("id")?, Belongs::from_row(row)?.audience_id)),
    )?;
    for (candidate, audience_id) in candidates {
        if replayed.chat.is_some() || ends_in(connection, candidate, history)? {
            return Ok(Some((candidate, audience_id)));
        }
    }
    Ok(None)
}

pub(crate) const CANDIDATES: &str = concat!(
    "SELECT ",
    seen_columns!("c"),
    ", c.id FROM retold_conversations r CROSS JOIN conversations c ON c.id = r.conversation_id \
     WHERE r.user_id = ?1 AND r.newest = ?2 AND r.token_id IS ?3 \
         AND r.audience_id = c.audience_id ORDER BY r.conversation_id DESC"
);

pub(crate) const NEWEST_MESSAGES: &str = "SELECT role, content, in_reply_to FROM messages \
     WHERE conversation_id = ?1 AND hidden_with IS NULL ORDER BY id DESC";

/// Whether a conversation equals this history, or ends in it if it is long enough. A reply
/// that the client was told would follow may not be there yet, or stand further down.
fn ends_in(connection: &Connection, id: ConversationId, history: &[Exchange]) -> Outcome<bool> {
    let mut statement = connection.prepare_cached(NEWEST_MESSAGES)?;
    let mut rows = statement.query(params![id])?;
    let mut left = history;
    let mut has_reply = false;
    while let Some(row) = rows.next()? {
        let is_late = row.get_ref(2)? != ValueRef::Null;
        let Some((exchange, earlier)) = left.split_last() else {
            if is_late {
                continue;
            }
            return Ok(history.len() >= ENOUGH_EXCHANGES);
        };
        let content = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        match row.get(0)? {
            Role::Assistant if is_late => {}
            Role::Assistant if !has_reply && is_same_reply(&exchange.reply, content) => {
                has_reply = true;
            }
            Role::User if content == exchange.message && (has_reply || follows(exchange)) => {
                (left, has_reply) = (earlier, false);
            }
            _ => return Ok(false),
        }
    }
    Ok(left.is_empty())
}

fn follows(exchange: &Exchange) -> bool {
    exchange.reply.trim().ends_with(REPLY_FOLLOWS)
}

/// Whether a client's copy of a reply is what is stored of it. A streamed one includes the
/// text before tool calls. One that the client stopped may lack what was written while it
/// hung up, and one may have come later.
fn is_same_reply(copy: &str, stored: &str) -> bool {
    let (copy, stored) = (copy.trim(), stored.trim());
    copy.ends_with(stored)
        || copy.ends_with(REPLY_FOLLOWS)
        || (!copy.is_empty() && stored.starts_with(copy))
}

/// Stores an exchange as a finished turn.
fn store(
    write: &Write<'_>,
    new: &Following<'_>,
    conversation_id: ConversationId,
    exchange: &Exchange,
) -> Outcome<()> {
    let turn_id: TurnId = write.id();
    let insert = |role, content: &str, speaker: Option<&str>| {
        let (content, speaker) = (content.to_owned(), speaker.map(str::to_owned));
        let new = NewMessage::plain(role, content, speaker);
        insert_message(write, conversation_id, turn_id, new)
    };
    let message = insert(Role::User, &exchange.message, new.speaker)?;
    let reply = insert(Role::Assistant, &exchange.reply, None)?;
    write.execute(
        "INSERT INTO turns
             (id, conversation_id, state, channel, message_id, reply_id, created_at, finished_at,
              user_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)",
        params![
            turn_id,
            conversation_id,
            TurnState::Done,
            new.channel,
            message.id,
            reply.id,
            write.now,
            new.owner,
        ],
    )?;
    Ok(())
}

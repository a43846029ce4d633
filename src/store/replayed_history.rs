//! Conversations of clients that send the whole history with every message instead
//! of an id.
//!
//! The chat continues in the conversation that ends in that history. An unknown
//! history (edited, branched or begun elsewhere) becomes a new conversation, so
//! that the model sees what the client shows.

use rusqlite::{Connection, params};

use crate::conversations::{NewConversation, Placement, create};
use crate::failure::Outcome;
use crate::job::Write;
use crate::messages::{NewMessage, PAGE_OF_MESSAGES, Role, insert_message, message_from_row};
use crate::turns::TurnState;
use crate::viewer::{Belongs, Sight, seen_columns};
use base::ids::{AudienceId, ConversationId, TurnId, UserId};
use base::secret::sha256;

/// A history that a client sends instead of a conversation id.
#[derive(Clone, Debug)]
pub struct ReplayedHistory {
    /// The user whose conversations are searched.
    pub user_id: UserId,
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

/// Most conversations that are compared with a history.
const MOST_CANDIDATES: usize = 8;

/// Most exchanges of a history that are compared and stored: the newest.
const MOST_EXCHANGES: usize = 200;

/// A history of this many exchanges may lack the beginning of its conversation:
/// clients drop old messages.
const ENOUGH_EXCHANGES: usize = 4;

/// The conversation that a new message continues.
pub(crate) fn place<'a>(
    write: &Write<'_>,
    sight: &Sight,
    replayed: &'a ReplayedHistory,
    mut new: NewConversation<'a>,
    speaker: Option<&str>,
) -> Outcome<Placement> {
    let message = new.message;
    let history = newest(&replayed.history);
    let placement = match find(write.connection, sight, replayed, history)? {
        Some((conversation_id, audience_id)) => Placement {
            conversation_id,
            external_name: None,
            audience_id,
            surface: None,
            model: None,
            instructions: None,
        },
        None => {
            if let Some(first) = replayed.history.first() {
                new.message = &first.message;
            }
            let (channel, owner) = (new.channel, new.owner);
            let placement = create(write, new)?;
            for exchange in history {
                let conversation_id = placement.conversation_id;
                store(write, channel, owner, speaker, conversation_id, exchange)?;
            }
            // Nobody can tell what a history that the client brings along quotes: it
            // may have been edited, and its marks with it.
            if !history.is_empty() {
                write.execute(
                    "UPDATE conversations SET has_outside_text = 1 WHERE id = ?",
                    params![placement.conversation_id],
                )?;
            }
            placement
        }
    };
    write.execute(
        "INSERT INTO retold_conversations (conversation_id, user_id, newest)
         VALUES (?1, ?2, ?3)
         ON CONFLICT (conversation_id) DO UPDATE SET newest = ?3",
        params![
            placement.conversation_id,
            replayed.user_id,
            match &replayed.chat {
                Some(chat) => mark_of(chat),
                None => sha256(message.as_bytes()),
            }
        ],
    )?;
    Ok(placement)
}

/// What stands in the place of the newest message of a conversation that the client names.
fn mark_of(chat: &str) -> [u8; 32] {
    sha256(format!("\0chat\0{chat}").as_bytes())
}

fn newest(history: &[Exchange]) -> &[Exchange] {
    &history[history.len().saturating_sub(MOST_EXCHANGES)..]
}

/// The user's conversation that the client names, or else the newest that ends in this
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
        params![replayed.user_id, mark],
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
     WHERE r.user_id = ?1 AND r.newest = ?2 ORDER BY r.conversation_id DESC"
);

/// Whether a conversation equals this history, or ends in it if it is long enough.
fn ends_in(connection: &Connection, id: ConversationId, history: &[Exchange]) -> Outcome<bool> {
    let mut statement = connection.prepare_cached(PAGE_OF_MESSAGES)?;
    let most = 2 * history.len() as i64 + 1;
    let mut rows = statement.query(params![id, i64::MAX, most])?;
    for exchange in history.iter().rev() {
        for role in [Role::Assistant, Role::User] {
            let Some(row) = rows.next()? else {
                return Ok(false);
            };
            let stored = message_from_row(connection, row, 0)?;
            let is_same = stored.role == role
                && match role {
                    Role::User => stored.content == exchange.message,
                    Role::Assistant => is_same_reply(&exchange.reply, &stored.content),
                };
            if !is_same {
                return Ok(false);
            }
        }
    }
    Ok(history.len() >= ENOUGH_EXCHANGES || rows.next()?.is_none())
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
    channel: &str,
    owner: Option<UserId>,
    speaker: Option<&str>,
    conversation_id: ConversationId,
    exchange: &Exchange,
) -> Outcome<()> {
    let turn_id: TurnId = write.id();
    let insert = |role, content: &str, speaker: Option<&str>| {
        let (content, speaker) = (content.to_owned(), speaker.map(str::to_owned));
        let new = NewMessage::plain(role, content, speaker);
        insert_message(write, conversation_id, turn_id, new)
    };
    let message = insert(Role::User, &exchange.message, speaker)?;
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
            channel,
            message.id,
            reply.id,
            write.now,
            owner,
        ],
    )?;
    Ok(())
}

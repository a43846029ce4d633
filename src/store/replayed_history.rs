//! Conversations with clients that name none and send their whole history with
//! every message.
//!
//! Such a client's chat goes on in the conversation that ends in the history it
//! sends. One that is not known (edited, branched off, or begun elsewhere) is
//! stored as a new conversation, so that the model sees what the client shows.

use rusqlite::{Connection, params};

use super::conversations::{Place, create, insert_message, message_from_row};
use super::failure::Outcome;
use super::*;
use base::ids::{ConversationId, TurnId};
use base::secret::sha256;

/// Most conversations that are compared with a history.
const MOST_CANDIDATES: i64 = 8;
/// Most exchanges of a history that are compared, and stored; the newest ones.
const MOST_EXCHANGES: usize = 200;
/// Exchanges from which on a history that leaves out the conversation's
/// beginning is still taken for it: clients cut old messages off.
const ENOUGH_EXCHANGES: usize = 4;

/// The conversation that a new message goes on with.
pub(super) fn place(
    write: &Write<'_>,
    new: &NewTurn,
    replayed_history: &ReplayedHistory,
) -> Outcome<Place> {
    let history = newest(&replayed_history.history);
    let place = match find(write.connection, replayed_history, history)? {
        Some(conversation_id) => Place {
            conversation_id,
            external_name: None,
        },
        None => {
            let title_of = replayed_history
                .history
                .first()
                .map(|first| first.message.as_str());
            let place = create(write, new, title_of, None, None)?;
            for exchange in history {
                store(write, new, place.conversation_id, exchange)?;
            }
            place
        }
    };
    write.execute(
        "INSERT INTO retold_conversations (conversation_id, user_id, newest)
         VALUES (?1, ?2, ?3)
         ON CONFLICT (conversation_id) DO UPDATE SET newest = ?3",
        params![
            place.conversation_id,
            replayed_history.user_id,
            sha256(new.message.as_bytes())
        ],
    )?;
    Ok(place)
}

fn newest(history: &[Exchange]) -> &[Exchange] {
    &history[history.len().saturating_sub(MOST_EXCHANGES)..]
}

/// The user's newest conversation that ends in this history.
fn find(
    connection: &Connection,
    replayed_history: &ReplayedHistory,
    history: &[Exchange],
) -> Outcome<Option<ConversationId>> {
    let Some(last) = history.last() else {
        return Ok(None);
    };
    let candidates: Vec<ConversationId> = rows(
        connection,
        CANDIDATES,
        params![
            replayed_history.user_id,
            sha256(last.message.as_bytes()),
            MOST_CANDIDATES
        ],
        |row| row.get(0),
    )?;
    for candidate in candidates {
        if ends_in(connection, candidate, history)? {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

pub(super) const CANDIDATES: &str = "SELECT conversation_id FROM retold_conversations \
     WHERE user_id = ?1 AND newest = ?2 ORDER BY conversation_id DESC LIMIT ?3";

/// Whether a conversation is this history, or ends in it if it is long enough.
fn ends_in(connection: &Connection, id: ConversationId, history: &[Exchange]) -> Outcome<bool> {
    let mut statement = connection.prepare_cached(conversations::PAGE_OF_MESSAGES)?;
    let most = 2 * history.len() as i64 + 1;
    let mut rows = statement.query(params![id, i64::MAX, most])?;
    for exchange in history.iter().rev() {
        for role in [Role::Assistant, Role::User] {
            let Some(row) = rows.next()? else {
                return Ok(false);
            };
            let stored = message_from_row(row)?;
            let is_same = stored.role == role
                && match role {
                    Role::User => stored.content == exchange.message,
                    // A streamed reply holds what was said before tools ran.
                    Role::Assistant => exchange.reply.trim_end().ends_with(stored.content.trim()),
                };
            if !is_same {
                return Ok(false);
            }
        }
    }
    Ok(history.len() >= ENOUGH_EXCHANGES || rows.next()?.is_none())
}

/// Stores what was said elsewhere as a turn that is over.
fn store(
    write: &Write<'_>,
    new: &NewTurn,
    conversation_id: ConversationId,
    exchange: &Exchange,
) -> Outcome<()> {
    let turn_id: TurnId = write.id();
    let insert = |role, content: &String, speaker: Option<String>| {
        insert_message(
            write,
            conversation_id,
            turn_id,
            role,
            content.clone(),
            speaker,
        )
    };
    let message = insert(Role::User, &exchange.message, new.speaker.clone())?;
    let reply = insert(Role::Assistant, &exchange.reply, None)?;
    write.execute(
        "INSERT INTO turns
             (id, conversation_id, state, channel, account, message_id, reply_id, created_at,
              finished_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)",
        params![
            turn_id,
            conversation_id,
            TurnState::Done,
            new.channel,
            new.account,
            message.id,
            reply.id,
            write.now,
        ],
    )?;
    Ok(())
}

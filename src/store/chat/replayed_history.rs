//! Conversations of clients that send the whole history with every message instead
//! of an id.
//!
//! The chat continues in the conversation that ends in that history. An unknown
//! history (edited, branched or begun elsewhere) becomes a new conversation, so
//! that the model sees what the client shows.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use crate::chat::conversations::{self, Placement};
use crate::chat::messages::{NewMessage, Role, insert_message};
use crate::chat::steps::{self, Step};
use crate::chat::turn_end;
use crate::chat::turns::{self, Turn, TurnState};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::keep::idempotency::{self, IdempotencyKey};
use crate::people::tokens::Credential;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, select_seen};
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
    /// The request that brings it, by which it is known if it comes again.
    pub request: Option<IdempotencyKey>,
    /// The calls of the client's own tools since the message, and their results.
    pub steps: Vec<Step>,
    /// Instructions for this turn, in addition to the system prompt.
    pub instructions: Option<String>,
}

/// A message and its reply, as the client sends them.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The message.
    pub message: String,
    /// The calls of the client's own tools before the reply, and their results.
    pub steps: Vec<Step>,
    /// The reply; empty only where there are steps.
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
    pub fn conversation_replayed(
        &self,
        replayed: &ReplayedHistory,
    ) -> Result<Option<ConversationId>> {
        let found = find(&self.sight, replayed, newest(&replayed.history))?;
        Ok(found.map(|(conversation_id, _)| conversation_id))
    }
}

/// The conversation that a new message continues, and whether its history was stored.
/// `create` makes one that begins with this message.
pub(crate) fn place(
    write: &Write<'_>,
    sight: &Sight<'_>,
    replayed: &ReplayedHistory,
    new: &Following<'_>,
    create: impl FnOnce(&str) -> Outcome<Placement>,
) -> Outcome<(Placement, bool)> {
    let history = newest(&replayed.history);
    let (placement, has_history) = match find(sight, replayed, history)? {
        Some((conversation_id, audience_id)) => {
            if let Some(last) = history.last() {
                take_results(write, sight, conversation_id, &last.message, &last.steps)?;
            }
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
                conversations::note_outside_text(write, placement.conversation_id)?;
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

/// The ended turn that was to get these results of its client's calls: it continues with them.
pub(crate) fn waiting(
    write: &Write<'_>,
    sight: &Sight<'_>,
    replayed: &ReplayedHistory,
    message: &str,
) -> Outcome<Option<Turn>> {
    if replayed.steps.is_empty() {
        return Ok(None);
    }
    let mut history = newest(&replayed.history).to_vec();
    history.push(Exchange {
        message: message.to_owned(),
        steps: replayed.steps.clone(),
        reply: String::new(),
    });
    let Some((conversation, _)) = find(sight, replayed, &history)? else {
        return Ok(None);
    };
    let taken = take_results(write, sight, conversation, message, &replayed.steps)?;
    let Some(mut turn) = taken else {
        return Ok(None);
    };
    if let Some(request) = &replayed.request {
        idempotency::note(write, request, turn.id)?;
    }
    turn_end::reopen(write, &mut turn)?;
    Ok(Some(turn))
}

/// Adds the results of the last calls among `steps` to the newest turn of a conversation, if it
/// answers this message, has ended, and its client had not returned them.
fn take_results(
    write: &Write<'_>,
    sight: &Sight<'_>,
    conversation: ConversationId,
    message: &str,
    steps: &[Step],
) -> Outcome<Option<Turn>> {
    let parameters = params![conversation, message];
    let newest: Option<Option<TurnId>> = write.value(NEWEST_TURN, parameters)?;
    let Some(id) = newest.flatten() else {
        return Ok(None);
    };
    let turn = turns::find(sight, id)?;
    if !turn.state.is_final() {
        return Ok(None);
    }
    let known = steps::of_turn(write, id)?.into_iter().map(|(_, step)| step);
    let known: Vec<Step> = known.collect();
    let open = steps::open_calls(&known);
    let (returned, results) = steps::last_round(steps);
    let has_ids = returned
        .iter()
        .all(|one| open.iter().any(|call| call.id == one.id));
    let are_alike = || {
        returned
            .iter()
            .zip(&open)
            .all(|(one, call)| one.tool == call.tool)
    };
    if open.is_empty() || open.len() != returned.len() || !(has_ids || are_alike()) {
        return Ok(None);
    }
    let taken = open.iter().zip(returned).filter_map(|(call, returned)| {
        let id = if has_ids { &call.id } else { &returned.id };
        let is_its = |step: &&Step| matches!(step, Step::Result { call_id, .. } if call_id == id);
        let mut result = results.iter().find(is_its)?.clone();
        if let Step::Result { call_id, .. } = &mut result {
            call_id.clone_from(&call.id);
        }
        Some(result)
    });
    steps::insert_steps(write, id, taken.collect(), false)?;
    write.rewrites();
    conversations::note_outside_text(write, conversation)?;
    Ok(Some(turn))
}

/// The mark of a conversation that the client names; others are found by their newest message.
fn mark_of(chat: &str) -> [u8; 32] {
    sha256(format!("\0chat\0{chat}").as_bytes())
}

fn newest(history: &[Exchange]) -> &[Exchange] {
    &history[history.len().saturating_sub(MOST_EXCHANGES)..]
}

/// The credential's conversation that the client names, or else the newest that ends in this
/// history.
fn find(
    sight: &Sight<'_>,
    replayed: &ReplayedHistory,
    history: &[Exchange],
) -> Outcome<Option<(ConversationId, AudienceId)>> {
    let mark = match (&replayed.chat, history.last()) {
        (Some(chat), _) => mark_of(chat),
        (None, Some(last)) => sha256(last.message.as_bytes()),
        (None, None) => return Ok(None),
    };
    let candidates = sight.seen_rows(
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
        if replayed.chat.is_some() || ends_in(sight.connection(), candidate, history)? {
            return Ok(Some((candidate, audience_id)));
        }
    }
    Ok(None)
}

pub(crate) const CANDIDATES: &str = select_seen!(
    "c",
    "c.id FROM retold_conversations r CROSS JOIN conversations c ON c.id = r.conversation_id \
     WHERE r.user_id = ?1 AND r.newest = ?2 AND r.token_id IS ?3 \
         AND r.audience_id = c.audience_id ORDER BY r.conversation_id DESC"
);

/// The newest turn of a conversation, if it answers this message.
pub(crate) const NEWEST_TURN: &str = "SELECT iif(m.content = ?2, t.id, NULL) \
     FROM turns t INDEXED BY turns_by_conversation CROSS JOIN messages m ON m.id = t.message_id \
     WHERE t.conversation_id = ?1 ORDER BY t.id DESC LIMIT 1";

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
            Role::Assistant if is_late && exchange.reply.is_empty() => {}
            Role::Assistant if !has_reply && is_same_reply(&exchange.reply, content) => {
                has_reply = true;
            }
            Role::Assistant if is_late => {}
            Role::User if content == exchange.message && (has_reply || follows(exchange)) => {
                (left, has_reply) = (earlier, false);
            }
            _ => return Ok(false),
        }
    }
    Ok(left.is_empty())
}

fn follows(exchange: &Exchange) -> bool {
    exchange.reply.is_empty() || exchange.reply.trim().ends_with(REPLY_FOLLOWS)
}

/// Whether a client's copy of a reply is what is stored of it. A streamed one includes the
/// text before tool calls. One that the client stopped may lack what was written while it
/// hung up, and one may have come later.
fn is_same_reply(copy: &str, stored: &str) -> bool {
    let (copy, stored) = (copy.trim(), stored.trim());
    // A client that ends with its own tools' results has no reply.
    copy.is_empty()
        || copy.ends_with(stored)
        || copy.ends_with(REPLY_FOLLOWS)
        || stored.starts_with(copy)
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
    write.insert(
        "turns",
        &[
            ("id", &turn_id),
            ("conversation_id", &conversation_id),
            ("state", &TurnState::Done),
            ("channel", &new.channel),
            ("message_id", &message.id),
            ("reply_id", &reply.id),
            ("created_at", &write.now),
            ("finished_at", &write.now),
            ("user_id", &new.owner),
        ],
    )?;
    steps::insert_steps(write, turn_id, exchange.steps.clone(), false)
}

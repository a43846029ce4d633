//! Beginning a turn: the message, its conversation and the turn in one commit.

use rusqlite::params;

use crate::conversations::{self, Placement};
use crate::database::Store;
use crate::durability::{Durable, Provisional};
use crate::failure::{Outcome, unwritable};
use crate::idempotency::{self, IdempotencyKey};
use crate::job::Write;
use crate::messages::{Message, Role, insert_message};
use crate::query::{find, row};
use crate::replayed_history::{self, ReplayedHistory};
use crate::turns::{self, Turn, TurnState};
use crate::usage::Usage;
use base::error::Result;
use base::ids::{ConversationId, TurnId};

/// Where a new message goes.
#[derive(Clone, Debug)]
pub enum Target {
    /// A conversation that must exist.
    Existing(ConversationId),
    /// A new conversation.
    New,
    /// The conversation of this name of a webhook account; created on first use.
    Named {
        /// The webhook account. Names are unique within an account.
        account: String,
        /// The caller's name, 1 to 128 characters.
        name: String,
    },
    /// The conversation that ends in the history that a client sends; if there is
    /// none, a new one with that history.
    ReplayedHistory(ReplayedHistory),
}

/// A message to store and a turn to begin.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// The conversation.
    pub target: Target,
    /// Where it comes from, as [`Conversation::channel`](crate::Conversation::channel).
    pub channel: String,
    /// The webhook account that gets the reply.
    pub account: Option<String>,
    /// The text.
    pub message: String,
    /// Who wrote it, if known.
    pub speaker: Option<String>,
    /// Present when the request carries a key.
    pub idempotency: Option<IdempotencyKey>,
}

/// The outcome of [`Store::begin_turn`](crate::Store::begin_turn).
#[derive(Clone, Debug)]
pub enum Begun {
    /// It was stored.
    New {
        /// The new turn, queued.
        turn: Turn,
        /// The stored message.
        message: Message,
    },
    /// The idempotency key was used before, for this turn.
    Repeat(Turn),
}

impl Begun {
    /// The turn, new or earlier.
    pub fn turn(&self) -> &Turn {
        match self {
            Begun::New { turn, .. } | Begun::Repeat(turn) => turn,
        }
    }
}

impl Store {
    /// Stores a message and begins its turn, in one commit.
    ///
    /// # Errors
    /// `not_found` for the conversation; `invalid_request` with HTTP 422 when the
    /// idempotency key was used for another request.
    pub fn begin_turn(&self, new: NewTurn) -> Result<Durable<Begun>> {
        self.durable_write(|write| begin(write, new))
    }

    /// Like [`Store::begin_turn`], but returns before the commit, which follows
    /// within 5 ms. For callers that acknowledge nothing yet. Until then reads do
    /// not see the turn, and if the commit fails, its next write is `not_found`.
    ///
    /// # Errors
    /// As [`Store::begin_turn`]; and `server_error` 503 while the database cannot be
    /// written: the turn would ask the model, and then be lost.
    pub fn begin_turn_deferred(&self, new: NewTurn) -> Result<Provisional<Begun>> {
        if !self.is_writable() {
            return Err(unwritable());
        }
        self.deferred_write(|write| begin(write, new))
    }
}

pub(crate) fn begin(write: &Write<'_>, new: NewTurn) -> Outcome<Begun> {
    if let Some(key) = &new.idempotency
        && let Some(earlier) = idempotency::earlier_turn(write, key)?
    {
        return Ok(Begun::Repeat(turns::find(write.connection, earlier)?));
    }
    let placement = place(write, &new)?;
    let instructions = match new.target {
        Target::ReplayedHistory(replayed_history) => replayed_history.instructions,
        _ => None,
    };
    let turn_id: TurnId = write.id();
    let message = insert_message(
        write,
        placement.conversation_id,
        turn_id,
        Role::User,
        new.message,
        new.speaker,
        None,
    )?;
    let turn = Turn {
        id: turn_id,
        conversation_id: placement.conversation_id,
        state: TurnState::Queued,
        channel: new.channel,
        account: new.account,
        external_name: placement.external_name,
        message_id: message.id,
        reply_id: None,
        error: None,
        said: None,
        created_at: write.now,
        started_at: None,
        model: None,
        usage: Usage::default(),
        instructions,
    };
    write.execute(
        "INSERT INTO turns
             (id, conversation_id, state, channel, account, message_id, created_at, instructions)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            turn.id,
            turn.conversation_id,
            turn.state,
            turn.channel,
            turn.account,
            turn.message_id,
            turn.created_at,
            turn.instructions,
        ],
    )?;
    if let Some(key) = &new.idempotency {
        idempotency::note(write, key, turn.id)?;
    }
    Ok(Begun::New { turn, message })
}

/// The conversation of a new message; created if the target says so.
fn place(write: &Write<'_>, new: &NewTurn) -> Outcome<Placement> {
    match &new.target {
        Target::Existing(id) => {
            let external_name = "SELECT external_name FROM conversations WHERE id = ?";
            find(
                write.connection,
                "conversation",
                external_name,
                *id,
                |row| {
                    Ok(Placement {
                        conversation_id: *id,
                        external_name: row.get(0)?,
                    })
                },
            )
        }
        Target::New => conversations::create(
            write,
            &new.channel,
            &new.message,
            new.account.as_deref(),
            None,
        ),
        Target::ReplayedHistory(replayed_history) => {
            let speaker = new.speaker.as_deref();
            replayed_history::place(write, replayed_history, &new.channel, &new.message, speaker)
        }
        Target::Named { account, name } => {
            let known = row(
                write.connection,
                conversations::CONVERSATION_NAMED,
                params![account, name],
                |row| row.get(0),
            )?;
            match known {
                Some(conversation_id) => Ok(Placement {
                    conversation_id,
                    external_name: Some(name.clone()),
                }),
                None => conversations::create(
                    write,
                    &new.channel,
                    &new.message,
                    Some(account),
                    Some(name),
                ),
            }
        }
    }
}

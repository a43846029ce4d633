//! Turns: a durable state machine.

use rusqlite::{Connection, Row, params};

use crate::approvals::{self, Approval, NewApproval};
use crate::database::Store;
use crate::deliveries::{self, Delivery, NewDelivery};
use crate::failure::Outcome;
use crate::job::Write;
use crate::messages::{Message, Role, insert_message};
use crate::query::{row, rows};
use crate::steps::{Step, insert_steps};
use crate::usage::{self, Usage};
use crate::words::words;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ConversationId, MessageId, TurnId};

/// Most unfinished turns that a start goes on with: far more than may wait.
const MOST_UNFINISHED: i64 = 100_000;

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnState {
    /// Waits for a worker, or for an earlier turn of its conversation.
    Queued,
    /// A worker is at it, or was when the server stopped.
    Running,
    /// Put away until the owner has decided about its tool calls.
    WaitingApproval,
    /// It has its reply.
    Done,
    /// It ended with an error.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

words! { TurnState {
    Queued: "queued",
    Running: "running",
    WaitingApproval: "waiting_approval",
    Done: "done",
    Failed: "failed",
    Cancelled: "cancelled",
} }

impl TurnState {
    /// Whether nothing more will happen to it.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            TurnState::Done | TurnState::Failed | TurnState::Cancelled
        )
    }
}

/// One turn: a person's message and all that leads to its reply.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Rises with the time of the message; orders the turns of a conversation.
    pub id: TurnId,
    /// Where the message was said.
    pub conversation_id: ConversationId,
    /// Durable: what it says after a crash is where the turn goes on.
    pub state: TurnState,
    /// Where the message came from, as [`Conversation::channel`](super::Conversation::channel).
    pub channel: String,
    /// The webhook account that gets the reply.
    pub account: Option<String>,
    /// The caller's own name of the conversation, repeated in the callback.
    pub external_name: Option<String>,
    /// The message that it answers.
    pub message_id: MessageId,
    /// The reply, once done.
    pub reply_id: Option<MessageId>,
    /// Why it failed.
    pub error: Option<Error>,
    /// When the message was accepted.
    pub created_at: Timestamp,
    /// When a worker first took it: its deadline counts from here.
    pub started_at: Option<Timestamp>,
    /// The model that answered last, or was asked in vain; absent before the first end.
    pub model: Option<String>,
    /// Tokens used so far.
    pub usage: Usage,
    /// What the model is to keep to in this turn, beside the system prompt.
    pub instructions: Option<String>,
}

/// How a turn ends.
#[derive(Clone, Debug)]
pub enum TurnEnd {
    /// With a reply.
    Done {
        /// The model's last words.
        reply: String,
    },
    /// Without one.
    Failed(Error),
    /// A person stopped it.
    Cancelled,
}

/// What the commit of a turn's end made.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The turn in its final state.
    pub turn: Turn,
    /// The stored reply, when there is one.
    pub reply: Option<Message>,
    /// The callback to send, when a webhook account asked.
    pub delivery: Option<Delivery>,
}

impl Store {
    /// A turn.
    ///
    /// # Errors
    /// `not_found`.
    pub fn turn(&self, id: TurnId) -> Result<Turn> {
        self.read(|connection| find(connection, id))
    }

    /// All turns that are not at their end, in order: what a start goes on with.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn unfinished_turns(&self) -> Result<Vec<Turn>> {
        // Once, at the start: on the connection that is there.
        self.deferred_commit(|write| {
            rows(
                write.connection,
                UNFINISHED_TURNS,
                params![MOST_UNFINISHED],
                from_row,
            )
        })
    }

    /// Notes that a worker has taken the turn. Does not wait; reaches the disk
    /// as [`Store::begin_turn_deferred`]. Keeps the first `started_at`.
    pub fn mark_running(&self, id: TurnId, at: Timestamp) {
        self.post(move |write| {
            write.execute(
                "UPDATE turns SET state = 'running', started_at = ifnull(started_at, ?2)
                 WHERE id = ?1 AND state IN ('queued', 'running')",
                params![id, at],
            )?;
            Ok(())
        });
    }

    /// Ends the turn: state, reply message, usage (under `model`, by day) and
    /// delivery in one commit. Undecided approvals of it become `expired`.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or already at its end.
    pub fn finish_turn(
        &self,
        id: TurnId,
        end: TurnEnd,
        usage: Usage,
        model: &str,
        delivery: Option<NewDelivery>,
    ) -> Result<Finished> {
        let model = model.to_owned();
        self.write(move |write| {
            let mut turn = find_unfinished(write, id)?;
            let reply = end_turn(write, &mut turn, end)?;
            approvals::expire_undecided(write, id)?;
            usage::add(write, id, usage, &model, 1)?;
            let delivery = delivery
                .map(|delivery| deliveries::insert(write, id, turn.conversation_id, delivery))
                .transpose()?;
            Ok(Finished {
                turn,
                reply,
                delivery,
            })
        })
    }

    /// Appends steps, in one commit, and returns when they are on disk.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or already at its end.
    pub fn record_steps(&self, id: TurnId, steps: Vec<Step>) -> Result<()> {
        self.write(move |write| {
            find_unfinished(write, id)?;
            insert_steps(write, id, &steps)
        })
    }

    /// Puts the turn away until its approvals are decided: steps, approvals and
    /// state `waiting_approval` in one commit.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or already at its end;
    /// `invalid_request` without approvals, for nothing would wake the turn.
    pub fn suspend_turn(
        &self,
        id: TurnId,
        steps: Vec<Step>,
        approvals: Vec<NewApproval>,
        expires_at: Timestamp,
    ) -> Result<Vec<Approval>> {
        self.write(move |write| {
            let turn = find_unfinished(write, id)?;
            if approvals.is_empty() {
                return Err(Error::invalid_request(format!(
                    "the turn {id} has no approval to wait for"
                ))
                .into());
            }
            insert_steps(write, id, &steps)?;
            write.execute(
                "UPDATE turns SET state = 'waiting_approval' WHERE id = ?",
                params![id],
            )?;
            approvals
                .into_iter()
                .map(|new| approvals::insert(write, id, turn.conversation_id, new, expires_at))
                .collect()
        })
    }
}

pub(crate) const FIND_TURN: &str = "SELECT t.*, c.external_name FROM turns t \
     CROSS JOIN conversations c ON c.id = t.conversation_id WHERE t.id = ?";

/// Without the hint SQLite reads all turns ever, because they lie in order.
pub(crate) const UNFINISHED_TURNS: &str = "SELECT t.*, c.external_name \
     FROM turns t INDEXED BY turns_unfinished \
     CROSS JOIN conversations c ON c.id = t.conversation_id \
     WHERE t.finished_at IS NULL ORDER BY t.id LIMIT ?";

pub(crate) const UNFINISHED_BY_STATE: &str = "SELECT state, count(*) \
     FROM turns INDEXED BY turns_unfinished WHERE finished_at IS NULL GROUP BY state";

pub(crate) fn find(connection: &Connection, id: TurnId) -> Outcome<Turn> {
    row(connection, FIND_TURN, params![id], from_row)?
        .ok_or_else(|| Error::not_found(format!("there is no turn {id}")).into())
}

/// The turn, if it may still be written to.
fn find_unfinished(write: &Write<'_>, id: TurnId) -> Outcome<Turn> {
    let turn = find(write.connection, id)?;
    if turn.state.is_final() {
        return Err(Error::not_found(format!(
            "the turn {id} is at its end already: {}",
            turn.state.as_str()
        ))
        .into());
    }
    Ok(turn)
}

/// Puts the turn at its end, and its reply into the conversation.
fn end_turn(write: &Write<'_>, turn: &mut Turn, end: TurnEnd) -> Outcome<Option<Message>> {
    let mut reply = None;
    turn.state = match end {
        TurnEnd::Done { reply: content } => {
            reply = Some(insert_message(
                write,
                turn.conversation_id,
                turn.id,
                Role::Assistant,
                content,
                None,
            )?);
            TurnState::Done
        }
        TurnEnd::Failed(error) => {
            turn.error = Some(error);
            TurnState::Failed
        }
        TurnEnd::Cancelled => TurnState::Cancelled,
    };
    turn.reply_id = reply.as_ref().map(|reply| reply.id);
    let error = turn.error.as_ref();
    write.execute(
        "UPDATE turns
         SET state = ?2, reply_id = ?3, error_code = ?4, error_message = ?5,
             error_status = ?6, error_retry_after = ?7, finished_at = ?8
         WHERE id = ?1",
        params![
            turn.id,
            turn.state,
            turn.reply_id,
            error.map(Error::code),
            error.map(Error::message),
            error.map(Error::status),
            error.and_then(Error::retry_after),
            write.now,
        ],
    )?;
    Ok(reply)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Turn> {
    Ok(Turn {
        id: row.get("id")?,
        conversation_id: row.get("conversation_id")?,
        state: row.get("state")?,
        channel: row.get("channel")?,
        account: row.get("account")?,
        external_name: row.get("external_name")?,
        message_id: row.get("message_id")?,
        reply_id: row.get("reply_id")?,
        error: error_from_row(row)?,
        created_at: row.get("created_at")?,
        started_at: row.get("started_at")?,
        model: row.get("model")?,
        usage: usage::usage_from_row(row, ["input_tokens", "output_tokens", "cached_tokens"])?,
        instructions: row.get("instructions")?,
    })
}

fn error_from_row(row: &Row<'_>) -> rusqlite::Result<Option<Error>> {
    let Some(code) = row.get("error_code")? else {
        return Ok(None);
    };
    let error = Error::new(code, row.get::<_, String>("error_message")?)
        .with_status(row.get("error_status")?);
    Ok(Some(match row.get("error_retry_after")? {
        Some(seconds) => error.with_retry_after(seconds),
        None => error,
    }))
}

//! Turns: a durable state machine. After a crash each continues from its last step.

use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use crate::chat::approvals::{self, Approval, NewApproval};
use crate::chat::steps::{Step, insert_steps};
use crate::engine::database::Store;
use crate::engine::durability::{Durable, Provisional};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, words};
use crate::files::{self, IncludedFile, UploadLimits};
use crate::keep::usage::{self, Usage};
use crate::people::tokens;
use crate::sight::askers;
use crate::sight::audience::{self, Readers};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{SEEN_COLUMNS, Sight, select_seen};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, MessageId, ScheduleId, TurnId, UserId};
use base::language::Said;
use base::reply::Surface;
use protocol::record::Attachment;

/// Most unfinished turns that are read at the start: far more than may queue.
const MOST_UNFINISHED: i64 = 100_000;

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnState {
    /// Waits for a worker, or for an earlier turn of its conversation.
    Queued,
    /// A worker runs it, or did when the server stopped.
    Running,
    /// Suspended until its approvals are decided.
    WaitingApproval,
    /// It has a reply.
    Done,
    /// It ended with an error.
    Failed,
    /// A person stopped it.
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
    /// Whether it is the last state.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            TurnState::Done | TurnState::Failed | TurnState::Cancelled
        )
    }
}

/// A turn: a message and the work that produces its reply.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Rises with the time of the message; orders the turns of a conversation.
    pub id: TurnId,
    /// The conversation of the message.
    pub conversation_id: ConversationId,
    /// Durable: where the turn continues after a crash.
    pub state: TurnState,
    /// Where the message came from, as [`Conversation::channel`](crate::Conversation::channel).
    pub channel: String,
    /// Who asked; absent for a webhook account, and for an import.
    pub user_id: Option<UserId>,
    /// Its only tools; absent for all that the asker may have.
    pub tools: Option<Arc<[String]>>,
    /// Who saw its conversation when this was read.
    pub readers: Readers,
    /// The same audience, to be compared.
    pub audience_id: AudienceId,
    /// Where the replies of its conversation are read, if known.
    pub surface: Option<Surface>,
    /// The webhook account that gets the reply.
    pub account: Option<String>,
    /// The caller's name for the conversation, repeated in the callback.
    pub external_name: Option<String>,
    /// The message that it answers.
    pub message_id: MessageId,
    /// The reply, once done.
    pub reply_id: Option<MessageId>,
    /// Why it failed.
    pub error: Option<Error>,
    /// What the model had written when it was cancelled by an older version, which stored
    /// no message for it.
    pub said: Option<String>,
    /// When the message was accepted.
    pub created_at: Timestamp,
    /// When a worker first ran it: its deadline counts from here.
    pub started_at: Option<Timestamp>,
    /// The model to ask, if not the one of the configuration: chosen for the turn or for its
    /// conversation.
    pub wanted_model: Option<String>,
    /// The model that was asked last; absent before the first usage.
    pub model: Option<String>,
    /// Tokens used so far.
    pub usage: Usage,
    /// Instructions for this turn or its conversation, in addition to the system prompt.
    pub instructions: Option<String>,
    /// The schedule that began it, which may be gone.
    pub schedule_id: Option<ScheduleId>,
    /// Whether a model wrote the message, and no person.
    pub is_composed: bool,
    /// Whether a token asked that sees and makes only what is the household's.
    pub is_household_only: bool,
}

/// A tool call whose start is stored.
#[derive(Clone, Debug)]
pub struct StartedCall {
    /// The [`ToolCall::id`](crate::ToolCall::id).
    pub call_id: String,
}

impl Snapshot<'_> {
    /// A turn.
    ///
    /// # Errors
    /// `not_found`.
    pub fn turn(&self, id: TurnId) -> Result<Durable<Turn>> {
        self.durable(|sight| find(sight, id))
    }
}

impl Store {
    /// All unfinished turns, in order: the server resumes them at its start.
    pub fn unfinished_turns(&self) -> Result<Provisional<Vec<Turn>>> {
        self.look(|connection| {
            connection.rows(UNFINISHED_TURNS, params![MOST_UNFINISHED], |row| {
                from_row(connection, row)
            })
        })
    }

    /// Marks a turn as running. Does not wait: a deferred commit, as of
    /// [`Store::begin_turn_deferred`]. Keeps the first `started_at`.
    pub fn mark_running(&self, id: TurnId, at: Timestamp) {
        self.post(move |write| {
            write.adds_to_the_end();
            write.run(
                "UPDATE turns SET state = 'running', started_at = ifnull(started_at, ?2)
                 WHERE id = ?1 AND state IN ('queued', 'running')",
                params![id, at],
            )
        });
    }

    /// Appends steps, in one commit. What tools found for the readers of the
    /// conversation, they found for the audience `found_for`: it is left out if the
    /// conversation has been shared with more people since.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or has ended, and when whoever asked does not see
    /// the conversation any longer.
    pub fn record_steps(&self, id: TurnId, steps: Vec<Step>, found_for: AudienceId) -> Result<()> {
        self.write(move |write| record(write, id, steps, found_for))
    }

    /// [`Store::record_steps`] that returns before the commit, which follows within 5 ms: for
    /// steps that nothing outside depends on.
    ///
    /// # Errors
    /// As of [`Store::record_steps`].
    pub fn record_steps_deferred(
        &self,
        id: TurnId,
        steps: Vec<Step>,
        found_for: AudienceId,
    ) -> Result<Provisional<()>> {
        self.deferred_write(move |write| record(write, id, steps, found_for))
    }

    /// Appends steps, as [`Store::record_steps`], and the start of a tool call, in one
    /// commit: a tool with an effect may run after it. `user` is the person who asks, if
    /// it is one.
    ///
    /// # Errors
    /// As of [`Store::record_steps`]; `unauthorized` where the person has been removed, or
    /// made a guest.
    pub fn start_call(
        &self,
        id: TurnId,
        user: Option<UserId>,
        mut steps: Vec<Step>,
        found_for: AudienceId,
        call_id: String,
    ) -> Result<Durable<StartedCall>> {
        self.durable_write(move |write| {
            write.adds_to_the_end();
            let turn = find_running(write, id)?;
            askers::check_causes(write.connection, user)?;
            steps.push(Step::Started {
                call_id: call_id.clone(),
            });
            append(write, &turn, steps, found_for)?;
            Ok(StartedCall { call_id })
        })
    }

    /// Keeps what a tool brought in a running turn. It is seen as the conversation is.
    ///
    /// # Errors
    /// As of [`Store::record_steps`]; `invalid_request` 413 for a file that is too large,
    /// `server_error` 507 without space.
    pub fn keep_brought(
        &self,
        id: TurnId,
        files: Vec<IncludedFile>,
        limits: UploadLimits,
    ) -> Result<Vec<Attachment>> {
        self.write(move |write| {
            find_running(write, id)?;
            files::insert_brought(write, id, files, &limits)
        })
    }

    /// Suspends the turn until its approvals are decided: stores its steps, as
    /// [`Store::record_steps`], its approvals and the state `waiting_approval` in one
    /// commit.
    ///
    /// # Errors
    /// As of [`Store::record_steps`];
    /// `invalid_request` without approvals, because nothing would resume it.
    pub fn suspend_turn(
        &self,
        id: TurnId,
        steps: Vec<Step>,
        found_for: AudienceId,
        approvals: Vec<NewApproval>,
        expires_at: Timestamp,
    ) -> Result<Durable<Vec<Approval>>> {
        self.durable_write(move |write| {
            let turn = find_running(write, id)?;
            if approvals.is_empty() {
                let why = format!("the turn {id} has no approvals to wait for");
                return Err(Error::invalid_request(why).into());
            }
            append(write, &turn, steps, found_for)?;
            let wait = "UPDATE turns SET state = 'waiting_approval' WHERE id = ?";
            write.execute(wait, params![id])?;
            approvals
                .into_iter()
                .map(|new| approvals::insert(write, id, turn.conversation_id, new, expires_at))
                .collect()
        })
    }
}

/// The columns that [`from_row`] reads, by their places: looking for their names takes
/// longer than the rest.
macro_rules! turn_columns {
    () => {
        "t.id, t.conversation_id, t.state, t.channel, t.account, t.user_id, t.tools, \
         t.message_id, t.reply_id, t.error_code, t.error_message, t.error_status, \
         t.error_retry_after, t.said, t.created_at, t.started_at, t.model, t.input_tokens, \
         t.output_tokens, t.cached_tokens, coalesce(t.wanted_model, c.model), \
         coalesce(t.instructions, c.instructions), c.external_name, c.surface, t.schedule_id, \
         t.is_composed, t.household_only"
    };
}

pub(crate) const FIND_TURN: &str = select_seen!(
    "c",
    turn_columns!(),
    " FROM turns t CROSS JOIN conversations c ON c.id = t.conversation_id WHERE t.id = ?"
);

/// Without the hint SQLite reads the whole table, because it is in order.
pub(crate) const UNFINISHED_TURNS: &str = select_seen!(
    "c",
    turn_columns!(),
    " FROM turns t INDEXED BY turns_unfinished \
     CROSS JOIN conversations c ON c.id = t.conversation_id \
     WHERE t.finished_at IS NULL ORDER BY t.id LIMIT ?"
);

pub(crate) const UNFINISHED_BY_STATE: &str = "SELECT state, count(*) \
     FROM turns INDEXED BY turns_unfinished WHERE finished_at IS NULL GROUP BY state";

pub(crate) const UNFINISHED_STATES: &str = select_seen!(
    "c",
    "t.state FROM turns t INDEXED BY turns_unfinished \
     CROSS JOIN conversations c ON c.id = t.conversation_id WHERE t.finished_at IS NULL"
);

pub(crate) fn find(sight: &Sight<'_>, id: TurnId) -> Outcome<Turn> {
    let turn = |row: &Row<'_>| from_row(sight.connection(), row);
    Ok(sight.find_seen("turn", FIND_TURN, id, turn)?.0)
}

/// Appends steps that were found for the audience `found_for`.
fn append(write: &Write<'_>, turn: &Turn, steps: Vec<Step>, found_for: AudienceId) -> Outcome<()> {
    let is_shared = audience::is_wider(write.connection, found_for, turn.audience_id)?;
    insert_steps(write, turn.id, steps, is_shared)
}

/// The turn, if it has not ended.
pub(crate) fn find_unfinished(write: &Write<'_>, id: TurnId) -> Outcome<Turn> {
    let turn = write.find("turn", FIND_TURN, id, |row| from_row(write.connection, row))?;
    if turn.state.is_final() {
        return Err(Error::not_found(format!(
            "the turn {id} has already ended: {}",
            turn.state.as_str()
        ))
        .into());
    }
    Ok(turn)
}

fn record(write: &Write<'_>, id: TurnId, steps: Vec<Step>, found_for: AudienceId) -> Outcome<()> {
    write.adds_to_the_end();
    let turn = find_running(write, id)?;
    append(write, &turn, steps, found_for)
}

/// The same, if whoever asked still sees its conversation.
fn find_running(write: &Write<'_>, id: TurnId) -> Outcome<Turn> {
    let turn = find_unfinished(write, id)?;
    askers::check(write.connection, id, turn.conversation_id)?;
    Ok(turn)
}

/// Of a row of the [`seen_columns`] of its conversation and the [`turn_columns`].
fn from_row(connection: &Connection, row: &Row<'_>) -> Outcome<Turn> {
    const AT: usize = SEEN_COLUMNS;
    let tools: Option<String> = row.get(AT + 6)?;
    Ok(Turn {
        readers: audience::readers(connection, row.get(0)?)?,
        audience_id: row.get(0)?,
        id: row.get(AT)?,
        conversation_id: row.get(AT + 1)?,
        state: row.get(AT + 2)?,
        channel: row.get(AT + 3)?,
        account: row.get(AT + 4)?,
        user_id: row.get(AT + 5)?,
        tools: tools.as_deref().map(tokens::tool_names),
        message_id: row.get(AT + 7)?,
        reply_id: row.get(AT + 8)?,
        error: error_from_row(row, AT + 9)?,
        said: row.get(AT + 13)?,
        created_at: row.get(AT + 14)?,
        started_at: row.get(AT + 15)?,
        model: row.get(AT + 16)?,
        usage: usage::usage_from_row(row, AT + 17)?,
        wanted_model: row.get(AT + 20)?,
        instructions: row.get(AT + 21)?,
        external_name: row.get(AT + 22)?,
        surface: row.get(AT + 23)?,
        schedule_id: row.get(AT + 24)?,
        is_composed: row.get(AT + 25)?,
        is_household_only: row.get(AT + 26)?,
    })
}

/// From four columns of a row.
fn error_from_row(row: &Row<'_>, first: usize) -> Outcome<Option<Error>> {
    let Some(code) = row.get(first)? else {
        return Ok(None);
    };
    let error = Error::new(code, row.get::<_, Said>(first + 1)?).with_status(row.get(first + 2)?);
    Ok(Some(match row.get(first + 3)? {
        Some(seconds) => error.with_retry_after(seconds),
        None => error,
    }))
}

//! Schedules. The turn of a run and the next time of its schedule are one commit,
//! so that a crash neither loses nor repeats a run.

use rusqlite::{Connection, Row, params};

use crate::conversations;
use crate::database::Store;
use crate::durability::Provisional;
use crate::failure::Outcome;
use crate::job::Write;
use crate::new_turn::{self, Begun, NewTurn, Target};
use crate::query::{self, check_changed, row, rows};
use base::calendar::Timing;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ConversationId, ScheduleId};

/// The channel of the turns of schedules, except those of webhook accounts.
pub const SCHEDULE_CHANNEL: &str = "schedule";

/// Most schedules: each may cost a model call a minute.
const MOST: usize = 200;

/// Most characters of a prompt.
const PROMPT_CHARACTERS: usize = 4_000;

/// A prompt that runs once or repeatedly.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What `delete_schedule` takes.
    pub id: ScheduleId,
    /// The message to the assistant: 1 to 4,000 characters.
    pub prompt: String,
    /// The user who created it.
    pub owner: Option<String>,
    /// Where it runs; absent until the first run creates its conversation.
    pub conversation_id: Option<ConversationId>,
    /// The channel of its turns, as [`Conversation::channel`](crate::Conversation::channel).
    pub channel: String,
    /// A webhook account that also gets the replies.
    pub account: Option<String>,
    /// When it runs.
    pub timing: Timing,
    /// When it last ran.
    pub last_at: Option<Timestamp>,
    /// The latest time at which its next time was computed. In the future, the clock
    /// was ahead then or is behind now.
    pub planned_at: Timestamp,
    /// Whether it does not run until it is resumed.
    pub is_paused: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A schedule to store.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// The message to the assistant: 1 to 4,000 characters.
    pub prompt: String,
    /// The user who creates it.
    pub owner: Option<String>,
    /// Where it runs, which must exist; if absent, it gets its own.
    pub conversation_id: Option<ConversationId>,
    /// The channel of its turns.
    pub channel: String,
    /// A webhook account that also gets the replies.
    pub account: Option<String>,
    /// When it runs.
    pub timing: Timing,
}

impl Store {
    /// Stores a schedule, durably.
    ///
    /// # Errors
    /// `invalid_request` for an empty or long prompt, or when there are 200;
    /// `not_found` for the conversation.
    pub fn add_schedule(&self, new: NewSchedule) -> Result<Schedule> {
        self.write(move |write| {
            let prompt = new.prompt.trim().to_owned();
            if !(1..=PROMPT_CHARACTERS).contains(&prompt.chars().count()) {
                return Err(Error::invalid_request(format!(
                    "\"prompt\" must have 1 to {PROMPT_CHARACTERS} characters, not only white space"
                ))
                .into());
            }
            if all(write.connection)?.len() >= MOST {
                return Err(Error::invalid_request(format!(
                    "there are already {MOST} schedules; delete one first"
                ))
                .into());
            }
            if let Some(conversation) = new.conversation_id {
                conversations::find(write.connection, conversation)?;
            }
            let schedule = Schedule {
                id: write.id(),
                prompt,
                owner: new.owner,
                conversation_id: new.conversation_id,
                channel: new.channel,
                account: new.account,
                timing: new.timing,
                last_at: None,
                planned_at: write.now,
                is_paused: false,
                created_at: write.now,
            };
            write.execute(
                "INSERT INTO schedules (id, prompt, owner, conversation_id, channel, account,
                     cron, next_at, planned_at, created_at, is_wait)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)",
                params![
                    schedule.id,
                    schedule.prompt,
                    schedule.owner,
                    schedule.conversation_id,
                    schedule.channel,
                    schedule.account,
                    schedule.timing.cron,
                    schedule.timing.next_at,
                    schedule.created_at,
                    schedule.timing.is_wait,
                ],
            )?;
            Ok(schedule)
        })
    }

    /// A schedule.
    ///
    /// # Errors
    /// `not_found`.
    pub fn schedule(&self, id: ScheduleId) -> Result<Schedule> {
        self.read(|connection| find(connection, id))
    }

    /// All schedules, the next one first.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn schedules(&self) -> Result<Vec<Schedule>> {
        self.read(all)
    }

    /// Deletes a schedule. Its turns continue.
    ///
    /// # Errors
    /// `not_found`.
    pub fn delete_schedule(&self, id: ScheduleId) -> Result<()> {
        self.write(move |write| {
            let deleted = write.execute("DELETE FROM schedules WHERE id = ?", params![id])?;
            check_changed(deleted, "schedule", id)
        })
    }

    /// Pauses a schedule, or resumes it with its next run at `next_at`.
    ///
    /// # Errors
    /// `not_found`.
    pub fn pause_schedule(
        &self,
        id: ScheduleId,
        is_paused: bool,
        next_at: Timestamp,
    ) -> Result<Schedule> {
        self.write(move |write| {
            write.execute(
                "UPDATE schedules SET is_paused = ?2, next_at = ?3, planned_at = ?4 WHERE id = ?1",
                params![id, is_paused, next_at, write.now],
            )?;
            find(write.connection, id)
        })
    }

    /// The schedules that are due at `now`, the longest due first.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn due_schedules(&self, now: Timestamp) -> Result<Provisional<Vec<Schedule>>> {
        // On the writer's connection: an idle server opens no reader.
        self.deferred_write(move |write| {
            rows(write.connection, DUE_SCHEDULES, params![now], from_row)
        })
    }

    /// When the next schedule is due.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn next_schedule_at(&self) -> Result<Provisional<Option<Timestamp>>> {
        self.deferred_write(|write| {
            let next = row(write.connection, NEXT_SCHEDULE, params![], |row| row.get(0))?;
            Ok(next.flatten())
        })
    }

    /// Sets the next time of a schedule, unless it has changed since `known`.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn plan_schedule(&self, known: &Schedule, next_at: Timestamp) -> Result<()> {
        let (id, planned) = (known.id, known.timing.next_at);
        self.write(move |write| {
            write.execute(
                "UPDATE schedules SET next_at = ?3, planned_at = max(planned_at, ?4)
                 WHERE id = ?1 AND next_at = ?2",
                params![id, planned, next_at, write.now],
            )?;
            Ok(())
        })
    }

    /// Runs a due schedule: begins a turn with `message` and sets the next
    /// time, or deletes the schedule where there is none, in one commit.
    /// Nothing happens when it is no longer as `due` is.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn run_schedule(
        &self,
        due: Schedule,
        message: String,
        next_at: Option<Timestamp>,
    ) -> Result<Option<Begun>> {
        self.write(move |write| {
            let stored = row(
                write.connection,
                "SELECT * FROM schedules WHERE id = ?1 AND next_at = ?2 AND is_paused = 0",
                params![due.id, due.timing.next_at],
                from_row,
            )?;
            let Some(schedule) = stored else {
                return Ok(None);
            };
            let begun = new_turn::begin(
                write,
                NewTurn {
                    target: schedule
                        .conversation_id
                        .map_or(Target::New, Target::Existing),
                    channel: schedule.channel,
                    account: schedule.account,
                    message,
                    speaker: schedule.owner,
                    idempotency: None,
                },
            )?;
            let (conversation_id, id) = (begun.turn().conversation_id, schedule.id);
            match next_at {
                Some(next_at) => write.execute(
                    "UPDATE schedules SET next_at = ?2, planned_at = max(planned_at, ?3),
                         last_at = ?3, conversation_id = ?4 WHERE id = ?1",
                    params![id, next_at, write.now, conversation_id],
                )?,
                None => write.execute("DELETE FROM schedules WHERE id = ?", params![id])?,
            };
            Ok(Some(begun))
        })
    }
}

pub(crate) const DUE_SCHEDULES: &str = "SELECT * FROM schedules INDEXED BY schedules_due \
     WHERE is_paused = 0 AND next_at <= ? ORDER BY next_at";

pub(crate) const NEXT_SCHEDULE: &str =
    "SELECT min(next_at) FROM schedules INDEXED BY schedules_due WHERE is_paused = 0";

/// Deletes the schedules of a user who is removed.
pub(crate) fn remove_of(write: &Write<'_>, owner: &str) -> Outcome<()> {
    write.execute(
        "DELETE FROM schedules WHERE owner = ?1 AND channel = ?2",
        params![owner, SCHEDULE_CHANNEL],
    )?;
    Ok(())
}

fn all(connection: &Connection) -> Outcome<Vec<Schedule>> {
    rows(
        connection,
        "SELECT * FROM schedules ORDER BY next_at LIMIT ?",
        params![MOST as i64],
        from_row,
    )
}

fn find(connection: &Connection, id: ScheduleId) -> Outcome<Schedule> {
    query::find(
        connection,
        "schedule",
        "SELECT * FROM schedules WHERE id = ?",
        id,
        from_row,
    )
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    Ok(Schedule {
        id: row.get("id")?,
        prompt: row.get("prompt")?,
        owner: row.get("owner")?,
        conversation_id: row.get("conversation_id")?,
        channel: row.get("channel")?,
        account: row.get("account")?,
        timing: Timing {
            cron: row.get("cron")?,
            next_at: row.get("next_at")?,
            is_wait: row.get("is_wait")?,
        },
        last_at: row.get("last_at")?,
        planned_at: row.get("planned_at")?,
        is_paused: row.get("is_paused")?,
        created_at: row.get("created_at")?,
    })
}

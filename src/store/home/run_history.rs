//! What became of the runs of schedules, and what routines watch.

use rusqlite::{Connection, Row, params};

use crate::chat::steps::{self, Step};
use crate::chat::turns::{Turn, TurnState};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row, words};
use crate::sight::snapshot::Snapshot;
use base::error::Result;
use base::ids::{ScheduleId, TurnId};
use base::secret::{base32_lower, sha256};
use protocol::record::ScheduleRun;

/// Runs of a schedule that are kept.
const KEPT_RUNS: i64 = 50;
/// What the ids of watched calls begin with.
const WATCHED: &str = "watched_";

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Its turn has not ended.
    Running,
    /// The reminder was told.
    Told,
    /// The assistant has replied.
    Replied,
    /// The assistant had nothing to tell.
    Silent,
    /// Nothing had changed, so that no model was asked.
    Unchanged,
    /// It ended with an error.
    Failed,
    /// A person stopped it.
    Cancelled,
}

words! { RunOutcome {
    Running: "running",
    Told: "told",
    Replied: "replied",
    Silent: "silent",
    Unchanged: "unchanged",
    Failed: "failed",
    Cancelled: "cancelled",
} }

impl Snapshot<'_> {
    /// The latest runs of a schedule that is seen, the newest first.
    pub fn runs_of(&self, id: ScheduleId) -> Result<Vec<ScheduleRun>> {
        Ok(self.rows(RUNS, params![id, KEPT_RUNS], run_from_row)?)
    }

    /// What the routine of a turn watches: its calls, and the digest of what they brought before.
    pub fn watched(&self, id: ScheduleId) -> Result<Option<(String, Option<String>)>> {
        let watched = "SELECT only_if_changed, digest FROM schedules
             WHERE id = ? AND only_if_changed IS NOT NULL";
        Ok(self.row(watched, params![id], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

pub(crate) fn note_run(
    write: &Write<'_>,
    id: ScheduleId,
    turn: TurnId,
    outcome: RunOutcome,
) -> Outcome<()> {
    let run: i64 = write.id();
    write.execute(
        "INSERT INTO schedule_runs (id, schedule_id, turn_id, at, outcome)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![run, id, turn, write.now, outcome],
    )?;
    write.run(
        "DELETE FROM schedule_runs WHERE schedule_id = ?1 AND id <= (
             SELECT id FROM schedule_runs WHERE schedule_id = ?1
             ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        params![id, KEPT_RUNS],
    )
}

/// Notes how the turn of a run has ended. What it watched is compared by the next run, unless
/// this one has failed.
pub(crate) fn end_of_turn(write: &Write<'_>, turn: &Turn) -> Outcome<()> {
    if turn.schedule_id.is_none() {
        return Ok(());
    }
    let outcome = match turn.state {
        TurnState::Done => {
            save_digest(write, turn)?;
            RunOutcome::Replied
        }
        TurnState::Cancelled => RunOutcome::Cancelled,
        _ => RunOutcome::Failed,
    };
    end_run(write, turn, outcome)
}

pub(crate) fn end_run(write: &Write<'_>, turn: &Turn, outcome: RunOutcome) -> Outcome<()> {
    write.run(
        "UPDATE schedule_runs SET outcome = ?2, input_tokens = ?3, output_tokens = ?4
         WHERE turn_id = ?1",
        params![
            turn.id,
            outcome,
            turn.usage.input as i64,
            turn.usage.output as i64
        ],
    )
}

pub(crate) fn save_digest(write: &Write<'_>, turn: &Turn) -> Outcome<()> {
    let steps = steps::of_turn(write, turn.id)?;
    let steps: Vec<Step> = steps.into_iter().map(|(_, step)| step).collect();
    if let Some(digest) = watched_digest(&steps) {
        write.execute(
            "UPDATE schedules SET digest = ?2 WHERE id = ?1",
            params![turn.schedule_id, digest],
        )?;
    }
    Ok(())
}

/// The id of a call that a routine watches, by its place.
pub fn watched_call_id(place: usize) -> String {
    format!("{WATCHED}{place}")
}

/// Whether a routine watches this call.
pub fn is_watched_call(id: &str) -> bool {
    id.starts_with(WATCHED)
}

/// A digest of what the watched calls of a turn have brought, once all have.
pub fn watched_digest(steps: &[Step]) -> Option<String> {
    let Some(Step::Reply { calls, .. }) = steps.first() else {
        return None;
    };
    if !calls.iter().all(|call| is_watched_call(&call.id)) {
        return None;
    }
    let mut all = String::new();
    for call in calls {
        let result = steps.iter().find_map(|step| match step {
            Step::Result {
                call_id, content, ..
            } if *call_id == call.id => Some(content),
            _ => None,
        });
        all.push_str(result?);
        all.push('\0');
    }
    Some(base32_lower(&sha256(all.as_bytes())[..20]))
}

/// The latest run of a schedule.
pub(crate) fn last(connection: &Connection, id: ScheduleId) -> Outcome<Option<ScheduleRun>> {
    connection.row(RUNS, params![id, 1], run_from_row)
}

fn run_from_row(row: &Row<'_>) -> Outcome<ScheduleRun> {
    Ok(from_row!(row => ScheduleRun {
        at, input_tokens, output_tokens;
        outcome: row.get::<_, RunOutcome>("outcome")?.as_str(),
    }))
}

const RUNS: &str = "SELECT at, outcome, input_tokens, output_tokens FROM schedule_runs
     INDEXED BY schedule_runs_by_schedule WHERE schedule_id = ?1 ORDER BY id DESC LIMIT ?2";

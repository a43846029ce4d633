//! What a routine waits for beside a time, and looks at before a model is asked.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{rows, value};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ScheduleId, TurnId, UserId};
use base::people::UserRole;
use base::people::folded;

/// A call of a tool that only reads, which a routine makes before a model is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, by name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// Runs within an hour that a trigger causes.
const MOST_AN_HOUR: i64 = 30;
/// What a trigger has brought, in characters.
const MOST_TEXT: usize = 4_000;

/// What a routine waits for in place of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A change of the list of this name.
    List(String),
    /// A message to the webhook account of this name.
    Webhook(String),
}

impl FromStr for Trigger {
    type Err = Error;

    fn from_str(text: &str) -> Result<Trigger> {
        let (kind, name) = text.trim().split_once(' ').unwrap_or_default();
        let name = name.trim();
        match kind {
            "list" if !name.is_empty() => Ok(Trigger::List(folded(name))),
            "webhook" if !name.is_empty() => Ok(Trigger::Webhook(name.to_owned())),
            _ => Err(Error::invalid_request(
                "\"on\" must be \"list\" and the name of a list, or \"webhook\" and the name of \
                 an account",
            )),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::List(name) => write!(f, "list {name}"),
            Trigger::Webhook(account) => write!(f, "webhook {account}"),
        }
    }
}

/// Has the routines run that wait for this, in the commit that brings it about; what a
/// schedule's turn does causes none. `sees` says whose may know of it.
pub(crate) fn fire(
    write: &Write<'_>,
    trigger: &Trigger,
    cause: Option<TurnId>,
    text: &str,
    is_outside: bool,
    sees: &dyn Fn(UserId, UserRole) -> bool,
) -> Outcome<()> {
    let waiting = rows(
        write.connection,
        WAITING,
        params![trigger.to_string()],
        |row| {
            Ok((
                row.get::<_, ScheduleId>(0)?,
                row.get::<_, Option<String>>(1)?,
                row.get::<_, Option<UserId>>(2)?.zip(row.get(3)?),
            ))
        },
    )?;
    if waiting.is_empty() || is_of_schedule(write.connection, cause)? {
        return Ok(());
    }
    for (id, before, owner) in waiting {
        if owner.is_some_and(|(owner, role)| !sees(owner, role)) {
            continue;
        }
        let hour = Duration::from_secs(3_600);
        let full: Option<Timestamp> = value(
            write.connection,
            "SELECT at FROM schedule_runs WHERE schedule_id = ?1 AND at > ?2
             ORDER BY id DESC LIMIT 1 OFFSET ?3",
            params![id, write.now.minus(hour), MOST_AN_HOUR - 1],
        )?;
        let next_at = full.map_or(write.now, |at| at.plus(hour));
        let text = before.map_or(text.to_owned(), |before| format!("{before}\n{text}"));
        let text: String = text.chars().take(MOST_TEXT).collect();
        write.execute(
            "UPDATE schedules SET next_at = ifnull(next_at, ?2), trigger_text = ?3,
                 is_trigger_outside = is_trigger_outside OR ?4 WHERE id = ?1",
            params![id, next_at, text, is_outside],
        )?;
    }
    Ok(())
}

/// Whether a schedule has begun this turn.
fn is_of_schedule(connection: &Connection, turn: Option<TurnId>) -> Outcome<bool> {
    let schedule: Option<Option<ScheduleId>> = value(
        connection,
        "SELECT schedule_id FROM turns WHERE id = ?",
        params![turn],
    )?;
    Ok(schedule.flatten().is_some())
}

const WAITING: &str = "SELECT s.id, s.trigger_text, u.id, u.role
     FROM schedules s INDEXED BY schedules_by_trigger LEFT JOIN users u ON u.id = s.owner_id
     WHERE s.trigger IS NOT NULL AND s.trigger = ? AND s.is_paused = 0";

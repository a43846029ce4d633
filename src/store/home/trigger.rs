//! What a routine waits for beside a time, and looks at before a model is asked.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::home::calendar_events::{CalendarEvent, events_between};
use crate::sight::audience::{is_wider, private, readers};
use crate::sight::viewer::Viewer;
use base::calendar::Zone;
use base::clock::Timestamp;
use base::composed::line;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, ScheduleId, TurnId, UserId};
use base::language::Words;
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

/// Most minutes between a run and the event that causes it: a week.
const MOST_MINUTES: u32 = 7 * 24 * 60;
/// How far ahead an event is looked for, in days.
const DAYS_AHEAD: u32 = 2 * 366;
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
    /// An event of the calendar of this name, or of any, so many minutes before.
    Event {
        /// How long before the event.
        minutes: u32,
        /// The calendar; any that its owner sees when absent.
        calendar: Option<String>,
    },
}

impl FromStr for Trigger {
    type Err = Error;

    fn from_str(text: &str) -> Result<Trigger> {
        let (kind, name) = text.trim().split_once(' ').unwrap_or_default();
        let name = name.trim();
        match kind {
            "list" if !line(name).is_empty() => Ok(Trigger::List(folded(&line(name)))),
            "webhook" if !name.is_empty() => Ok(Trigger::Webhook(name.to_owned())),
            "event" => event(name).ok_or_else(not_a_trigger),
            _ => Err(not_a_trigger()),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::List(name) => write!(f, "list {name}"),
            Trigger::Webhook(account) => write!(f, "webhook {account}"),
            Trigger::Event { minutes, calendar } => match calendar {
                Some(calendar) => write!(f, "event {minutes} {calendar}"),
                None => write!(f, "event {minutes}"),
            },
        }
    }
}

fn not_a_trigger() -> Error {
    Error::invalid_request(format!(
        "\"on\" must be \"list\" and the name of a list, \"webhook\" and the name of an account, \
         or \"event\", the minutes before it (at most {MOST_MINUTES}) and, for one calendar \
         alone, its name"
    ))
}

/// The minutes and the name behind `event`.
fn event(text: &str) -> Option<Trigger> {
    let (minutes, name) = text.split_once(' ').unwrap_or((text, ""));
    let minutes = minutes
        .parse()
        .ok()
        .filter(|minutes| *minutes <= MOST_MINUTES)?;
    let calendar = Some(folded(name.trim())).filter(|name| !name.is_empty());
    Some(Trigger::Event { minutes, calendar })
}

/// Has the routines run that wait for this, in the commit that brings it about; what a
/// schedule's turn does causes none. `audience` may know of it: a routine that others see, too,
/// would tell them.
pub(crate) fn fire(
    write: &Write<'_>,
    trigger: &Trigger,
    cause: Option<TurnId>,
    text: &str,
    is_outside: bool,
    audience: AudienceId,
) -> Outcome<()> {
    let waiting = write.rows(WAITING, params![trigger.to_string()], |row| {
        Ok((
            row.get::<_, ScheduleId>(0)?,
            row.get::<_, Option<String>>(1)?,
            row.get::<_, AudienceId>(2)?,
        ))
    })?;
    if waiting.is_empty() || is_of_schedule(write.connection, cause)? {
        return Ok(());
    }
    for (id, before, readers) in waiting {
        if is_wider(write.connection, audience, readers)? {
            continue;
        }
        let next_at = earliest(write, id)?;
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

/// When a routine may run next that runs as often as an hour allows.
fn earliest(write: &Write<'_>, id: ScheduleId) -> Outcome<Timestamp> {
    let hour = Duration::from_secs(3_600);
    let full: Option<Timestamp> = write.value(
        "SELECT at FROM schedule_runs WHERE schedule_id = ?1 AND at > ?2
         ORDER BY id DESC LIMIT 1 OFFSET ?3",
        params![id, write.now.minus(hour), MOST_AN_HOUR - 1],
    )?;
    Ok(full.map_or(write.now, |at| at.plus(hour)))
}

/// Sets when the routines run that wait for an event, all or this one, by the events that are
/// known now. One that is due already stays so.
pub(crate) fn plan_events(write: &Write<'_>, only: Option<ScheduleId>) -> Outcome<()> {
    let waiting = write.rows(WAITING_FOR_EVENTS, params![only, write.now], |row| {
        Ok((
            row.get::<_, ScheduleId>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, Option<UserId>>(2)?,
            row.get::<_, Option<ConversationId>>(3)?,
            row.get::<_, AudienceId>(4)?,
        ))
    })?;
    for (id, trigger, owner, conversation, audience) in waiting {
        let Ok(Trigger::Event { minutes, calendar }) = trigger.parse() else {
            continue;
        };
        let before = Duration::from_secs(60 * u64::from(minutes));
        // Later than now: what has begun its wait is not planned again.
        let from = write.now.plus(before);
        let until = from.plus(Duration::from_secs(u64::from(DAYS_AHEAD) * 86_400));
        // Whoever sees the routine reads what it says of the event.
        let readers = readers(write.connection, audience)?;
        let conversation = conversation.unwrap_or_else(|| write.id());
        let viewer = Viewer::readers_of(conversation, &readers).asked_by(owner, None);
        let mut events = events_between(write.connection, &viewer, from, until)?;
        events.retain(|event| {
            event.time.starts_at > from
                && calendar
                    .as_ref()
                    .is_none_or(|name| folded(&event.calendar) == *name)
        });
        let begins = events.first().map(|event| event.time.starts_at);
        events.retain(|event| Some(event.time.starts_at) == begins);
        let next_at = begins.map(|begins| begins.minus(before));
        let next_at = match next_at {
            Some(at) => Some(at.max(earliest(write, id)?)),
            None => None,
        };
        let text: Vec<String> = events.iter().map(|event| said(event, write.now)).collect();
        let text: String = text.join("\n").chars().take(MOST_TEXT).collect();
        let is_outside =
            |event: &CalendarEvent| event.time.is_outside || Some(event.owner_id) != owner;
        write.execute(
            "UPDATE schedules SET next_at = ?2, planned_at = max(planned_at, ?3),
                 trigger_text = ?4, is_trigger_outside = ?5 WHERE id = ?1",
            params![
                id,
                next_at,
                write.now,
                Some(text).filter(|text| !text.is_empty()),
                events.iter().any(is_outside)
            ],
        )?;
    }
    Ok(())
}

/// Gives the schedules of a conversation its new audience. One whose owner does not see
/// the conversation any more gets a conversation of its own.
pub(crate) fn follow(
    write: &Write<'_>,
    conversation: ConversationId,
    audience_id: AudienceId,
) -> Outcome<()> {
    write.execute(
        "UPDATE schedules SET audience_id = ?2 WHERE conversation_id = ?1",
        params![conversation, audience_id],
    )?;
    if audience_id == AudienceId::HOUSEHOLD {
        return plan_events(write, None);
    }
    let parted: Vec<(ScheduleId, UserId)> = write.rows(
        "SELECT id, owner_id FROM schedules s
         WHERE conversation_id = ?1 AND owner_id IS NOT NULL AND NOT EXISTS (
             SELECT 1 FROM audience_members WHERE user_id = s.owner_id AND audience_id = ?2)",
        params![conversation, audience_id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (id, owner) in parted {
        write.execute(
            "UPDATE schedules SET conversation_id = NULL, audience_id = ?2 WHERE id = ?1",
            params![id, private(write, owner)?],
        )?;
    }
    plan_events(write, None)
}

/// An event as it is described to a routine's turn.
fn said(event: &CalendarEvent, now: Timestamp) -> String {
    let zone = Zone::of_household(event.zone.as_deref());
    let time = &event.time;
    let place = match time.location.as_str() {
        "" => String::new(),
        place => format!(", {place}"),
    };
    let begins = zone.spoken(time.starts_at, now, Words::ENGLISH);
    format!("{}: {begins}{place}", time.title)
}

/// Whether a schedule has begun this turn.
fn is_of_schedule(connection: &Connection, turn: Option<TurnId>) -> Outcome<bool> {
    let schedule: Option<Option<ScheduleId>> =
        connection.value("SELECT schedule_id FROM turns WHERE id = ?", params![turn])?;
    Ok(schedule.flatten().is_some())
}

const WAITING: &str = "SELECT id, trigger_text, audience_id
     FROM schedules INDEXED BY schedules_by_trigger
     WHERE trigger IS NOT NULL AND trigger = ? AND is_paused = 0";

const WAITING_FOR_EVENTS: &str = "SELECT id, trigger, owner_id, conversation_id, audience_id
     FROM schedules INDEXED BY schedules_by_trigger
     WHERE trigger IS NOT NULL AND trigger >= 'event ' AND trigger < 'event!'
         AND is_paused = 0 AND (?1 IS NULL OR id = ?1) AND (next_at IS NULL OR next_at > ?2)";

//! What reading a calendar finds, and what a change there makes of an event.

use std::collections::HashMap;

use rusqlite::params;

use super::calendar_events::{EventTime, time};
use super::calendars::CalendarSource;
use super::trigger::plan_events;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::sight::audience::{self, Readers};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{AudienceId, CalendarId, EventId};
use base::language::Said;

/// What reading a calendar has found.
#[derive(Clone, Debug, Default)]
pub struct CalendarReading {
    /// All times; none where nothing had changed.
    pub events: Option<Vec<EventTime>>,
    /// Which version it was.
    pub version: Option<String>,
    /// Where the server has it, if it is no file.
    pub collection: Option<String>,
    /// Whether it can be changed there.
    pub can_write: bool,
    /// Under which addresses its owner is invited, separated by spaces.
    pub addresses: String,
    /// The household's zone.
    pub zone: String,
    /// What was left out.
    pub problem: Option<Said>,
}

impl Store {
    /// Stores what reading a calendar has found, or why it could not be read, and when it is
    /// read next. Returns who sees it, if anything has changed. Where the calendar was changed
    /// here since `source` was read, it is read again instead.
    pub fn calendar_read(
        &self,
        source: &CalendarSource,
        reading: std::result::Result<CalendarReading, Said>,
        next_at: Timestamp,
    ) -> Result<Option<Readers>> {
        let source = source.clone();
        self.write(move |write| {
            let unchanged = "SELECT audience_id FROM calendars WHERE id = ?1 AND revision = ?2";
            let known = params![source.id, source.revision];
            let audience: Option<AudienceId> = write.value(unchanged, known)?;
            let Some(audience) = audience else {
                return Ok(None);
            };
            let problem = match &reading {
                Ok(reading) => reading.problem.clone(),
                Err(problem) => Some(problem.clone()),
            };
            let is_told = write.exists(
                "SELECT 1 FROM calendars WHERE id = ?1 AND problem IS ?2 AND read_at IS NOT NULL",
                params![source.id, problem],
            )?;
            write.execute(
                "UPDATE calendars SET problem = ?2, next_at = ?3, is_failing = ?4 WHERE id = ?1",
                params![source.id, problem, next_at, reading.is_err()],
            )?;
            let mut has_changed = !is_told;
            if let Ok(reading) = reading {
                let whole_at = reading.events.is_some().then_some(write.now);
                write.execute(
                    "UPDATE calendars SET read_at = ?2, whole_at = ifnull(?3, whole_at),
                         version = ?4, collection = ?5, can_write = ?6, addresses = ?7, zone = ?8
                     WHERE id = ?1",
                    params![
                        source.id,
                        write.now,
                        whole_at,
                        reading.version,
                        reading.collection,
                        reading.can_write,
                        reading.addresses,
                        reading.zone,
                    ],
                )?;
                if let Some(events) = reading.events {
                    has_changed |= replace(write, source.id, None, events)?;
                }
            }
            if has_changed {
                plan_events(write, None)?;
            }
            let readers = has_changed.then(|| audience::readers(write.connection, audience));
            readers.transpose()
        })
    }

    /// Stores what one event of a calendar has become where it is kept. Returns who sees it.
    pub fn event_changed(
        &self,
        calendar: CalendarId,
        uid: &str,
        times: Vec<EventTime>,
    ) -> Result<Option<Readers>> {
        let uid = uid.to_owned();
        self.write(move |write| {
            let audience = "UPDATE calendars SET revision = revision + 1 WHERE id = ?
                 RETURNING audience_id";
            let audience: Option<AudienceId> = write.value(audience, params![calendar])?;
            let Some(audience) = audience else {
                return Ok(None);
            };
            replace(write, calendar, Some(&uid), times)?;
            plan_events(write, None)?;
            Ok(Some(audience::readers(write.connection, audience)?))
        })
    }
}

const OF_CALENDAR: &str =
    "SELECT * FROM calendar_events WHERE calendar_id = ?1 AND (?2 IS NULL OR uid = ?2)";

/// Makes the times of a calendar, or of one event of it, those that are given, and leaves those
/// alone that are the same. Returns whether any are not.
fn replace(
    write: &Write<'_>,
    calendar: CalendarId,
    uid: Option<&str>,
    times: Vec<EventTime>,
) -> Outcome<bool> {
    let known = write.rows(OF_CALENDAR, params![calendar, uid], |row| {
        let time = time(row)?;
        Ok((
            (time.uid.clone(), time.occurrence.clone()),
            (row.get::<_, EventId>("id")?, time),
        ))
    })?;
    let mut known: HashMap<_, _> = known.into_iter().collect();
    let mut has_changed = false;
    for new in times {
        let key = (new.uid.clone(), new.occurrence.clone());
        let id = match known.remove(&key) {
            Some((_, old)) if old == new => continue,
            Some((id, _)) => id,
            None => write.id(),
        };
        has_changed = true;
        write.execute(
            "INSERT OR REPLACE INTO calendar_events (id, calendar_id, uid, occurrence, href,
                 starts_at, ends_at, first_day, last_day, title, location, description,
                 organizer, has_guests, is_outside)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            params![
                id,
                calendar,
                new.uid,
                new.occurrence,
                new.href,
                new.starts_at,
                new.ends_at,
                new.first_day,
                new.last_day,
                new.title,
                new.location,
                new.description,
                new.organizer,
                new.has_guests,
                new.is_outside,
            ],
        )?;
    }
    for (id, _) in known.into_values() {
        has_changed = true;
        write.execute("DELETE FROM calendar_events WHERE id = ?", params![id])?;
    }
    Ok(has_changed)
}

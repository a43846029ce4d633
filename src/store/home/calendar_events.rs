//! The times of events of calendars, as they were when these were last read.

use rusqlite::{Connection, Row, params};

use crate::engine::failure::Outcome;
use crate::engine::query::from_row;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Viewer, seen_columns};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{CalendarId, EventId, UserId};

/// Most events that are read at once.
const MOST: usize = 10_000;

/// One time of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventTime {
    /// The event's name for all programs.
    pub uid: String,
    /// Which time it is of an event that comes again; empty for one that comes once.
    pub occurrence: String,
    /// Where the server has the event.
    pub href: Option<String>,
    /// When it begins.
    pub starts_at: Timestamp,
    /// When it ends.
    pub ends_at: Timestamp,
    /// Of one that takes whole days the first, as 2026-11-27.
    pub first_day: Option<String>,
    /// And the last.
    pub last_day: Option<String>,
    /// On one line.
    pub title: String,
    /// On one line.
    pub location: String,
    /// The beginning of what is written about it.
    pub description: String,
    /// Who invites, if somebody else than its owner does.
    pub organizer: Option<String>,
    /// Whether others are invited.
    pub has_guests: bool,
    /// Whether anybody may have written it.
    pub is_outside: bool,
}

/// One time of an event, with the calendar that has it.
#[derive(Clone, Debug)]
pub struct CalendarEvent {
    /// It stays the same when the calendar is read again.
    pub id: EventId,
    /// The calendar that has it.
    pub calendar_id: CalendarId,
    /// Its name.
    pub calendar: String,
    /// Whose calendar it is.
    pub owner_id: UserId,
    /// The same by name.
    pub owner: String,
    /// The household's zone when the calendar was read.
    pub zone: Option<String>,
    /// When it is, and what.
    pub time: EventTime,
}

impl Snapshot<'_> {
    /// The events that the viewer sees and that are under way or begin between two times, in the
    /// order of their beginnings.
    pub fn next_events(&self, from: Timestamp, until: Timestamp) -> Result<Vec<CalendarEvent>> {
        Ok(self
            .sight
            .seen_rows(BETWEEN, params![from, until], MOST, event)?)
    }

    /// An event.
    ///
    /// # Errors
    /// `not_found`.
    pub fn event(&self, id: EventId) -> Result<CalendarEvent> {
        Ok(self.sight.find_seen("event", ONE, id, event)?.0)
    }
}

/// As of [`Snapshot::next_events`], within a commit.
pub(crate) fn events_between(
    connection: &Connection,
    viewer: &Viewer,
    from: Timestamp,
    until: Timestamp,
) -> Outcome<Vec<CalendarEvent>> {
    let sight = viewer.sight(connection)?;
    sight.seen_rows(BETWEEN, params![from, until], MOST, event)
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT ",
            seen_columns!("c"),
            ", e.*, c.name AS calendar, c.zone, c.owner_id, u.name AS owner
             FROM calendar_events e CROSS JOIN calendars c ON c.id = e.calendar_id
             CROSS JOIN users u ON u.id = c.owner_id ",
            $rest
        )
    };
}

pub(crate) const BETWEEN: &str = select!(
    "WHERE e.starts_at < ?2 AND (e.starts_at >= ?1 OR e.ends_at > ?1)
     ORDER BY e.starts_at, e.ends_at, e.id"
);
const ONE: &str = select!("WHERE e.id = ?");
fn event(row: &Row<'_>) -> Outcome<CalendarEvent> {
    Ok(from_row!(row => CalendarEvent {
        id, calendar_id, calendar, owner_id, owner, zone;
        time: time(row)?,
    }))
}

/// The time of a row of the table.
pub(crate) fn time(row: &Row<'_>) -> Outcome<EventTime> {
    Ok(from_row!(row => EventTime {
        uid, occurrence, href, starts_at, ends_at, first_day, last_day, title, location,
        description, organizer, has_guests, is_outside
    }))
}

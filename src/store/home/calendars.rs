//! Calendars that are kept elsewhere: where they are, whose they are, and how reading them went.

use rusqlite::{Row, params};

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row};
use crate::home::trigger::plan_events;
use crate::sight::audience::Directory;
use crate::sight::audience::{self, Audience, Readers, UnknownName, intern};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, Viewer, seen_columns};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, CalendarId, UserId};
use base::language::Said;
use base::people::folded;
use base::url::Url;
use base::visible::label;

/// Most calendars of a person.
pub const CALENDARS: usize = 20;
/// Longest name of one, in characters.
const NAME_CHARACTERS: usize = 100;

/// A calendar as people see it.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// What commands take.
    pub id: CalendarId,
    /// Unique among those of its owner, in any case.
    pub name: String,
    /// Where it was said to be. Whoever knows it may be able to read the calendar.
    pub url: String,
    /// With which the server is asked.
    pub username: Option<String>,
    /// Whether there is a password.
    pub has_password: bool,
    /// Whose it is.
    pub owner_id: UserId,
    /// The same by name.
    pub owner: String,
    /// Who sees it.
    pub audience: Audience,
    /// Whether its owner wants nothing in it changed.
    pub is_read_only: bool,
    /// Whether the server has said that it can be changed.
    pub can_write: bool,
    /// How often it is read.
    pub refresh_minutes: u32,
    /// When it was last read.
    pub read_at: Option<Timestamp>,
    /// What is wrong with it, or was left out.
    pub problem: Option<Said>,
    /// Whether it could not be read when that was last tried.
    pub is_failing: bool,
    /// How many times of its events are known.
    pub events: u64,
}

/// A calendar to store.
#[derive(Clone, Debug)]
pub struct NewCalendar {
    /// 1 to 100 characters.
    pub name: String,
    /// An address that was checked.
    pub url: String,
    /// With which the server is asked.
    pub username: Option<String>,
    /// Encrypted.
    pub password: Option<Vec<u8>>,
    /// Whose it is.
    pub owner_id: UserId,
    /// Who sees it.
    pub audience: Audience,
    /// Whether nothing in it is changed.
    pub is_read_only: bool,
    /// Whether it may be in the home network.
    pub may_be_local: bool,
    /// How often it is read.
    pub refresh_minutes: u32,
}

/// What changes of a calendar; what is absent stays.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "as of the calendar")]
pub struct CalendarChange {
    pub name: Option<String>,
    /// And whether it may be in the home network.
    pub url: Option<(String, bool)>,
    pub username: Option<String>,
    pub password: Option<Vec<u8>>,
    pub audience: Option<Audience>,
    pub is_read_only: Option<bool>,
    pub refresh_minutes: Option<u32>,
}

/// What is needed to read or change a calendar where it is kept.
#[derive(Clone, Debug)]
pub struct CalendarSource {
    /// Which one it is.
    pub id: CalendarId,
    /// What its owner calls it: of several calendars of an account this one is meant.
    pub name: String,
    /// Where it was said to be.
    pub url: String,
    /// With which the server is asked.
    pub username: Option<String>,
    /// Encrypted.
    pub password: Option<Vec<u8>>,
    /// Whose it is.
    pub owner_id: UserId,
    /// Whether it may be in the home network.
    pub may_be_local: bool,
    /// How often it is read.
    pub refresh_minutes: u32,
    /// Counts changes made here.
    pub revision: i64,
    /// When the whole of it was last read.
    pub whole_at: Option<Timestamp>,
    /// Where the server has it, if it is no file.
    pub collection: Option<String>,
    /// Which version was read.
    pub version: Option<String>,
    /// Under which addresses its owner is invited, separated by spaces.
    pub addresses: String,
    /// The household's zone when it was read.
    pub zone: Option<String>,
}

impl Snapshot<'_> {
    /// All calendars, by owner and name.
    pub fn calendars(&self) -> Result<Vec<Calendar>> {
        let from_row = |row: &Row<'_>| calendar(&self.sight.directory, row);
        Ok(self.sight.seen_rows(ALL, params![], usize::MAX, from_row)?)
    }

    /// A calendar.
    ///
    /// # Errors
    /// `not_found`.
    pub fn calendar(&self, id: CalendarId) -> Result<Calendar> {
        let from_row = |row: &Row<'_>| calendar(&self.sight.directory, row);
        Ok(self.sight.find_seen("calendar", ONE, id, from_row)?.0)
    }

    /// The same, with what is needed to change it where it is kept.
    ///
    /// # Errors
    /// `not_found`.
    pub fn calendar_source(&self, id: CalendarId) -> Result<CalendarSource> {
        Ok(self.sight.find_seen("calendar", ONE, id, source)?.0)
    }
}

impl Store {
    /// Whether there is any calendar.
    pub fn has_calendars(&self) -> Result<Provisional<bool>> {
        self.look(|connection| connection.exists("SELECT 1 FROM calendars", params![]))
    }

    /// Stores a calendar, durably.
    ///
    /// # Errors
    /// `invalid_request` for a name that is empty, too long or taken, for an unknown name in
    /// the audience, or when the owner has 20.
    pub fn add_calendar(&self, new: NewCalendar) -> Result<CalendarId> {
        self.write(move |write| {
            let owned = "SELECT count(*) FROM calendars WHERE owner_id = ?";
            let owned: Option<usize> = write.value(owned, params![new.owner_id])?;
            if owned.unwrap_or_default() >= CALENDARS {
                let fields = [("most", &*CALENDARS.to_string())];
                return Err(Error::refused("error.calendars_full", &fields).into());
            }
            let id = write.id();
            let name = checked_name(write, new.owner_id, &new.name, id)?;
            let audience = intern(
                write,
                Some(new.owner_id),
                &new.audience,
                UnknownName::Refuse,
            )?;
            write.insert(
                "calendars",
                &[
                    ("id", &id),
                    ("name", &name),
                    ("folded", &folded(&name)),
                    ("url", &new.url),
                    ("username", &new.username),
                    ("password", &new.password),
                    ("owner_id", &new.owner_id),
                    ("audience_id", &audience),
                    ("is_read_only", &new.is_read_only),
                    ("may_be_local", &new.may_be_local),
                    ("refresh_minutes", &new.refresh_minutes),
                    ("created_at", &write.now),
                    ("next_at", &write.now),
                ],
            )?;
            Ok(id)
        })
    }

    /// Changes a calendar, which is then read anew. Returns who saw it before.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it; those of
    /// [`Store::add_calendar`].
    pub fn update_calendar(
        &self,
        viewer: &Viewer,
        id: CalendarId,
        change: CalendarChange,
    ) -> Result<Readers> {
        self.write_for(viewer, move |write, sight| {
            let (before, belongs) = changeable(sight, id)?;
            let readers = audience::readers(write.connection, belongs.audience_id)?;
            let owner = before.owner_id;
            let is_of_place =
                change.url.is_some() || change.username.is_some() || change.password.is_some();
            if is_of_place && sight.viewer.user_id().is_some_and(|user| user != owner) {
                let refused = Said::of("error.calendar_place", &[]);
                return Err(Error::unauthorized(refused).into());
            }
            let name = match &change.name {
                Some(name) => checked_name(write, owner, name, id)?,
                None => before.name,
            };
            let audience = match &change.audience {
                Some(audience) => intern(write, Some(owner), audience, UnknownName::Refuse)?,
                None => belongs.audience_id,
            };
            let (url, may_be_local) = change
                .url
                .unwrap_or((before.url.clone(), before.may_be_local));
            // What was known of another place is not true of this one.
            let is_moved = url != before.url;
            // Another server is not given what was meant for this one.
            let has_credentials = !is_elsewhere(&url, &before.url);
            write.execute(
                "UPDATE calendars SET name = ?2, folded = ?3, url = ?4, may_be_local = ?5,
                     username = ifnull(?6, iif(?13, username, NULL)),
                     password = ifnull(?7, iif(?13, password, NULL)),
                     audience_id = ?8, is_read_only = ifnull(?9, is_read_only),
                     refresh_minutes = ifnull(?10, refresh_minutes), next_at = ?11,
                     revision = revision + 1, whole_at = NULL, version = NULL,
                     collection = iif(?12, NULL, collection), can_write = can_write AND NOT ?12
                 WHERE id = ?1",
                params![
                    id,
                    name,
                    folded(&name),
                    url,
                    may_be_local,
                    change.username,
                    change.password,
                    audience,
                    change.is_read_only,
                    change.refresh_minutes,
                    write.now,
                    is_moved,
                    has_credentials,
                ],
            )?;
            plan_events(write, None)?;
            Ok(readers)
        })
    }

    /// Removes a calendar here; where it is kept it stays. Returns its name and who saw it.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it.
    pub fn remove_calendar(&self, viewer: &Viewer, id: CalendarId) -> Result<(String, Readers)> {
        self.write_for(viewer, move |write, sight| {
            let (calendar, belongs) = changeable(sight, id)?;
            write.execute("DELETE FROM calendars WHERE id = ?", params![id])?;
            plan_events(write, None)?;
            let readers = audience::readers(write.connection, belongs.audience_id)?;
            Ok((calendar.name, readers))
        })
    }

    /// The calendars that are to be read at `now`, the longest due first.
    pub fn due_calendars(&self, now: Timestamp) -> Result<Provisional<Vec<CalendarSource>>> {
        self.look(move |connection| connection.rows(DUE, params![now], source))
    }

    /// When the next calendar is to be read.
    pub fn next_calendar_at(&self) -> Result<Provisional<Option<Timestamp>>> {
        let sql = "SELECT min(next_at) FROM calendars";
        self.look(move |connection| Ok(connection.value(sql, params![])?.flatten()))
    }

    /// Who sees a calendar, if it is there.
    pub fn calendar_readers(&self, id: CalendarId) -> Result<Option<Readers>> {
        self.read(move |connection| {
            let audience = "SELECT audience_id FROM calendars WHERE id = ?";
            let audience: Option<AudienceId> = connection.value(audience, params![id])?;
            let readers = audience.map(|audience| audience::readers(connection, audience));
            readers.transpose()
        })
    }

    /// Has calendars read at `now`: this one, or all.
    pub fn read_calendars_now(&self, only: Option<CalendarId>) -> Result<()> {
        self.write(move |write| {
            let sql = "UPDATE calendars SET next_at = min(next_at, ?1) WHERE ?2 IS NULL OR id = ?2";
            write.run(sql, params![write.now, only])
        })
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT ",
            seen_columns!("c"),
            ", c.*, u.name AS owner,
             (SELECT count(*) FROM calendar_events WHERE calendar_id = c.id) AS events
             FROM calendars c CROSS JOIN users u ON u.id = c.owner_id ",
            $rest
        )
    };
}

const ALL: &str = select!("ORDER BY u.folded_name, c.folded");
const ONE: &str = select!("WHERE c.id = ?");
pub(crate) const DUE: &str = "SELECT * FROM calendars INDEXED BY calendars_due WHERE next_at <= ? ORDER BY next_at LIMIT 100";

/// The calendar of this id and whose it is, if the viewer may change it.
fn changeable(sight: &Sight<'_>, id: CalendarId) -> Outcome<(CalendarSource, Belongs)> {
    let found = sight.find_seen("calendar", ONE, id, source)?;
    sight.check_change("calendar", &found.1)?;
    Ok(found)
}

/// Whether two addresses are of different servers.
fn is_elsewhere(url: &str, other: &str) -> bool {
    let server = |url| Url::parse(url).map(|url| (url.is_secure(), url.port(), url.authority.host));
    match (server(url), server(other)) {
        (Ok(one), Ok(other)) => one != other,
        _ => true,
    }
}

fn checked_name(write: &Write<'_>, owner: UserId, name: &str, id: CalendarId) -> Outcome<String> {
    let name = label(name);
    if !(1..=NAME_CHARACTERS).contains(&name.chars().count()) {
        let fields = [("most", &*NAME_CHARACTERS.to_string())];
        return Err(Error::refused("error.calendar_name", &fields).into());
    }
    let taken = "SELECT 1 FROM calendars WHERE owner_id = ?1 AND folded = ?2 AND id <> ?3";
    if write.exists(taken, params![owner, folded(&name), id])? {
        return Err(Error::refused("error.calendar_taken", &[("name", &name)]).into());
    }
    Ok(name)
}

fn calendar(directory: &Directory<'_>, row: &Row<'_>) -> Outcome<Calendar> {
    let belongs = Belongs::from_row(row)?;
    Ok(from_row!(row => Calendar {
        id, name, url, username, owner_id, owner, is_read_only, can_write, refresh_minutes,
        read_at, problem, is_failing, events;
        has_password: row.get::<_, Option<Vec<u8>>>("password")?.is_some(),
        audience: directory.audience(belongs.owner_id, belongs.audience_id)?,
    }))
}

fn source(row: &Row<'_>) -> Outcome<CalendarSource> {
    Ok(from_row!(row => CalendarSource {
        id, name, url, username, password, owner_id, may_be_local, refresh_minutes, revision,
        whole_at, collection, version, addresses, zone
    }))
}

//! Calendars: the commands, and the thread that reads them where they are kept.
//!
//! Each reading has a thread and a deadline of its own, and a person has few of them at a time:
//! a server that hangs holds up nobody else's calendar.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::commands::check_audience;
use super::wakes::Wake;
use super::{Service, views};
use agent::tools::calendar::{Reach, checked_address, read};
use base::calendar::Zone;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{CalendarId, UserId};
use base::language::{Said, Words};
use base::people::{Audience, folded};
use base::sealed::SealingKey;
use base::secret::Secret;
use net::cancel::Cancel;
use net::task::Task;
use net::tls::Trust;
use protocol::command::{AddCalendar, ListEvents, UpdateCalendar};
use protocol::record;
use store::{CalendarChange, CalendarSource, Identity, NewCalendar, User, UserRole, Viewer};

/// How often a calendar is read: of an account, and of a file.
const REFRESH_MINUTES: u32 = 15;
const FILE_REFRESH_MINUTES: u32 = 60;
/// How long one reading may take.
const READING: Duration = Duration::from_secs(60);
/// Readings at a time, and those of one person.
const AT_ONCE: usize = 4;
const OF_ONE: usize = 2;
/// How long nothing is looked for where nothing is due: clocks are set.
const LOOK: Duration = Duration::from_secs(60);
/// The same without calendars.
const REST: Duration = Duration::from_secs(3_600);
/// Most bytes of a user name or a password.
const CREDENTIAL_BYTES: usize = 1_000;
/// How far ahead events are listed where nothing else is said.
const AHEAD: Duration = Duration::from_secs(14 * 86_400);

/// A reading that is under way.
struct Running {
    id: CalendarId,
    owner: UserId,
    is_over: Arc<AtomicBool>,
    _task: Task,
}

impl Service {
    /// Adds a calendar, which is then read.
    ///
    /// # Errors
    /// `invalid_request`; `unauthorized` for an address in the home network and no admin.
    pub(super) fn add_calendar(
        &self,
        new: AddCalendar,
        by: &Identity,
        words: Option<Words>,
    ) -> Result<Value> {
        let owner_id = match &new.owner {
            None if by.role == UserRole::Owner => {
                return Err(Error::invalid_request(
                    "name whose calendar it is as \"owner\"",
                ));
            }
            None => by.user_id,
            Some(name) => self.named_by_owner(name, by)?.id,
        };
        let audience = new.audience.unwrap_or(Audience::Private);
        check_audience(by, &audience)?;
        let (url, may_be_local) = allowed_address(&new.url, by)?;
        let usual = match new.username {
            Some(_) => REFRESH_MINUTES,
            None => FILE_REFRESH_MINUTES,
        };
        let id = self.store.add_calendar(NewCalendar {
            name: new.name,
            url,
            username: new.username.map(checked_username).transpose()?,
            password: self.sealed(new.password)?,
            owner_id,
            audience,
            is_read_only: new.read_only,
            may_be_local,
            refresh_minutes: new.refresh_minutes.unwrap_or(usual),
        })?;
        self.has_calendars.store(true, Ordering::Relaxed);
        self.calendar_changed(id, by, words)
    }

    /// Changes a calendar, which is then read.
    ///
    /// # Errors
    /// Those of the store; as [`Service::add_calendar`].
    pub(super) fn update_calendar(
        &self,
        update: UpdateCalendar,
        by: &Identity,
        words: Option<Words>,
    ) -> Result<Value> {
        if let Some(audience) = &update.audience {
            check_audience(by, audience)?;
        }
        let id = update.calendar_id;
        let change = CalendarChange {
            name: update.name,
            url: update
                .url
                .map(|url| allowed_address(&url, by))
                .transpose()?,
            username: update.username.map(checked_username).transpose()?,
            password: self.sealed(update.password)?,
            audience: update.audience,
            is_read_only: update.read_only,
            refresh_minutes: update.refresh_minutes,
        };
        let readers = self.store.update_calendar(&by.viewer(), id, change)?;
        self.hub.publish_calendar(id, readers);
        self.calendar_changed(id, by, words)
    }

    pub(super) fn remove_calendar(&self, viewer: &Viewer, id: CalendarId) -> Result<Value> {
        let (name, readers) = self.store.remove_calendar(viewer, id)?;
        self.hub.publish_calendar(id, readers);
        if let Ok(has_calendars) = self.store.has_calendars() {
            self.has_calendars
                .store(has_calendars.uncommitted(), Ordering::Relaxed);
        }
        Ok(json!({ "calendar_id": id, "name": name }))
    }

    pub(super) fn list_calendars(&self, by: &Identity, words: Option<Words>) -> Result<Value> {
        let calendars = self.store.snapshot(&by.viewer())?.calendars()?;
        Ok(views::records(
            "calendars",
            calendars.iter().map(|one| views::calendar(one, by, words)),
        ))
    }

    pub(super) fn list_events(&self, viewer: &Viewer, list: &ListEvents) -> Result<Value> {
        let from = list.from.unwrap_or_else(|| self.clock.now());
        let until = list.until.unwrap_or_else(|| from.plus(AHEAD));
        Ok(json!({ "events": self.events(viewer, from, until)? }))
    }

    fn events(
        &self,
        viewer: &Viewer,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<record::CalendarEvent>> {
        let zone = self.settings.current().zone();
        let events = self.store.snapshot(viewer)?.next_events(from, until)?;
        Ok(events
            .into_iter()
            .map(|event| views::event(event, &zone))
            .collect())
    }

    /// What the day brings, for the caller or for somebody that the owner of the machine names.
    ///
    /// # Errors
    /// `unauthorized` for a name, and no such owner; `not_found`.
    pub(super) fn today(&self, user: Option<&str>, by: &Identity) -> Result<Value> {
        let named = user.map(|name| self.named_by_owner(name, by).map(|user| user.identity()));
        let named = named.transpose()?;
        let by = named.as_ref().unwrap_or(by);
        let is_whole = by.role == UserRole::Owner;
        let (viewer, zone, now) = (
            by.viewer(),
            self.settings.current().zone(),
            self.clock.now(),
        );
        let local = zone.local(now);
        let tomorrow = local.and_then(|local| local.date().tomorrow().ok());
        let end = tomorrow.and_then(|day| zone.instant_in_calendar(day.at(0, 0, 0, 0)));
        let end = end.unwrap_or(now);
        let seen = self.store.snapshot(&viewer)?;
        let schedules = seen.schedules()?.into_iter().filter(|one| {
            // Of today, or told and not yet done.
            let is_due = match &one.timing {
                Some(timing) => timing.next_at < end,
                None => one.told_at.is_some(),
            };
            is_due && !one.is_paused && (is_whole || one.owner_id == Some(by.user_id))
        });
        let words = self.store.words_of(by.user_id);
        let schedules = schedules
            .map(|one| views::schedule(&one, &zone, now, words))
            .collect();
        let lists = seen.lists()?.into_iter().filter(|one| one.unchecked > 0);
        let lists = lists.map(|one| views::list_summary(&one)).collect();
        let unread = match is_whole {
            true => Vec::new(),
            false => seen.conversations(UNREAD, None, false)?.conversations,
        };
        let unread = unread.into_iter().filter(|one| one.marks.is_unread);
        let unread = unread.map(views::conversation).collect();
        // What somebody has said is for no program, and for nobody who names them.
        let suggestions = match named.is_none() && !by.is_narrowed {
            true => seen.repeated_openings()?,
            false => Vec::new(),
        };
        drop(seen);
        Ok(json!(record::Today {
            date: local
                .map(|local| local.date().to_string())
                .unwrap_or_default(),
            events: self.events(&viewer, now, end)?,
            schedules,
            lists,
            approvals: self.waiting_approvals(by)?,
            unread,
            suggestions,
        }))
    }

    /// The user of this name. Only the owner of the machine may name somebody else.
    fn named_by_owner(&self, name: &str, by: &Identity) -> Result<User> {
        if by.role != UserRole::Owner && folded(name) != folded(&by.user) {
            let refused = "only the owner of the machine names somebody else";
            return Err(Error::unauthorized(refused));
        }
        self.find_user(name)
    }

    fn calendar_changed(
        &self,
        id: CalendarId,
        by: &Identity,
        words: Option<Words>,
    ) -> Result<Value> {
        let calendar = self.store.snapshot(&by.viewer())?.calendar(id);
        self.calendar_wakes.look();
        let calendar = calendar?;
        if let Some(readers) = self.store.calendar_readers(id)? {
            self.hub.publish_calendar(id, readers);
        }
        Ok(json!(views::calendar(&calendar, by, words)))
    }

    fn sealed(&self, password: Option<Secret>) -> Result<Option<Vec<u8>>> {
        let Some(password) = password else {
            return Ok(None);
        };
        if password.expose().len() > CREDENTIAL_BYTES {
            return Err(too_long("password"));
        }
        let key = SealingKey::load_or_make(&self.data_dir)
            .map_err(|error| Error::server("the password cannot be kept", error.to_string()))?;
        Ok(Some(key.seal(&password)))
    }

    /// Reads what is due, until the server stops.
    pub(super) fn keep_calendars(self: &Arc<Service>) {
        let mut running: Vec<Running> = Vec::new();
        let mut zone = None;
        loop {
            running.retain(|one| !one.is_over.load(Ordering::SeqCst));
            // Days and times without a zone are others in another one.
            let current = self.settings.current().time_zone.clone();
            if zone
                .replace(current.clone())
                .is_some_and(|before| before != current)
            {
                self.logged("calendars", self.store.read_calendars_now(None));
            }
            let due = self.store.due_calendars(self.clock.now());
            let due = due
                .map(store::Provisional::uncommitted)
                .unwrap_or_else(|error| {
                    log::warn!("calendars: {error}");
                    Vec::new()
                });
            for source in due {
                let is_running = running.iter().any(|one| one.id == source.id);
                let of_owner = running
                    .iter()
                    .filter(|one| one.owner == source.owner_id)
                    .count();
                if running.len() < AT_ONCE && !is_running && of_owner < OF_ONE {
                    running.extend(self.start_reading(source));
                }
            }
            let next = self
                .store
                .next_calendar_at()
                .map(store::Provisional::uncommitted);
            let wait = match next {
                Ok(Some(next)) if next > self.clock.now() => next.since(self.clock.now()).min(LOOK),
                Ok(None) => REST,
                // It is being read, or waits for a reading that ends.
                _ => LOOK,
            };
            if self.calendar_wakes.wait(wait) == Wake::Stop {
                return;
            }
        }
    }

    fn start_reading(self: &Arc<Service>, source: CalendarSource) -> Option<Running> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (id, owner, over, service) = (
            source.id,
            source.owner_id,
            Arc::clone(&is_over),
            Arc::clone(self),
        );
        let task = Task::start("calendar", &Cancel::default(), move |cancel| {
            service.read_calendar(&source, cancel);
            over.store(true, Ordering::SeqCst);
            service.calendar_wakes.look();
        });
        match task {
            Ok(task) => Some(Running {
                id,
                owner,
                is_over,
                _task: task,
            }),
            Err(error) => {
                log::warn!("calendars: no thread: {error}");
                None
            }
        }
    }

    fn read_calendar(&self, source: &CalendarSource, cancel: &Cancel) {
        let config = self.settings.current();
        let (zone, now): (Zone, Timestamp) = (config.zone(), self.clock.now());
        let trust = Trust::new(config.tls.ca_file.as_deref());
        let reach = Reach {
            trust: &trust,
            deadline: Instant::now() + READING,
            cancel,
        };
        let key = SealingKey::load_or_make(&self.data_dir);
        let password = match (&source.password, &key) {
            (None, _) => Ok(None),
            (Some(_), Err(error)) => Err(error.to_string().into()),
            (Some(sealed), Ok(key)) => {
                let password = key.open(sealed).map(Some);
                password.ok_or_else(|| Said::of("calendar.lost_password", &[]))
            }
        };
        let reading =
            password.and_then(|password| read(source, password.as_ref(), &zone, now, reach));
        if cancel.is_cancelled() {
            return;
        }
        let problem = match &reading {
            Ok(reading) => reading.problem.clone(),
            Err(problem) => Some(problem.clone()),
        };
        let refresh = Duration::from_secs(u64::from(source.refresh_minutes) * 60);
        let stored = self
            .store
            .calendar_read(source, reading, self.clock.now().plus(refresh));
        match stored {
            Ok(Some(readers)) => {
                if let Some(problem) = problem {
                    log::info!("calendar {}: {problem}", source.id);
                }
                self.hub.publish_calendar(source.id, readers);
            }
            Ok(None) => {}
            Err(error) => log::warn!("calendar {}: {error}", source.id),
        }
    }
}

/// Most conversations that are looked through for something unread.
const UNREAD: usize = 200;

/// An address as it is kept, and whether it may be in the home network.
fn allowed_address(url: &str, by: &Identity) -> Result<(String, bool)> {
    let url = checked_address(url).map_err(Error::invalid_request)?;
    let is_admin = by.role >= UserRole::Admin;
    if url.authority.host.is_local() && !is_admin {
        return Err(Error::unauthorized(Said::of("error.home_address", &[])));
    }
    Ok((url.text(), is_admin))
}

fn checked_username(name: String) -> Result<String> {
    match name.len() > CREDENTIAL_BYTES {
        true => Err(too_long("username")),
        // It would end there (RFC 7617).
        false if name.is_empty() || name.contains(':') || name.contains(char::is_control) => {
            Err(Error::refused("error.calendar_username", &[]))
        }
        false => Ok(name),
    }
}

fn too_long(field: &str) -> Error {
    Error::invalid_request(format!("\"{field}\" may have {CREDENTIAL_BYTES} bytes"))
}

//! Calendars that are kept elsewhere: an account of a CalDAV server, or a file that is read
//! alone. What is kept here are the times of their events around the present, so that they are
//! found at once and without their server; a change is made there first.
//!
//! iCalendar is read and written by own code (`component`, `reading`, `edit`, some 900 lines),
//! and its rules by [`base::calendar::Recurrence`]: of the crates looked at, `icalendar` 0.17
//! reads components alone for 0.1 MB and 14 packages, and those that know recurrence add 2.3 MB
//! (`calcard` 0.3) and 2.8 MB (`rrule` 0.14), with a second calendar and all time zones.
//!
//! ```text
//! read -> discover | look (PROPFIND) -> events (REPORT) | file (GET)
//!      -> components -> Reading -> store.calendar_read
//! tool -> change -> GET, edit, PUT or DELETE -> store.event_changed
//! ```

mod component;
mod dav;
mod edit;
mod point;
mod reading;
mod remote;
mod tool;
mod words;
mod zones;

use std::time::Duration;

use base::calendar::Zone;
use base::clock::Timestamp;
use base::language::Said;
use base::secret::Secret;
use base::url::Url;
use component::is_calendar;
use reading::{Reading, View};
pub use remote::Reach;
use remote::Remote;
use store::{CalendarReading, CalendarSource};
pub use tool::when;
pub(super) use tool::{edit_events, find_events};

/// The property of an event that was written while text from outside was at hand.
const OUTSIDE_MARK: &str = "X-HEARTH-OUTSIDE";
/// After this long all of a calendar is read, even if nothing has changed: time has gone on.
const WHOLE: Duration = Duration::from_secs(24 * 3600);

/// The address of a calendar as it is kept.
///
/// # Errors
/// What is wrong with it, for a person.
pub fn checked_address(url: &str) -> Result<Url, Said> {
    let url = url.trim();
    let url = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("webcal") => format!("https://{rest}"),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("webcals") => format!("https://{rest}"),
        _ => url.to_owned(),
    };
    let parsed = Url::parse(&url)
        .ok()
        .filter(|url| matches!(url.scheme.as_str(), "http" | "https"));
    match parsed {
        Some(url) if url.user.is_some() => Err(Said::of("error.calendar_credentials", &[])),
        Some(url) if url.text().len() <= 2_000 => Ok(url),
        _ => Err(Said::of("error.calendar_address", &[])),
    }
}

/// Reads a calendar where it is kept, as far as it has changed.
///
/// # Errors
/// Why it cannot be read, for a person.
pub fn read(
    source: &CalendarSource,
    password: Option<&Secret>,
    zone: &Zone,
    now: Timestamp,
    reach: Reach<'_>,
) -> Result<CalendarReading, Said> {
    let name = zone.rules().iana_name().unwrap_or_default().to_owned();
    let is_known = source.zone.as_deref() == Some(&name)
        && source
            .whole_at
            .is_some_and(|at| at <= now && now.since(at) < WHOLE);
    let known = source.version.as_deref().filter(|_| is_known);
    let remote = open(source, password, reach)?;
    let mut view = View::of(source, zone, now);
    let found = match &source.collection {
        Some(collection) => {
            let mut found = dav::look(&remote, collection)?;
            found.addresses.clone_from(&view.addresses);
            Some(found)
        }
        None if source.username.is_some() => dav::discover(&remote, &source.url, &source.name)?,
        None => None,
    };
    let mut reading = CalendarReading {
        zone: name,
        ..CalendarReading::default()
    };
    let Some(found) = found else {
        view.is_outside = true;
        return file(&remote, &source.url, known, view, reading);
    };
    view.addresses = found.addresses;
    if let Some(user) = source.username.as_deref().filter(|user| user.contains('@')) {
        view.addresses.push(user.to_lowercase());
    }
    view.addresses.retain(|one| !one.is_empty());
    view.addresses.sort();
    view.addresses.dedup();
    reading.addresses = view.addresses.join(" ");
    reading.can_write = found.can_write;
    if known.is_none() || found.version.as_deref() != known {
        let (events, problem) = dav::events(&remote, &found.url, view)?;
        (reading.events, reading.problem) = (Some(events), problem);
    }
    reading.version = found.version;
    reading.collection = Some(found.url);
    Ok(reading)
}

fn open<'a>(
    source: &CalendarSource,
    password: Option<&Secret>,
    reach: Reach<'a>,
) -> Result<Remote<'a>, Said> {
    let empty = Secret::default();
    let credentials = source
        .username
        .as_deref()
        .map(|name| (name, password.unwrap_or(&empty)));
    Remote::new(&source.url, credentials, source.may_be_local, reach)
}

/// Reads a calendar that is one file, if it is another than the `known` version.
fn file(
    remote: &Remote<'_>,
    url: &str,
    known: Option<&str>,
    view: View,
    mut reading: CalendarReading,
) -> Result<CalendarReading, Said> {
    let mut headers = vec![("accept", "text/calendar, */*;q=0.5")];
    match known.and_then(|known| known.split_once(' ')) {
        Some(("etag", etag)) => headers.push(("if-none-match", etag)),
        Some(("date", date)) => headers.push(("if-modified-since", date)),
        _ => {}
    }
    let answer = remote.send("GET", url, &headers, None)?;
    match answer.status {
        304 if known.is_some() => {
            reading.version = known.map(str::to_owned);
            return Ok(reading);
        }
        200 if is_calendar(&answer.body) => {}
        200 => return Err(Said::of("calendar.not_one", &[])),
        _ => return Err(answer.problem()),
    }
    let etag = answer.etag.map(|etag| format!("etag {etag}"));
    reading.version = etag.or(answer.last_modified.map(|date| format!("date {date}")));
    let mut events = Reading::new(view);
    events.add(&answer.body, None);
    let (events, problem) = events.finish();
    (reading.events, reading.problem) = (Some(events), problem);
    Ok(reading)
}

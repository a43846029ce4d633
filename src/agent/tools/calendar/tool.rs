//! What a model does with calendars: it finds events, and adds, changes and deletes them where
//! they are kept.

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, Time};
use serde_json::json;

use super::component::Component;
use super::edit::{self, Change, Target};
use super::point::{Point, not_a_time};
use super::reading::{Length, Reading, View, When};
use super::remote::{Answer, Remote};
use super::{Reach, open, words};
use crate::tools::definition::{
    Arguments, Change as Changed, Definition, RunLimit, ToolContext, required_text, text,
};
use crate::tools::function::FunctionTool;
use crate::tools::wording::{Approver, Intent};
use base::calendar::{Recurrence, Zone, spoken_stamp, weekday};
use base::clock::Timestamp;
use base::ids::{CalendarId, EventId, UserId};
use base::language::Said;
use base::people::folded;
use base::sealed::SealingKey;
use base::secret::{hex, random_bytes};
use net::tls::Trust;
use store::{Calendar, CalendarEvent, CalendarSource, Snapshot};

/// How far ahead events are found where nothing else is said.
const AHEAD: Duration = Duration::from_secs(14 * 86_400);
/// Most events of one answer.
const MOST_SHOWN: usize = 100;
/// How long a change may take, in seconds.
const SECONDS: u64 = 45;
/// Longest title and location, in characters.
const TEXT_CHARACTERS: usize = 200;

/// Finds events.
pub(in crate::tools) fn find_events() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "find_events",
            "Events of the calendars, the next 14 days where nothing else is said.",
            json!({
                "query": {"type": "string"},
                "from": {"type": "string", "description": "2026-11-27, 2026-11-27T18:30, tomorrow"},
                "until": {"type": "string"},
            }),
            &[],
        )
        .for_readers()
        .read_only(),
        intent: |_, approver| approver.intent("action.calendar.find", &[]),
        run: run_find,
    }
}

/// Adds, changes and deletes them.
pub(in crate::tools) fn edit_events() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "edit_events",
            "Change calendars. add: title, start; a date alone takes the whole day. change, \
             delete: event_id of find_events; of one that recurs that time alone, or all of it \
             with series.",
            json!({
                "action": {"type": "string", "enum": ["add", "change", "delete"]},
                "event_id": {"type": "string"},
                "title": {"type": "string"},
                "start": {"type": "string", "description": "Local: 2026-11-27T18:30, 2026-11-27"},
                "end": {"type": "string"},
                "location": {"type": "string"},
                "repeat": {"type": "string", "description": "FREQ=WEEKLY;BYDAY=MO"},
                "calendar": {"type": "string", "description": "Its name"},
                "series": {"type": "boolean"},
            }),
            &["action"],
        )
        .for_readers(),
        intent: edit_intent,
        run: run_edit,
    }
}

fn run_find(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let zone = context.config.zone();
    let now = context.clock.now();
    let point = |name: &str| {
        text(arguments, name)
            .map(|text| Point::read(text, &zone, now))
            .transpose()
    };
    let query = text(arguments, "query").map(folded);
    let from = point("from")?.map_or(Some(now), |point| point.begin(&zone));
    let from = from.ok_or("\"from\" is beyond the calendar")?;
    let until = match point("until")? {
        Some(point) => point.end(&zone).ok_or("\"until\" is beyond the calendar")?,
        // What is looked for may be far away.
        None if query.is_some() => from.plus(53 * AHEAD),
        None => from.plus(AHEAD),
    };
    let seen = context.seen()?;
    let calendars = seen.calendars()?;
    let mut events = seen.next_events(from, until)?;
    let called = seen.display_names()?;
    drop(seen);
    if let Some(query) = &query {
        let has = |text: &str| folded(text).contains(query.as_str());
        events.retain(|event| {
            let time = &event.time;
            [&time.title, &time.location, &time.description]
                .into_iter()
                .any(|text| has(text))
        });
    }
    let shown = &events[..events.len().min(MOST_SHOWN)];
    let is_outside =
        |event: &CalendarEvent| event.time.is_outside || Some(event.owner_id) != context.user_id;
    let mut lines: Vec<String> = shown.iter().map(|event| line(event, &zone)).collect();
    if events.is_empty() {
        lines.push("There are no such events.".to_owned());
    } else {
        context.shows_kept(shown.iter().any(is_outside));
    }
    if events.len() > shown.len() {
        lines.push(format!(
            "[{} more: ask for a shorter time]",
            events.len() - shown.len()
        ));
    }
    // What others call theirs is shown where it matters.
    let has_event = |one: &Calendar| shown.iter().any(|event| event.calendar_id == one.id);
    let named = calendars
        .iter()
        .filter(|one| Some(one.owner_id) == context.user_id || has_event(one));
    lines.extend(named.map(|one| words::calendar(one, &called)));
    Ok(lines.join("\n"))
}

fn edit_intent(arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
    let seen = approver.store.snapshot(approver.viewer).ok()?;
    let called = seen.display_names().ok()?;
    let argument = |name| text(arguments, name);
    let words = approver.words;
    let time = |name| argument(name).map(|text| spoken_stamp(text, words));
    let when = match (time("start"), time("end")) {
        (Some(start), Some(end)) => Some(format!("{start} – {end}")),
        (start, end) => start.or(end),
    };
    let repeats = argument("repeat").map(|rule| {
        let first = argument("start").and_then(|start| start.parse().ok());
        let known = Recurrence::parse(rule.trim_start_matches("RRULE:"));
        let said = known.ok().and_then(|rule| rule.say(first, words));
        said.unwrap_or_else(|| rule.to_owned())
    });
    let owned = |name| argument(name).map(str::to_owned);
    let what = [owned("title"), when, owned("location"), repeats];
    let what: Vec<String> = what.into_iter().flatten().collect();
    let what = what.join(", ");
    if argument("action")? == "add" {
        let calendar = chosen(&seen, argument("calendar"), approver.viewer.asker()).ok()?;
        let calendar = words::seen(words, &calendar, &called);
        let fields = [("calendar", calendar.as_str()), ("event", &what)];
        return approver.intent("action.calendar.add", &fields);
    }
    let event = seen.event(argument("event_id")?.parse().ok()?).ok()?;
    let calendar = seen.calendar(event.calendar_id).ok()?;
    let zone = Zone::of_household(event.zone.as_deref());
    let is_series = arguments.get("series").is_some_and(|all| *all == true);
    let is_all = is_series && !event.time.occurrence.is_empty();
    let begins = match &event.time.first_day {
        Some(day) => spoken_stamp(day, words),
        None => spoken_stamp(&zone.minute(event.time.starts_at), words),
    };
    let event = format!("{} ({begins})", event.time.title);
    let key = match (argument("action")?, is_all) {
        ("delete", false) => "action.calendar.delete",
        ("delete", true) => "action.calendar.delete_all",
        (_, false) => "action.calendar.change",
        (_, true) => "action.calendar.change_all",
    };
    let calendar = words::seen(words, &calendar, &called);
    let fields = [
        ("calendar", calendar.as_str()),
        ("event", &event),
        ("change", &what),
    ];
    approver.intent(key, &fields)
}

fn run_edit(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let zone = context.config.zone();
    let editing = Editing {
        arguments,
        context,
        now: context.clock.now(),
        zone: &zone,
    };
    match text(arguments, "action") {
        Some("add") => editing.add(),
        Some(action @ ("change" | "delete")) => editing.change(action == "delete"),
        _ => Err("the argument \"action\" must be add, change or delete".to_owned()),
    }
}

/// One call of the tool.
struct Editing<'a, 'b> {
    arguments: &'a Arguments,
    context: &'a ToolContext<'b>,
    now: Timestamp,
    zone: &'a Zone,
}

impl Editing<'_, '_> {
    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match text(self.arguments, name) {
            Some(text) if text.chars().count() > TEXT_CHARACTERS => Err(format!(
                "the argument \"{name}\" may have {TEXT_CHARACTERS} characters"
            )),
            text => Ok(text.map(str::to_owned)),
        }
    }

    fn wanted(&self, known: Option<When>) -> Result<Change, String> {
        Ok(Change {
            when: self.when(known)?,
            title: self.text("title")?,
            location: self.text("location")?,
            is_outside: self.context.is_outside,
        })
    }

    /// When the event is to be; one that is moved stays as long as it was `known`.
    fn when(&self, known: Option<When>) -> Result<Option<When>, String> {
        let read = |text| Point::read(text, self.zone, self.now);
        let start = match (text(self.arguments, "start"), known) {
            (Some(text), _) => read(text)?,
            (None, None) => return Ok(None),
            (None, Some(_)) if text(self.arguments, "end").is_none() => return Ok(None),
            (None, Some(When::Days(first, _))) => Point::Day(first),
            (None, Some(When::Time(from, _))) => Point::Time(from),
        };
        let end = match (text(self.arguments, "end"), start) {
            (Some(text), Point::Time(from)) if text.len() <= 5 && text.contains(':') => {
                let time: Time = format!("{text:0>5}")
                    .parse()
                    .map_err(|_| not_a_time(text))?;
                let day = self
                    .zone
                    .local(from)
                    .ok_or_else(|| not_a_time(text))?
                    .date();
                let end = self.zone.instant_in_calendar(day.to_datetime(time));
                Some(Point::Time(end.ok_or_else(|| not_a_time(text))?))
            }
            (Some(text), _) => Some(read(text)?),
            (None, _) => None,
        };
        let when = match (start, end, known) {
            (Point::Day(first), Some(Point::Day(last)), _) => When::Days(first, last),
            (Point::Day(first), None, Some(When::Days(from, until))) => {
                let last = first.checked_add((until - from).get_days().days());
                When::Days(first, last.unwrap_or(first))
            }
            (Point::Day(first), None, _) => When::Days(first, first),
            (Point::Time(from), Some(Point::Time(until)), _) => When::Time(from, until),
            (Point::Time(from), None, Some(When::Time(was, until))) => {
                When::Time(from, from.plus(until.since(was)))
            }
            (Point::Time(from), None, _) => When::Time(from, from.plus(Duration::from_secs(3_600))),
            _ => return Err("\"start\" and \"end\" must both be dates or both be times".to_owned()),
        };
        match when.length() {
            Length::Days(..=0) | Length::Millis(..0) => {
                Err("\"end\" is before \"start\"".to_owned())
            }
            _ => Ok(Some(when)),
        }
    }

    fn add(&self) -> Result<String, String> {
        required_text(self.arguments, "title")?;
        required_text(self.arguments, "start")?;
        let rule = text(self.arguments, "repeat").map(|rule| rule.trim_start_matches("RRULE:"));
        if let Some(rule) = rule {
            Recurrence::parse(rule)
                .map_err(|part| format!("\"repeat\" cannot be understood: {part}"))?;
        }
        let change = self.wanted(None)?;
        let context = self.context;
        let seen = context.seen()?;
        let calendar = chosen(&seen, text(self.arguments, "calendar"), context.user_id)?;
        let source = seen.calendar_source(calendar.id)?;
        drop(seen);
        check_writable(&calendar)?;
        let uid = format!("{}@hearth", hex(&random_bytes::<16>()));
        let document = edit::new_event(&uid, &change, rule, self.zone, self.now);
        let collection = source.collection.as_deref().unwrap_or(&source.url);
        let place = format!(
            "{}/{}.ics",
            collection.trim_end_matches('/'),
            uid.trim_end_matches("@hearth")
        );
        self.with(&source, |remote| {
            self.put(remote, &place, &document, ("if-none-match", "*"))
        })?;
        self.store(&source, &uid, Some(&document), &place)?;
        Ok(format!(
            "Added to {}: {}",
            words::named(&calendar),
            self.shown(calendar.id, &uid)?
        ))
    }

    fn change(&self, is_deleted: bool) -> Result<String, String> {
        let id: EventId = required_text(self.arguments, "event_id")?.parse()?;
        let context = self.context;
        let seen = context.seen()?;
        let event = seen.event(id)?;
        let calendar = seen.calendar(event.calendar_id)?;
        let source = seen.calendar_source(event.calendar_id)?;
        drop(seen);
        check_writable(&calendar)?;
        let time = &event.time;
        if let Some(organizer) = &time.organizer {
            return Err(format!(
                "{organizer} invites to it: it can be answered in another program alone, not \
                 changed from here"
            ));
        }
        let place = time
            .href
            .as_deref()
            .ok_or("the calendar does not say where the event is")?;
        let known = match (&time.first_day, &time.last_day) {
            (Some(first), Some(last)) => {
                let days = first.parse().ok().zip(last.parse().ok());
                days.map(|(first, last)| When::Days(first, last))
            }
            _ => Some(When::Time(time.starts_at, time.ends_at)),
        };
        let change = self.wanted(known)?;
        let changes = change.when.is_some() || change.title.is_some() || change.location.is_some();
        if !is_deleted && !changes {
            let missing = "say what changes: \"start\", \"end\", \"title\" or \"location\"";
            return Err(missing.to_owned());
        }
        let target = Target {
            uid: &time.uid,
            occurrence: &time.occurrence,
            starts_at: time.starts_at,
            is_series: time.occurrence.is_empty()
                || self.arguments.get("series").is_some_and(|all| *all == true),
        };
        let left = self.with(&source, |remote| {
            let answer = remote.send("GET", place, &[], None)?;
            if answer.status != 200 {
                return Err(answer.problem());
            }
            let etag = answer.etag.as_deref();
            let etag = etag.ok_or("its server says no version of the event (ETag)")?;
            let version = ("if-match", etag);
            let mut document =
                Component::parse(&answer.body).ok_or("what its server has is no event")?;
            let is_left = match (is_deleted, target.is_series) {
                (true, true) => false,
                (true, false) => edit::delete_one(&mut document, &target, self.zone, self.now)?,
                (false, _) => {
                    edit::change(&mut document, &target, &change, self.zone, self.now)?;
                    true
                }
            };
            if is_left {
                self.put(remote, place, &document, version)?;
                return Ok(Some(document));
            }
            let answer = remote.send("DELETE", place, &[version], None)?;
            match answer.status {
                200..300 | 404 | 410 => Ok(None),
                _ => Err(refused(&answer)),
            }
        })?;
        self.store(&source, &time.uid, left.as_ref(), place)?;
        let (title, calendar) = (&time.title, words::named(&calendar));
        Ok(match is_deleted {
            true => format!("Deleted from {calendar}: {title}."),
            false => format!(
                "Changed in {calendar}: {}",
                self.shown(event.calendar_id, &time.uid)?
            ),
        })
    }

    /// Asks the server of a calendar.
    fn with<T>(
        &self,
        source: &CalendarSource,
        ask: impl FnOnce(&Remote<'_>) -> Result<T, Said>,
    ) -> Result<T, String> {
        Snapshot::none_open();
        let context = self.context;
        let key = SealingKey::load_or_make(context.data_dir).map_err(|error| error.to_string())?;
        let password = source
            .password
            .as_deref()
            .and_then(|sealed| key.open(sealed));
        let trust = Trust::new(context.config.tls.ca_file.as_deref());
        let limit = RunLimit::new(SECONDS, context.deadline);
        let reach = Reach {
            trust: &trust,
            deadline: limit.deadline,
            cancel: context.cancel,
        };
        let remote = open(source, password.as_ref(), reach);
        let answer = remote.and_then(|remote| ask(&remote));
        answer.map_err(|why| format!("the calendar {} was not changed: {why}", source.name))
    }

    fn put(
        &self,
        remote: &Remote<'_>,
        place: &str,
        document: &Component,
        condition: (&str, &str),
    ) -> Result<(), Said> {
        let headers = [("content-type", "text/calendar; charset=utf-8"), condition];
        let answer = remote.send("PUT", place, &headers, Some(document.write().as_bytes()))?;
        match answer.status {
            200..300 => Ok(()),
            _ => Err(refused(&answer)),
        }
    }

    /// Notes what an event has become, so that it is found so at once.
    fn store(
        &self,
        source: &CalendarSource,
        uid: &str,
        document: Option<&Component>,
        place: &str,
    ) -> Result<(), String> {
        let mut reading = Reading::new(View::of(source, self.zone, self.now));
        if let Some(document) = document {
            reading.add(document.write().as_bytes(), Some(place));
        }
        let (times, _) = reading.finish();
        let readers = self.context.store.event_changed(source.id, uid, times)?;
        let changed = readers.map(|readers| Changed::Calendar(source.id, readers));
        self.context.changed(changed.into_iter().collect());
        Ok(())
    }

    /// The next times of an event, as they are found now.
    fn shown(&self, calendar: CalendarId, uid: &str) -> Result<String, String> {
        let until = self.now.plus(60 * AHEAD);
        let events = self
            .context
            .seen()?
            .next_events(Timestamp::from_millis(0), until)?;
        let own = |event: &&CalendarEvent| event.calendar_id == calendar && event.time.uid == uid;
        let lines: Vec<String> = events
            .iter()
            .filter(own)
            .take(3)
            .map(|event| line(event, self.zone))
            .collect();
        Ok(lines.join("\n"))
    }
}

fn refused(answer: &Answer) -> Said {
    match answer.status {
        412 => "the event was changed elsewhere in the meantime: look at it again".into(),
        _ => answer.problem(),
    }
}

fn check_writable(calendar: &Calendar) -> Result<(), String> {
    let named = words::named(calendar);
    match (calendar.is_read_only, calendar.can_write) {
        (true, _) => Err(format!("{named} is set to be read alone (read_only)")),
        (false, false) => Err(format!("{named} can be read alone")),
        (false, true) => Ok(()),
    }
}

/// The calendar of this name, the asker's own first; without a name the only one of theirs that
/// can be changed.
fn chosen(
    seen: &Snapshot<'_>,
    name: Option<&str>,
    asker: Option<UserId>,
) -> Result<Calendar, String> {
    let all = seen.calendars()?;
    let is_own = |one: &&Calendar| Some(one.owner_id) == asker;
    let wanted = name.map(folded);
    let named = |one: &&Calendar| {
        wanted
            .as_ref()
            .is_none_or(|wanted| folded(&one.name) == *wanted)
    };
    let writable = |one: &&Calendar| one.can_write && !one.is_read_only;
    let fitting: Vec<&Calendar> = match &wanted {
        Some(_) => all.iter().filter(named).collect(),
        None => all.iter().filter(writable).collect(),
    };
    let own: Vec<&Calendar> = fitting.iter().copied().filter(|one| is_own(one)).collect();
    match (&own[..], &fitting[..]) {
        ([one], _) | ([], [one]) => Ok((*one).clone()),
        ([], []) if all.is_empty() => Err("there is no calendar yet".to_owned()),
        ([], []) => Err("there is no such calendar that can be changed".to_owned()),
        (several, fitting) => {
            let several = if several.is_empty() { fitting } else { several };
            let names: Vec<String> = several.iter().map(|one| words::named(one)).collect();
            Err(format!("say which \"calendar\": {}", names.join(", ")))
        }
    }
}

fn line(event: &CalendarEvent, zone: &Zone) -> String {
    let time = &event.time;
    let mut line = format!("{} {}: {}", event.id, when(event, zone), time.title);
    if !time.location.is_empty() {
        line.push_str(&format!(", {}", time.location));
    }
    line.push_str(&format!(" [{}, {}", event.calendar, event.owner));
    if !time.occurrence.is_empty() {
        line.push_str(", recurs");
    }
    if let Some(organizer) = &time.organizer {
        line.push_str(&format!(", invitation of {organizer}"));
    } else if time.has_guests {
        line.push_str(", others are invited");
    }
    line.push(']');
    if !time.description.is_empty() {
        line.push_str(&format!(" {}", time.description));
    }
    line
}

/// When an event is, on the clocks of a zone: `Fri 2026-11-27 18:00-19:30`.
pub fn when(event: &CalendarEvent, zone: &Zone) -> String {
    let time = &event.time;
    let day = |text: &str| match text.parse::<Date>() {
        Ok(day) => format!("{:.3} {day}", weekday(day)),
        Err(_) => text.to_owned(),
    };
    match (&time.first_day, &time.last_day) {
        (Some(first), Some(last)) if first == last => day(first),
        (Some(first), Some(last)) => format!("{} to {}", day(first), day(last)),
        _ => {
            let (from, until) = (
                zone.day_and_minute(time.starts_at),
                zone.day_and_minute(time.ends_at),
            );
            match from.get(..14) == until.get(..14) {
                _ if time.starts_at == time.ends_at => from,
                true => format!("{from}-{}", &until[15..]),
                false => format!("{from} to {until}"),
            }
        }
    }
}

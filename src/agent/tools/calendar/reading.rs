//! From the text of a calendar to the times of its events around the present.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::SpanParser;

use super::OUTSIDE_MARK;
use super::component::{Component, Property, basic, components, text};
use super::zones::Zones;
use crate::tools::output::shorten;
use base::calendar::recurrence::{Search, date, local};
use base::calendar::{Recurrence, Zone};
use base::clock::Timestamp;
use base::language::Said;
use base::visible::label;
use store::{CalendarSource, EventTime};

/// Most times of events that are kept of a calendar: those nearest to the present.
pub(super) const MOST_TIMES: usize = 10_000;
/// How far back and ahead they are kept.
const BACK: Duration = Duration::from_secs(90 * 86_400);
const AHEAD: Duration = Duration::from_secs(731 * 86_400);
/// How many days are looked at in all rules of a calendar.
const STEPS: u32 = 1_000_000;
/// Longest title and location, and how much of a description is kept, in characters.
const TITLE_CHARACTERS: usize = 200;
const DESCRIPTION_CHARACTERS: usize = 500;
/// The longest event, in days: one that takes longer ends then.
const MOST_DAYS: i32 = 366;

/// What reading depends on beside the text.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Of times without a zone.
    pub zone: Zone,
    pub now: Timestamp,
    /// Under which addresses the owner is invited.
    pub addresses: Vec<String>,
    /// Whether anybody may have written all of it.
    pub is_outside: bool,
}

impl View {
    /// That of a calendar as it is known.
    pub fn of(source: &CalendarSource, zone: &Zone, now: Timestamp) -> View {
        View {
            zone: zone.clone(),
            now,
            addresses: source.addresses.split(' ').map(str::to_owned).collect(),
            is_outside: false,
        }
    }

    /// From when and until when times are kept.
    pub fn window(&self) -> (Timestamp, Timestamp) {
        (self.now.minus(BACK), self.now.plus(AHEAD))
    }
}

/// Collects the times of events from one or more documents.
pub(super) struct Reading {
    view: View,
    from: Timestamp,
    until: Timestamp,
    steps: u32,
    /// By how far each is from the present, and a number of its own.
    times: BTreeMap<(u64, usize), EventTime>,
    /// How many were taken so far.
    taken: usize,
    has_too_many: bool,
    /// Rules that are not known.
    unknown: Vec<String>,
}

/// When an event is, as a property says it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Moment {
    Day(Date),
    Time {
        at: Timestamp,
        local: DateTime,
        zone: Zone,
    },
}

impl Moment {
    /// Reads a property, or one of the values of one.
    pub fn read(property: &Property, value: &str, zones: &mut Zones) -> Option<Moment> {
        let value = value.trim();
        // Of a period, its beginning.
        let value = value.split('/').next()?;
        if let Some(day) = date(value) {
            return Some(Moment::Day(day));
        }
        let zone = match (value.strip_suffix(['Z', 'z']), property.parameter("TZID")) {
            (Some(_), _) => Zone::utc(),
            (None, Some(name)) => zones.named(name),
            (None, None) => zones.household.clone(),
        };
        let local = local(value.trim_end_matches(['Z', 'z']))?;
        let at = zone.instant_in_calendar(local)?;
        Some(Moment::Time { at, local, zone })
    }

    /// The property of this name of a component.
    pub fn of(component: &Component, name: &str, zones: &mut Zones) -> Option<Moment> {
        let property = component.get(name)?;
        Moment::read(property, &property.value, zones)
    }

    /// By which a time of an event that comes again is named.
    pub fn key(&self) -> String {
        match self {
            Moment::Day(day) => basic(day),
            Moment::Time { at, .. } => utc(*at),
        }
    }

    /// When something is that begins then and takes so long.
    pub fn lasting(&self, length: Length) -> When {
        match (self, length) {
            (Moment::Day(first), Length::Days(days)) => {
                let last = first.checked_add((days - 1).days());
                When::Days(*first, last.unwrap_or(*first))
            }
            (Moment::Day(day), Length::Millis(_)) => When::Days(*day, *day),
            (Moment::Time { at, .. }, Length::Millis(millis)) => {
                When::Time(*at, at.shifted(millis))
            }
            (Moment::Time { at, .. }, Length::Days(days)) => {
                When::Time(*at, at.shifted(i64::from(days) * 86_400_000))
            }
        }
    }

    pub fn day(&self) -> Date {
        match self {
            Moment::Day(day) => *day,
            Moment::Time { local, .. } => local.date(),
        }
    }
}

/// An instant as iCalendar writes it; empty beyond the year 9999.
pub fn utc(at: Timestamp) -> String {
    let utc = Zone::utc().local(at);
    utc.map_or(String::new(), |utc| basic(utc) + "Z")
}

/// How long an event takes.
#[derive(Clone, Copy)]
pub(super) enum Length {
    Days(i32),
    Millis(i64),
}

/// When an event is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum When {
    /// Whole days, the last included.
    Days(Date, Date),
    Time(Timestamp, Timestamp),
}

impl When {
    pub fn length(self) -> Length {
        match self {
            When::Days(first, last) => Length::Days((last - first).get_days() + 1),
            When::Time(from, until) => Length::Millis(until.as_millis() - from.as_millis()),
        }
    }
}

impl Reading {
    pub fn new(view: View) -> Reading {
        let (from, until) = view.window();
        Reading {
            view,
            from,
            until,
            steps: STEPS,
            times: BTreeMap::new(),
            taken: 0,
            has_too_many: false,
            unknown: Vec::new(),
        }
    }

    /// Takes what is in a document, which the server has at `href`.
    pub fn add(&mut self, document: &[u8], href: Option<&str>) {
        let mut zones = Zones::new(&self.view.zone, self.view.now);
        for component in components(document).filter(|one| one.name == "VTIMEZONE") {
            zones.define(component);
        }
        // Times of events that have become something else, wherever they stand.
        let mut changed: HashSet<(String, String)> = HashSet::new();
        for event in components(document).filter(|one| one.name == "VEVENT") {
            if let Some(which) = Moment::of(&event, "RECURRENCE-ID", &mut zones) {
                changed.insert((uid(&event), which.key()));
            }
        }
        for event in components(document).filter(|one| one.name == "VEVENT") {
            if self.event(&event, &mut zones, &changed, href).is_none() {
                log::debug!("an event without a beginning is left out");
            }
        }
    }

    /// All times, the first one first, and what was left out.
    pub fn finish(self) -> (Vec<EventTime>, Option<Said>) {
        let mut problems = Vec::new();
        if self.has_too_many {
            let most = MOST_TIMES.to_string();
            problems.push(Said::of("calendar.too_many", &[("most", &most)]));
        }
        if self.steps == 0 {
            problems.push(Said::of("calendar.too_often", &[]));
        }
        if let Some(rule) = self.unknown.first() {
            let count = self.unknown.len().to_string();
            let fields = [("rule", rule.as_str()), ("count", &count)];
            problems.push(Said::of("calendar.unknown_rules", &fields));
        }
        let mut times: Vec<EventTime> = self.times.into_values().collect();
        times.sort_by(|one, other| {
            (one.starts_at, &one.uid, &one.occurrence).cmp(&(
                other.starts_at,
                &other.uid,
                &other.occurrence,
            ))
        });
        // The store knows a time by its event and the occurrence.
        let mut seen = HashSet::new();
        times.retain(|one| seen.insert((one.uid.clone(), one.occurrence.clone())));
        let problem = problems.into_iter().reduce(|said, other| {
            let also = Said::of("error.also", &[]);
            also.with("said", said).with("other", other)
        });
        (times, problem)
    }

    fn event(
        &mut self,
        event: &Component,
        zones: &mut Zones,
        changed: &HashSet<(String, String)>,
        href: Option<&str>,
    ) -> Option<()> {
        let start = Moment::of(event, "DTSTART", zones)?;
        let is_cancelled = event
            .value("STATUS")
            .is_some_and(|one| one.eq_ignore_ascii_case("CANCELLED"));
        if is_cancelled {
            return Some(());
        }
        let length = length(event, &start, zones);
        let described = self.described(event, href);
        if let Some(which) = Moment::of(event, "RECURRENCE-ID", zones) {
            self.take(&described, &start, length, which.key());
            return Some(());
        }
        let rules: Vec<&str> = event.all("RRULE").map(|rule| rule.value.as_str()).collect();
        let more: Vec<Moment> = moments(event, "RDATE", zones);
        if rules.is_empty() && more.is_empty() {
            self.take(&described, &start, length, String::new());
            return Some(());
        }
        let but: HashSet<String> = moments(event, "EXDATE", zones)
            .iter()
            .map(Moment::key)
            .collect();
        let (first, zone) = match &start {
            Moment::Day(day) => (day.at(0, 0, 0, 0), Zone::utc()),
            Moment::Time { local, zone, .. } => (*local, zone.clone()),
        };
        let mut found: Vec<Moment> = Vec::new();
        for rule in &rules {
            match Recurrence::parse(rule) {
                Ok(rule) => self.recurring(
                    &rule,
                    first,
                    &zone,
                    matches!(start, Moment::Day(_)),
                    length,
                    &mut found,
                ),
                Err(part) => self.unknown.push(label(&part)),
            }
        }
        // Also where a rule is not known, or names another first day.
        found.push(start.clone());
        found.extend(more);
        let mut known = HashSet::new();
        for moment in found {
            let key = moment.key();
            // Some exclude a time by its day.
            let day = basic(moment.day());
            let is_excluded = but.contains(&key)
                || but.contains(&day)
                || changed.contains(&(described.uid.clone(), key.clone()));
            if !is_excluded && known.insert(key.clone()) {
                self.take(&described, &moment, length, key);
            }
        }
        Some(())
    }

    fn recurring(
        &mut self,
        rule: &Recurrence,
        first: DateTime,
        zone: &Zone,
        is_day: bool,
        length: Length,
        found: &mut Vec<Moment>,
    ) {
        let days = match length {
            Length::Days(days) => days,
            Length::Millis(millis) => i32::try_from(millis / 86_400_000).unwrap_or(MOST_DAYS) + 1,
        };
        let day = |time: Timestamp| zone.local(time).map(|local| local.date());
        let (Some(from), Some(until)) = (day(self.from), day(self.until)) else {
            return;
        };
        let mut search = Search {
            from: from.checked_sub(days.min(MOST_DAYS).days()).unwrap_or(from),
            until,
            steps: self.steps,
        };
        rule.times(first, zone, &mut search, |local| {
            if is_day {
                found.push(Moment::Day(local.date()));
            } else if let Some(at) = zone.instant_in_calendar(local) {
                let zone = zone.clone();
                found.push(Moment::Time { at, local, zone });
            }
            true
        });
        self.steps = search.steps;
    }

    /// What all times of an event have in common.
    fn described(&self, event: &Component, href: Option<&str>) -> EventTime {
        let value = |name: &str| event.value(name).map(text).unwrap_or_default();
        let short = |name: &str| shorten(&label(&value(name)), TITLE_CHARACTERS).into_owned();
        let organizer = event.get("ORGANIZER").and_then(|organizer| {
            let address = address(&organizer.value);
            let is_own = self.view.addresses.contains(&address);
            let name = organizer.parameter("CN").unwrap_or(&address);
            (!is_own).then(|| shorten(&label(name), TITLE_CHARACTERS).into_owned())
        });
        let description = value("DESCRIPTION");
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = short("SUMMARY");
        EventTime {
            uid: uid(event),
            href: href.map(str::to_owned),
            title: if title.is_empty() {
                "(no title)".to_owned()
            } else {
                title
            },
            location: short("LOCATION"),
            description: shorten(&description, DESCRIPTION_CHARACTERS).into_owned(),
            is_outside: self.view.is_outside
                || organizer.is_some()
                || event.get(OUTSIDE_MARK).is_some(),
            organizer,
            has_guests: event.get("ATTENDEE").is_some(),
            ..EventTime::default()
        }
    }

    fn take(&mut self, described: &EventTime, start: &Moment, length: Length, occurrence: String) {
        let (starts_at, ends_at, days) = match start.lasting(length) {
            When::Time(from, until) => (from, until, None),
            When::Days(first, last) => {
                let zone = &self.view.zone;
                let midnight = |day: Date| zone.instant_in_calendar(day.at(0, 0, 0, 0));
                let (Some(from), Some(until)) =
                    (midnight(first), last.tomorrow().ok().and_then(midnight))
                else {
                    return;
                };
                (from, until, Some((first.to_string(), last.to_string())))
            }
        };
        if ends_at < self.from || starts_at >= self.until {
            return;
        }
        let (first_day, last_day) = days.unzip();
        let distance = starts_at.as_millis().abs_diff(self.view.now.as_millis());
        // Not even made where it would be dropped again.
        if self.times.len() == MOST_TIMES {
            self.has_too_many = true;
            let farthest = self.times.last_key_value().map(|(key, _)| key.0);
            if farthest <= Some(distance) {
                return;
            }
            self.times.pop_last();
        }
        self.taken += 1;
        let time = EventTime {
            occurrence,
            starts_at,
            ends_at,
            first_day,
            last_day,
            ..described.clone()
        };
        self.times.insert((distance, self.taken), time);
    }
}

/// An event's name, or what stands for it.
fn uid(event: &Component) -> String {
    let uid = event.value("UID").unwrap_or_default();
    let uid = match uid.is_empty() {
        true => format!(
            "{} {}",
            event.value("DTSTART").unwrap_or_default(),
            event.value("SUMMARY").unwrap_or_default()
        ),
        false => uid.to_owned(),
    };
    shorten(&uid, 500).into_owned()
}

/// An address without its scheme, for comparisons.
pub(super) fn address(value: &str) -> String {
    let lower = value.trim().to_lowercase();
    lower.strip_prefix("mailto:").unwrap_or(&lower).to_owned()
}

fn moments(event: &Component, name: &str, zones: &mut Zones) -> Vec<Moment> {
    let mut found = Vec::new();
    for property in event.all(name) {
        for value in property.value.split(',').take(MOST_TIMES) {
            found.extend(Moment::read(property, value, zones));
        }
    }
    found
}

/// How long an event takes that begins then.
pub(super) fn length(event: &Component, start: &Moment, zones: &mut Zones) -> Length {
    let end = Moment::of(event, "DTEND", zones);
    let duration = event.value("DURATION").and_then(duration);
    let most = i64::from(MOST_DAYS) * 86_400_000;
    match (start, end) {
        (Moment::Day(first), Some(end)) => {
            let days = (end.day() - *first).get_days();
            Length::Days(days.clamp(1, MOST_DAYS))
        }
        (Moment::Day(_), None) => {
            let days = duration.map_or(1, |millis| millis / 86_400_000);
            Length::Days(i32::try_from(days).unwrap_or(1).clamp(1, MOST_DAYS))
        }
        (Moment::Time { at, .. }, Some(Moment::Time { at: end, .. })) => {
            Length::Millis((end.as_millis() - at.as_millis()).clamp(0, most))
        }
        (Moment::Time { .. }, _) => Length::Millis(duration.unwrap_or(0).clamp(0, most)),
    }
}

/// A duration (section 3.3.6) in milliseconds: `P1DT2H`.
fn duration(text: &str) -> Option<i64> {
    let span = SpanParser::new().parse_span(text.trim()).ok()?;
    let days = 7 * i64::from(span.get_weeks()) + i64::from(span.get_days());
    let hours = 24 * days + i64::from(span.get_hours());
    let minutes = hours.checked_mul(60)?.checked_add(span.get_minutes())?;
    let seconds = minutes.checked_mul(60)?.checked_add(span.get_seconds())?;
    seconds.checked_mul(1_000)
}

#[cfg(test)]
mod tests;

//! Changes of an event as its calendar has it: what is not changed stays as it was written.

use jiff::civil::{Date, DateTime};

use super::OUTSIDE_MARK;
use super::component::{Component, Property, basic, escaped};
use super::reading::{Moment, When, length, utc};
use super::zones::{Zones, definition};
use base::calendar::{Recurrence, Zone};
use base::clock::Timestamp;

/// What an event is to become; what is absent stays.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    pub when: Option<When>,
    pub title: Option<String>,
    pub location: Option<String>,
    /// Whether text from outside is at hand.
    pub is_outside: bool,
}

/// An event that comes again, or one time of it.
pub(super) struct Target<'a> {
    pub uid: &'a str,
    /// Which time; empty for an event that comes once.
    pub occurrence: &'a str,
    /// When that time is now.
    pub starts_at: Timestamp,
    /// Whether all times are meant.
    pub is_series: bool,
}

/// A document with a new event.
pub(super) fn new_event(
    uid: &str,
    change: &Change,
    rule: Option<&str>,
    zone: &Zone,
    now: Timestamp,
) -> Component {
    let mut event = Component::new("VEVENT");
    event.set(Property::new("UID", uid));
    let name = zone.rules().iana_name().filter(|_| rule.is_some());
    // One that comes again keeps to the clocks of its zone.
    let zoned = name.map(|name| (name.to_owned(), zone.clone()));
    describe(&mut event, change, now);
    if let Some(when) = change.when {
        set_time(&mut event, when, zoned.as_ref());
    }
    if let Some(rule) = rule {
        event.set(Property::new("RRULE", rule));
    }
    let mut calendar = Component::new("VCALENDAR");
    calendar.set(Property::new("VERSION", "2.0"));
    calendar.set(Property::new("PRODID", "-//Hearth//Hearth//EN"));
    if let (Some(name), Some(When::Time(..))) = (name, change.when) {
        calendar.children.push(definition(zone, name, now));
    }
    calendar.children.push(event);
    calendar
}

/// Changes an event of a document.
///
/// # Errors
/// Why it cannot be changed so, for the model.
pub(super) fn change(
    document: &mut Component,
    target: &Target<'_>,
    change: &Change,
    household: &Zone,
    now: Timestamp,
) -> Result<(), String> {
    let mut zones = zones(document, household, now);
    let place = |document: &Component, zones: &mut Zones, key: &str| {
        let mut events = document.children.iter();
        events.position(|one| is_event(one, target.uid) && key_of(one, zones) == key)
    };
    let is_one = target.occurrence.is_empty() || !target.is_series;
    let known = is_one.then(|| place(document, &mut zones, target.occurrence));
    if let Some(place) = known.flatten() {
        let event = &mut document.children[place];
        let zoned = zone_of(event, &mut zones);
        describe(event, change, now);
        if let Some(when) = change.when {
            set_time(event, when, zoned.as_ref());
        }
        return Ok(());
    }
    let Some(first) = place(document, &mut zones, "") else {
        return Err(GONE.to_owned());
    };
    if !target.is_series {
        // One time becomes an event of its own.
        let mut one = document.children[first].clone();
        let which = original(&one, target.occurrence, &mut zones).ok_or(GONE)?;
        for name in ["RRULE", "RDATE", "EXDATE", "EXRULE"] {
            one.remove(name);
        }
        let zoned = zone_of(&one, &mut zones);
        match change
            .when
            .or_else(|| same_length(&document.children[first], &which, &mut zones))
        {
            Some(when) => set_time(&mut one, when, zoned.as_ref()),
            None => return Err(GONE.to_owned()),
        }
        one.set(which);
        describe(&mut one, change, now);
        document.children.push(one);
        return Ok(());
    }
    if let Some(when) = change.when {
        move_series(document, first, target, when, &mut zones)?;
    }
    for event in events(document, target.uid) {
        describe(event, change, now);
    }
    Ok(())
}

/// Takes one time out of an event that comes again. Returns whether anything is left.
///
/// # Errors
/// It is not there.
pub(super) fn delete_one(
    document: &mut Component,
    target: &Target<'_>,
    household: &Zone,
    now: Timestamp,
) -> Result<bool, String> {
    let mut zones = zones(document, household, now);
    let before = document.children.len();
    document
        .children
        .retain(|one| !(is_event(one, target.uid) && key_of(one, &mut zones) == target.occurrence));
    let has_changed = document.children.len() != before;
    let first = document
        .children
        .iter()
        .position(|one| is_event(one, target.uid) && one.get("RECURRENCE-ID").is_none());
    match first {
        Some(place) => {
            let event = &mut document.children[place];
            let mut excluded = original(event, target.occurrence, &mut zones).ok_or(GONE)?;
            "EXDATE".clone_into(&mut excluded.name);
            event.properties.push(excluded);
            describe(event, &Change::default(), now);
        }
        None if !has_changed => return Err(GONE.to_owned()),
        None => {}
    }
    Ok(document
        .children
        .iter()
        .any(|one| is_event(one, target.uid)))
}

const GONE: &str = "the event is not there any more: look at the calendar again";

fn zones(document: &Component, household: &Zone, now: Timestamp) -> Zones {
    let mut zones = Zones::new(household, now);
    let those = document
        .children
        .iter()
        .filter(|one| one.name == "VTIMEZONE");
    those.for_each(|one| zones.define(one.clone()));
    zones
}

fn is_event(component: &Component, uid: &str) -> bool {
    component.name == "VEVENT" && component.value("UID") == Some(uid)
}

fn events<'d>(document: &'d mut Component, uid: &str) -> impl Iterator<Item = &'d mut Component> {
    let all = document.children.iter_mut();
    all.filter(move |one| is_event(one, uid))
}

fn key_of(event: &Component, zones: &mut Zones) -> String {
    Moment::of(event, "RECURRENCE-ID", zones).map_or(String::new(), |which| which.key())
}

/// The zone in which an event is written, with its name.
fn zone_of(event: &Component, zones: &mut Zones) -> Option<(String, Zone)> {
    let name = event.get("DTSTART")?.parameter("TZID")?.to_owned();
    let zone = zones.named(&name);
    Some((name, zone))
}

fn describe(event: &mut Component, change: &Change, now: Timestamp) {
    let texts = [("SUMMARY", &change.title), ("LOCATION", &change.location)];
    for (name, text) in texts {
        if let Some(text) = text {
            event.set(Property::new(name, escaped(text)));
        }
    }
    if change.is_outside {
        event.set(Property::new(OUTSIDE_MARK, "1"));
    }
    let stamp = utc(now);
    event.set(Property::new("DTSTAMP", stamp.clone()));
    event.set(Property::new("LAST-MODIFIED", stamp));
    let sequence: u32 = event
        .value("SEQUENCE")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0);
    event.set(Property::new(
        "SEQUENCE",
        sequence.saturating_add(1).to_string(),
    ));
}

fn set_time(event: &mut Component, when: When, zoned: Option<&(String, Zone)>) {
    event.remove("DURATION");
    let (from, until) = match when {
        When::Days(first, last) => {
            let day = |name: &str, day: Date| Property::new(name, basic(day)).with("VALUE", "DATE");
            (
                day("DTSTART", first),
                day("DTEND", last.tomorrow().unwrap_or(last)),
            )
        }
        When::Time(from, until) => (
            written("DTSTART", from, zoned),
            written("DTEND", until, zoned),
        ),
    };
    event.set(from);
    event.set(until);
}

fn written(name: &str, time: Timestamp, zoned: Option<&(String, Zone)>) -> Property {
    match zoned.and_then(|(zone, rules)| Some((zone, rules.local(time)?))) {
        Some((zone, local)) => local_property(name, local, zone),
        None => Property::new(name, utc(time)),
    }
}

fn local_property(name: &str, local: DateTime, zone: &str) -> Property {
    Property::new(name, basic(local)).with("TZID", zone)
}

/// Which time of an event is meant, in the form in which the event is written.
fn original(event: &Component, key: &str, zones: &mut Zones) -> Option<Property> {
    let named = Property::new("RECURRENCE-ID", key);
    match Moment::read(&named, key, zones)? {
        Moment::Day(_) => Some(named.with("VALUE", "DATE")),
        Moment::Time { at, .. } => {
            Some(written("RECURRENCE-ID", at, zone_of(event, zones).as_ref()))
        }
    }
}

/// When the time of an event is that is named so, as long as the event takes.
fn same_length(event: &Component, which: &Property, zones: &mut Zones) -> Option<When> {
    let start = Moment::of(event, "DTSTART", zones)?;
    let length = length(event, &start, zones);
    Some(Moment::read(which, &which.value, zones)?.lasting(length))
}

/// Moves all times of an event as far as one of them is moved.
fn move_series(
    document: &mut Component,
    first: usize,
    target: &Target<'_>,
    when: When,
    zones: &mut Zones,
) -> Result<(), String> {
    let event = &document.children[first];
    let start = Moment::of(event, "DTSTART", zones).ok_or(GONE)?;
    let (from, days, zone) =
        match (&start, when) {
            (Moment::Day(_), When::Days(to, _)) => {
                let which = Moment::read(
                    &Property::new("X", target.occurrence),
                    target.occurrence,
                    zones,
                );
                let was = which.ok_or(GONE)?.day();
                (
                    was.at(0, 0, 0, 0).until(to.at(0, 0, 0, 0)),
                    (to - was).get_days(),
                    Zone::utc(),
                )
            }
            (Moment::Time { zone, .. }, When::Time(to, _)) => {
                let local = |time| zone.local(time).ok_or(GONE);
                let (was, to) = (local(target.starts_at)?, local(to)?);
                (
                    was.until(to),
                    (to.date() - was.date()).get_days(),
                    zone.clone(),
                )
            }
            _ => return Err(
                "all times of an event either take whole days or do not: delete it and add another"
                    .to_owned(),
            ),
        };
    let ahead = from.map_err(|_| GONE)?;
    let is_bound =
        |rule: &Property| Recurrence::parse(&rule.value).is_ok_and(|rule| rule.is_bound_to_days());
    if days != 0 && event.all("RRULE").any(is_bound) {
        return Err(
            "it comes again on certain days: to move all of it to another day, delete it and add \
             another"
                .to_owned(),
        );
    }
    for event in events(document, target.uid) {
        for property in &mut event.properties {
            match property.name.as_str() {
                "DTSTART" | "DTEND" | "RECURRENCE-ID" | "EXDATE" | "RDATE" => {
                    let shifted = property.value.split(',').map(|value| shifted(value, ahead));
                    let shifted: Option<Vec<String>> = shifted.collect();
                    property.value = shifted.ok_or(GONE)?.join(",");
                }
                "RRULE" => {
                    let parts = property
                        .value
                        .split(';')
                        .map(|part| match part.split_once('=') {
                            Some((name, value)) if name.eq_ignore_ascii_case("UNTIL") => {
                                Some(format!("UNTIL={}", shifted(value, ahead)?))
                            }
                            _ => Some(part.to_owned()),
                        });
                    let parts: Option<Vec<String>> = parts.collect();
                    property.value = parts.ok_or(GONE)?.join(";");
                }
                _ => {}
            }
        }
    }
    // The new length is that of all.
    let event = &mut document.children[first];
    let moved = Moment::of(event, "DTSTART", zones).ok_or(GONE)?;
    let zoned = zone_of(event, zones)
        .or_else(|| Some((zone.rules().iana_name()?.to_owned(), zone)))
        .filter(|(name, _)| name != "UTC");
    set_time(event, moved.lasting(when.length()), zoned.as_ref());
    Ok(())
}

/// A date, a time or a period, later or earlier.
fn shifted(value: &str, ahead: jiff::Span) -> Option<String> {
    use base::calendar::recurrence::{date, local};
    if let Some((time, rest)) = value.split_once('/') {
        return Some(format!("{}/{rest}", shifted(time, ahead)?));
    }
    let bare = value.trim().trim_end_matches(['Z', 'z']);
    let end = if bare.len() < value.trim().len() {
        "Z"
    } else {
        ""
    };
    match date(bare) {
        Some(day) => {
            let moved = day.at(0, 0, 0, 0).checked_add(ahead).ok()?;
            Some(basic(moved.date()))
        }
        None => {
            let moved = local(bare)?.checked_add(ahead).ok()?;
            Some(basic(moved) + end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_time_of_an_event_that_says_how_long_it_takes_stays_as_long() {
        let text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:tea\nDTSTART:20270104T160000Z\n\
                    DURATION:PT45M\nRRULE:FREQ=DAILY\nEND:VEVENT\nEND:VCALENDAR\n";
        let mut document = Component::parse(text.as_bytes()).unwrap();
        let now = "2027-01-01T12:00:00Z".parse().unwrap();
        let target = Target {
            uid: "tea",
            occurrence: "20270105T160000Z",
            starts_at: "2027-01-05T16:00:00Z".parse().unwrap(),
            is_series: false,
        };
        let wanted = Change {
            title: Some("Green tea".to_owned()),
            ..Change::default()
        };
        change(&mut document, &target, &wanted, &Zone::utc(), now).unwrap();
        let one = &document.children[1];
        assert_eq!(one.value("DTSTART"), Some("20270105T160000Z"));
        assert_eq!(one.value("DTEND"), Some("20270105T164500Z"));
    }
}

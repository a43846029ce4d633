//! The time zones that a calendar names, by the system's rules where it knows the name, else by
//! those that the calendar brings along.

use std::collections::HashMap;
use std::fmt::Write;

use jiff::tz::TimeZone;

use super::component::{Component, basic};
use base::calendar::{Zone, recurrence};
use base::clock::Timestamp;

/// Most zones of a calendar: times of others are taken for the household's.
const ZONES: usize = 500;

/// The zones of one document.
pub(super) struct Zones {
    /// Of times without a zone.
    pub household: Zone,
    now: Timestamp,
    defined: HashMap<String, Component>,
    found: HashMap<String, Zone>,
}

impl Zones {
    pub fn new(household: &Zone, now: Timestamp) -> Zones {
        Zones {
            household: household.clone(),
            now,
            defined: HashMap::new(),
            found: HashMap::new(),
        }
    }

    /// Takes what a document says of a zone.
    pub fn define(&mut self, zone: Component) {
        if let Some(name) = zone.value("TZID").map(str::to_owned)
            && self.defined.len() < ZONES
        {
            self.defined.entry(name).or_insert(zone);
        }
    }

    /// The zone of this name.
    pub fn named(&mut self, name: &str) -> Zone {
        if let Some(known) = self.found.get(name) {
            return known.clone();
        }
        let zone = self.look_up(name);
        if self.found.len() < ZONES {
            self.found.insert(name.to_owned(), zone.clone());
        }
        zone
    }

    fn look_up(&self, name: &str) -> Zone {
        // Some write a path before the name: /example.org/20260101_1/Europe/Berlin.
        let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
        let short = (1..=3.min(parts.len()))
            .rev()
            .map(|count| parts[parts.len() - count..].join("/"));
        let known = short.filter_map(|name| Zone::named(&name).ok()).next();
        let defined = || rules(self.defined.get(name)?, self.now);
        known
            .or_else(defined)
            .unwrap_or_else(|| self.household.clone())
    }
}

/// What a `VTIMEZONE` says of the present, in the notation of POSIX.
fn rules(zone: &Component, now: Timestamp) -> Option<Zone> {
    let latest = |name: &str| {
        let those = zone.children.iter().filter(|one| one.name == name);
        those.max_by_key(|one| one.value("DTSTART").unwrap_or_default().to_owned())
    };
    let (standard, daylight) = (latest("STANDARD"), latest("DAYLIGHT"));
    let fixed = standard.or(daylight)?;
    let mut text = format!("STD{}", offset(fixed)?);
    if let (Some(standard), Some(daylight)) = (standard, daylight)
        && let (Some(to_standard), Some(to_daylight)) =
            (change(standard, now), change(daylight, now))
    {
        let _ = write!(text, "DST{},{to_daylight},{to_standard}", offset(daylight)?);
    }
    TimeZone::posix(&text).ok().map(Zone::of_rules)
}

/// `-1:00:00` for one hour ahead of UTC.
fn offset(observance: &Component) -> Option<String> {
    let value = observance.value("TZOFFSETTO")?;
    let sign = match value.chars().next()? {
        '-' => "",
        '+' => "-",
        _ => return None,
    };
    let digits = &value[1..];
    let is_offset =
        matches!(digits.len(), 4 | 6) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = digits.get(4..6).unwrap_or("00");
    is_offset.then(|| format!("{sign}{}:{}:{seconds}", &digits[..2], &digits[2..4]))
}

/// When clocks change, such as `M3.5.0/2:0:0`; none if they do so no longer.
fn change(observance: &Component, now: Timestamp) -> Option<String> {
    let rule = observance.value("RRULE")?.to_ascii_uppercase();
    let part = |name: &str| {
        let mut parts = rule.split(';').filter_map(|part| part.split_once('='));
        parts
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    };
    if let Some(until) = part("UNTIL") {
        let until = recurrence::date(until.get(..8)?)?;
        if Zone::utc().local(now)?.date() > until {
            return None;
        }
    }
    let month: u8 = part("BYMONTH")?.parse().ok()?;
    let weekday = part("BYDAY")?;
    let (nth, name) = weekday.split_at_checked(weekday.len().checked_sub(2)?)?;
    let names = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];
    let weekday = names.iter().position(|one| *one == name)?;
    let week: i8 = match (nth, part("BYMONTHDAY")) {
        ("", Some(days)) => {
            let first = days
                .split(',')
                .filter_map(|day| day.parse::<i8>().ok())
                .min()?;
            (first + 6) / 7
        }
        (nth, _) => nth.parse().ok()?,
    };
    let week = if week < 0 { 5 } else { week };
    let begin = recurrence::local(observance.value("DTSTART")?)?;
    let (hour, minute, second) = (begin.hour(), begin.minute(), begin.second());
    Some(format!(
        "M{month}.{week}.{weekday}/{hour:02}:{minute:02}:{second:02}"
    ))
}

/// What a document that is written says of a zone whose clocks change as this year's do, for
/// readers that know no names.
pub(super) fn definition(zone: &Zone, name: &str, now: Timestamp) -> Component {
    let mut component = Component::new("VTIMEZONE");
    component.set(super::component::Property::new("TZID", name));
    let Ok(time) = jiff::Timestamp::from_millisecond(now.as_millis()) else {
        return component;
    };
    let rules = zone.rules();
    let mut add = |is_daylight: bool,
                   from: jiff::tz::Offset,
                   to: jiff::tz::Offset,
                   at: Option<jiff::Timestamp>| {
        let mut one = Component::new(if is_daylight { "DAYLIGHT" } else { "STANDARD" });
        let offset = |offset: jiff::tz::Offset| {
            let seconds = offset.seconds();
            let sign = if seconds < 0 { '-' } else { '+' };
            let minutes = seconds.abs() / 60;
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        };
        let property = super::component::Property::new;
        one.set(property("TZOFFSETFROM", offset(from)));
        one.set(property("TZOFFSETTO", offset(to)));
        let begin = match at {
            None => "19700101T000000".to_owned(),
            Some(at) => {
                // The clocks' time just before the change.
                let local = from.to_datetime(at);
                let nth = (local.day() + 6) / 7;
                let is_last = local.day() + 7 > local.date().days_in_month();
                let nth = if is_last { -1 } else { nth };
                let days = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
                let weekday = local.weekday().to_monday_zero_offset();
                let weekday = days[usize::from(weekday.unsigned_abs())];
                let month = local.month();
                one.set(property(
                    "RRULE",
                    format!("FREQ=YEARLY;BYMONTH={month};BYDAY={nth}{weekday}"),
                ));
                basic(local)
            }
        };
        one.set(property("DTSTART", begin));
        component.children.push(one);
    };
    let changes: Vec<_> = rules.following(time).take(2).collect();
    let present = rules.to_offset(time);
    match &changes[..] {
        [one, two] => {
            add(
                one.dst().is_dst(),
                present,
                one.offset(),
                Some(one.timestamp()),
            );
            add(
                two.dst().is_dst(),
                one.offset(),
                two.offset(),
                Some(two.timestamp()),
            );
        }
        _ => add(false, present, present, None),
    }
    component
}

#[cfg(test)]
mod tests {
    use super::super::component::components;
    use super::*;

    fn now() -> Timestamp {
        "2026-11-26T12:00:00Z".parse().unwrap()
    }

    fn at(zone: &Zone, local: &str) -> String {
        let local = recurrence::local(local).unwrap();
        zone.instant_in_calendar(local).unwrap().to_string()
    }

    #[test]
    fn a_zone_is_known_by_its_name_or_by_what_the_calendar_says_of_it() {
        let outlook = "BEGIN:VTIMEZONE\nTZID:W. Europe Standard Time\nBEGIN:STANDARD\n\
            DTSTART:16010101T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\n\
            RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\nBEGIN:DAYLIGHT\n\
            DTSTART:16010101T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\n\
            RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE\n\
            BEGIN:VTIMEZONE\nTZID:Eastern\nBEGIN:DAYLIGHT\nDTSTART:20070311T020000\n\
            TZOFFSETFROM:-0500\nTZOFFSETTO:-0400\n\
            RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=SU;BYMONTHDAY=8,9,10,11,12,13,14\nEND:DAYLIGHT\n\
            BEGIN:STANDARD\nDTSTART:20071104T020000\nTZOFFSETFROM:-0400\nTZOFFSETTO:-0500\n\
            RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=1SU\nEND:STANDARD\nEND:VTIMEZONE\n\
            BEGIN:VTIMEZONE\nTZID:Fixed\nBEGIN:STANDARD\nDTSTART:19700101T000000\n\
            TZOFFSETFROM:+0530\nTZOFFSETTO:+0530\nEND:STANDARD\nEND:VTIMEZONE\n";
        let mut zones = Zones::new(&Zone::named("Europe/Oslo").unwrap(), now());
        components(outlook.as_bytes()).for_each(|zone| zones.define(zone));
        for (name, winter, summer) in [
            ("Europe/Berlin", "08:00", "07:00"),
            (
                "/freeassociation.sourceforge.net/Europe/Berlin",
                "08:00",
                "07:00",
            ),
            ("W. Europe Standard Time", "08:00", "07:00"),
            ("Eastern", "14:00", "13:00"),
            ("Fixed", "03:30", "03:30"),
            ("unknown", "08:00", "07:00"),
        ] {
            let zone = zones.named(name);
            assert_eq!(
                at(&zone, "20270115T090000"),
                format!("2027-01-15T{winter}:00.000Z"),
                "{name}"
            );
            assert_eq!(
                at(&zone, "20270715T090000"),
                format!("2027-07-15T{summer}:00.000Z"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_written_of_a_zone_is_read_as_the_same() {
        for name in [
            "Europe/Berlin",
            "America/New_York",
            "Australia/Sydney",
            "Asia/Tokyo",
        ] {
            let zone = Zone::named(name).unwrap();
            let again = rules(&definition(&zone, name, now()), now()).unwrap();
            for day in [
                "20270115", "20270327", "20270404", "20270715", "20271031", "20271108",
            ] {
                let local = format!("{day}T093000");
                assert_eq!(at(&again, &local), at(&zone, &local), "{name} {day}");
            }
        }
    }
}

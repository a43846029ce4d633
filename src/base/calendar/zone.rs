//! Time zones, read from the system.

use std::path::{Component, Path};

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::language::Words;

/// Where systems keep the rules of all zones (tzfile(5)).
const ZONES: &str = "/usr/share/zoneinfo";
/// The system's own zone: a link to its rules (localtime(5)).
const LOCALTIME: &str = "/etc/localtime";

pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The name of a date's month.
pub fn month(date: Date) -> &'static str {
    MONTHS[usize::from(date.month().unsigned_abs()) - 1]
}

/// The name of a date's day of the week.
pub fn weekday(date: Date) -> &'static str {
    let day = date.weekday().to_sunday_zero_offset();
    WEEKDAYS[usize::from(day.unsigned_abs())]
}

/// A date for people to read: `21 Nov 2026`, always as wide.
pub fn readable_date(date: Date) -> String {
    format!("{:02} {} {:04}", date.day(), &month(date)[..3], date.year())
}

/// A time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(pub(super) TimeZone);

impl Zone {
    /// The zone that the system is set to: `TZ`, else /etc/localtime, else UTC.
    pub fn system() -> Zone {
        Zone(linked().unwrap_or_else(TimeZone::system))
    }

    /// Universal time.
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// The zone of an IANA name, as the system knows it.
    ///
    /// # Errors
    /// `invalid_request` when there is none.
    pub fn named(name: &str) -> Result<Zone> {
        match read(name) {
            Some(zone) => Ok(Zone(zone)),
            None => TimeZone::get(name).map(Zone).map_err(|_| {
                Error::invalid_request(format!(
                    "there is no time zone {name:?}: give an IANA name such as Europe/Berlin"
                ))
            }),
        }
    }

    /// The household's zone: the one that its configuration names, else the
    /// system's.
    pub fn of_household(name: Option<&str>) -> Zone {
        name.and_then(|name| Zone::named(name).ok())
            .unwrap_or_else(Zone::system)
    }

    /// The zone with these rules.
    pub fn of_rules(rules: TimeZone) -> Zone {
        Zone(rules)
    }

    /// The zone as jiff has it.
    pub fn rules(&self) -> &TimeZone {
        &self.0
    }

    /// A time on the clocks of this zone, to the minute: `2026-11-21 09:30`.
    pub fn minute(&self, time: Timestamp) -> String {
        match self.local(time) {
            Some(local) => {
                let mut text = format!("{local:.0}").replace('T', " ");
                text.truncate(text.len() - ":00".len());
                text
            }
            None => time.to_string(),
        }
    }

    /// The same with the day of the week: `Sat 2026-11-21 09:30`.
    pub fn day_and_minute(&self, time: Timestamp) -> String {
        let Some(local) = self.local(time) else {
            return time.to_string();
        };
        let year = local.year().unsigned_abs();
        let [month, day, hour, minute] =
            [local.month(), local.day(), local.hour(), local.minute()].map(i8::unsigned_abs);
        let mut text = String::with_capacity("Sat 2026-11-21 09:30".len());
        text.push_str(&weekday(local.date())[..3]);
        // By hand: every message of a long conversation is stamped in every request, and
        // reading a format would take longer than all the rest of that.
        for (before, number) in [
            (" ", (year / 100) as u8),
            ("", (year % 100) as u8),
            ("-", month),
            ("-", day),
            (" ", hour),
            (":", minute),
        ] {
            text.push_str(before);
            text.push(char::from(b'0' + number / 10));
            text.push(char::from(b'0' + number % 10));
        }
        text
    }

    /// The same for people to read: `21 Nov 2026 09:30`, always as wide.
    pub fn readable(&self, time: Timestamp) -> String {
        match self.local(time) {
            Some(local) => {
                let date = readable_date(local.date());
                format!("{date} {:02}:{:02}", local.hour(), local.minute())
            }
            None => time.to_string(),
        }
    }

    /// A time to say back to whoever named it: `Thursday, 26 November, 18:00`, with the
    /// year where that is another than at `now`.
    pub fn spoken(&self, time: Timestamp, now: Timestamp, words: Words) -> String {
        let (Some(local), Some(today)) = (self.local(time), self.local(now)) else {
            return time.to_string();
        };
        let key = match local.year() == today.year() {
            true => "when.date",
            false => "when.date_and_year",
        };
        say(words, key, local)
    }

    /// The same for a person who reads it at `now`: `today at 18:00`.
    pub fn spoken_now(&self, time: Timestamp, now: Timestamp, words: Words) -> String {
        let days = [time, now].map(|time| self.local(time).map(|local| local.date()));
        let [Some(date), Some(today)] = days else {
            return time.to_string();
        };
        let key = match (date - today).get_days() {
            0 => "when.today",
            1 => "when.tomorrow",
            _ => return self.spoken(time, now, words),
        };
        let minute = self.minute(time);
        words.say(key, &[("time", &minute[minute.len() - 5..])])
    }

    /// When a part of the day that `now` lies in ends; none outside of it. It begins and
    /// ends at these minutes after midnight, and may last over midnight.
    pub fn end_of_daily(&self, now: Timestamp, from: u16, until: u16) -> Option<Timestamp> {
        let local = self.local(now)?;
        let minute =
            u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).ok()?;
        let (is_late, is_early) = (minute >= from, minute < until);
        let is_within = match from < until {
            true => is_late && is_early,
            false => is_late || is_early,
        };
        if !is_within {
            return None;
        }
        let day = match is_early {
            true => local.date(),
            false => local.date().tomorrow().ok()?,
        };
        let end = day.at((until / 60) as i8, (until % 60) as i8, 0, 0);
        // Clocks that are set back may show the end twice.
        self.instant(end).filter(|end| *end > now)
    }

    /// What clocks show at a time; none beyond the year 9999.
    pub fn local(&self, time: Timestamp) -> Option<DateTime> {
        let time = jiff::Timestamp::from_millisecond(time.as_millis()).ok()?;
        Some(self.0.to_datetime(time))
    }

    /// When clocks show `local`: the first time if they show it twice, the moment of
    /// the change if they skip it.
    pub(super) fn instant(&self, local: DateTime) -> Option<Timestamp> {
        let ambiguous = self.0.to_ambiguous_timestamp(local);
        let time = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok()?,
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok()?,
            AmbiguousOffset::Gap { before, .. } => {
                // With the old offset it is at or after the change.
                let later = before.to_timestamp(local).ok()?;
                let after = later.checked_add(jiff::Span::new().seconds(1)).ok()?;
                let change = self.0.preceding(after).next();
                change.map_or(later, |change| change.timestamp())
            }
        };
        Some(Timestamp::from_millis(time.as_millisecond()))
    }

    /// The same as calendars have it (RFC 5545, section 3.3.5): a time that clocks skip is as
    /// long after the change as it would have been before it.
    pub fn instant_in_calendar(&self, local: DateTime) -> Option<Timestamp> {
        let time = self.0.to_ambiguous_timestamp(local).compatible().ok()?;
        Some(Timestamp::from_millis(time.as_millisecond()))
    }
}

/// What a program wrote as a day or a time, `2026-12-03` or `2026-12-03T17:00`, for people to
/// read. Other text stays as it is.
pub fn spoken_stamp(text: &str, words: Words) -> String {
    let end = text.get(11..).and_then(|time| time.find(['+', '-', 'Z']));
    let (local, offset) = text.split_at(end.map_or(text.len(), |end| 11 + end));
    let key = match local.contains(':') {
        true => "when.date_and_year",
        false => "when.day",
    };
    match (local.parse::<DateTime>(), offset) {
        (Ok(time), "") => say(words, key, time),
        // Not always the household's time.
        (Ok(time), "Z") => format!("{} (UTC)", say(words, key, time)),
        (Ok(time), offset) => format!("{} (UTC{offset})", say(words, key, time)),
        (Err(_), _) => text.to_owned(),
    }
}

fn say(words: Words, key: &str, local: DateTime) -> String {
    let weekday = local.weekday().to_sunday_zero_offset();
    let fields = [
        ("weekday", &*words.word(&format!("weekday.{weekday}"))),
        ("day", &local.day().to_string()),
        ("month", &words.word(&format!("month.{}", local.month()))),
        ("year", &local.year().to_string()),
        (
            "time",
            &format!("{:02}:{:02}", local.hour(), local.minute()),
        ),
    ];
    words.say(key, &fields)
}

/// The zone that /etc/localtime links to, unless the environment names one.
fn linked() -> Option<TimeZone> {
    if std::env::var_os("TZ").is_some() {
        return None;
    }
    let target = std::fs::read_link(LOCALTIME).ok()?;
    let (_, name) = target.to_str()?.split_once("zoneinfo/")?;
    read(name)
}

/// The zone of a name that is also a file's. jiff would list all 600 zones first
/// and keep the list: 150 KiB of memory.
pub(super) fn read(name: &str) -> Option<TimeZone> {
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    // Names of zones begin with a capital letter; `right/` counts leap seconds, and
    // `posix/` is a copy.
    let is_plain = |part: Component| matches!(part, Component::Normal(_));
    let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
        && Path::new(name).components().all(is_plain);
    if !is_name || std::env::var_os("TZDIR").is_some() {
        return None;
    }
    let rules = std::fs::read(Path::new(ZONES).join(name)).ok()?;
    TimeZone::tzif(name, &rules).ok()
}

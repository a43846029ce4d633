//! The five fields of cron: minute, hour, day of the month, month, weekday, and a sixth
//! for what crontab cannot say: `2026-11-27/2w` is that week and every second one after
//! it, `2026-11-27/3d` that day and every third. Own code, because the crates for it bring
//! 10 or more others and a second calendar.

use std::fmt;
use std::str::FromStr;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime};

use super::zone::Zone;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::language::{Said, Words};

/// Most characters of a text with five fields.
const MOST_CHARACTERS: usize = 200;
/// Days to search for the next time: 29 February may be eight years away.
const DAYS_AHEAD: usize = 366 * 9;
/// Most times of a day that are named one by one.
const MOST_TIMES: usize = 4;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Recurring times (crontab(5)). Where both the day of the month and the weekday are
/// restricted, either is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    /// Bit n stands for the value n, here and below.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// 0 is Sunday.
    weekdays: u64,
    /// Neither of the two fields for the day begins with `*`.
    is_either_day: bool,
    /// The sixth field, if there is one.
    interval: Option<Interval>,
}

/// The days that a sixth field leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    first: Date,
    days: i32,
    /// Whether whole weeks count, from Monday on.
    is_weekly: bool,
}

/// What one of the fields may hold.
struct Field {
    /// The key of what people call it.
    name: &'static str,
    least: u64,
    most: u64,
    /// Names of the values from `least` on.
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field {
        name: "cron.minute",
        least: 0,
        most: 59,
        names: &[],
    },
    Field {
        name: "cron.hour",
        least: 0,
        most: 23,
        names: &[],
    },
    Field {
        name: "cron.day",
        least: 1,
        most: 31,
        names: &[],
    },
    Field {
        name: "cron.month",
        least: 1,
        most: 12,
        names: &MONTHS,
    },
    Field {
        name: "cron.weekday",
        least: 0,
        most: 7,
        names: &WEEKDAYS,
    },
];

impl Cron {
    /// The first time after `after`; none when it never comes, such as 30 February.
    ///
    /// A time that clocks skip when they go forward comes at the moment of the
    /// change. Of times that come twice when they go back, the first counts.
    pub fn next(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut date = zone.local(after)?.date();
        for _ in 0..DAYS_AHEAD {
            if self.is_on(date) {
                let times = self.times(date).filter_map(|local| zone.instant(local));
                if let Some(next) = times.into_iter().find(|time| *time > after) {
                    return Some(next);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// When it comes, in words: `every weekday at 7:30`.
    pub fn say(&self, words: Words) -> String {
        let (days, times) = (self.say_days(words), self.say_times(words));
        // All through every day: the times say so.
        let is_through = values(self.hours).count() > MOST_TIMES && steps(self.hours, 24).is_some();
        match is_through && days == words.word("repeat.day") {
            true => times,
            false => words.say("repeat.times", &[("days", &days), ("times", &times)]),
        }
    }

    fn say_times(&self, words: Words) -> String {
        let (minutes, hours) = (numbers(self.minutes), numbers(self.hours));
        let by = |step: i64| words.say("repeat.minutes", &[("count", &step.to_string())]);
        match (steps(self.minutes, 60), steps(self.hours, 24), &minutes[..]) {
            (Some(1), Some(1), _) => words.word("repeat.every_minute"),
            (Some(step), Some(1), _) => by(step),
            (_, Some(1), [minute]) => words.say("repeat.hour", &[("minute", minute)]),
            (_, Some(step), [minute]) if hours.len() > MOST_TIMES => {
                let fields = [("count", &*step.to_string()), ("minute", minute)];
                words.say("repeat.hours", &fields)
            }
            _ if minutes.len() * hours.len() <= MOST_TIMES => {
                let at = |hour: i8| {
                    values(self.minutes).map(move |minute| format!("{hour}:{minute:02}"))
                };
                let times: Vec<String> = values(self.hours).flat_map(at).collect();
                words.say("repeat.at", &[("times", &words.list(&times))])
            }
            _ => {
                let fields = [
                    ("minutes", &*ranges(words, self.minutes)),
                    ("hours", &ranges(words, self.hours)),
                ];
                words.say("repeat.hourly", &fields)
            }
        }
    }

    fn say_days(&self, words: Words) -> String {
        let weekdays = values(self.weekdays).map(|day| match day {
            // A week is read from Monday on.
            0 => 7,
            day => day,
        });
        let mut weekdays: Vec<i8> = weekdays.collect();
        weekdays.sort_unstable();
        let names = weekdays
            .iter()
            .map(|day| words.word(&format!("weekday.{}", day % 7)));
        let names = words.list(&names.collect::<Vec<_>>());
        let days = ranges(words, self.days);
        let months = values(self.months).map(|month| words.word(&format!("month.{month}")));
        let months = words.list(&months.collect::<Vec<_>>());
        let has_all_months = self.months.count_ones() == 12;
        let by_week = || match &weekdays[..] {
            [_, _, _, _, _, _, _] => words.word("repeat.day"),
            [1, 2, 3, 4, 5] => words.word("repeat.weekdays"),
            [6, 7] => words.word("repeat.weekends"),
            _ => words.say("repeat.week", &[("weekdays", &names)]),
        };
        let has_all_days = self.days.count_ones() == 31;
        let by_month = |key| words.say(key, &[("days", &days), ("months", &months)]);
        let said = match self.interval {
            Some(Interval {
                days,
                is_weekly: true,
                ..
            }) => {
                let count = (days / 7).to_string();
                words.say("repeat.weeks", &[("count", &count), ("weekdays", &names)])
            }
            Some(Interval { days, .. }) => {
                words.say("repeat.days", &[("count", &days.to_string())])
            }
            None if has_all_days => by_week(),
            None if weekdays.len() == 7 && !has_all_months => return by_month("repeat.year"),
            None if weekdays.len() == 7 => by_month("repeat.month"),
            None => {
                let days = by_month("repeat.month");
                words.say(
                    "repeat.either",
                    &[("days", &days), ("weekdays", &by_week())],
                )
            }
        };
        match has_all_months {
            true => said,
            false => words.say("repeat.in_months", &[("days", &said), ("months", &months)]),
        }
    }

    fn is_on(&self, date: Date) -> bool {
        let has = |bits: u64, value: i8| bits >> value & 1 == 1;
        let by_month = has(self.days, date.day());
        let by_week = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let is_day = match self.is_either_day {
            true => by_month || by_week,
            false => by_month && by_week,
        };
        let is_left = self.interval.is_none_or(|interval| interval.has(date));
        is_day && is_left && has(self.months, date.month())
    }

    /// The times of one day, in order.
    fn times(&self, date: Date) -> impl Iterator<Item = DateTime> {
        values(self.hours).flat_map(move |hour| {
            values(self.minutes).map(move |minute| date.at(hour, minute, 0, 0))
        })
    }
}

fn values(bits: u64) -> impl Iterator<Item = i8> {
    (0..60).filter(move |value| bits >> value & 1 == 1)
}

fn numbers(bits: u64) -> Vec<String> {
    values(bits).map(|value| value.to_string()).collect()
}

/// The step from one value to the next, and from the last to the first of the next round, if
/// it is always the same and the first is 0 where that is not clear.
fn steps(bits: u64, round: i8) -> Option<i64> {
    let found: Vec<i8> = values(bits).collect();
    let step = round / i8::try_from(found.len()).ok()?.max(1);
    let is_even = round % step.max(1) == 0
        && (found.iter().zip(0..)).all(|(value, place)| *value == place * step);
    (is_even && found.len() > 1).then_some(i64::from(step))
}

/// Values as a list, those in a row as a range: `1, 3–5`.
fn ranges(words: Words, bits: u64) -> String {
    let mut ranges: Vec<(i8, i8)> = Vec::new();
    for value in values(bits) {
        match ranges.last_mut() {
            Some((_, last)) if *last == value - 1 => *last = value,
            _ => ranges.push((value, value)),
        }
    }
    let said = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}–{last}"),
    });
    words.list(&said.collect::<Vec<_>>())
}

impl FromStr for Cron {
    type Err = Error;

    /// # Errors
    /// `invalid_request` that names the field and what is wrong with it.
    fn from_str(text: &str) -> Result<Cron> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (plain, interval) = match fields[..] {
            [ref plain @ .., last] if plain.len() == 5 && last.contains('/') => {
                match Interval::read(last) {
                    Some(interval) => (plain, Some(interval)),
                    None => (&fields[..], None),
                }
            }
            _ => (&fields[..], None),
        };
        let [minute, hour, day, month, weekday] = plain[..] else {
            return Err(Error::refused(
                "error.cron_fields",
                &[("count", &fields.len().to_string())],
            ));
        };
        let text = fields.join(" ");
        if text.len() > MOST_CHARACTERS {
            return Err(Error::refused(
                "error.cron_long",
                &[("most", &MOST_CHARACTERS.to_string())],
            ));
        }
        let [minutes, hours, days, months, weekdays] = &FIELDS;
        let weekday_bits = weekdays.read(weekday)?;
        Ok(Cron {
            minutes: minutes.read(minute)?,
            hours: hours.read(hour)?,
            days: days.read(day)?,
            months: months.read(month)?,
            // Sunday is 0 and 7.
            weekdays: (weekday_bits | weekday_bits >> 7) & 0x7f,
            is_either_day: !day.starts_with('*') && !weekday.starts_with('*'),
            interval,
            text,
        })
    }
}

impl Interval {
    /// Reads `2026-11-27/2w` or `2026-11-27/3d`.
    fn read(text: &str) -> Option<Interval> {
        let (first, step) = text.split_once('/')?;
        let is_weekly = step.ends_with('w');
        let step = number(step.strip_suffix(['w', 'd'])?)?;
        let step = i32::try_from(step)
            .ok()
            .filter(|step| (1..=366).contains(step))?;
        Some(Interval {
            first: first.parse().ok()?,
            days: if is_weekly { step * 7 } else { step },
            is_weekly,
        })
    }

    fn has(self, date: Date) -> bool {
        let passed = |from: Date| (date - from).get_days();
        let from = match self.is_weekly {
            true => self.first - i32::from(self.first.weekday().to_monday_zero_offset()).days(),
            false => self.first,
        };
        let place = passed(from).rem_euclid(self.days);
        date >= self.first && (place == 0 || self.is_weekly && place < 7)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Field {
    /// Reads a list of values, ranges and steps.
    fn read(&self, text: &str) -> Result<u64> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= self.read_part(part)?;
        }
        Ok(bits)
    }

    fn read_part(&self, part: &str) -> Result<u64> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(part, step)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((first, last)) => (self.value(part, first)?, self.value(part, last)?),
            None => {
                let value = self.value(part, range)?;
                // With a step, `5/15` runs from 5 to the end.
                (value, step.map_or(value, |_| self.most))
            }
        };
        // Sunday as the end of a range is 7.
        let last = match last {
            0 if first > 0 && self.most == 7 => 7,
            last => last,
        };
        if first > last {
            return Err(self.wrong(part, Said::of("cron.backwards", &[])));
        }
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX);
        Ok((first..=last)
            .step_by(step)
            .fold(0, |bits, value| bits | 1 << value))
    }

    fn step(&self, part: &str, text: &str) -> Result<u64> {
        match number(text) {
            Some(step) if step > 0 => Ok(step),
            _ => Err(self.wrong(part, Said::of("cron.step", &[]))),
        }
    }

    fn value(&self, part: &str, text: &str) -> Result<u64> {
        let lower = text.to_lowercase();
        if let Some(place) = self.names.iter().position(|name| *name == lower) {
            return Ok(self.least + place as u64);
        }
        match number(text) {
            Some(value) if (self.least..=self.most).contains(&value) => Ok(value),
            _ => {
                let (least, most) = (self.least.to_string(), self.most.to_string());
                let why = match self.names {
                    [first, .., last] => {
                        Said::of("cron.names", &[("first", *first), ("last", *last)])
                    }
                    _ => Said::of("cron.values", &[]),
                };
                Err(self.wrong(part, why.with("least", least).with("most", most)))
            }
        }
    }

    fn wrong(&self, part: &str, why: Said) -> Error {
        let said = Said::of("error.cron_field", &[("part", &format!("{part:?}"))]);
        let field = Said::of(self.name, &[]);
        Error::invalid_request(said.with("field", field).with("why", why))
    }
}

/// A number of digits alone: `parse` would accept a sign.
pub(super) fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

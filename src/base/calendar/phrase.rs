//! Times as people say them: "tomorrow at 6pm", "in 20 minutes", "every other Friday".

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};

use super::cron::{Cron, MONTHS, WEEKDAYS};
use super::zone::Zone;
use crate::clock::Timestamp;

/// More than a century is a mistake, and could leave the calendar.
const LONGEST_WAIT: Duration = Duration::from_secs(100 * 366 * 86_400);
/// The hour of a day that is named without one.
const USUAL_HOUR: i8 = 9;
/// What joins the words that mean something.
const JOINING: [&str; 14] = [
    "at", "on", "the", "of", "and", "o'clock", "this", "next", "coming", "from", "starting", "in",
    "month", "now",
];
/// The numbers from 1 on, as they are written out in a wait.
const NUMBERS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// What a phrase means.
pub(super) enum Meaning {
    /// So long from now.
    Wait(Duration),
    /// This instant, whatever the time zone.
    Instant(Timestamp),
    /// Once, on the household's clocks.
    Once(DateTime),
    /// Repeatedly.
    Repeated(Cron),
}

/// What the words say, each for itself.
#[derive(Default)]
struct Phrase {
    wait: Option<Duration>,
    /// A day from today on.
    days_ahead: Option<i64>,
    date: Option<Date>,
    /// Numbers from 0 for Sunday.
    weekdays: Vec<i8>,
    day: Option<i8>,
    month: Option<i8>,
    year: Option<i16>,
    times: Vec<Time>,
    part: Option<Part>,
    is_repeated: bool,
    /// How many of which unit lie between two times.
    interval: Option<(u64, Unit)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// A part of the day, as the hour that stands for it.
#[derive(Clone, Copy)]
enum Part {
    Morning = 8,
    Afternoon = 15,
    Evening = 18,
    Night = 21,
}

/// What a phrase means at `now`; none where it is not understood.
pub(super) fn read(text: &str, zone: &Zone, now: Timestamp) -> Option<Meaning> {
    let text = text.to_lowercase().replace(',', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut phrase = Phrase::default();
    let mut place = 0;
    while place < words.len() {
        let before = place.checked_sub(1).map_or("", |before| words[before]);
        place += phrase.take(before, &words[place..])?;
    }
    phrase.set_part_of_day();
    let today = zone.local(now)?;
    if phrase.is_repeated {
        return phrase.repeated(zone, now).map(Meaning::Repeated);
    }
    match phrase.wait {
        Some(wait) if phrase.times.is_empty() => Some(Meaning::Wait(wait)),
        _ => phrase.once(today).map(Meaning::Once),
    }
}

impl Phrase {
    /// Takes what the first words mean, and says how many they are.
    fn take(&mut self, before: &str, words: &[&str]) -> Option<usize> {
        let word = words[0];
        let next = words.get(1).copied().unwrap_or_default();
        if word == "every" || word == "each" {
            self.is_repeated = true;
            return self.take_interval(&words[1..]).map(|taken| taken + 1);
        }
        let skipped = usize::from(matches!(word, "in" | "for"));
        if self.wait.is_none()
            && let Some((wait, taken)) = wait(&words[skipped..])
        {
            self.wait = Some(wait);
            return Some(taken + skipped);
        }
        if words.starts_with(&["day", "after", "tomorrow"]) {
            self.days_ahead = Some(2);
            return Some(3);
        }
        let interval = match word.trim_start_matches('@') {
            "hourly" => Some(Unit::Hour),
            "daily" => Some(Unit::Day),
            "weekly" => Some(Unit::Week),
            "monthly" => Some(Unit::Month),
            "yearly" | "annually" => Some(Unit::Year),
            _ => None,
        };
        if let Some(unit) = interval {
            (self.is_repeated, self.interval) = (true, Some((1, unit)));
            // As in crontab(5).
            if word.starts_with('@') && unit != Unit::Hour {
                self.times.push(Time::midnight());
                self.weekdays.extend((unit == Unit::Week).then_some(0));
            }
            return Some(1);
        }
        match word.strip_suffix('s').unwrap_or(word) {
            "today" => self.days_ahead = Some(0),
            "tomorrow" => self.days_ahead = Some(1),
            "week" if before == "next" => self.days_ahead = Some(7),
            "tonight" => (self.days_ahead, self.part) = (Some(0), Some(Part::Night)),
            "morning" => self.part = Some(Part::Morning),
            "afternoon" => self.part = Some(Part::Afternoon),
            "evening" => self.part = Some(Part::Evening),
            "night" => self.part = Some(Part::Night),
            "noon" | "midday" => self.times.push(Time::constant(12, 0, 0, 0)),
            "midnight" => self.times.push(Time::midnight()),
            _ => {
                return self
                    .take_date(word, next)
                    .or_else(|| self.take_time(before, word, next));
            }
        }
        Some(1)
    }

    fn take_date(&mut self, word: &str, next: &str) -> Option<usize> {
        if let Some((days, is_plural)) = weekdays(word) {
            self.weekdays.extend(days);
            self.is_repeated |= is_plural;
        } else if let Some(place) = named(&MONTHS, word) {
            self.month = Some(place + 1);
        } else if let Ok(date) = word.parse::<Date>()
            && word.matches('-').count() == 2
        {
            self.date = Some(date);
        } else {
            let mut endings = ["st", "nd", "rd", "th"].iter();
            let ordinal = endings.find_map(|ending| word.strip_suffix(ending));
            let has_month = self.month.is_some() || named(&MONTHS, next).is_some();
            let day = number(ordinal.unwrap_or(word)).filter(|_| ordinal.is_some() || has_month);
            match day {
                Some(day @ 1..=31) if self.day.is_none() => self.day = Some(day as i8),
                Some(year @ 2000..=9999) if self.year.is_none() => self.year = Some(year as i16),
                _ if JOINING.contains(&word) => {}
                _ => return None,
            }
        }
        Some(1)
    }

    /// `18:30`, `6.30pm`, `6 pm`, or behind "at" an hour alone.
    fn take_time(&mut self, before: &str, word: &str, next: &str) -> Option<usize> {
        let half = |text: &str| match &*text.replace('.', "") {
            "am" => Some(0),
            "pm" => Some(12),
            _ => None,
        };
        let end = word.find(|one: char| one.is_ascii_alphabetic());
        let (clock, ending) = word.split_at(end.unwrap_or(word.len()));
        let (half, taken) = match half(ending) {
            None if ending.is_empty() && half(next).is_some() => (half(next), 2),
            half => (half, 1),
        };
        let parts: Option<Vec<u64>> = clock.split([':', '.']).map(number).collect();
        let (hour, minute, is_whole) = match parts?[..] {
            [hour] => (hour, 0, false),
            [hour, minute] => (hour, minute, clock.contains(':')),
            _ => return None,
        };
        let hour = match half {
            Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
            None if ending.is_empty() && (is_whole || matches!(before, "at" | "and")) => hour,
            _ => return None,
        };
        let (hour, minute) = (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?);
        self.times.push(Time::new(hour, minute, 0, 0).ok()?);
        Some(taken)
    }

    /// What follows "every": `day`, `2 hours`, `other week`; names of days are left.
    fn take_interval(&mut self, words: &[&str]) -> Option<usize> {
        let first = words.first()?;
        let count = match *first {
            "other" | "second" | "2nd" => Some(2),
            "third" | "3rd" => Some(3),
            "fourth" | "4th" => Some(4),
            word => counted(word),
        };
        let (count, skipped) = count.map_or((1, 0), |count| (count, 1));
        let next = words.get(skipped).copied().unwrap_or_default();
        self.interval = match unit(next) {
            Some(unit) => Some((count, unit)),
            None if skipped == 0 => return Some(0),
            None if weekdays(next).is_some() => Some((count, Unit::Week)),
            // "every 2nd of the month".
            None if *first != "other" => return Some(0),
            None => return None,
        };
        Some(skipped + usize::from(unit(next).is_some()))
    }

    /// Puts "7 in the evening" after noon, and gives a day without a time its hour.
    fn set_part_of_day(&mut self) {
        if let Some(part @ (Part::Afternoon | Part::Evening | Part::Night)) = self.part {
            let least = if matches!(part, Part::Night) { 5 } else { 1 };
            for time in &mut self.times {
                if (least..12).contains(&time.hour()) {
                    *time = time.wrapping_add(12.hours());
                }
            }
        }
        if let (true, Some(part)) = (self.times.is_empty(), self.part) {
            self.times.push(Time::constant(part as i8, 0, 0, 0));
        }
        self.times.sort();
    }

    fn once(&self, today: DateTime) -> Option<DateTime> {
        const DAY: u64 = 86_400;
        let time = match self.times[..] {
            [] => Time::constant(USUAL_HOUR, 0, 0, 0),
            [time] => time,
            _ => return None,
        };
        let ahead = |days: i64| today.date().checked_add(days.days()).ok();
        let is_ahead = |date: &Date| date.to_datetime(time) > today;
        let wait = self.wait.map(|wait| wait.as_secs());
        match (
            self.date,
            self.days_ahead,
            wait,
            &self.weekdays[..],
            self.day,
        ) {
            (Some(date), None, None, [], None) => Some(date),
            (None, Some(days), None, [], None) => ahead(days),
            (None, None, Some(wait), [], None) if wait % DAY == 0 => {
                ahead(i64::try_from(wait / DAY).ok()?)
            }
            (None, None, None, [weekday], None) => (0..=7)
                .filter_map(ahead)
                .filter(|date| date.weekday().to_sunday_zero_offset() == *weekday)
                .find(is_ahead),
            (None, None, None, [], Some(day)) => {
                let year = today.year();
                let years = self.year.map_or(year..=year + 1, |year| year..=year);
                let months = self.month.map_or(1..=12, |month| month..=month);
                years
                    .flat_map(|year| months.clone().map(move |month| (year, month)))
                    .filter_map(|(year, month)| Date::new(year, month, day).ok())
                    .find(|date| self.year.is_some() || is_ahead(date))
            }
            (None, None, None, [], None) if !self.times.is_empty() => {
                (0..=1).filter_map(ahead).find(is_ahead)
            }
            _ => None,
        }
        .map(|date| date.to_datetime(time))
    }

    fn repeated(&self, zone: &Zone, now: Timestamp) -> Option<Cron> {
        let today = zone.local(now)?.date();
        let (count, unit) = self.interval.unwrap_or(match self.day {
            _ if !self.weekdays.is_empty() => (1, Unit::Week),
            Some(_) if self.month.is_some() => (1, Unit::Year),
            Some(_) => (1, Unit::Month),
            None => (1, Unit::Day),
        });
        let is_bare = self.interval.is_none() && self.times.is_empty();
        if self.wait.is_some() || self.year.is_some() || count == 0 {
            return None;
        }
        let starts = self.date.or(match self.days_ahead {
            Some(days) => Some(today.checked_add(days.days()).ok()?),
            None => None,
        });
        let usual = [Time::constant(USUAL_HOUR, 0, 0, 0)];
        let times = if self.times.is_empty() {
            &usual[..]
        } else {
            &self.times
        };
        let minute = times[0].minute();
        if times.iter().any(|time| time.minute() != minute) {
            return None;
        }
        let listed = |values: Vec<i8>| {
            let values: Vec<String> = values.iter().map(i8::to_string).collect();
            values.join(",")
        };
        let clock = format!(
            "{minute} {}",
            listed(times.iter().map(|time| time.hour()).collect())
        );
        let day = self.day.unwrap_or(1);
        let has_days = !self.weekdays.is_empty() || self.day.is_some();
        let fields = match unit {
            Unit::Minute | Unit::Hour if has_days || !self.times.is_empty() => return None,
            Unit::Minute if 60 % count == 0 && count < 60 => format!("*/{count} * * * *"),
            Unit::Hour if 24 % count == 0 && count < 24 => format!("0 */{count} * * *"),
            Unit::Day if !has_days && !is_bare => format!("{clock} * * *"),
            Unit::Week if self.day.is_none() => {
                let mut days = self.weekdays.clone();
                if days.is_empty() {
                    days.push(starts.unwrap_or(today).weekday().to_sunday_zero_offset());
                }
                days.sort_unstable();
                days.dedup();
                format!("{clock} * * {}", listed(days))
            }
            Unit::Month if self.weekdays.is_empty() && 12 % count == 0 => {
                let every = if count == 1 {
                    "*".to_owned()
                } else {
                    format!("*/{count}")
                };
                format!("{clock} {day} {every} *")
            }
            Unit::Year if self.weekdays.is_empty() && count == 1 => {
                format!("{clock} {day} {} *", self.month.unwrap_or(1))
            }
            _ => return None,
        };
        let cron: Cron = fields.parse().ok()?;
        let (step, letter) = match unit {
            Unit::Day if count > 1 => (count, 'd'),
            Unit::Week if count > 1 => (count, 'w'),
            _ if starts.is_none() => return Some(cron),
            _ => (1, 'd'),
        };
        let first = match starts {
            Some(date) => date,
            None => zone.local(cron.next(now, zone)?)?.date(),
        };
        format!("{fields} {first}/{step}{letter}").parse().ok()
    }
}

/// `90s`, `20m`, `2h` or `3d`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let number = &text[..text.len() - unit.len_utf8()];
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = number.parse().ok()?;
    let wait = count.checked_mul(seconds).map(Duration::from_secs);
    wait.filter(|wait| *wait <= LONGEST_WAIT)
}

/// `20 minutes`, `20m`, `half an hour`, `two hours and 30 minutes`, and how many words that is.
fn wait(words: &[&str]) -> Option<(Duration, usize)> {
    if words.starts_with(&["half", "an", "hour"]) {
        return Some((Duration::from_secs(1_800), 3));
    }
    if let Some(wait) = words.first().and_then(|word| duration(word)) {
        return Some((wait, 1));
    }
    let mut total = Duration::ZERO;
    let mut taken = 0;
    loop {
        let rest = &words[taken..];
        let rest = rest
            .strip_prefix(&["and"])
            .filter(|_| taken > 0)
            .unwrap_or(rest);
        let [count, name, ..] = rest else { break };
        let count = match *count {
            "a" | "an" => Some(1),
            count => counted(count),
        };
        let seconds = match (*name, unit(name)) {
            ("second" | "seconds", _) => 1,
            (_, Some(Unit::Minute)) => 60,
            (_, Some(Unit::Hour)) => 3_600,
            (_, Some(Unit::Day)) => 86_400,
            (_, Some(Unit::Week)) => 7 * 86_400,
            _ => break,
        };
        let Some(count) = count else { break };
        total = total.checked_add(Duration::from_secs(count.checked_mul(seconds)?))?;
        taken = words.len() - rest.len() + 2;
    }
    (taken > 0 && total <= LONGEST_WAIT).then_some((total, taken))
}

fn unit(word: &str) -> Option<Unit> {
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "min" | "minute" => Unit::Minute,
        "hour" => Unit::Hour,
        "day" => Unit::Day,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "year" => Unit::Year,
        _ => return None,
    })
}

/// The days that a word names, and whether it means each of them: `mondays`.
fn weekdays(word: &str) -> Option<(Vec<i8>, bool)> {
    let single = word.strip_suffix('s').unwrap_or(word);
    let days = match single {
        "weekday" | "workday" => (1..=5).collect(),
        "weekend" => vec![0, 6],
        _ => {
            let day = named(&WEEKDAYS, word).or_else(|| named(&WEEKDAYS, single))?;
            return Some((vec![day], word.ends_with("days")));
        }
    };
    Some((days, word != single))
}

/// The place of a name that is written out, or by its first three letters.
fn named(names: &[&str], word: &str) -> Option<i8> {
    const WHOLE: [&str; 19] = [
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let is_name = names.contains(&word) || WHOLE.contains(&word);
    let place = names
        .iter()
        .position(|name| is_name && word.starts_with(name))?;
    i8::try_from(place).ok()
}

/// A number in digits, or a small one in letters.
fn counted(word: &str) -> Option<u64> {
    let place = NUMBERS.iter().position(|name| *name == word);
    place.map_or_else(|| number(word), |place| Some(place as u64 + 1))
}

/// A number of digits alone: `parse` would accept a sign.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

//! Times as people say them: "tomorrow at 6pm", "in 20 minutes", "every other Friday".

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};

use super::cron::{Cron, number};
use super::zone::{MONTHS, WEEKDAYS, Zone};
use crate::clock::Timestamp;

/// More than a century is a mistake, and could leave the calendar.
const LONGEST_WAIT: Duration = Duration::from_secs(100 * 366 * 86_400);
/// The hour of a day that is named without one.
const USUAL_HOUR: i8 = 9;
/// The last hour of a night.
const LAST_OF_NIGHT: i8 = 4;
/// What joins the words that mean something.
const JOINING: [&str; 13] = [
    "at", "on", "the", "of", "and", "o'clock", "this", "next", "coming", "from", "starting", "in",
    "now",
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
    /// Whole days of a wait, which clocks that change make neither longer nor shorter.
    waits_days: bool,
    /// "next Tuesday", which is not today.
    is_next: bool,
    /// "of the month", and "next month".
    names_month: bool,
    is_next_month: bool,
    /// Times have followed weekdays: those that come now would have times of their own.
    has_timed_weekdays: bool,
    /// A time of the night after the day that is named.
    is_past_midnight: bool,
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
    let text = text.to_lowercase().replace(',', " ").replace('’', "'");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut phrase = Phrase::default();
    let mut place = 0;
    while place < words.len() {
        let before = place.checked_sub(1).map_or("", |before| words[before]);
        place += phrase.take(before, &words[place..])?;
    }
    let today = zone.local(now)?;
    phrase.set_part_of_day(today)?;
    if phrase.is_repeated {
        return phrase.repeated(zone, now).map(Meaning::Repeated);
    }
    let is_alone = phrase.times.is_empty() && !phrase.has_day();
    match phrase.wait {
        Some(wait) if is_alone && !phrase.waits_days => Some(Meaning::Wait(wait)),
        Some(wait) if is_alone => {
            let then = today.checked_add(wait).ok()?.with().subsec_nanosecond(0);
            Some(Meaning::Once(then.build().ok()?))
        }
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
        if let Some(taken) = self.take_minutes(before, words) {
            return Some(taken);
        }
        let skipped = usize::from(matches!(word, "in" | "for"));
        if let Some((wait, taken)) = wait(&words[skipped..])
            // "18h" alone is an hour of the day for many.
            && (skipped > 0 || !word.ends_with('h'))
        {
            let units = &words[skipped..skipped + taken];
            self.waits_days = units.len() > 1 && wait.as_secs().is_multiple_of(86_400);
            self.waits_days &= units
                .iter()
                .any(|word| matches!(unit(word), Some(Unit::Day | Unit::Week)));
            only(&mut self.wait, wait)?;
            return Some(taken + skipped);
        }
        if words.starts_with(&["day", "after", "tomorrow"]) {
            only(&mut self.days_ahead, 2)?;
            return Some(3);
        }
        if let [first, "to" | "through", last, ..] = words
            && let Some(taken) = self.take_weekdays(first, last)
        {
            return Some(taken + 2);
        }
        if let Some((first, last)) = word.split_once('-')
            && let Some(taken) = self.take_weekdays(first, last)
        {
            return Some(taken);
        }
        let interval = match word.trim_start_matches('@') {
            "hourly" => Some(Unit::Hour),
            "midnight" if word.starts_with('@') => Some(Unit::Day),
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
        let single = word.strip_suffix('s').unwrap_or(word);
        let part = match single {
            "morning" => Some(Part::Morning),
            "afternoon" => Some(Part::Afternoon),
            "evening" => Some(Part::Evening),
            "night" | "tonight" => Some(Part::Night),
            _ => None,
        };
        if let Some(part) = part {
            only(&mut self.part, part)?;
            if before == "this" || single == "tonight" {
                only(&mut self.days_ahead, 0)?;
            }
            self.is_repeated |= single != word;
            return Some(1);
        }
        match single {
            "today" => only(&mut self.days_ahead, 0)?,
            "tomorrow" => only(&mut self.days_ahead, 1)?,
            "week" if before == "next" => only(&mut self.days_ahead, 7)?,
            "month" if before == "next" => self.is_next_month = true,
            "month" if before == "the" => self.names_month = true,
            "12" | "twelve" if matches!(next, "noon" | "midnight") => {}
            "noon" | "midday" => self.times.push(Time::constant(12, 0, 0, 0)),
            "midnight" => self.times.push(Time::midnight()),
            _ => {
                return self
                    .take_date(before, word, next)
                    .or_else(|| self.take_time(before, words));
            }
        }
        Some(1)
    }

    /// `Monday to Friday`.
    fn take_weekdays(&mut self, first: &str, last: &str) -> Option<usize> {
        let (first, last) = (named(&WEEKDAYS, first)?, named(&WEEKDAYS, last)?);
        if self.has_timed_weekdays {
            return None;
        }
        let count = (last - first).rem_euclid(7);
        (self.weekdays).extend((0..=count).map(|day| (first + day) % 7));
        self.is_repeated = true;
        Some(1)
    }

    /// `half past seven`, `20 past 6`, `a quarter to eight`: an hour as clocks show it.
    fn take_minutes(&mut self, before: &str, words: &[&str]) -> Option<usize> {
        let article = usize::from(words[0] == "a");
        let count = *words.get(article)?;
        let names_unit = matches!(words.get(article + 1), Some(&"minutes"));
        let place = article + 1 + usize::from(names_unit);
        let (way, hour) = (*words.get(place)?, *words.get(place + 1)?);
        let minutes = match count {
            "half" if way == "past" => 30,
            "quarter" => 15,
            // "5 to 8" may be a span of hours.
            _ if way == "to" && !names_unit && number(count).is_some() => return None,
            _ => counted(count).filter(|count| (1..30).contains(count))?,
        };
        let minutes = i64::try_from(minutes).ok()?;
        let minutes = match way {
            "past" => minutes,
            "to" if before != "from" => -minutes,
            _ => return None,
        };
        let taken = self.take_time("at", &words[place + 1..])?;
        let time = self.times.pop()?;
        if time.minute() != 0 || hour.contains([':', '.']) {
            return None;
        }
        self.times.push(time.wrapping_add(minutes.minutes()));
        Some(place + 1 + taken)
    }

    fn take_date(&mut self, before: &str, word: &str, next: &str) -> Option<usize> {
        if let Some((days, is_plural)) = weekdays(word) {
            if self.has_timed_weekdays {
                return None;
            }
            self.weekdays.extend(days);
            self.is_repeated |= is_plural;
            self.is_next |= before == "next";
        } else if let Some(place) = named(&MONTHS, word) {
            only(&mut self.month, place + 1)?;
        } else if let Ok(date) = word.parse::<Date>()
            && word.matches('-').count() == 2
        {
            only(&mut self.date, date)?;
        } else {
            let mut endings = ["st", "nd", "rd", "th"].iter();
            let ordinal = endings.find_map(|ending| word.strip_suffix(ending));
            let has_month = self.month.is_some() && before != "at";
            let has_month = has_month || named(&MONTHS, next).is_some();
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

    /// `18:30`, `6.30pm`, `6 pm`, `7 in the evening`, or behind "at" an hour alone.
    fn take_time(&mut self, before: &str, words: &[&str]) -> Option<usize> {
        let half = |text: &str| match &*text.replace('.', "") {
            "am" => Some(0),
            "pm" => Some(12),
            _ => None,
        };
        let (word, rest) = words.split_first()?;
        let spelled = counted(word).map(|hour| hour.to_string());
        let word = spelled.as_deref().unwrap_or(word);
        let end = word.find(|one: char| one.is_ascii_alphabetic());
        let (clock, ending) = word.split_at(end.unwrap_or(word.len()));
        let (half, taken) = match half(ending) {
            None if ending.is_empty() => match rest.first().and_then(|next| half(next)) {
                None => (None, 1),
                half => (half, 2),
            },
            half => (half, 1),
        };
        let is_minute = |text: &str| text.len() == 2;
        let (hour, minute, is_whole) = match clock.split([':', '.']).collect::<Vec<_>>()[..] {
            [hour] => (number(hour)?, 0, false),
            [hour, minute] if is_minute(minute) => {
                (number(hour)?, number(minute)?, clock.contains(':'))
            }
            _ => return None,
        };
        let is_hour = matches!(before, "at" | "and")
            || matches!(
                rest,
                ["o'clock" | "tonight", ..] | ["in", "the", ..] | ["this", ..]
            );
        let hour = match half {
            Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
            None if ending.is_empty() && (is_whole || is_hour) => hour,
            _ => return None,
        };
        let (hour, minute) = (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?);
        self.times.push(Time::new(hour, minute, 0, 0).ok()?);
        self.has_timed_weekdays = !self.weekdays.is_empty();
        Some(taken)
    }

    /// What follows "every": `day`, `2 hours`, `other week`; names of days are left.
    fn take_interval(&mut self, words: &[&str]) -> Option<usize> {
        let first = words.first()?;
        if words.starts_with(&["half", "hour"]) {
            self.interval = Some((30, Unit::Minute));
            return Some(2);
        }
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

    /// Whether a day is named.
    fn has_day(&self) -> bool {
        let has_day = self.days_ahead.is_some() || self.date.is_some() || self.day.is_some();
        let has_name = !self.weekdays.is_empty() || self.month.is_some() || self.is_next_month;
        has_day || has_name
    }

    /// Puts "7 in the evening" after noon, and gives a day without a time its hour. None where
    /// a time is not of its part of the day.
    fn set_part_of_day(&mut self, now: DateTime) -> Option<()> {
        if let Some(part) = self.part {
            for time in &mut self.times {
                *time = time.with().hour(part.hour(time.hour())?).build().ok()?;
            }
        }
        // "Friday night at 1" is on Saturday; "tonight at 2" is today for those who are still up.
        let is_night = matches!(self.part, Some(Part::Night));
        let is_up = self.days_ahead == Some(0) && now.hour() <= LAST_OF_NIGHT;
        self.is_past_midnight = is_night
            && !is_up
            && self.has_day()
            && self.times.iter().any(|time| time.hour() <= LAST_OF_NIGHT);
        if let (true, Some(part)) = (self.times.is_empty(), self.part) {
            self.times.push(Time::constant(part as i8, 0, 0, 0));
        }
        self.times.sort();
        Some(())
    }

    fn once(&self, today: DateTime) -> Option<DateTime> {
        const DAY: u64 = 86_400;
        let time = match self.times[..] {
            [] => Time::constant(USUAL_HOUR, 0, 0, 0),
            [time] => time,
            _ => return None,
        };
        if self.names_month && self.day.is_none()
            || self.day.is_none() && (self.month.is_some() || self.year.is_some())
            || self.is_next_month && (self.day.is_none() || self.month.is_some())
        {
            return None;
        }
        let ahead = |days: i64| today.date().checked_add(days.days()).ok();
        let night = i64::from(self.is_past_midnight);
        let at = |date: Date| Some(date.checked_add(night.days()).ok()?.to_datetime(time));
        let is_ahead = |date: &Date| at(*date).is_some_and(|time| time > today);
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
            (None, None, None, [weekday], None) => (i64::from(self.is_next)..=7)
                .filter_map(ahead)
                .filter(|date| date.weekday().to_sunday_zero_offset() == *weekday)
                .find(is_ahead),
            (None, None, None, [], Some(day)) if self.is_next_month => {
                let first = today.date().first_of_month().checked_add(1.month()).ok()?;
                first.with().day(day).build().ok()
            }
            (None, None, None, [] | [_], Some(day)) => {
                let year = today.year();
                let years = self.year.map_or(year..=year + 1, |year| year..=year);
                let months = self.month.map_or(1..=12, |month| month..=month);
                years
                    .flat_map(|year| months.clone().map(move |month| (year, month)))
                    .filter_map(|(year, month)| Date::new(year, month, day).ok())
                    // Today's time may be past: next year is not what was meant.
                    .find(|date| self.year.is_some() || *date >= today.date())
                    .filter(|date| {
                        let weekday = date.weekday().to_sunday_zero_offset();
                        self.weekdays.iter().all(|named| *named == weekday)
                    })
            }
            (None, None, None, [], None) if !self.times.is_empty() => {
                (0..=1).filter_map(ahead).find(is_ahead)
            }
            _ => None,
        }
        .and_then(at)
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
        let is_other_month = self.month.is_some() && !matches!(unit, Unit::Year);
        // Crontab knows no "second Tuesday of the month".
        let is_nth = self.names_month && self.day.is_none();
        if self.wait.is_some() || self.year.is_some() || count == 0 || is_other_month || is_nth {
            return None;
        }
        if self.is_next_month || self.is_past_midnight {
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
            // From a day on, and on which?
            Unit::Month | Unit::Year if starts.is_some() && self.day.is_none() => return None,
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

impl Part {
    /// The hour that is meant by one of this part of the day; none where it is not of it.
    fn hour(self, hour: i8) -> Option<i8> {
        match (self, hour) {
            (Part::Afternoon, 1..=6) | (Part::Evening, 4..=11) | (Part::Night, 6..=11) => {
                Some(hour + 12)
            }
            (Part::Night, 12) => Some(0),
            (Part::Morning, 0..=11)
            | (Part::Afternoon, 12..=18)
            | (Part::Evening, 16..=23)
            | (Part::Night, 0..=LAST_OF_NIGHT | 18..=23) => Some(hour),
            _ => None,
        }
    }
}

/// Sets what is said only once; none where it was set before.
fn only<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
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
    let is_it = |name: &&str| {
        [name, &name[..3]]
            .iter()
            .any(|one| one.eq_ignore_ascii_case(word))
    };
    i8::try_from(names.iter().position(is_it)?).ok()
}

/// A number in digits, or a small one in letters.
fn counted(word: &str) -> Option<u64> {
    let place = NUMBERS.iter().position(|name| *name == word);
    match word {
        "fifteen" => Some(15),
        "twenty" => Some(20),
        "thirty" => Some(30),
        _ => place.map_or_else(|| number(word), |place| Some(place as u64 + 1)),
    }
}

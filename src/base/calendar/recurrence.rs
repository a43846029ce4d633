//! Recurrence rules of iCalendar (RFC 5545, section 3.3.10) by days, weeks, months and years.
//!
//! Own code: of the crates looked at, `rrule` 0.14 adds 2.8 MB to the program and `calcard` 0.3
//! adds 2.3 MB, for the most part a second calendar with a copy of all time zones; this is 10 KB.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Weekday};

use super::zone::Zone;
use crate::clock::Timestamp;
use crate::language::Words;

/// Most numbers in one part of a rule.
const MOST_VALUES: usize = 400;

/// When something comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    frequency: Frequency,
    interval: i32,
    count: Option<u32>,
    until: Option<Until>,
    /// Which of these weekdays within the month or year; 0 is each of them.
    weekdays: Vec<(i8, Weekday)>,
    /// From 1, or from the month's end if negative.
    days: Vec<i8>,
    months: Vec<i8>,
    /// Which of the times of one period count.
    positions: Vec<i16>,
    week_start: Weekday,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frequency {
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Local(DateTime),
    Instant(Timestamp),
}

/// From which day and until which day times are wanted, and how many days may still be looked
/// at: a hostile rule must not keep anybody busy.
#[derive(Debug)]
pub struct Search {
    /// The first day.
    pub from: Date,
    /// The last day.
    pub until: Date,
    /// Is counted down.
    pub steps: u32,
}

impl Recurrence {
    /// Reads a rule such as `FREQ=WEEKLY;BYDAY=MO,FR`.
    ///
    /// # Errors
    /// The part that is malformed, or that this program does not know, such as `FREQ=HOURLY`.
    pub fn parse(text: &str) -> Result<Recurrence, String> {
        let mut rule = Recurrence {
            frequency: Frequency::Daily,
            interval: 1,
            count: None,
            until: None,
            weekdays: Vec::new(),
            days: Vec::new(),
            months: Vec::new(),
            positions: Vec::new(),
            week_start: Weekday::Monday,
        };
        let mut has_frequency = false;
        for part in text.trim().split(';').filter(|part| !part.is_empty()) {
            let known = part.split_once('=').and_then(|(name, value)| {
                has_frequency |= name.eq_ignore_ascii_case("FREQ");
                rule.read(&name.to_ascii_uppercase(), &value.to_ascii_uppercase())
            });
            if known.is_none() {
                return Err(part.chars().take(40).collect());
            }
        }
        let is_nth = rule.weekdays.iter().any(|(nth, _)| *nth != 0);
        let is_long = matches!(rule.frequency, Frequency::Monthly | Frequency::Yearly);
        match has_frequency && (is_long || !is_nth) {
            true => Ok(rule),
            false => Err(text.chars().take(40).collect()),
        }
    }

    fn read(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "FREQ" => {
                self.frequency = match value {
                    "DAILY" => Frequency::Daily,
                    "WEEKLY" => Frequency::Weekly,
                    "MONTHLY" => Frequency::Monthly,
                    "YEARLY" => Frequency::Yearly,
                    _ => return None,
                }
            }
            "INTERVAL" => {
                self.interval = value.parse().ok().filter(|n| (1..=10_000).contains(n))?
            }
            "COUNT" => self.count = Some(value.parse().ok().filter(|n| *n > 0)?),
            "UNTIL" => {
                self.until = Some(match value.strip_suffix('Z') {
                    Some(utc) => Until::Instant(Zone::utc().instant_in_calendar(local(utc)?)?),
                    // A day alone is the last one.
                    None if !value.contains('T') => Until::Local(date(value)?.at(23, 59, 59, 0)),
                    None => Until::Local(local(value)?),
                })
            }
            "BYDAY" => self.weekdays = values(value, weekday)?,
            "BYMONTHDAY" => self.days = numbers(value, 31)?,
            "BYMONTH" => {
                self.months = numbers(value, 12).filter(|all| all.iter().all(|n| *n > 0))?
            }
            "BYSETPOS" => self.positions = numbers(value, 366)?,
            "WKST" => self.week_start = weekday(value)?.1,
            _ => return None,
        }
        Some(())
    }

    /// The days of what is on `first` for the first time, in words: `every Monday`. None for
    /// those that take more than a few words.
    pub fn say(&self, first: Option<Date>, words: Words) -> Option<String> {
        let is_plain = self.count.is_none()
            && self.until.is_none()
            && self.positions.is_empty()
            && self.months.is_empty()
            && self.days.is_empty()
            && (self.weekdays.is_empty() || self.frequency == Frequency::Weekly);
        if !is_plain {
            return None;
        }
        let mut weekdays: Vec<Weekday> = self.weekdays.iter().map(|(_, day)| *day).collect();
        if weekdays.is_empty() {
            weekdays.extend(first.map(Date::weekday));
        }
        weekdays.sort_by_key(|day| day.to_monday_zero_offset());
        let names = weekdays
            .iter()
            .map(|day| words.word(&format!("weekday.{}", day.to_sunday_zero_offset())));
        let names = words.list(&names.collect::<Vec<_>>());
        let count = self.interval.to_string();
        let fields = [("count", count.as_str()), ("weekdays", &names)];
        let key = match (self.frequency, self.interval) {
            (Frequency::Daily, 1) => "repeat.day",
            (Frequency::Daily, _) => "repeat.days",
            (Frequency::Weekly, 1) if !names.is_empty() => "repeat.week",
            (Frequency::Weekly, _) if !names.is_empty() => "repeat.weeks",
            (Frequency::Monthly, 1) => {
                let day = first?.day().to_string();
                return Some(words.say("repeat.month", &[("days", &day)]));
            }
            (Frequency::Yearly, 1) => {
                let first = first?;
                let month = words.word(&format!("month.{}", first.month()));
                let fields = [("days", &*first.day().to_string()), ("months", &*month)];
                return Some(words.say("repeat.year", &fields));
            }
            _ => return None,
        };
        Some(words.say(key, &fields))
    }

    /// Whether its times depend on the day on which the first one is.
    pub fn is_bound_to_days(&self) -> bool {
        !self.weekdays.is_empty() || !self.days.is_empty() || !self.months.is_empty()
    }

    /// The local times from `first` on that lie within a search, each given to `take` in order,
    /// until that returns false. `first` is the first one, whatever the rule says.
    pub fn times(
        &self,
        first: DateTime,
        zone: &Zone,
        search: &mut Search,
        mut take: impl FnMut(DateTime) -> bool,
    ) {
        let last = match self.until {
            Some(Until::Local(last)) => last,
            Some(Until::Instant(last)) => zone.local(last).unwrap_or(DateTime::MAX),
            None => DateTime::MAX,
        };
        let last = last.min(search.until.at(23, 59, 59, 0));
        let mut left = self.count.unwrap_or(u32::MAX);
        let mut give = |time: DateTime| {
            left -= 1;
            (time.date() < search.from || take(time)) && left > 0
        };
        if first > last || !give(first) {
            return;
        }
        let mut period = match self.count {
            // Those before the search count too.
            Some(_) => 0,
            None => self.periods_before(first.date(), search.from),
        };
        while let Some(days) = self.period(first.date(), period) {
            period += 1;
            search.steps = search.steps.saturating_sub(1 + days.len() as u32);
            if search.steps == 0 {
                return;
            }
            // An empty period may lie beyond the end, too.
            let begin = self.begin(first.date(), period);
            for day in days {
                let time = day.to_datetime(first.time());
                if time > last {
                    return;
                }
                if time > first && !give(time) {
                    return;
                }
            }
            if begin.is_none_or(|begin| begin > last.date()) {
                return;
            }
        }
    }

    /// How many periods end for certain before a day.
    fn periods_before(&self, first: Date, from: Date) -> i32 {
        let days = (from - first).get_days();
        let periods = match self.frequency {
            Frequency::Daily => days,
            Frequency::Weekly => days / 7,
            Frequency::Monthly => days / 31,
            Frequency::Yearly => days / 366,
        };
        (periods / self.interval - 1).max(0)
    }

    /// The first day that a period may have.
    fn begin(&self, first: Date, period: i32) -> Option<Date> {
        let ahead = period.checked_mul(self.interval)?;
        let month = |ahead: i32| {
            let months = i32::from(first.year()) * 12 + i32::from(first.month()) - 1 + ahead;
            let year = i16::try_from(months.div_euclid(12)).ok()?;
            Date::new(year, months.rem_euclid(12) as i8 + 1, 1).ok()
        };
        match self.frequency {
            Frequency::Daily => first.checked_add(ahead.days()).ok(),
            Frequency::Weekly => {
                let since = first.weekday().since(self.week_start);
                let week = first.checked_sub(i32::from(since).days()).ok()?;
                week.checked_add(ahead.checked_mul(7)?.days()).ok()
            }
            Frequency::Monthly => month(ahead),
            Frequency::Yearly => {
                let year = i32::from(first.year()).checked_add(ahead)?;
                Date::new(i16::try_from(year).ok()?, 1, 1).ok()
            }
        }
    }

    /// The days of a period, in order; none beyond the calendar.
    fn period(&self, first: Date, period: i32) -> Option<Vec<Date>> {
        let begin = self.begin(first, period)?;
        let mut days = match self.frequency {
            Frequency::Daily => vec![begin],
            Frequency::Weekly => (0..7)
                .filter_map(|day| begin.checked_add(day.days()).ok())
                .collect(),
            Frequency::Monthly => self.days_of_month(first, begin),
            Frequency::Yearly => self.days_of_year(first, begin),
        };
        match self.frequency {
            Frequency::Weekly if self.weekdays.is_empty() => {
                days.retain(|day| day.weekday() == first.weekday());
            }
            Frequency::Daily | Frequency::Weekly => days.retain(|day| self.is_weekday(*day)),
            _ => {}
        }
        if self.frequency == Frequency::Daily && !self.days.is_empty() {
            days.retain(|day| self.days.iter().any(|nth| day_of(*day, *nth) == Some(*day)));
        }
        days.retain(|day| self.months.is_empty() || self.months.contains(&day.month()));
        days.sort_unstable();
        days.dedup();
        if !self.positions.is_empty() {
            let places = self.positions.iter().filter_map(|position| match position {
                1.. => usize::try_from(position - 1).ok(),
                _ => days.len().checked_sub(usize::from(position.unsigned_abs())),
            });
            let mut kept: Vec<Date> = places
                .filter_map(|place| days.get(place).copied())
                .collect();
            kept.sort_unstable();
            kept.dedup();
            days = kept;
        }
        Some(days)
    }

    fn is_weekday(&self, day: Date) -> bool {
        self.weekdays.is_empty() || self.weekdays.iter().any(|(_, one)| *one == day.weekday())
    }

    fn days_of_month(&self, first: Date, month: Date) -> Vec<Date> {
        if !self.days.is_empty() {
            let days = self.days.iter().filter_map(|nth| day_of(month, *nth));
            return days.filter(|day| self.is_weekday(*day)).collect();
        }
        if self.weekdays.is_empty() {
            return day_of(month, first.day()).into_iter().collect();
        }
        let all: Vec<Date> = (1..=month.days_in_month())
            .filter_map(|nth| day_of(month, nth))
            .collect();
        self.nth_weekdays(&all)
    }

    fn days_of_year(&self, first: Date, year: Date) -> Vec<Date> {
        let month = |month: i8| Date::new(year.year(), month, 1).ok();
        if self.months.is_empty() && self.days.is_empty() {
            if self.weekdays.is_empty() {
                return month(first.month())
                    .and_then(|month| day_of(month, first.day()))
                    .into_iter()
                    .collect();
            }
            let all: Vec<Date> = (0..year.days_in_year())
                .filter_map(|day| year.checked_add(i32::from(day).days()).ok())
                .collect();
            return self.nth_weekdays(&all);
        }
        let months = (1..=12).filter(|one| self.months.is_empty() || self.months.contains(one));
        months
            .filter_map(month)
            .flat_map(|month| self.days_of_month(first, month))
            .collect()
    }

    /// Of the days of a month or a year those that the weekdays name.
    fn nth_weekdays(&self, all: &[Date]) -> Vec<Date> {
        let mut found = Vec::new();
        for (nth, weekday) in &self.weekdays {
            let those: Vec<Date> = all
                .iter()
                .copied()
                .filter(|day| day.weekday() == *weekday)
                .collect();
            match nth {
                0 => found.extend(those),
                1.. => found.extend(those.get(usize::from(nth.unsigned_abs()) - 1)),
                _ => found.extend(those.iter().nth_back(usize::from(nth.unsigned_abs()) - 1)),
            }
        }
        found
    }
}

/// The nth day of a day's month, from its end if negative.
fn day_of(month: Date, nth: i8) -> Option<Date> {
    let nth = if nth < 0 {
        month.days_in_month() + 1 + nth
    } else {
        nth
    };
    Date::new(month.year(), month.month(), nth).ok()
}

/// A date as iCalendar writes it: `20261127`.
pub fn date(text: &str) -> Option<Date> {
    has_digits(text, 8).then(|| text.parse().ok())?
}

/// A local time as iCalendar writes it: `20261127T183000`. A leap second is the one before it.
pub fn local(text: &str) -> Option<DateTime> {
    let (day, time) = text.split_once('T')?;
    (has_digits(day, 8) && has_digits(time, 6)).then(|| text.parse().ok())?
}

/// Whether a text is so many digits: jiff reads other forms, too.
fn has_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn values<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let found: Option<Vec<T>> = text.split(',').take(MOST_VALUES + 1).map(read).collect();
    found.filter(|found| found.len() <= MOST_VALUES)
}

/// Numbers up to `most`, either way, but for 0.
fn numbers<T: TryFrom<i16>>(text: &str, most: i16) -> Option<Vec<T>> {
    values(text, |text| {
        let number: i16 = text.parse().ok()?;
        let fits = number != 0 && number.abs() <= most;
        fits.then(|| T::try_from(number).ok()).flatten()
    })
}

/// A weekday, with a number before it or without: `-1SU`.
fn weekday(text: &str) -> Option<(i8, Weekday)> {
    let (nth, name) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let names = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
    let place = names.iter().position(|one| *one == name)?;
    let nth: i8 = if nth.is_empty() { 0 } else { nth.parse().ok()? };
    let fits = (-53..=53).contains(&nth);
    let weekday = Weekday::from_monday_zero_offset(i8::try_from(place).ok()?).ok()?;
    fits.then_some((nth, weekday))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rows;

    fn times(rule: &str, first: &str, from: &str, until: &str, most: usize) -> Vec<String> {
        let rule = Recurrence::parse(rule).unwrap();
        let mut search = Search {
            from: from.parse().unwrap(),
            until: until.parse().unwrap(),
            steps: 100_000,
        };
        let mut found = Vec::new();
        let zone = Zone::named("Europe/Berlin").unwrap();
        rule.times(local(first).unwrap(), &zone, &mut search, |time| {
            found.push(time.date().to_string());
            found.len() < most
        });
        found
    }

    #[test]
    fn times_are_read_as_calendars_write_them_and_no_other_way() {
        assert_eq!(date("20261127"), "2026-11-27".parse().ok());
        let last = "2026-12-31T23:59:59".parse().ok();
        for second in ["20261231T235959", "20261231T235960"] {
            assert_eq!(local(second), last, "{second}");
        }
        for other in ["2026-11-27", "20261327", "+0261127", "20261127T1830"] {
            assert_eq!((date(other), local(other)), (None, None), "{other}");
        }
        assert_eq!(local("2026-11-27T18:30:00"), None);
        assert_eq!(local("20261127T183000Z"), None);
    }

    /// The examples of RFC 5545, section 3.8.5.3, as far as rules by hours are not among them,
    /// and some more.
    #[test]
    fn rules_mean_what_the_standard_says() {
        let table = "
            FREQ=DAILY;COUNT=3 | 19970902T090000 | 1997-09-02 1997-09-03 1997-09-04
            FREQ=DAILY;UNTIL=19970904T070000Z | 19970902T090000 | 1997-09-02 1997-09-03 1997-09-04
            FREQ=DAILY;UNTIL=19970904T065959Z | 19970902T090000 | 1997-09-02 1997-09-03
            FREQ=DAILY;UNTIL=19970903 | 19970902T090000 | 1997-09-02 1997-09-03
            FREQ=DAILY;INTERVAL=10;COUNT=3 | 19970902T090000 | 1997-09-02 1997-09-12 1997-09-22
            FREQ=WEEKLY;INTERVAL=2;WKST=SU;COUNT=3 | 19970902T090000 | 1997-09-02 1997-09-16 1997-09-30
            FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO | 19970805T090000 | 1997-08-05 1997-08-10 1997-08-19 1997-08-24
            FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU | 19970805T090000 | 1997-08-05 1997-08-17 1997-08-19 1997-08-31
            FREQ=MONTHLY;COUNT=3;BYDAY=1FR | 19970905T090000 | 1997-09-05 1997-10-03 1997-11-07
            FREQ=MONTHLY;INTERVAL=2;COUNT=4;BYDAY=1SU,-1SU | 19970907T090000 | 1997-09-07 1997-09-28 1997-11-02 1997-11-30
            FREQ=MONTHLY;BYMONTHDAY=-3;COUNT=3 | 19970928T090000 | 1997-09-28 1997-10-29 1997-11-28
            FREQ=MONTHLY;COUNT=4;BYMONTHDAY=1,-1 | 19970930T090000 | 1997-09-30 1997-10-01 1997-10-31 1997-11-01
            FREQ=MONTHLY;COUNT=3;BYMONTHDAY=31 | 19970831T090000 | 1997-08-31 1997-10-31 1997-12-31
            FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=3 | 19980213T090000 | 1998-02-13 1998-03-13 1998-11-13
            FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3 | 19970904T090000 | 1997-09-04 1997-10-07 1997-11-06
            FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2;COUNT=3 | 19970929T090000 | 1997-09-29 1997-10-30 1997-11-27
            FREQ=YEARLY;COUNT=3;BYMONTH=6,7 | 19970610T090000 | 1997-06-10 1997-07-10 1998-06-10
            FREQ=YEARLY;BYDAY=20MO;COUNT=2 | 19970519T090000 | 1997-05-19 1998-05-18
            FREQ=YEARLY;BYMONTH=3;BYDAY=TH;COUNT=4 | 19970313T090000 | 1997-03-13 1997-03-20 1997-03-27 1998-03-05
            FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8;COUNT=2 | 19961105T090000 | 1996-11-05 2000-11-07
            FREQ=YEARLY;COUNT=2 | 20240229T090000 | 2024-02-29 2028-02-29
            freq=daily;byday=sa,su;count=3 | 20261128T090000 | 2026-11-28 2026-11-29 2026-12-05
            FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30 | 20260101T090000 | 2026-01-01
        ";
        for [rule, first, expected] in rows(table) {
            let found = times(rule, first, "1900-01-01", "2030-01-01", 50);
            assert_eq!(found.join(" "), expected, "{rule}");
        }
    }

    #[test]
    fn a_search_begins_where_it_is_asked_to() {
        for (rule, expected) in [
            ("FREQ=DAILY;INTERVAL=3", "2026-11-28 2026-12-01"),
            (
                "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR",
                "2026-11-30 2026-12-04",
            ),
            ("FREQ=MONTHLY;BYDAY=-1FR", "2026-11-27 2026-12-25"),
            (
                "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24",
                "2026-12-24 2027-12-24",
            ),
            ("FREQ=DAILY;COUNT=20000", "2026-11-26 2026-11-27"),
        ] {
            let found = times(rule, "19750106T090000", "2026-11-26", "2028-01-01", 2);
            assert_eq!(found.join(" "), expected, "{rule}");
        }
    }

    #[test]
    fn what_is_not_known_or_too_much_is_refused_and_a_search_has_an_end() {
        for text in [
            "",
            "FREQ=HOURLY",
            "COUNT=3",
            "FREQ=DAILY;BYHOUR=9",
            "FREQ=YEARLY;BYWEEKNO=20",
            "FREQ=WEEKLY;BYDAY=1MO",
            "FREQ=DAILY;COUNT=0",
            "FREQ=DAILY;INTERVAL=0",
            "FREQ=DAILY;BYMONTH=-1",
            "FREQ=MONTHLY;BYDAY=99MO",
            "FREQ=MONTHLY;BYDAY=M",
            "FREQ=MONTHLY;BYDAY=ü",
            "FREQ=DAILY;UNTIL=2026",
            "FREQ",
            "FREQ=MONTHLY;BYMONTHDAY=32",
            &format!("FREQ=MONTHLY;BYMONTHDAY={}", vec!["1"; 500].join(",")),
        ] {
            assert!(Recurrence::parse(text).is_err(), "{text}");
        }
        let rule =
            Recurrence::parse("FREQ=DAILY;COUNT=4000000000;BYMONTH=2;BYMONTHDAY=30").unwrap();
        let mut search = Search {
            from: date("99990101").unwrap(),
            until: date("99991231").unwrap(),
            steps: 1_000,
        };
        rule.times(
            local("00010101T000000").unwrap(),
            &Zone::utc(),
            &mut search,
            |_| true,
        );
        assert_eq!(search.steps, 0);
    }
}

//! Days that a question names.

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant, ToSpan};

use base::clock::Timestamp;

/// The names of the months, folded, in English, German, French, Spanish and Norwegian.
const MONTHS: [&str; 12] = [
    "january jan januar janner janvier enero",
    "february feb februar fevrier febrero",
    "march mar marz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug aout agosto",
    "september sep sept septembre septiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez desember des decembre diciembre",
];
/// What stands before a month that is no other word.
const BEFORE_MONTH: &str = "in of last this since until till early late mid during by before after \
    on im seit ab bis letzten diesen ende anfang mitte en de du depuis desde hasta i siden for";
const YESTERDAY: &str = "yesterday gestern ayer";
const TODAY: &str = "today heute aujourd hoy";
const LAST: &str =
    "last letzte letzten letzter letztes derniere dernier pasada pasado forrige siste";
const THIS: &str = "this diese diesen dieses cette ce esta este denne dette";
const WEEK: &str = "week woche semaine semana uke uken";
const MONTH: &str = "month monat mois mes maned maneden";
const YEAR: &str = "year jahr annee ano ar aret";
const DAYS: &str = "day days tage tagen jours dias dager";
const WEEKS: &str = "week weeks woche wochen semaines semanas uker";
const SOME_MONTHS: &str = "month months monat monate monaten mois meses maneder";

/// A day, week, month or year that a question names.
pub(super) struct Named {
    /// From when until when, in milliseconds since 1970.
    pub days: (i64, i64),
    /// The places of its words in the question.
    pub words: Vec<usize>,
}

fn is_one(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}

fn month_of(word: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|names| is_one(names, word));
    place.map(|place| place as i8 + 1)
}

/// The number that a word is or begins with, as "3rd".
fn number(word: &str) -> Option<i16> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let is_ordinal = ["", "st", "nd", "rd", "th"].contains(&&word[digits.len()..]);
    digits.parse().ok().filter(|_| is_ordinal)
}

/// The first days that folded words name.
pub(super) fn find(words: &[&str], now: Timestamp) -> Option<Named> {
    let today = Instant::from_millisecond(now.as_millis()).ok()?;
    let today = today.to_zoned(TimeZone::UTC).date();
    let word = |place: Option<usize>| place.and_then(|place| words.get(place)).copied();
    let year_at = |place: Option<usize>| {
        let year = word(place).and_then(number);
        year.filter(|year| (1970..=2200).contains(year))
    };
    let day_at = |place: Option<usize>| {
        let day = word(place).and_then(number).map(|day| day as i8);
        day.filter(|day| (1..=31).contains(day))
    };
    for place in 0..words.len() {
        let (before, after) = (place.checked_sub(1), Some(place + 1));
        let this = words[place];
        // 2023-05-08
        if let (Some(year), Some(month), Some(day)) =
            (year_at(Some(place)), day_at(after), day_at(Some(place + 2)))
            && let Ok(first) = Date::new(year, month, day)
        {
            return named(first, 1.day(), vec![place, place + 1, place + 2]);
        }
        if let Some(month) = month_of(this) {
            let is_month = (this.len() > 3 && month != 3)
                || day_at(before).is_some()
                || day_at(after).is_some()
                || year_at(after).is_some()
                || word(before).is_some_and(|before| is_one(BEFORE_MONTH, before));
            if !is_month {
                continue;
            }
            let (day, place_of_day) = match (day_at(before), day_at(after)) {
                (Some(day), _) => (Some(day), before),
                (None, Some(day)) => (Some(day), after),
                (None, None) => (None, None),
            };
            let place_of_year = [after, Some(place + 2)];
            let place_of_year = place_of_year
                .into_iter()
                .find(|place| year_at(*place).is_some());
            let year = place_of_year
                .and_then(year_at)
                .unwrap_or_else(|| today.year() - i16::from(month > today.month()));
            let mut of_date = vec![place];
            of_date.extend(place_of_day);
            of_date.extend(place_of_year.flatten());
            return match day {
                Some(day) => named(Date::new(year, month, day).ok()?, 1.day(), of_date),
                None => named(date(year, month, 1), 1.month(), of_date),
            };
        }
        let days_ago = |days: i32| today.checked_sub(i64::from(days).days()).ok();
        if is_one(YESTERDAY, this) {
            return named(days_ago(1)?, 1.day(), vec![place]);
        }
        if is_one(TODAY, this) {
            return named(today, 1.day(), vec![place]);
        }
        // "last week", "la semana pasada"
        let beside = [before, after];
        let has = |words: &str| {
            beside
                .iter()
                .any(|place| word(*place).is_some_and(|word| is_one(words, word)))
        };
        let ago = i32::from(has(LAST));
        if has(LAST) || has(THIS) {
            let monday = i32::from(today.weekday().to_monday_zero_offset());
            let begin = today.first_of_month();
            if is_one(WEEK, this) {
                return named(days_ago(monday + 7 * ago)?, 1.week(), vec![]);
            } else if is_one(MONTH, this) {
                return named(
                    begin.checked_sub(i64::from(ago).months()).ok()?,
                    1.month(),
                    vec![],
                );
            } else if is_one(YEAR, this) {
                return named(date(today.year() - ago as i16, 1, 1), 1.year(), vec![]);
            }
        }
        // "3 weeks ago", "vor 3 Wochen"
        if let Some(count) = word(before).and_then(number)
            && (word(after) == Some("ago") || has_before(words, place, &["vor", "hace", "il"]))
        {
            let count = i32::from(count.min(1_000));
            if is_one(DAYS, this) {
                return named(days_ago(count)?, 1.day(), vec![]);
            } else if is_one(WEEKS, this) {
                return named(days_ago(7 * count + 3)?, 1.week(), vec![]);
            } else if is_one(SOME_MONTHS, this) {
                return named(days_ago(30 * count + 15)?, 1.month(), vec![]);
            }
        }
        if let Some(year) = year_at(Some(place)) {
            return named(date(year, 1, 1), 1.year(), vec![place]);
        }
    }
    None
}

fn has_before(words: &[&str], place: usize, any: &[&str]) -> bool {
    words[place.saturating_sub(4)..place]
        .iter()
        .any(|word| any.contains(word))
}

fn named(first: Date, length: Span, words: Vec<usize>) -> Option<Named> {
    let instant = |date: Date| {
        let zoned = date.to_zoned(TimeZone::UTC).ok()?;
        Some(zoned.timestamp().as_millisecond())
    };
    let until = first.checked_add(length).ok()?;
    let days = (instant(first)?, instant(until)?);
    Some(Named { days, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_found_in_a_question() {
        // Saturday.
        let now = Timestamp::from_millis(1_795_253_400_125);
        for (question, expected) in [
            ("what did we say in may", Some("2026-05-01 2026-06-01")),
            ("what happened on 8 may 2023", Some("2023-05-08 2023-05-09")),
            ("on may 8th 2023", Some("2023-05-08 2023-05-09")),
            ("was war im dezember los", Some("2025-12-01 2026-01-01")),
            ("last week", Some("2026-11-09 2026-11-16")),
            ("la semana pasada", Some("2026-11-09 2026-11-16")),
            ("letzten monat", Some("2026-10-01 2026-11-01")),
            ("yesterday", Some("2026-11-20 2026-11-21")),
            ("on 2023 05 08", Some("2023-05-08 2023-05-09")),
            ("2 weeks ago", Some("2026-11-04 2026-11-11")),
            ("vor 3 tagen", Some("2026-11-18 2026-11-19")),
            ("in 2024", Some("2024-01-01 2025-01-01")),
            ("may i ask", None),
            ("march to the sea", None),
            ("the last one", None),
            ("room 12", None),
            ("31 february", None),
        ] {
            let words: Vec<&str> = question.split(' ').collect();
            let found = find(&words, now).map(|found| {
                let day = |millis| Instant::from_millisecond(millis).unwrap().to_string();
                let (from, until) = found.days;
                format!("{} {}", &day(from)[..10], &day(until)[..10])
            });
            assert_eq!(found.as_deref(), expected, "{question}");
        }
    }
}

//! Times as a model writes them: a day, or a time on the household's clocks.

use jiff::civil::{Date, DateTime};

use base::calendar::{Timing, Zone};
use base::clock::Timestamp;

/// A day, or a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Point {
    Day(Date),
    Time(Timestamp),
}

impl Point {
    pub fn read(text: &str, zone: &Zone, now: Timestamp) -> Result<Point, String> {
        let today = zone.local(now).ok_or_else(|| not_a_time(text))?.date();
        let day = match text.to_lowercase().as_str() {
            "today" => Some(today),
            "tomorrow" => today.tomorrow().ok(),
            "yesterday" => today.yesterday().ok(),
            _ => None,
        };
        let is_day = !text.contains([':', '+']);
        if let Some(day) = day.or_else(|| text.parse().ok().filter(|_| is_day)) {
            return Ok(Point::Day(day));
        }
        if let Ok(time) = text.parse::<Timestamp>() {
            return Ok(Point::Time(time));
        }
        // Also one that has been.
        if let Some(local) = text.parse::<DateTime>().ok().filter(|_| !is_day) {
            return zone
                .instant_in_calendar(local)
                .map(Point::Time)
                .ok_or_else(|| not_a_time(text));
        }
        match Timing::new(Some(text), None, zone, now) {
            Ok(timing) if timing.cron.is_none() => Ok(Point::Time(timing.next_at)),
            _ => Err(not_a_time(text)),
        }
    }

    pub fn begin(self, zone: &Zone) -> Option<Timestamp> {
        match self {
            Point::Day(day) => zone.instant_in_calendar(day.at(0, 0, 0, 0)),
            Point::Time(time) => Some(time),
        }
    }

    /// The end of a day, or the time itself.
    pub fn end(self, zone: &Zone) -> Option<Timestamp> {
        match self {
            Point::Day(day) => Point::Day(day.tomorrow().ok()?).begin(zone),
            time => time.begin(zone),
        }
    }
}

pub(super) fn not_a_time(text: &str) -> String {
    let text: String = text.chars().take(64).collect();
    format!("{text:?} is no time: give 2026-11-27, 2026-11-27T18:30 or \"tomorrow 6pm\"")
}

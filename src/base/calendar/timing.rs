//! When a schedule runs, from what a person or a model wrote.

use std::time::Duration;

use jiff::civil::{DateTime, Time};

use super::cron::Cron;
use super::zone::Zone;
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// When a schedule runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For a recurring one.
    pub cron: Option<Cron>,
    /// The next time, or the only one.
    pub next_at: Timestamp,
    /// Whether that was given as a wait (`+20m`), which does not change when the
    /// clock is set.
    pub is_wait: bool,
}

impl Timing {
    /// Reads one of the two: `at`, a single time (`2026-11-22T18:30`, `18:30`,
    /// both local, `+20m`, or ISO 8601 with an offset), or `cron`, five fields.
    ///
    /// # Errors
    /// `invalid_request` that says what is wrong: neither or both, no
    /// time, a time that is past or never comes, or the field.
    pub fn new(
        at: Option<&str>,
        cron: Option<&str>,
        zone: &Zone,
        now: Timestamp,
    ) -> Result<Timing> {
        match (at, cron) {
            (Some(at), None) => Ok(Timing {
                cron: None,
                next_at: future(at, zone, now)?,
                is_wait: at.trim().starts_with('+'),
            }),
            (None, Some(cron)) => {
                let cron: Cron = cron.parse()?;
                let next_at = cron.next(now, zone).ok_or_else(|| {
                    Error::invalid_request(format!("\"cron\" {cron} never comes"))
                })?;
                Ok(Timing {
                    cron: Some(cron),
                    next_at,
                    is_wait: false,
                })
            }
            (Some(_), Some(_)) | (None, None) => Err(Error::invalid_request(
                "give either \"at\", for one time, or \"cron\", for recurring times",
            )),
        }
    }

    /// The next time after `now`; a single time does not change.
    pub fn after(&self, now: Timestamp, zone: &Zone) -> Timestamp {
        let next = self.cron.as_ref().and_then(|cron| cron.next(now, zone));
        next.unwrap_or(self.next_at)
    }
}

fn future(text: &str, zone: &Zone, now: Timestamp) -> Result<Timestamp> {
    let text = text.trim();
    let time = read(text, zone, now).ok_or_else(|| {
        let shown: String = text.chars().take(64).collect();
        Error::invalid_request(format!(
            "\"at\" must be a time such as 2026-11-22T18:30, 18:30 or +20m, not {shown:?}"
        ))
    })?;
    if time <= now {
        return Err(Error::invalid_request(format!(
            "\"at\" is in the past: {}. It is now {}",
            zone.minute(time),
            zone.minute(now)
        )));
    }
    Ok(time)
}

fn read(text: &str, zone: &Zone, now: Timestamp) -> Option<Timestamp> {
    if let Some(delay) = text.strip_prefix('+') {
        return Some(now.plus(duration(delay)?));
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp::from_millis(time.as_millisecond()));
    }
    // jiff would read a date alone as midnight.
    if !text.contains(':') {
        return None;
    }
    if let Ok(local) = text.parse::<DateTime>() {
        return zone.instant(local);
    }
    let time: Time = text.parse().ok()?;
    let today = zone.local(now)?.date();
    let at = |date: jiff::civil::Date| zone.instant(date.to_datetime(time));
    match at(today)? {
        later if later > now => Some(later),
        _ => at(today.tomorrow().ok()?),
    }
}

/// `90s`, `20m`, `2h` or `3d`.
fn duration(text: &str) -> Option<Duration> {
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
    // More than a century is a mistake, and could leave the calendar.
    let count: u64 = number.parse().ok()?;
    count
        .checked_mul(seconds)
        .filter(|seconds| *seconds <= 100 * 366 * 86_400)
        .map(Duration::from_secs)
}

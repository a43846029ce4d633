//! When a schedule runs, from what a person or a model wrote.

use jiff::civil::DateTime;

use super::cron::Cron;
use super::phrase::{self, Meaning};
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
    /// The only time on the household's clocks (`2026-11-22T18:30:00`), if it was given so:
    /// it moves with the time zone.
    pub local: Option<String>,
}

impl Timing {
    /// Reads one of the two: `at`, a time as people say it or in digits (`tomorrow at
    /// 6pm`, `every other Friday`, `2026-11-22T18:30`, all local, `+20m`, ISO 8601
    /// with an offset, or the fields of cron), or `cron`, its fields or words that repeat.
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
        let meaning = match (at, cron) {
            (Some(at), None) => read(at.trim(), zone, now).ok_or_else(|| {
                let shown: String = at.trim().chars().take(64).collect();
                Error::refused("error.time", &[("text", &format!("{shown:?}"))])
            })?,
            (None, Some(cron)) => match phrase::read(cron, zone, now) {
                Some(repeated @ Meaning::Repeated(_)) => repeated,
                _ => Meaning::Repeated(cron.parse()?),
            },
            (Some(_), Some(_)) | (None, None) => {
                return Err(Error::refused("error.time_or_cron", &[]));
            }
        };
        Ok(match meaning {
            Meaning::Wait(wait) => Timing {
                is_wait: true,
                ..Timing::once(future(now.plus(wait), zone, now)?)
            },
            Meaning::Instant(time) => Timing::once(future(time, zone, now)?),
            Meaning::Once(local) => {
                let time = zone.instant(local).ok_or_else(|| {
                    Error::refused("error.time_outside", &[("time", &local.to_string())])
                })?;
                Timing {
                    local: Some(local.to_string()),
                    ..Timing::once(future(time, zone, now)?)
                }
            }
            Meaning::Repeated(cron) => {
                let next_at = cron.next(now, zone).ok_or_else(|| {
                    Error::refused("error.cron_never", &[("cron", &cron.to_string())])
                })?;
                Timing {
                    cron: Some(cron),
                    ..Timing::once(next_at)
                }
            }
        })
    }

    /// This instant, whatever the time zone.
    pub fn once(next_at: Timestamp) -> Timing {
        Timing {
            cron: None,
            next_at,
            is_wait: false,
            local: None,
        }
    }

    /// When a single time comes in this time zone: one that was given on the household's
    /// clocks moves with it.
    pub fn in_zone(&self, zone: &Zone) -> Timestamp {
        let local = self.local.as_ref().and_then(|local| local.parse().ok());
        let moved = local.and_then(|local: DateTime| zone.instant(local));
        moved.unwrap_or(self.next_at)
    }

    /// The next time after `now`; a single time does not change.
    pub fn after(&self, now: Timestamp, zone: &Zone) -> Timestamp {
        let next = self.cron.as_ref().and_then(|cron| cron.next(now, zone));
        next.unwrap_or(self.next_at)
    }
}

fn future(time: Timestamp, zone: &Zone, now: Timestamp) -> Result<Timestamp> {
    if time <= now {
        let (time, now) = (zone.minute(time), zone.minute(now));
        return Err(Error::refused(
            "error.time_past",
            &[("time", &time), ("now", &now)],
        ));
    }
    Ok(time)
}

fn read(text: &str, zone: &Zone, now: Timestamp) -> Option<Meaning> {
    if let Some(delay) = text.strip_prefix('+') {
        return phrase::duration(delay).map(Meaning::Wait);
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(Meaning::Instant(Timestamp::from_millis(
            time.as_millisecond(),
        )));
    }
    match text.parse::<DateTime>() {
        // jiff would read a date alone as midnight.
        Ok(local) if text.contains(':') => Some(Meaning::Once(local)),
        _ => phrase::read(text, zone, now).or_else(|| Some(Meaning::Repeated(text.parse().ok()?))),
    }
}

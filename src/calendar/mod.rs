//! When something is to happen, in the household's time zone: once, or again
//! and again by the five fields of cron.

mod cron;
mod timing;

#[cfg(test)]
mod tests;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::clock::Timestamp;
use crate::error::{Error, Result};

pub use cron::Cron;
pub use timing::Timing;

/// A time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone that the system is set to: `TZ`, else /etc/localtime, else UTC.
    pub fn system() -> Zone {
        Zone(TimeZone::system())
    }

    /// The zone of an IANA name, as the system knows it.
    ///
    /// Errors: `invalid_request` when there is none.
    pub fn named(name: &str) -> Result<Zone> {
        TimeZone::get(name).map(Zone).map_err(|_| {
            Error::invalid_request(format!(
                "there is no time zone {name:?}: give an IANA name such as Europe/Berlin"
            ))
        })
    }

    /// The household's zone: the one that its configuration names, else the
    /// system's.
    pub fn of_household(name: Option<&str>) -> Zone {
        name.and_then(|name| Zone::named(name).ok())
            .unwrap_or_else(Zone::system)
    }

    /// The zone as jiff has it.
    pub fn rules(&self) -> &TimeZone {
        &self.0
    }

    /// A time on the clocks of this zone, to the minute: `2026-11-21 09:30`.
    pub fn minute(&self, time: Timestamp) -> String {
        match self.local(time) {
            Some(local) => local.strftime("%Y-%m-%d %H:%M").to_string(),
            None => time.to_string(),
        }
    }

    /// What clocks show at a time; nothing beyond the year 9999.
    fn local(&self, time: Timestamp) -> Option<DateTime> {
        let time = jiff::Timestamp::from_millisecond(time.as_millis()).ok()?;
        Some(self.0.to_datetime(time))
    }

    /// When clocks show `local`: the first time where they show it twice, and
    /// when they have skipped it, the moment at which they do so.
    fn instant(&self, local: DateTime) -> Option<Timestamp> {
        let ambiguous = self.0.to_ambiguous_timestamp(local);
        let time = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok()?,
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok()?,
            AmbiguousOffset::Gap { before, .. } => {
                // Read with the old offset it lies at or after the change.
                let later = before.to_timestamp(local).ok()?;
                let after = later.checked_add(jiff::Span::new().seconds(1)).ok()?;
                let change = self.0.preceding(after).next();
                change.map_or(later, |change| change.timestamp())
            }
        };
        Some(Timestamp::from_millis(time.as_millisecond()))
    }
}

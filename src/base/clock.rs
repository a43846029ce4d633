//! Time: timestamps of the wire and the database, and an injected clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z. Its text is
/// ISO 8601 UTC (contract section 2), as in `2026-11-21T09:30:00.125Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point `millis` milliseconds after 1970.
    pub fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The point `duration` later.
    pub fn plus(self, duration: Duration) -> Timestamp {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(millis))
    }

    /// The point `duration` earlier.
    pub fn minus(self, duration: Duration) -> Timestamp {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(millis))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            // Only a damaged row can hold a time outside years -9999 to 9999.
            Err(_) => f.write_str("9999-12-31T23:59:59.999Z"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The time of day and the time that passes, injected so that tests can let hours
/// pass at once. Clones share one clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    shifts: Arc<Shifts>,
}

/// What tests add to the operating system's clocks, in milliseconds.
#[derive(Debug, Default)]
struct Shifts {
    wall: AtomicI64,
    monotonic: AtomicU64,
}

impl Clock {
    /// The operating system's clock.
    pub fn system() -> Clock {
        Clock::default()
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let millis = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        Timestamp(millis.saturating_add(self.shifts.wall.load(Ordering::Relaxed)))
    }

    /// The present moment on a clock that nobody sets: for waits, which must not
    /// grow when the time of day is set back.
    pub fn monotonic(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.shifts.monotonic.load(Ordering::Relaxed))
    }

    /// Lets `duration` pass at once on this clock and its clones. Waits in progress
    /// do not notice; the caller must also wake them (`Server::advance_clock`).
    pub fn advance(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.shifts.wall.fetch_add(millis, Ordering::Relaxed);
        self.shifts
            .monotonic
            .fetch_add(millis.unsigned_abs(), Ordering::Relaxed);
    }

    /// Sets the time of day back by `duration`, as a correction of the system's clock
    /// does. No time passes.
    pub fn set_back(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.shifts.wall.fetch_sub(millis, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_iso_8601_in_utc() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_795_253_400_125, "2026-11-21T09:30:00.125Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), text);
        }
    }

    #[test]
    fn clones_share_the_time_that_passes() {
        let clock = Clock::system();
        let before = clock.now();
        clock.clone().advance(Duration::from_secs(3600));
        assert!(clock.now().since(before) >= Duration::from_secs(3600));
    }

    #[test]
    fn setting_the_clock_back_does_not_undo_the_time_that_passed() {
        let clock = Clock::system();
        let (day, moment) = (clock.now(), clock.monotonic());
        clock.advance(Duration::from_secs(60));
        clock.set_back(Duration::from_secs(3600));
        assert!(clock.now() < day);
        assert!(clock.monotonic() >= moment + Duration::from_secs(60));
    }
}

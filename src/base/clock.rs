//! Time: timestamps of the wire and the database, and an injected clock.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z. Its text is
/// ISO 8601 UTC (contract section 2), as in `2026-11-21T09:30:00.125Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point `millis` milliseconds after 1970.
    pub const fn from_millis(millis: i64) -> Timestamp {
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

    /// The point this many milliseconds later, or earlier if negative.
    pub fn shifted(self, millis: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(millis))
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

impl FromStr for Timestamp {
    type Err = NotATime;

    /// A time in ISO 8601, with its offset.
    fn from_str(text: &str) -> Result<Timestamp, NotATime> {
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Timestamp(time.as_millisecond())),
            Err(_) => Err(NotATime),
        }
    }
}

/// What a text is that [`Timestamp`] cannot be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATime;

impl fmt::Display for NotATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not a time in ISO 8601 with its offset")
    }
}

impl std::error::Error for NotATime {}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The time of day and the time that passes, injected so that tests can let hours
/// pass at once. Clones share one clock.
///
/// A server's clock runs evenly ([`Clock::run_evenly`]): when somebody sets the
/// system's clock, or a Raspberry Pi without a battery clock learns the time from
/// the network, it goes on as before until the owner has corrected what waits, and
/// then follows ([`Clock::follow`]).
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The milliseconds from 1970 to the machine's start, plus 1; 0 while the clock
    /// is the system's.
    even: AtomicI64,
    /// How far tests set the system's clock, and the time that they let pass, in
    /// milliseconds.
    set: AtomicI64,
    passed: AtomicU64,
}

/// A difference this small between the clock and the system's is no step of the
/// latter, in milliseconds. It stays, so many small ones become a step.
const LEAST_STEP: i64 = 1000;

impl Clock {
    /// The operating system's clock.
    pub fn system() -> Clock {
        Clock::default()
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        let millis = match self.0.even.load(Ordering::Relaxed) {
            0 => self.system_millis(),
            even => millis_since_start() + even - 1,
        };
        Timestamp(millis).plus(self.passed())
    }

    /// The present moment on a clock that nobody sets: for waits, which must not
    /// grow when the time of day is set back.
    pub fn monotonic(&self) -> Instant {
        Instant::now() + self.passed()
    }

    /// From now on the clock no longer follows the system's when that is set.
    pub fn run_evenly(&self) {
        let even = self.system_millis() - millis_since_start() + 1;
        self.0.even.store(even, Ordering::Relaxed);
    }

    /// How far the system's clock was set since [`Clock::run_evenly`] and
    /// [`Clock::follow`], in milliseconds, negative for back; absent below a second.
    pub fn step(&self) -> Option<i64> {
        let even = self.0.even.load(Ordering::Relaxed);
        let step = self.system_millis() - (millis_since_start() + even - 1);
        (even != 0 && step.abs() >= LEAST_STEP).then_some(step)
    }

    /// Moves an even clock by this many milliseconds.
    pub fn follow(&self, step: i64) {
        self.0.even.fetch_add(step, Ordering::Relaxed);
    }

    /// Lets `duration` pass at once on this clock and its clones. Waits in progress
    /// do not notice; the caller must also wake them (`Server::advance_clock`).
    pub fn advance(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.0.passed.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sets the system's clock, as this clock and its clones see it, this many
    /// milliseconds ahead, or back if negative. No time passes.
    pub fn set_by(&self, millis: i64) {
        self.0.set.fetch_add(millis, Ordering::Relaxed);
    }

    fn system_millis(&self) -> i64 {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let millis = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        millis.saturating_add(self.0.set.load(Ordering::Relaxed))
    }

    fn passed(&self) -> Duration {
        Duration::from_millis(self.0.passed.load(Ordering::Relaxed))
    }
}

/// Counts the time that the machine was suspended too, unlike [`Instant`].
fn millis_since_start() -> i64 {
    let since = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
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
        clock.set_by(-3_600_000);
        assert!(clock.now() < day);
        assert!(clock.monotonic() >= moment + Duration::from_secs(60));
    }

    #[test]
    fn an_even_clock_goes_on_while_the_system_s_is_set() {
        const DAY: i64 = 86_400_000;
        let near = |a: Timestamp, b: Timestamp| {
            let apart = (a.as_millis() - b.as_millis()).abs();
            assert!(apart < DAY / 2, "{a} and {b}");
        };
        for step in [DAY, -DAY] {
            let (clock, real) = (Clock::system(), Clock::system());
            clock.run_evenly();
            assert_eq!(clock.step(), None);
            clock.set_by(step);
            near(clock.now(), real.now());
            let found = clock.step().unwrap();
            assert!((found - step).abs() < 60_000, "{found}");
            clock.follow(found);
            near(clock.now(), real.now().shifted(step));
            assert_eq!(clock.step(), None);
            clock.advance(Duration::from_secs(86_400));
            assert_eq!(clock.step(), None, "time that passes is no step");
            near(clock.now(), real.now().shifted(step + DAY));
        }
    }
}

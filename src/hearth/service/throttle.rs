//! Slows down guessing: after a few failures within a window, a key must wait, and
//! each further failure doubles the wait. An attempt counts from its beginning, so
//! that many at once are not more than many in a row. Waits are measured on the
//! monotonic clock: one lasts its own length, however the time of day is set.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base::clock::Clock;
use base::error::{Error, Result};
use base::language::Said;
use base::sync::lock;

/// Failures older than this no longer count.
const WINDOW: Duration = Duration::from_secs(5 * 60);
/// The first wait; each further failure doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(15);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);
/// Keys remembered. Beyond that the key with the fewest failures is dropped, and of
/// those the oldest: guessing from many addresses cannot push out the keys that
/// must wait.
const KEYS: usize = 4_096;

/// Counts failures by key.
pub struct Throttle<K: Eq + Hash> {
    clock: Clock,
    keys: Mutex<HashMap<K, Failures>>,
}

struct Failures {
    count: u32,
    /// Attempts whose outcome is not known yet.
    pending: u32,
    last: Instant,
    blocked_until: Instant,
}

impl Failures {
    /// Whether they are too old to count. The window starts at the end of a wait, so
    /// that waiting it out does not start the count again.
    fn has_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last.max(self.blocked_until)) > WINDOW
    }
}

impl<K: Eq + Hash + Clone> Throttle<K> {
    /// A throttle without failures.
    pub fn new(clock: Clock) -> Throttle<K> {
        Throttle {
            clock,
            keys: Mutex::default(),
        }
    }

    /// Begins an attempt. From the `free`th failure within the window on, the key
    /// must wait. No more attempts are pending at a time than may fail.
    ///
    /// # Errors
    /// `rate_limited`, with the seconds to wait.
    pub fn begin(&self, key: K, free: u32) -> Result<Attempt<'_, K>> {
        let (now, free) = (self.clock.monotonic(), free.max(1));
        let mut keys = self.lock();
        if keys.len() >= KEYS && !keys.contains_key(&key) {
            make_room(&mut keys, now);
        }
        let entry = keys.entry(key.clone()).or_insert(Failures {
            count: 0,
            pending: 0,
            last: now,
            blocked_until: now,
        });
        if entry.has_expired(now) {
            entry.count = 0;
        }
        let wait = match entry.blocked_until.saturating_duration_since(now) {
            Duration::ZERO if entry.pending > 0 && entry.count + entry.pending >= free => 1,
            wait => wait.as_millis().div_ceil(1000) as u32,
        };
        if wait > 0 {
            let fields = [("seconds", &*wait.to_string())];
            let said = Said::of("error.too_many_attempts", &fields);
            return Err(Error::rate_limited(said, wait));
        }
        entry.pending += 1;
        drop(keys);
        Ok(Attempt {
            throttle: self,
            key,
            free,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Failures>> {
        lock(&self.keys)
    }
}

/// An attempt that has begun. Dropped without an outcome, it counts as none.
pub struct Attempt<'a, K: Eq + Hash> {
    throttle: &'a Throttle<K>,
    key: K,
    free: u32,
}

impl<K: Eq + Hash> Attempt<'_, K> {
    /// What it counts for.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// It has failed.
    pub fn failed(self) {
        let now = self.throttle.clock.monotonic();
        if let Some(entry) = lock(&self.throttle.keys).get_mut(&self.key) {
            entry.count += 1;
            entry.last = now;
            if entry.count >= self.free {
                let doublings = (entry.count - self.free).min(16);
                entry.blocked_until = now + (FIRST_WAIT * (1 << doublings)).min(LONGEST_WAIT);
            }
        }
    }

    /// It has succeeded: the key's failures are forgotten.
    pub fn succeeded(self) {
        if let Some(entry) = lock(&self.throttle.keys).get_mut(&self.key) {
            entry.count = 0;
            entry.blocked_until = entry.last;
        }
    }
}

impl<K: Eq + Hash> Drop for Attempt<'_, K> {
    fn drop(&mut self) {
        let mut keys = lock(&self.throttle.keys);
        if let Some(entry) = keys.get_mut(&self.key) {
            entry.pending = entry.pending.saturating_sub(1);
            if entry.pending == 0 && entry.count == 0 {
                keys.remove(&self.key);
            }
        }
    }
}

fn make_room<K: Eq + Hash + Clone>(keys: &mut HashMap<K, Failures>, now: Instant) {
    keys.retain(|_, entry| entry.pending > 0 || !entry.has_expired(now));
    if keys.len() < KEYS {
        return;
    }
    let least = keys
        .iter()
        .min_by_key(|(_, entry)| (entry.count + entry.pending, entry.last))
        .map(|(key, _)| key.clone());
    if let Some(least) = least {
        keys.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_of(throttle: &Throttle<&str>, key: &'static str) -> Option<u32> {
        throttle
            .begin(key, 5)
            .err()
            .and_then(|error| error.retry_after())
    }

    fn fail<K: Eq + Hash + Clone>(throttle: &Throttle<K>, key: K) {
        throttle.begin(key, 5).ok().unwrap().failed();
    }

    #[test]
    fn waits_double_up_to_an_hour_and_a_success_resets_them() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        for _ in 0..4 {
            fail(&throttle, "ada");
            assert_eq!(wait_of(&throttle, "ada"), None);
        }
        for expected in [15, 30, 60, 120] {
            fail(&throttle, "ada");
            let wait = wait_of(&throttle, "ada").unwrap();
            assert!(
                (expected - 1..=expected).contains(&wait),
                "{wait} instead of {expected}"
            );
            clock.advance(Duration::from_secs(u64::from(wait)));
            assert_eq!(wait_of(&throttle, "ada"), None);
        }
        for _ in 0..20 {
            fail(&throttle, "ada");
            let wait = wait_of(&throttle, "ada").unwrap();
            assert!(wait <= 3600);
            clock.advance(Duration::from_secs(u64::from(wait)));
        }
        assert_eq!(wait_of(&throttle, "grace"), None);
        throttle.begin("ada", 5).ok().unwrap().succeeded();
        fail(&throttle, "ada");
        assert_eq!(wait_of(&throttle, "ada"), None);
    }

    #[test]
    fn a_wait_lasts_its_own_length_when_the_clock_is_set_back() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        for _ in 0..5 {
            fail(&throttle, "ada");
        }
        clock.set_by(-24 * 60 * 60 * 1000);
        assert!(wait_of(&throttle, "ada").unwrap() <= 15);
        clock.advance(Duration::from_secs(15));
        assert_eq!(wait_of(&throttle, "ada"), None);
    }

    #[test]
    fn failures_expire_after_the_window() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        for _ in 0..4 {
            fail(&throttle, "ada");
        }
        clock.advance(WINDOW + Duration::from_secs(1));
        fail(&throttle, "ada");
        assert_eq!(wait_of(&throttle, "ada"), None);
    }

    #[test]
    fn attempts_count_from_their_beginning() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        let mut pending: Vec<_> = (0..5).map(|_| throttle.begin("ada", 5).unwrap()).collect();
        assert_eq!(wait_of(&throttle, "ada"), Some(1));
        // One that has no outcome makes room for another; failures do not.
        drop(pending.pop());
        assert_eq!(wait_of(&throttle, "ada"), None);
        pending.into_iter().for_each(Attempt::failed);
        fail(&throttle, "ada");
        let wait = wait_of(&throttle, "ada").unwrap();
        assert!((14..=15).contains(&wait), "{wait}");
        // After a wait, one at a time is judged.
        clock.advance(Duration::from_secs(15));
        let _one = throttle.begin("ada", 5).unwrap();
        assert_eq!(wait_of(&throttle, "ada"), Some(1));
    }

    #[test]
    fn memory_is_bounded_and_keeps_the_worst() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        for _ in 0..5 {
            fail(&throttle, 0);
        }
        for key in 1..KEYS + 10 {
            fail(&throttle, key);
        }
        assert_eq!(throttle.lock().len(), KEYS);
        assert!(throttle.begin(0, 5).is_err());
        clock.advance(WINDOW * 2);
        fail(&throttle, KEYS.saturating_mul(2));
        assert_eq!(throttle.lock().len(), 1, "what is over makes room first");
    }
}

//! Slows down guessing: after a few failures within a window, a key must wait, and
//! each further failure doubles the wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::error::{Error, Result};
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

/// Counts failures by key: an address, a user's name, an account.
pub struct Throttle<K> {
    clock: Clock,
    failures: Mutex<HashMap<K, Failures>>,
}

struct Failures {
    count: u32,
    last: Timestamp,
    blocked_until: Timestamp,
}

impl Failures {
    /// Whether they are too old to count. The window starts at the end of a wait, so
    /// that waiting it out does not start the count again.
    fn has_expired(&self, now: Timestamp) -> bool {
        now.since(self.last.max(self.blocked_until)) > WINDOW
    }
}

impl<K: Eq + Hash + Clone> Throttle<K> {
    /// A throttle without failures.
    pub fn new(clock: Clock) -> Throttle<K> {
        Throttle {
            clock,
            failures: Mutex::default(),
        }
    }

    /// Whether this key may try now.
    ///
    /// # Errors
    /// `rate_limited`, with the seconds to wait.
    pub fn check(&self, key: &K) -> Result<()> {
        let now = self.clock.now();
        match self.lock().get(key) {
            Some(failures) if failures.blocked_until > now => {
                let wait = failures.blocked_until.since(now).as_millis().div_ceil(1000) as u32;
                Err(Error::rate_limited(
                    format!("too many failed attempts; try again in {wait} seconds"),
                    wait,
                ))
            }
            _ => Ok(()),
        }
    }

    /// Notes a failure; from the `free`th within the window on, the key must wait.
    pub fn failed(&self, key: &K, free: u32) {
        let now = self.clock.now();
        let mut failures = self.lock();
        if failures.len() >= KEYS && !failures.contains_key(key) {
            make_room(&mut failures, now);
        }
        let entry = failures.entry(key.clone()).or_insert(Failures {
            count: 0,
            last: now,
            blocked_until: now,
        });
        if entry.has_expired(now) {
            entry.count = 0;
        }
        entry.count += 1;
        entry.last = now;
        if entry.count >= free.max(1) {
            let doublings = (entry.count - free.max(1)).min(16);
            entry.blocked_until = now.plus((FIRST_WAIT * (1 << doublings)).min(LONGEST_WAIT));
        }
    }

    /// Notes a success: the key's failures are forgotten.
    pub fn succeeded(&self, key: &K) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Failures>> {
        lock(&self.failures)
    }
}

fn make_room<K: Eq + Hash + Clone>(failures: &mut HashMap<K, Failures>, now: Timestamp) {
    failures.retain(|_, entry| !entry.has_expired(now));
    if failures.len() < KEYS {
        return;
    }
    let least = failures
        .iter()
        .min_by_key(|(_, entry)| (entry.count, entry.last))
        .map(|(key, _)| key.clone());
    if let Some(least) = least {
        failures.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_of(throttle: &Throttle<&str>, key: &'static str) -> Option<u32> {
        throttle
            .check(&key)
            .err()
            .and_then(|error| error.retry_after())
    }

    #[test]
    fn waits_double_up_to_an_hour_and_a_success_resets_them() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        for _ in 0..4 {
            throttle.failed(&"ada", 5);
            assert_eq!(wait_of(&throttle, "ada"), None);
        }
        for expected in [15, 30, 60, 120] {
            throttle.failed(&"ada", 5);
            let wait = wait_of(&throttle, "ada").unwrap();
            assert!(
                (expected - 1..=expected).contains(&wait),
                "{wait} instead of {expected}"
            );
            clock.advance(Duration::from_secs(u64::from(wait)));
            assert_eq!(wait_of(&throttle, "ada"), None);
        }
        for _ in 0..20 {
            throttle.failed(&"ada", 5);
        }
        assert!(wait_of(&throttle, "ada").unwrap() <= 3600);
        assert_eq!(wait_of(&throttle, "grace"), None);
        throttle.succeeded(&"ada");
        assert_eq!(wait_of(&throttle, "ada"), None);
    }

    #[test]
    fn failures_expire_after_the_window() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        for _ in 0..4 {
            throttle.failed(&"ada", 5);
        }
        clock.advance(WINDOW + Duration::from_secs(1));
        throttle.failed(&"ada", 5);
        assert_eq!(wait_of(&throttle, "ada"), None);
    }

    #[test]
    fn memory_is_bounded_and_keeps_the_worst() {
        let clock = Clock::system();
        let throttle = Throttle::new(clock.clone());
        for _ in 0..5 {
            throttle.failed(&0, 5);
        }
        for key in 1..KEYS + 10 {
            throttle.failed(&key, 5);
        }
        assert_eq!(throttle.lock().len(), KEYS);
        assert!(throttle.check(&0).is_err());
        clock.advance(WINDOW * 2);
        throttle.failed(&KEYS.saturating_mul(2), 5);
        assert_eq!(throttle.lock().len(), 1, "what is over makes room first");
    }
}

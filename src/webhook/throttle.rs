//! Slows down whoever guesses a webhook secret.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::service::peer::AddressKey;

/// Failures from one address at one account that are borne within [`WINDOW`].
const FAILURES: u32 = 20;
/// How long failures are remembered, from the first of them.
const WINDOW: Duration = Duration::from_secs(5 * 60);
/// Most pairs of address and account that are remembered.
const PAIRS: usize = 1024;

/// Counts wrong secrets by address and account. While a pair is over the bound,
/// the right secret is refused too: answering it would tell the guesser.
#[derive(Debug, Default)]
pub struct Throttle {
    failures: Mutex<HashMap<(AddressKey, String), Failures>>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    since: Timestamp,
}

impl Failures {
    fn left(&self, now: Timestamp) -> Duration {
        WINDOW.saturating_sub(now.since(self.since))
    }
}

impl Throttle {
    /// Whether this address may try a secret of this account.
    ///
    /// Errors: `rate_limited`.
    pub fn check(&self, address: AddressKey, account: &str, now: Timestamp) -> Result<()> {
        let failures = self.lock();
        // The usual case: nobody failed lately, and nothing is allocated.
        if failures.is_empty() {
            return Ok(());
        }
        let Some(pair) = failures.get(&(address, account.to_owned())) else {
            return Ok(());
        };
        let left = pair.left(now);
        if pair.count < FAILURES || left.is_zero() {
            return Ok(());
        }
        let seconds = u32::try_from(left.as_secs()).unwrap_or(u32::MAX);
        Err(Error::rate_limited(
            "too many requests with a wrong secret from this address; try again later",
            seconds.saturating_add(1),
        ))
    }

    /// Counts a wrong secret.
    pub fn fail(&self, address: AddressKey, account: &str, now: Timestamp) {
        let mut failures = self.lock();
        let key = (address, account.to_owned());
        if !failures.contains_key(&key) && failures.len() >= PAIRS {
            make_room(&mut failures, now);
        }
        let fresh = Failures {
            count: 0,
            since: now,
        };
        let pair = failures.entry(key).or_insert(fresh);
        if pair.left(now).is_zero() {
            *pair = fresh;
        }
        pair.count = pair.count.saturating_add(1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(AddressKey, String), Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets what is over, else the pair with the fewest failures: a guesser with
/// many addresses cannot push out the pairs that are being throttled.
fn make_room(failures: &mut HashMap<(AddressKey, String), Failures>, now: Timestamp) {
    failures.retain(|_, pair| !pair.left(now).is_zero());
    if failures.len() < PAIRS {
        return;
    }
    let least = failures
        .iter()
        .min_by_key(|(_, pair)| (pair.count, pair.since))
        .map(|(key, _)| key.clone());
    if let Some(key) = least {
        failures.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn address(number: u32) -> AddressKey {
        AddressKey::of(IpAddr::V4(Ipv4Addr::from(number)))
    }

    #[test]
    fn the_twenty_first_guess_waits_until_the_window_is_over() {
        let throttle = Throttle::default();
        let start = Timestamp::from_millis(1_000_000);
        for _ in 0..FAILURES {
            throttle.check(address(1), "door", start).unwrap();
            throttle.fail(address(1), "door", start);
        }
        let error = throttle.check(address(1), "door", start).unwrap_err();
        assert_eq!((error.status(), error.retry_after()), (429, Some(301)));
        // Others are not affected.
        assert!(throttle.check(address(2), "door", start).is_ok());
        assert!(throttle.check(address(1), "lamp", start).is_ok());
        // And it ends.
        let later = start.plus(WINDOW);
        assert!(throttle.check(address(1), "door", later).is_ok());
        throttle.fail(address(1), "door", later);
        assert!(throttle.check(address(1), "door", later).is_ok());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_keeps_the_worst() {
        let throttle = Throttle::default();
        let start = Timestamp::from_millis(1_000_000);
        for _ in 0..FAILURES {
            throttle.fail(address(0), "door", start);
        }
        for number in 1..3000 {
            throttle.fail(address(number), "door", start);
        }
        assert_eq!(throttle.lock().len(), PAIRS);
        assert!(throttle.check(address(0), "door", start).is_err());
        let later = start.plus(WINDOW);
        throttle.fail(address(1), "lamp", later);
        assert_eq!(throttle.lock().len(), 1, "what is over makes room first");
    }
}

//! Throttles guessing of tokens and machine ids.
//!
//! Unlike sign-ins, these are also retried by honest programs: a client whose
//! machine is off for the night, a machine with an old token. So the wait does not
//! grow: they get through soon after the cause is fixed, and others behind the
//! same address are not locked out.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base::error::{Error, Result};
use base::sync;
use net::peer::AddressKey;

/// The period over which failures are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses remembered. Beyond them, the one with the fewest failures is dropped,
/// so that many addresses cannot evict one that must wait.
const ADDRESSES: usize = 4_096;

/// Failures by address, with a limit per minute.
pub struct Guesses {
    most: u32,
    failures: Mutex<HashMap<AddressKey, Failures>>,
}

#[derive(Clone, Copy)]
struct Failures {
    since: Instant,
    count: u32,
}

impl Guesses {
    /// Allows `most` failures a minute.
    pub fn at_most(most: u32) -> Guesses {
        Guesses {
            most,
            failures: Mutex::default(),
        }
    }

    /// Whether this address may try now.
    ///
    /// # Errors
    /// `rate_limited`, with the seconds until the minute ends.
    pub fn check(&self, address: AddressKey, now: Instant) -> Result<()> {
        let failures = sync::lock(&self.failures);
        match failures.get(&address) {
            Some(found) if found.count >= self.most && now < found.since + WINDOW => {
                let wait = (found.since + WINDOW - now).as_secs() as u32 + 1;
                Err(Error::rate_limited(
                    format!("too many failed attempts; try again in {wait} seconds"),
                    wait,
                ))
            }
            _ => Ok(()),
        }
    }

    /// Notes a failure.
    pub fn failed(&self, address: AddressKey, now: Instant) {
        let mut failures = sync::lock(&self.failures);
        if failures.len() >= ADDRESSES && !failures.contains_key(&address) {
            make_room(&mut failures, now);
        }
        let fresh = Failures {
            since: now,
            count: 0,
        };
        let entry = failures.entry(address).or_insert(fresh);
        if now >= entry.since + WINDOW {
            *entry = fresh;
        }
        entry.count += 1;
    }
}

fn make_room(failures: &mut HashMap<AddressKey, Failures>, now: Instant) {
    failures.retain(|_, found| now < found.since + WINDOW);
    if failures.len() < ADDRESSES {
        return;
    }
    let least = failures
        .iter()
        .min_by_key(|(_, found)| (found.count, found.since))
        .map(|(address, _)| *address);
    if let Some(least) = least {
        failures.remove(&least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> AddressKey {
        AddressKey::of(std::net::Ipv4Addr::from(number).into())
    }

    #[test]
    fn an_address_waits_for_the_minute_to_end_and_others_do_not() {
        let guesses = Guesses::at_most(3);
        let now = Instant::now();
        for _ in 0..3 {
            assert!(guesses.check(address(1), now).is_ok());
            guesses.failed(address(1), now);
        }
        let later = now + Duration::from_secs(20);
        let wait = guesses.check(address(1), later).unwrap_err().retry_after();
        assert_eq!(wait, Some(41));
        assert!(guesses.check(address(2), later).is_ok());
        let over = now + WINDOW;
        assert!(guesses.check(address(1), over).is_ok());
        guesses.failed(address(1), over);
        assert!(guesses.check(address(1), over).is_ok(), "a new minute");
    }

    #[test]
    fn memory_is_bounded_and_keeps_the_worst() {
        let guesses = Guesses::at_most(2);
        let now = Instant::now();
        guesses.failed(address(0), now);
        guesses.failed(address(0), now);
        for number in 1..=ADDRESSES as u32 {
            guesses.failed(address(number), now);
        }
        assert_eq!(guesses.failures.lock().unwrap().len(), ADDRESSES);
        assert!(guesses.check(address(0), now).is_err());
    }
}

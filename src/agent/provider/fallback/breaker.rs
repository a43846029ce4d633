//! A circuit breaker: a server that failed gets no requests for a while, and for
//! twice as long each time that it fails again.

use std::time::{Duration, Instant};

/// The first cooldown.
const FIRST_COOLDOWN: Duration = Duration::from_secs(60);
/// The longest.
const LONGEST_COOLDOWN: Duration = Duration::from_secs(60 * 60);
/// How long one trial after a cooldown keeps other callers from trying.
const TRIAL: Duration = Duration::from_secs(60);

/// The state of one server.
#[derive(Debug, Default)]
pub struct Breaker {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// Whether to send a request now. After a cooldown, one caller may try.
    pub fn admit(&mut self, now: Instant) -> bool {
        match self.open_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.open_until = Some(now + TRIAL);
                true
            }
        }
    }

    /// It answered.
    pub fn worked(&mut self) {
        *self = Breaker::default();
    }

    /// It failed. Returns the length of the cooldown.
    pub fn failed(&mut self, now: Instant) -> Duration {
        let cooldown = FIRST_COOLDOWN
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST_COOLDOWN);
        self.failures += 1;
        self.open_until = Some(now + cooldown);
        cooldown
    }

    /// The rest of the cooldown, if there is one.
    pub fn cooldown_left(&self, now: Instant) -> Option<Duration> {
        self.open_until?
            .checked_duration_since(now)
            .filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooldowns_double_up_to_an_hour_and_end_with_success() {
        let mut breaker = Breaker::default();
        let mut now = Instant::now();
        assert!(breaker.admit(now));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            let cooldown = breaker.failed(now);
            assert_eq!(cooldown, Duration::from_secs(60 * minutes));
            assert!(!breaker.admit(now + cooldown - Duration::from_secs(1)));
            assert!(breaker.cooldown_left(now).is_some());
            now += cooldown;
            assert!(breaker.admit(now), "one may try");
            assert!(!breaker.admit(now), "only one");
        }
        breaker.worked();
        assert!(breaker.admit(now) && breaker.admit(now));
        assert_eq!(breaker.cooldown_left(now), None);
        assert_eq!(breaker.failed(now), FIRST_COOLDOWN);
    }

    #[test]
    fn a_trial_of_which_nothing_comes_back_does_not_close_it_for_ever() {
        let mut breaker = Breaker::default();
        let now = Instant::now();
        let cooldown = breaker.failed(now);
        assert!(breaker.admit(now + cooldown));
        assert!(breaker.admit(now + cooldown + TRIAL));
    }
}

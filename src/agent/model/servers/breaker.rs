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
    /// A request is sent now: after a cooldown, only one caller tries.
    pub fn begin_trial(&mut self, now: Instant) {
        if self.open_until.is_some_and(|until| now >= until) {
            self.open_until = Some(now + TRIAL);
        }
    }

    /// It asks to be left alone for so long.
    pub fn busy(&mut self, now: Instant, wait: Duration) -> Duration {
        self.open_until = self.open_until.max(Some(now + wait));
        wait
    }

    /// It answered: it may be asked at once.
    pub fn worked(&mut self) -> Duration {
        *self = Breaker::default();
        Duration::ZERO
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

    fn is_ready(breaker: &Breaker, now: Instant) -> bool {
        breaker.cooldown_left(now).is_none()
    }

    #[test]
    fn cooldowns_double_up_to_an_hour_and_end_with_success() {
        let mut breaker = Breaker::default();
        let mut now = Instant::now();
        assert!(is_ready(&breaker, now));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            let cooldown = breaker.failed(now);
            assert_eq!(cooldown, Duration::from_secs(60 * minutes));
            assert!(!is_ready(&breaker, now + cooldown - Duration::from_secs(1)));
            now += cooldown;
            assert!(is_ready(&breaker, now), "one may try");
            breaker.begin_trial(now);
            assert!(!is_ready(&breaker, now), "only one");
        }
        breaker.worked();
        assert!(is_ready(&breaker, now));
        assert_eq!(breaker.cooldown_left(now), None);
        assert_eq!(breaker.failed(now), FIRST_COOLDOWN);
    }

    #[test]
    fn a_trial_of_which_nothing_comes_back_does_not_close_it_for_ever() {
        let mut breaker = Breaker::default();
        let mut now = Instant::now();
        now += breaker.failed(now);
        breaker.begin_trial(now);
        assert!(is_ready(&breaker, now + TRIAL));
    }

    #[test]
    fn a_busy_server_rests_for_as_long_as_it_asks() {
        let mut breaker = Breaker::default();
        let now = Instant::now();
        let wait = Duration::from_secs(8);
        breaker.busy(now, wait);
        assert!(!is_ready(&breaker, now + wait / 2));
        assert!(is_ready(&breaker, now + wait));
    }
}

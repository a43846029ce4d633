//! When a lost link is opened again (protocol section 6).

use std::time::Duration;

/// Longest wait after the first failure; each further one doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// A link that lasted this long resets the count of failures.
const GOOD: Duration = Duration::from_secs(60);
/// How long a link that was replaced waits, at least half of it: two servers with
/// one key would otherwise replace each other for ever.
const REPLACED: Duration = Duration::from_secs(10 * 60);

/// The waits of one link.
#[derive(Debug, Default)]
pub(super) struct Redial {
    failures: u32,
}

impl Redial {
    /// The wait after a link that was open for `lasted`, zero if it never opened.
    /// `random` is in `0.0..1.0`: the whole wait is jitter, so that the machines of
    /// a relay that restarts do not all return at the same time.
    pub fn lost(&mut self, lasted: Duration, random: f64) -> Duration {
        if lasted >= GOOD {
            self.failures = 0;
        }
        let most = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures += 1;
        most.mul_f64(random)
    }

    /// The wait of a link that another one has replaced.
    pub fn replaced(&mut self, random: f64) -> Duration {
        REPLACED.mul_f64(0.5 + random / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_reset_after_a_good_link() {
        let mut redial = Redial::default();
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            let most = redial.lost(Duration::from_secs(5), 1.0);
            assert_eq!(most, Duration::from_secs(expected));
        }
        assert_eq!(redial.lost(GOOD, 0.5), Duration::from_millis(500));
        assert_eq!(redial.lost(Duration::ZERO, 0.0), Duration::ZERO);
        for random in [0.0, 0.99] {
            let wait = redial.replaced(random);
            assert!(wait >= REPLACED / 2 && wait <= REPLACED);
        }
    }
}

//! A token bucket: an average rate and a burst.

use std::time::Instant;

/// Allows `per_second` things a second on average and `burst` at once.
#[derive(Debug)]
pub struct TokenBucket {
    level: f64,
    filled_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub fn full(burst: u32, now: Instant) -> TokenBucket {
        TokenBucket {
            level: f64::from(burst),
            filled_at: now,
        }
    }

    /// Takes one token.
    ///
    /// # Errors
    /// The bucket is empty; holds the whole seconds until it has a token again.
    pub fn take(&mut self, per_second: u32, burst: u32, now: Instant) -> Result<(), u32> {
        let rate = f64::from(per_second.max(1));
        let passed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.level = (self.level + passed * rate).min(f64::from(burst.max(1)));
        self.filled_at = now;
        if self.level >= 1.0 {
            self.level -= 1.0;
            Ok(())
        } else {
            Err(((1.0 - self.level) / rate).ceil().max(1.0) as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::full(3, start);
        for _ in 0..3 {
            assert_eq!(bucket.take(2, 3, start), Ok(()));
        }
        assert_eq!(bucket.take(2, 3, start), Err(1));
        assert_eq!(
            bucket.take(2, 3, start + Duration::from_millis(500)),
            Ok(())
        );
        assert_eq!(
            bucket.take(2, 3, start + Duration::from_millis(500)),
            Err(1)
        );
        assert_eq!(bucket.take(2, 3, start + Duration::from_secs(60)), Ok(()));
    }
}

//! Retries, as the providers' own SDKs make them: two more attempts, with
//! exponential backoff and jitter.

use std::time::{Duration, Instant};

use crate::model::ProviderError;
use base::secret::random_fraction;
use net::cancel::Cancel;

/// Attempts in all.
const TRIES: u32 = 3;
/// Immediate retries in all, after a change of the request or on a fresh
/// connection. There are no more causes than this.
const FREE_TRIES: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// Whether and when to retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retry {
    /// Another attempt would fail too, or a part of the reply was already shown.
    Never,
    /// After a wait that grows with each attempt.
    Backoff,
    /// After the wait that the server asked for.
    After(Duration),
    /// Immediately, because the cause was removed. Does not count as an attempt.
    Now,
}

/// A failed attempt.
#[derive(Debug)]
pub struct RetryDecision {
    pub error: ProviderError,
    pub retry: Retry,
}

/// Makes attempts until one succeeds, a retry is useless, the deadline would pass,
/// or the turn is stopped (which also ends a wait).
///
/// # Errors
/// That of the last attempt, or [`ProviderError::Cancelled`].
pub fn with_retries<T>(
    deadline: Instant,
    cancel: &Cancel,
    mut attempt: impl FnMut() -> Result<T, RetryDecision>,
) -> Result<T, ProviderError> {
    let (mut tries, mut free_tries) = (0, 0);
    loop {
        if cancel.is_cancelled() {
            return Err(ProviderError::Cancelled);
        }
        let RetryDecision { error, retry } = match attempt() {
            Ok(value) => return Ok(value),
            Err(decision) => decision,
        };
        let wait = match retry {
            Retry::Never => return Err(error),
            Retry::Now if free_tries < FREE_TRIES => {
                free_tries += 1;
                continue;
            }
            Retry::After(wait) => wait,
            Retry::Backoff | Retry::Now => backoff(tries),
        };
        tries += 1;
        let left = deadline.saturating_duration_since(Instant::now());
        if tries >= TRIES || wait >= left {
            return Err(error);
        }
        log::info!("retrying the model request in {} ms", wait.as_millis());
        if cancel.wait(wait) {
            return Err(ProviderError::Cancelled);
        }
    }
}

/// 0.5 s, 1 s, 2 s, ... up to 8 s, less up to a quarter, so that many callers
/// that failed together do not come back together.
fn backoff(tries: u32) -> Duration {
    let wait = FIRST_WAIT
        .saturating_mul(1 << tries.min(8))
        .min(LONGEST_WAIT);
    wait.mul_f64(1.0 - 0.25 * random_fraction())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(retry: Retry) -> RetryDecision {
        RetryDecision {
            error: ProviderError::Failed {
                public: "no".to_owned(),
                detail: String::new(),
                cause: super::super::Cause::Server,
            },
            retry,
        }
    }

    fn tries(retry: Retry, left: Duration) -> u32 {
        let mut count = 0;
        let result: Result<(), _> = with_retries(Instant::now() + left, &Cancel::default(), || {
            count += 1;
            Err(failed(retry))
        });
        assert!(matches!(result, Err(ProviderError::Failed { .. })));
        count
    }

    #[test]
    fn tries_are_counted() {
        let minute = Duration::from_secs(60);
        assert_eq!(tries(Retry::Never, minute), 1);
        assert_eq!(tries(Retry::After(Duration::ZERO), minute), TRIES);
        assert_eq!(
            tries(Retry::After(minute), minute / 2),
            1,
            "a wait beyond the deadline is not begun"
        );
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        for (tries, longest) in [(0, 500), (1, 1000), (2, 2000), (4, 8000), (40, 8000)] {
            let wait = backoff(tries).as_millis();
            assert!(
                wait <= longest && wait >= longest * 3 / 4,
                "{wait} {longest}"
            );
        }
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let cancel = Cancel::default();
        let stopper = cancel.clone();
        let minute = Duration::from_secs(60);
        let started = Instant::now();
        let (waiting, waits) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            waits.recv().unwrap();
            stopper.cancel();
        });
        let result: Result<(), _> = with_retries(started + 2 * minute, &cancel, || {
            waiting.send(()).unwrap();
            Err(failed(Retry::After(minute)))
        });
        thread.join().unwrap();
        assert!(matches!(result, Err(ProviderError::Cancelled)));
        assert!(started.elapsed() < minute);
    }
}

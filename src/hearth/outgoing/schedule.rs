//! When a callback is tried again, as pure functions (protocol section 4,
//! outgoing).

use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use base::clock::Timestamp;
use base::language::Said;
use store::Attempt;

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver answered.
    Answered {
        /// With this status.
        status: u16,
        /// The delay that its `Retry-After` asks for.
        retry_after: Option<Duration>,
    },
    /// The receiver did not answer, for this reason.
    Unanswered(Said),
}

/// How an attempt met its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It answered, whatever it answered.
    Answered,
    /// It refused at once: nobody listens, or no HTTP is spoken there.
    Refused,
    /// It did not answer in time.
    Silent,
}

/// Delays between attempts. The first attempt is made at once, so there is one
/// more attempt than delays.
const DELAYS: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(5 * 3600),
    Duration::from_secs(10 * 3600),
    Duration::from_secs(14 * 3600),
];
/// Longest `Retry-After` that is honoured; a longer one counts as this.
const RETRY_AFTER_MOST: Duration = Duration::from_secs(24 * 3600);
/// Largest random addition, as a part of the delay, so that callbacks which failed
/// together are not retried together.
const JITTER: f64 = 0.2;

/// Without an answer a receiver that took longer than this was silent.
const AT_ONCE: Duration = Duration::from_secs(1);

impl Reach {
    /// Of an attempt that took so long.
    pub fn of(outcome: &Outcome, took: Duration) -> Reach {
        match outcome {
            Outcome::Answered { .. } => Reach::Answered,
            Outcome::Unanswered(_) if took < AT_ONCE => Reach::Refused,
            Outcome::Unanswered(_) => Reach::Silent,
        }
    }
}

/// What follows the `number`th of `most` attempts, counted from 1. `jitter` is a
/// random number in `0.0..1.0`.
pub fn after(number: u32, most: u32, outcome: &Outcome, now: Timestamp, jitter: f64) -> Attempt {
    let (error, asked) = match outcome {
        Outcome::Answered { status, .. } if (200..300).contains(status) => {
            return Attempt::Delivered;
        }
        Outcome::Answered { status: 410, .. } => {
            return Attempt::Dead {
                error: Said::of("delivery.unwanted", &[]),
            };
        }
        Outcome::Answered {
            status,
            retry_after,
        } => (
            Said::of("delivery.status", &[("status", &status.to_string())]),
            retry_after.unwrap_or_default(),
        ),
        Outcome::Unanswered(reason) => (reason.clone(), Duration::ZERO),
    };
    let place = usize::try_from(number.max(1) - 1).unwrap_or(usize::MAX);
    match DELAYS.get(place).filter(|_| number < most) {
        Some(&delay) => {
            let delay = delay.max(asked.min(RETRY_AFTER_MOST));
            Attempt::Retry {
                error,
                next_at: now.plus(delay.mul_f64(1.0 + JITTER * jitter)),
            }
        }
        None => Attempt::Dead {
            error: Said::of("delivery.given_up", &[("count", &number.to_string())])
                .with("said", error),
        },
    }
}

/// The seconds after which Telegram wants to be asked again, of its answer: it says them there
/// (<https://core.telegram.org/bots/api#responseparameters>).
pub fn seconds_to_wait(answer: &Value) -> Option<u64> {
    answer["parameters"]["retry_after"].as_u64()
}

/// Reads a `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date.
/// Anything else counts as absent.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds is still "very long".
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let date = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(Timestamp::from_millis(0).plus(date).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fri, 15 Jan 2027 08:00:00 GMT.
    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    fn answered(status: u16) -> Outcome {
        Outcome::Answered {
            status,
            retry_after: None,
        }
    }

    /// The delay before the next attempt, in seconds.
    fn delay(number: u32, outcome: &Outcome, jitter: f64) -> Option<u64> {
        match after(number, 10, outcome, now(), jitter) {
            Attempt::Retry { next_at, .. } => Some(next_at.since(now()).as_secs()),
            Attempt::Delivered | Attempt::Dead { .. } => None,
        }
    }

    #[test]
    fn ten_attempts_are_made() {
        let delays: Vec<u64> = (1..)
            .map_while(|number| delay(number, &answered(500), 0.0))
            .collect();
        assert_eq!(
            delays,
            [5, 30, 120, 600, 1800, 7200, 18000, 36000, 50400],
            "in seconds"
        );
        match after(10, 10, &answered(500), now(), 0.0) {
            Attempt::Dead { error } => assert_eq!(
                error.to_string(),
                "the receiver answered 500; given up after 10 attempts"
            ),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_2xx_delivers_and_only_410_ends_it() {
        for status in [200, 201, 202, 204, 299] {
            let attempt = after(1, 10, &answered(status), now(), 0.0);
            assert!(matches!(attempt, Attempt::Delivered), "{status}");
        }
        for status in [
            100, 301, 302, 304, 307, 400, 401, 404, 408, 429, 500, 503, 599,
        ] {
            assert_eq!(delay(1, &answered(status), 0.0), Some(5), "{status}");
        }
        let refused = Outcome::Unanswered("connection refused".into());
        assert_eq!(delay(1, &refused, 0.0), Some(5));
        let gone = after(1, 10, &answered(410), now(), 0.0);
        assert!(matches!(gone, Attempt::Dead { .. }));
    }

    #[test]
    fn the_receiver_may_ask_for_a_longer_delay() {
        for (number, asked, seconds) in [
            (1, 60, 60),
            (1, 1, 5),
            (5, 60, 1800),
            (1, 24 * 3600, 24 * 3600),
            (1, 25 * 3600, 24 * 3600),
            (1, u64::MAX, 24 * 3600),
            (9, 24 * 3600, 24 * 3600),
        ] {
            let outcome = Outcome::Answered {
                status: 503,
                retry_after: Some(Duration::from_secs(asked)),
            };
            assert_eq!(delay(number, &outcome, 0.0), Some(seconds), "{asked}");
        }
    }

    #[test]
    fn an_account_may_want_fewer_attempts() {
        for (number, dead) in [(1, false), (2, false), (3, true), (4, true)] {
            let attempt = after(number, 3, &answered(500), now(), 0.0);
            assert_eq!(matches!(attempt, Attempt::Dead { .. }), dead, "{number}");
        }
        assert!(matches!(
            after(1, 1, &answered(200), now(), 0.0),
            Attempt::Delivered
        ));
    }

    #[test]
    fn jitter_only_adds() {
        assert_eq!(delay(9, &answered(500), 0.5), Some(55440));
        let most = delay(9, &answered(500), 0.999_999).unwrap();
        assert!((60400..=60480).contains(&most), "{most}");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (value, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 120 ", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Fri, 15 Jan 2027 08:01:00 GMT", Some(60)),
            ("Fri, 15 Jan 2027 07:00:00 GMT", Some(0)),
            ("", None),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(
                retry_after(value, now()),
                seconds.map(Duration::from_secs),
                "{value:?}"
            );
        }
    }
}

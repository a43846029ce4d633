//! What asking models has come to since the server started.

use std::time::Duration;

use super::provider::{ModelReply, ProviderError};
use crate::measure::{Counter, Histogram};

/// Bounds of how long a model takes, in milliseconds.
const TIMES: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
];

/// The counts, kept across changes of the configuration.
#[derive(Debug)]
pub struct Meter {
    /// How long answered requests took, in milliseconds.
    pub answered: Histogram,
    /// Requests without an answer, but those that somebody stopped.
    pub failed: Counter,
    /// Tokens of the requests, cached ones included.
    pub input: Counter,
    /// Tokens of the replies.
    pub output: Counter,
    /// Part of `input` that providers had cached.
    pub cached: Counter,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            answered: Histogram::new(TIMES),
            failed: Counter::default(),
            input: Counter::default(),
            output: Counter::default(),
            cached: Counter::default(),
        }
    }
}

impl Meter {
    /// Notes what came of a request.
    pub fn note(&self, took: Duration, answer: &Result<ModelReply, ProviderError>) {
        match answer {
            Ok(reply) => {
                self.answered.note_time(took);
                self.input.add(reply.usage.input);
                self.output.add(reply.usage.output);
                self.cached.add(reply.usage.cached);
            }
            Err(ProviderError::Cancelled) => {}
            Err(_) => self.failed.count(),
        }
    }
}

//! Counts of the requests to models since the server started.

use std::time::Duration;

use crate::model::{ModelReply, ProviderError};
use base::measure::{Counter, Histogram, MILLISECOND, SECOND};

/// Buckets for the time that a model takes.
const TIMES: &[u64] = &[
    100 * MILLISECOND,
    250 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2_500 * MILLISECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    120 * SECOND,
    300 * SECOND,
];

/// The counts. They outlive changes of the configuration.
#[derive(Debug)]
pub struct ModelMeter {
    /// How long answered requests took.
    pub answered: Histogram,
    /// Requests that failed, except those that were stopped.
    pub failed: Counter,
    /// Tokens of the requests, cached ones included.
    pub input: Counter,
    /// Tokens of the replies.
    pub output: Counter,
    /// Part of `input` that providers had cached.
    pub cached: Counter,
}

impl Default for ModelMeter {
    fn default() -> ModelMeter {
        ModelMeter {
            answered: Histogram::new(TIMES),
            failed: Counter::default(),
            input: Counter::default(),
            output: Counter::default(),
            cached: Counter::default(),
        }
    }
}

impl ModelMeter {
    /// Records the outcome of a request.
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

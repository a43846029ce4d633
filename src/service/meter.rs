//! What turns and deliveries have come to since the server started.

use std::time::Duration;

use crate::measure::{Counter, Histogram};
use crate::store::{DeliveryState, TurnEnd};

/// Bounds of how long a turn takes, in milliseconds.
const TIMES: &[u64] = &[
    10, 100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
];

/// The counts.
#[derive(Debug)]
pub struct Meter {
    /// From a message to the end of its turn, in milliseconds, with the time in
    /// queues and for approvals.
    pub turns: Histogram,
    /// Turns that ended with a reply.
    pub done: Counter,
    /// Turns that ended with an error.
    pub failed: Counter,
    /// Turns that somebody stopped.
    pub cancelled: Counter,
    /// Callbacks that arrived.
    pub delivered: Counter,
    /// Callbacks that were given up.
    pub dead: Counter,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            turns: Histogram::new(TIMES),
            done: Counter::default(),
            failed: Counter::default(),
            cancelled: Counter::default(),
            delivered: Counter::default(),
            dead: Counter::default(),
        }
    }
}

impl Meter {
    /// Notes a turn's end.
    pub fn turn_ended(&self, took: Duration, end: &TurnEnd) {
        self.turns.note_time(took);
        match end {
            TurnEnd::Done { .. } => self.done.count(),
            TurnEnd::Failed(_) => self.failed.count(),
            TurnEnd::Cancelled => self.cancelled.count(),
        }
    }

    /// Notes a delivery's new state.
    pub fn delivery_changed(&self, state: DeliveryState) {
        match state {
            DeliveryState::Delivered => self.delivered.count(),
            DeliveryState::Dead => self.dead.count(),
            DeliveryState::Pending | DeliveryState::Held => {}
        }
    }
}

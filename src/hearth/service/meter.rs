//! Counts of turns and deliveries since the server started.

use std::time::Duration;

use base::measure::{Counter, Histogram, MILLISECOND, SECOND};
use store::{DeliveryState, TurnEnd};

/// The histogram's bounds for how long a turn takes.
const TIMES: &[u64] = &[
    10 * MILLISECOND,
    100 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2_500 * MILLISECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    300 * SECOND,
    3_600 * SECOND,
];

/// The counts.
#[derive(Debug)]
pub struct Meter {
    /// From a message to the end of its turn, including the time in queues and for
    /// approvals.
    pub turns: Histogram,
    /// Turns that ended with a reply.
    pub done: Counter,
    /// Turns that ended with an error.
    pub failed: Counter,
    /// Turns that a person stopped.
    pub cancelled: Counter,
    /// Callbacks that were delivered.
    pub delivered: Counter,
    /// Callbacks that were abandoned.
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
            TurnEnd::Failed { .. } => self.failed.count(),
            TurnEnd::Cancelled { .. } => self.cancelled.count(),
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

//! Webhook callbacks.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{ConversationId, DeliveryId, TurnId};

/// A callback to send, stored in the same commit as the turn's end.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    /// The webhook account to whose `outgoing_url` it goes.
    pub account: String,
    /// The JSON body, exactly as it is sent on every attempt.
    pub body: String,
    /// How long after the turn's end the first attempt is due.
    pub delay: Duration,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be sent at `next_at`.
    Pending,
    /// An earlier one of its conversation must be over first.
    Held,
    /// The receiver took it.
    Delivered,
    /// Given up; a person may send it again.
    Dead,
}

impl DeliveryState {
    /// The word for it in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Pending => "pending",
            DeliveryState::Held => "held",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
        }
    }

    /// The state of a word.
    pub fn parse(word: &str) -> Option<DeliveryState> {
        [
            DeliveryState::Pending,
            DeliveryState::Held,
            DeliveryState::Delivered,
            DeliveryState::Dead,
        ]
        .into_iter()
        .find(|state| state.as_str() == word)
    }
}

/// A webhook callback with all its attempts.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Sent as `webhook-id`, the same on every attempt.
    pub id: DeliveryId,
    /// The turn whose end it tells.
    pub turn_id: TurnId,
    /// Callbacks of one conversation are sent in order.
    pub conversation_id: ConversationId,
    /// The webhook account to whose `outgoing_url` it goes.
    pub account: String,
    /// The JSON body, exactly as it is sent on every attempt.
    pub body: String,
    /// Whether it is to be sent, was taken or was given up.
    pub state: DeliveryState,
    /// Attempts made so far.
    pub attempts: u32,
    /// When the turn ended.
    pub created_at: Timestamp,
    /// When the next attempt is due.
    pub next_at: Timestamp,
    /// What the last attempt met, in words.
    pub last_error: Option<String>,
}

/// What came of one attempt at a delivery.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The receiver took it.
    Delivered,
    /// To be tried again at this time.
    Retry {
        /// What this attempt met, in words.
        error: String,
        /// When to try again.
        next_at: Timestamp,
    },
    /// Given up.
    Dead {
        /// Why no other attempt is made, in words.
        error: String,
    },
}

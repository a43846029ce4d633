//! Webhook callbacks: a queue that keeps the order of each conversation.
//!
//! Of the undelivered callbacks of a conversation only the oldest is `pending`;
//! the later ones are `held` and move up when it is delivered or dead.

use super::*;
use crate::clock::Timestamp;
use crate::ids::DeliveryId;

impl Store {
    /// A delivery. Errors: `not_found`.
    pub fn delivery(&self, id: DeliveryId) -> Result<Delivery> {
        let _ = id;
        todo!()
    }

    /// Pending deliveries that are due at `now`, the longest due first, at most `limit`.
    pub fn due_deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>> {
        let _ = (now, limit);
        todo!()
    }

    /// When the next pending delivery is due.
    pub fn next_delivery_at(&self) -> Result<Option<Timestamp>> {
        todo!()
    }

    /// Stores what came of an attempt and moves the next held one up. Does not
    /// wait for the disk on success (a repeat after a crash carries the same
    /// id), but does on `Retry` and `Dead`.
    pub fn record_attempt(&self, id: DeliveryId, attempt: Attempt) -> Result<Delivery> {
        let _ = (id, attempt);
        todo!()
    }

    /// The newest deliveries, of one state or of all.
    pub fn deliveries(&self, state: Option<DeliveryState>, limit: usize) -> Result<Vec<Delivery>> {
        let _ = (state, limit);
        todo!()
    }

    /// Makes a dead or waiting delivery due at once, with a fresh schedule.
    /// Errors: `not_found`; `invalid_request` when it was delivered.
    pub fn retry_delivery(&self, id: DeliveryId) -> Result<Delivery> {
        let _ = id;
        todo!()
    }
}

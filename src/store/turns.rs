//! Turns and their steps: a durable state machine.

use super::*;
use crate::ids::TurnId;

impl Store {
    /// Stores a message and begins its turn, in one commit, and returns when it
    /// is on disk. Errors: `not_found`; `invalid_request` with HTTP 422 when
    /// the idempotency key was used for another request.
    pub fn begin_turn(&self, new: NewTurn) -> Result<Begun> {
        let _ = new;
        todo!()
    }

    /// The same, but returns as soon as the statements have run: they reach the
    /// disk with the next commit that somebody waits for, at the latest 5 ms
    /// later. For callers that acknowledge nothing yet.
    pub fn begin_turn_behind(&self, new: NewTurn) -> Result<Begun> {
        let _ = new;
        todo!()
    }

    /// A turn. Errors: `not_found`.
    pub fn turn(&self, id: TurnId) -> Result<Turn> {
        let _ = id;
        todo!()
    }

    /// All turns that are not at their end, in order: what a start goes on with.
    pub fn unfinished_turns(&self) -> Result<Vec<Turn>> {
        todo!()
    }

    /// Notes that a worker has taken the turn. Does not wait; reaches the disk
    /// as [`Store::begin_turn_behind`]. Keeps the first `started_at`.
    pub fn mark_running(&self, id: TurnId, at: crate::clock::Timestamp) {
        let _ = (id, at);
        todo!()
    }

    /// The turn's steps, in order.
    pub fn steps(&self, id: TurnId) -> Result<Vec<Step>> {
        let _ = id;
        todo!()
    }

    /// Appends steps, in one commit, and returns when they are on disk.
    /// Errors: `not_found` when the turn is gone or already at its end.
    pub fn record_steps(&self, id: TurnId, steps: Vec<Step>) -> Result<()> {
        let _ = (id, steps);
        todo!()
    }

    /// Puts the turn away until its approvals are decided: steps, approvals and
    /// state `waiting_approval` in one commit.
    pub fn suspend_turn(
        &self,
        id: TurnId,
        steps: Vec<Step>,
        approvals: Vec<NewApproval>,
        expires_at: crate::clock::Timestamp,
    ) -> Result<Vec<Approval>> {
        let _ = (id, steps, approvals, expires_at);
        todo!()
    }

    /// Ends the turn: state, reply message, usage (under `model`, by day) and
    /// delivery in one commit. Undecided approvals of it become `expired`.
    /// Errors: `not_found` when the turn is gone or already at its end.
    pub fn finish_turn(
        &self,
        id: TurnId,
        end: TurnEnd,
        usage: Usage,
        model: &str,
        delivery: Option<NewDelivery>,
    ) -> Result<Finished> {
        let _ = (id, end, usage, model, delivery);
        todo!()
    }

    /// Unfinished work and totals.
    pub fn counts(&self) -> Result<Counts> {
        todo!()
    }

    /// Deletes idempotency keys older than 24 hours, expired tokens, and
    /// delivered deliveries and dead ones older than 30 days.
    pub fn purge(&self) -> Result<()> {
        todo!()
    }
}

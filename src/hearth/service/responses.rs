//! HTTP requests that wait for the end of their turn (`Prefer: wait`).
//!
//! What such a request is answered takes the place of the turn's callback. So
//! the callback of a turn that somebody waits for is stored as always, but with
//! a delay; when the response has been sent it counts as delivered. A crash in
//! between sends it after all: a reply may come twice, but is never lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::turns::Reply;
use base::error::Result;
use base::ids::{DeliveryId, TurnId};

/// What a waiting request is told.
#[derive(Clone, Debug)]
pub struct Answer {
    /// How the turn ended.
    pub result: Result<Reply>,
    /// The callback that the response takes the place of; none for a request
    /// that came when it was under way already.
    pub delivery: Option<DeliveryId>,
}

/// The requests that wait. Bounded; none of its methods blocks.
#[derive(Default)]
pub struct Responses {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_turn: HashMap<TurnId, Vec<(u64, Sender<Answer>)>>,
    next_number: u64,
    waiting: usize,
    is_closed: bool,
}

/// A request's place among those that wait. Dropping it gives the place up.
pub struct Ticket<'a> {
    responses: &'a Responses,
    turn: TurnId,
    number: u64,
    answer: Receiver<Answer>,
}

impl Responses {
    /// A place for a request that waits for this turn; none when `most` wait
    /// already, or the server stops.
    pub fn enroll(&self, turn: TurnId, most: usize) -> Option<Ticket<'_>> {
        let mut state = self.lock();
        if state.is_closed || state.waiting >= most {
            return None;
        }
        let number = state.next_number;
        state.next_number += 1;
        state.waiting += 1;
        let (sender, answer) = bounded(1);
        state
            .by_turn
            .entry(turn)
            .or_default()
            .push((number, sender));
        Some(Ticket {
            responses: self,
            turn,
            number,
            answer,
        })
    }

    /// Whether a request waits for this turn.
    pub fn is_awaited(&self, turn: TurnId) -> bool {
        self.lock().by_turn.contains_key(&turn)
    }

    /// Tells those who wait for this turn; returns whether there was anybody.
    pub fn settle(&self, turn: TurnId, answer: &Answer) -> bool {
        let mut state = self.lock();
        let waiting = state.by_turn.remove(&turn).unwrap_or_default();
        state.waiting -= waiting.len();
        drop(state);
        for (_, sender) in &waiting {
            // Room for one, and this is the one.
            let _ = sender.try_send(answer.clone());
        }
        !waiting.is_empty()
    }

    /// Lets nobody wait any longer: the server stops.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting = 0;
        state.by_turn.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place back; false when it was settled already.
    fn leave(&self, turn: TurnId, number: u64) -> bool {
        let mut state = self.lock();
        let Some(waiting) = state.by_turn.get_mut(&turn) else {
            return false;
        };
        let before = waiting.len();
        waiting.retain(|(other, _)| *other != number);
        let left = before - waiting.len();
        if waiting.is_empty() {
            state.by_turn.remove(&turn);
        }
        state.waiting -= left;
        left > 0
    }
}

impl Ticket<'_> {
    /// Waits for the turn's end, at most so long. Whoever ends the turn relies
    /// on an answer that was handed over being sent.
    pub fn wait(self, longest: Duration) -> Option<Answer> {
        match self.answer.recv_timeout(longest) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) if self.responses.leave(self.turn, self.number) => None,
            // It was just handed over, or the server stops: both at once.
            Err(RecvTimeoutError::Timeout) => self.answer.recv().ok(),
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.responses.leave(self.turn, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::error::Error;

    fn answer() -> Answer {
        Answer {
            result: Err(Error::not_found("x")),
            delivery: Some(DeliveryId::from(9)),
        }
    }

    #[test]
    fn whoever_waits_is_told_once() {
        let (responses, turn) = (Responses::default(), TurnId::from(1));
        assert!(!responses.settle(turn, &answer()));
        let one = responses.enroll(turn, 2).unwrap();
        let two = responses.enroll(turn, 2).unwrap();
        assert!(responses.enroll(turn, 2).is_none(), "no room");
        assert!(responses.settle(turn, &answer()) && !responses.is_awaited(turn));
        for ticket in [one, two] {
            let told = ticket.wait(Duration::ZERO).unwrap();
            assert_eq!(told.delivery, Some(DeliveryId::from(9)));
        }
        assert!(!responses.settle(turn, &answer()));
        assert!(responses.enroll(turn, 1).is_some(), "places are given back");
    }

    #[test]
    fn whoever_gives_up_is_forgotten() {
        let (responses, turn) = (Responses::default(), TurnId::from(1));
        let ticket = responses.enroll(turn, 1).unwrap();
        assert!(ticket.wait(Duration::from_millis(1)).is_none());
        assert!(!responses.is_awaited(turn) && !responses.settle(turn, &answer()));
        drop(responses.enroll(turn, 1).unwrap());
        let ticket = responses.enroll(turn, 1).unwrap();
        responses.close();
        assert!(ticket.wait(Duration::from_secs(9)).is_none());
        assert!(responses.enroll(turn, 1).is_none(), "the server stops");
    }
}

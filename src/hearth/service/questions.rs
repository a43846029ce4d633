//! The questions of running tools that are open, and the answers on their way to them.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Instant;

use agent::tool::Answer;
use base::ids::{ApprovalId, UserId};
use base::sync::{Condvar, Mutex, MutexGuard, lock};

/// Most questions of one person that are open. Each holds one of the workers.
const MOST: usize = 4;

/// The questions that are open.
#[derive(Default)]
pub struct Questions {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Who is asked, once for each question.
    asked: Vec<UserId>,
    /// With its answer once there is one.
    open: HashMap<ApprovalId, Option<Answer>>,
    is_stopping: bool,
}

impl Questions {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether one more may be asked: the person has room, and so have all, of whom no more
    /// than `most` are asked.
    pub(super) fn reserve(&self, person: UserId, most: usize) -> bool {
        let mut state = self.state();
        let own = state.asked.iter().filter(|one| **one == person).count();
        let has_room = own < MOST && state.asked.len() < most && !state.is_stopping;
        if has_room {
            state.asked.push(person);
        }
        has_room
    }

    pub(super) fn release(&self, person: UserId) {
        let mut state = self.state();
        if let Some(place) = state.asked.iter().position(|one| *one == person) {
            state.asked.swap_remove(place);
        }
    }

    pub(super) fn open(&self, id: ApprovalId) {
        let mut state = self.state();
        let answer = state.is_stopping.then_some(Answer::Dismissed);
        state.open.insert(id, answer);
    }

    /// Whether a tool waits for the answer.
    pub(super) fn is_open(&self, id: ApprovalId) -> bool {
        matches!(self.state().open.get(&id), Some(None))
    }

    /// Passes an answer on. The first one counts.
    pub(super) fn answer(&self, id: ApprovalId, answer: Answer) {
        if let Some(place) = self.state().open.get_mut(&id) {
            place.get_or_insert(answer);
        }
        self.changed.notify_all();
    }

    /// Waits for the answer until `deadline`.
    pub(super) fn wait(&self, id: ApprovalId, deadline: Instant) -> Option<Answer> {
        let mut state = self.state();
        loop {
            if let Some(answer) = state.open.get(&id)? {
                return Some(answer.clone());
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            state = (self.changed.wait_timeout(state, left))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    pub(super) fn close(&self, id: ApprovalId) {
        self.state().open.remove(&id);
    }

    /// Dismisses all, because the server stops.
    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopping = true;
        for answer in state.open.values_mut() {
            answer.get_or_insert(Answer::Dismissed);
        }
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;

//! The other side of one session: the requests that wait for its answers, its
//! notifications, and whether it has ended.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::call::{CallError, Outcome, ReadTimeout};
use super::message::{self, Incoming};
use base::language::Said;
use base::sync::lock;

/// The other side of one session.
#[derive(Default)]
pub(super) struct Peer {
    state: Mutex<PeerState>,
    news: Condvar,
}

#[derive(Default)]
struct PeerState {
    waiting: HashMap<u64, Waiting>,
    tools_changed: bool,
    closed: Option<Said>,
}

struct Waiting {
    outcome: Sender<Outcome>,
    last_activity: Instant,
}

impl Peer {
    fn state(&self) -> MutexGuard<'_, PeerState> {
        lock(&self.state)
    }

    /// Announces a request before it is sent. The sender is for the hook that
    /// cancels it. [`Peer::forget`] must follow.
    ///
    /// # Errors
    /// The session has ended.
    pub(super) fn expect(
        &self,
        id: u64,
    ) -> Result<(Sender<Outcome>, Receiver<Outcome>), CallError> {
        // There is room for an answer, the end of the session and a cancellation,
        // so that no sender blocks.
        let (sender, receiver) = bounded(3);
        let mut state = self.state();
        if let Some(reason) = &state.closed {
            return Err(CallError::Closed(reason.clone()));
        }
        let waiting = Waiting {
            outcome: sender.clone(),
            last_activity: Instant::now(),
        };
        state.waiting.insert(id, waiting);
        Ok((sender, receiver))
    }

    /// Drops a request: a late answer is ignored.
    pub(super) fn forget(&self, id: u64) {
        self.state().waiting.remove(&id);
    }

    /// When a request that has no outcome yet was sent, or its progress last reported.
    pub(super) fn last_activity(&self, id: u64) -> Option<Instant> {
        self.state().waiting.get(&id).map(|one| one.last_activity)
    }

    /// Waits for the outcome of a request that was announced and sent.
    pub(super) fn wait_for(
        &self,
        id: u64,
        outcome: &Receiver<Outcome>,
        timeout: &ReadTimeout,
    ) -> Outcome {
        let mut until = timeout.until(Instant::now());
        loop {
            if let Ok(outcome) = outcome.recv_deadline(until) {
                return outcome;
            }
            let later = self.last_activity(id).map(|last| timeout.until(last));
            match later.filter(|later| *later > until) {
                Some(later) => until = later,
                // It may have been answered just now.
                None => return outcome.try_recv().unwrap_or(Err(timeout.exceeded())),
            }
        }
    }

    /// Handles a message. Returns the answer to send, if there is one.
    pub(super) fn receive(&self, incoming: Incoming) -> Option<Vec<u8>> {
        match incoming {
            Incoming::Answer { id, result } => {
                if let Some(waiting) = self.state().waiting.remove(&id) {
                    let _ = waiting.outcome.try_send(result.map_err(CallError::Refused));
                }
            }
            Incoming::Request { id, method } => return Some(message::answer(&id, &method)),
            Incoming::Notification { method, params } => match method.as_str() {
                "notifications/tools/list_changed" => {
                    self.state().tools_changed = true;
                    self.news.notify_all();
                }
                // The token is the id of the request.
                "notifications/progress" => {
                    let id = params.get("progressToken").and_then(message::own_id);
                    let mut state = self.state();
                    if let Some(waiting) = id.and_then(|id| state.waiting.get_mut(&id)) {
                        waiting.last_activity = Instant::now();
                    }
                }
                _ => {}
            },
        }
        None
    }

    /// Ends the session: all waiting and later requests fail with this reason.
    /// The first reason counts.
    pub(super) fn close(&self, reason: impl Into<Said>) {
        let reason = reason.into();
        self.state().closed.get_or_insert_with(|| reason.clone());
        self.fail_waiting(&reason);
        self.news.notify_all();
    }

    /// Why the session ended, if it did.
    pub(super) fn closed(&self) -> Option<Said> {
        self.state().closed.clone()
    }

    /// Fails the waiting requests, whose answers are lost.
    pub(super) fn fail_waiting(&self, reason: &Said) {
        for (_, waiting) in self.state().waiting.drain() {
            let broken = CallError::Broken(reason.clone());
            let _ = waiting.outcome.try_send(Err(broken));
        }
    }

    /// Clears the notice that the tools changed, before they are listed.
    pub(super) fn tools_are_being_listed(&self) {
        self.state().tools_changed = false;
    }

    /// Waits for the end of the session and, where `tools` is set, for a change of
    /// the tools; until `deadline` where there is one. Returns why the session has ended.
    pub(super) fn wait_for_event(&self, tools: bool, deadline: Option<Instant>) -> Option<Said> {
        let mut state = self.state();
        loop {
            if state.closed.is_some() || tools && state.tools_changed {
                return state.closed.clone();
            }
            state = match deadline {
                None => self
                    .news
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.checked_duration_since(Instant::now())?;
                    let waited = self.news.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

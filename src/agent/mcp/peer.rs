//! The other side of one session: the requests that wait for its answers, its
//! notifications, and whether it has ended.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;

use super::message::{self, Incoming, RpcError};
use base::sync::lock;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallError {
    /// The server answered with an error.
    Refused(RpcError),
    /// The server has ended or cannot be reached.
    Closed(String),
    /// The server has forgotten the session, and has not handled the request.
    SessionLost,
    /// The server speaks HTTP+SSE, the transport before Streamable HTTP.
    OlderTransport,
    /// The answer cannot be used.
    Unusable(String),
    /// The server neither answered nor reported progress for this long.
    Silent(Duration),
    /// The time for the request, or for the turn, is up.
    TimedOut,
    /// The turn was stopped, or the server is shutting down.
    Cancelled,
}

/// How long to wait for the answer to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTimeout {
    /// Longest time without an answer or a report of progress.
    pub(super) silence: Duration,
    /// When it must end, regardless of progress.
    pub(super) deadline: Instant,
}

impl ReadTimeout {
    /// The same limit for the silence and for the whole request.
    pub(super) fn within(limit: Duration) -> ReadTimeout {
        ReadTimeout {
            silence: limit,
            deadline: Instant::now() + limit,
        }
    }

    /// How long it may take after the last sign of progress.
    pub(super) fn until(&self, last_activity: Instant) -> Instant {
        let own = last_activity.checked_add(self.silence);
        own.map_or(self.deadline, |own| own.min(self.deadline))
    }

    /// Which of the two limits was reached.
    pub(super) fn exceeded(&self) -> CallError {
        if Instant::now() >= self.deadline {
            CallError::TimedOut
        } else {
            CallError::Silent(self.silence)
        }
    }
}

/// The result of a request, or why it has none.
pub(super) type Outcome = Result<Value, CallError>;

/// What the supervisor of a session waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionEvent {
    /// The server says that its tools changed.
    ToolsChanged,
    /// The session has ended, for this reason.
    Closed(String),
    /// The time is up.
    Nothing,
}

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
    closed: Option<String>,
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
    pub(super) fn expect(&self, id: u64) -> (Sender<Outcome>, Receiver<Outcome>) {
        // There is room for an answer, the end of the session and a cancellation,
        // so that no sender blocks.
        let (sender, receiver) = bounded(3);
        let mut state = self.state();
        if let Some(reason) = &state.closed {
            let _ = sender.try_send(Err(CallError::Closed(reason.clone())));
        }
        state.waiting.insert(
            id,
            Waiting {
                outcome: sender.clone(),
                last_activity: Instant::now(),
            },
        );
        (sender, receiver)
    }

    /// Drops a request: a late answer is ignored.
    pub(super) fn forget(&self, id: u64) {
        self.state().waiting.remove(&id);
    }

    /// When the request was sent, or its progress last reported.
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
            match self
                .last_activity(id)
                .map(|last_activity| timeout.until(last_activity))
            {
                Some(later) if later > until => until = later,
                // It may have been answered just now.
                _ => return outcome.try_recv().unwrap_or(Err(timeout.exceeded())),
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
                None
            }
            Incoming::Request { id, method } => Some(message::answer(&id, &method)),
            Incoming::Notification { method, params } => {
                match method.as_str() {
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
                }
                None
            }
        }
    }

    /// Ends the session: all waiting and later requests fail with this reason.
    /// The first reason counts.
    pub(super) fn close(&self, reason: &str) {
        let mut state = self.state();
        if state.closed.is_none() {
            state.closed = Some(reason.to_owned());
        }
        for (_, waiting) in state.waiting.drain() {
            let closed = CallError::Closed(reason.to_owned());
            let _ = waiting.outcome.try_send(Err(closed));
        }
        drop(state);
        self.news.notify_all();
    }

    /// Why the session ended, if it did.
    pub(super) fn closed(&self) -> Option<String> {
        self.state().closed.clone()
    }

    /// Fails the waiting requests, and keeps the session open.
    pub(super) fn fail_waiting(&self, reason: &str) {
        for (_, waiting) in self.state().waiting.drain() {
            let unusable = CallError::Unusable(reason.to_owned());
            let _ = waiting.outcome.try_send(Err(unusable));
        }
    }

    /// Clears the notice that the tools changed, before they are listed.
    pub(super) fn tools_are_being_listed(&self) {
        self.state().tools_changed = false;
    }

    /// Waits for the end of the session and, where `tools` is set, for a change of
    /// the tools; until `deadline` where there is one.
    pub(super) fn wait_for_event(&self, tools: bool, deadline: Option<Instant>) -> SessionEvent {
        let mut state = self.state();
        loop {
            if let Some(reason) = &state.closed {
                return SessionEvent::Closed(reason.clone());
            }
            if tools && state.tools_changed {
                return SessionEvent::ToolsChanged;
            }
            state = match deadline {
                None => self
                    .news
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                        return SessionEvent::Nothing;
                    };
                    self.news
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }
}

//! The other side of one session: the requests that wait for its answers, its
//! notifications, and whether it has ended.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;

use super::ended_calls::EndedCalls;
use super::message::{self, Incoming, RpcError};
use super::questions::{self, PersonTime, Questions};
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

    /// The same without the time that a person takes for questions: while one is asked, not
    /// before they may be asked no longer.
    fn until_with(&self, person: &PersonTime, last_activity: Instant) -> Instant {
        let deadline = self.deadline + person.waited;
        if let Some(left) = person.open_for {
            return Instant::now() + left + self.silence.min(CALL_REST);
        }
        let answered_at = person.answered_at.unwrap_or(last_activity);
        ReadTimeout { deadline, ..*self }.until(last_activity.max(answered_at))
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

/// Longest time for the rest of a call after a person's time is up.
const CALL_REST: Duration = Duration::from_secs(600);
/// Why a question is cancelled in a call that may not be the one that asks.
const OTHERS_RUN: &str = "other calls of it were running, or had just ended";
/// How long a wait lasts until it is looked at anew when it ends.
const LOOK: Duration = Duration::from_secs(1);

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
    ended: EndedCalls,
    /// Whether the server may ask the person.
    may_ask: bool,
    tools_changed: bool,
    closed: Option<String>,
}

struct Waiting {
    outcome: Sender<Outcome>,
    began: Instant,
    last_activity: Instant,
    /// Of a call, which may ask.
    questions: Option<Arc<Questions>>,
}

impl PeerState {
    /// Ends a request, or notes the late answer to one that has ended.
    fn end(&mut self, id: u64, is_answered: bool) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id);
        match waiting.as_ref().map(|waiting| &waiting.questions) {
            Some(Some(questions)) => self.ended.add(id, questions.person(), is_answered),
            None if is_answered => self.ended.answered(id),
            _ => {}
        }
        waiting
    }
}

impl Peer {
    fn state(&self) -> MutexGuard<'_, PeerState> {
        lock(&self.state)
    }

    /// Announces a request before it is sent. The sender is for the hook that
    /// cancels it. [`Peer::forget`] must follow.
    pub(super) fn expect(
        &self,
        id: u64,
        questions: Option<&Arc<Questions>>,
    ) -> (Sender<Outcome>, Receiver<Outcome>) {
        // There is room for an answer, the end of the session and a cancellation,
        // so that no sender blocks.
        let (sender, receiver) = bounded(3);
        let mut state = self.state();
        if let Some(reason) = &state.closed {
            let _ = sender.try_send(Err(CallError::Closed(reason.clone())));
        }
        let began = Instant::now();
        state.waiting.insert(
            id,
            Waiting {
                outcome: sender.clone(),
                began,
                last_activity: began,
                questions: questions.cloned(),
            },
        );
        (sender, receiver)
    }

    /// Drops a request with this outcome: a late answer is ignored.
    pub(super) fn forget(&self, id: u64, outcome: &Outcome) {
        let gave_up = matches!(
            outcome,
            Err(CallError::Cancelled | CallError::Silent(_) | CallError::TimedOut)
        );
        self.state().end(id, !gave_up);
    }

    /// When a request has taken too long.
    pub(super) fn until(&self, id: u64, timeout: &ReadTimeout) -> Option<Instant> {
        let state = self.state();
        let waiting = state.waiting.get(&id)?;
        Some(match &waiting.questions {
            Some(questions) => timeout.until_with(&questions.time(), waiting.last_activity),
            None => timeout.until(waiting.last_activity),
        })
    }

    /// The server may ask the person from now on.
    pub(super) fn let_ask(&self) {
        self.state().may_ask = true;
    }

    /// The call in which a server asks: the one to which its message belongs, or the only one
    /// that runs, if no other may still ask. Otherwise a question could reach a person of
    /// another; then those that run are told.
    fn asking(&self, of: Option<u64>) -> Option<Arc<Questions>> {
        let state = self.state();
        let is_it = |id: u64| of.is_none_or(|of| of == id);
        let running = (state.waiting.iter()).filter(|(id, _)| is_it(**id));
        let running: Vec<(Instant, &Arc<Questions>)> = running
            .filter_map(|(_, one)| Some((one.began, one.questions.as_ref()?)))
            .collect();
        let is_only = |began: Instant, questions: &Questions| {
            of.is_some() || !state.ended.may_ask_others(questions.person(), began)
        };
        match running[..] {
            [(began, questions)] if is_only(began, questions) => return Some(questions.clone()),
            _ => {}
        }
        (running.iter()).for_each(|(_, questions)| questions.note_unasked(OTHERS_RUN));
        None
    }

    /// Waits for the outcome of a request that was announced and sent.
    pub(super) fn wait_for(
        &self,
        id: u64,
        outcome: &Receiver<Outcome>,
        timeout: &ReadTimeout,
    ) -> Outcome {
        loop {
            let now = Instant::now();
            match self.until(id, timeout) {
                // Progress and questions put it off.
                Some(until) if until > now => {
                    if let Ok(outcome) = outcome.recv_deadline(until.min(now + LOOK)) {
                        return outcome;
                    }
                }
                // It may have been answered just now.
                _ => return outcome.try_recv().unwrap_or(Err(timeout.exceeded())),
            }
        }
    }

    /// Handles a message, which came in answer to the request `of`, if that is known. Returns
    /// the answer to send, if there is one already.
    pub(super) fn receive(&self, incoming: Incoming, of: Option<u64>) -> Option<Vec<u8>> {
        match incoming {
            Incoming::Answer { id, result } => {
                if let Some(waiting) = self.state().end(id, true) {
                    let _ = waiting.outcome.try_send(result.map_err(CallError::Refused));
                }
                None
            }
            Incoming::Request { id, method, params } => {
                if method != questions::METHOD || !self.state().may_ask {
                    return Some(message::answer(&id, &method));
                }
                match self.asking(of) {
                    Some(asking) => asking.take(id, &params),
                    None => {
                        log::warn!("an MCP server asks, but nobody knows in which call: cancelled");
                        Some(message::result_of(&id, questions::dismissed()))
                    }
                }
            }
            Incoming::Notification { method, params } => {
                match method.as_str() {
                    "notifications/tools/list_changed" => {
                        self.state().tools_changed = true;
                        self.news.notify_all();
                    }
                    "notifications/cancelled" => {
                        let id = params.get("requestId").unwrap_or(&Value::Null);
                        let state = self.state();
                        let waiting = state.waiting.values();
                        let asking = waiting.filter_map(|one| one.questions.clone());
                        let asking: Vec<Arc<Questions>> = asking.collect();
                        drop(state);
                        asking.iter().for_each(|questions| questions.withdraw(id));
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
        let mut state = self.state();
        let ids: Vec<u64> = state.waiting.keys().copied().collect();
        for id in &ids {
            // The message was the answer to one of them.
            if let Some(waiting) = state.end(*id, ids.len() == 1) {
                let unusable = CallError::Unusable(reason.to_owned());
                let _ = waiting.outcome.try_send(Err(unusable));
            }
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

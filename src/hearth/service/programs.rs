//! Programs that speak the model interfaces and run tools of their own. The model's calls
//! go out with one response, and the results come with the next request: meanwhile the turn
//! waits for them like for any tool.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent::model::ToolSpec;
use agent::turn::Program;
use agent::wishes::Wishes;
use base::ids::{TurnId, UserId};
use base::sync::lock;
use net::cancel::Cancel;
use store::ToolCall;

/// Longest that a program may take for its calls.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a program wants of a turn, and the tools that it brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramWishes {
    /// Of the reply.
    pub wishes: Wishes,
    /// It runs these itself.
    pub tools: Vec<ToolSpec>,
}

/// The result of one of a program's own calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The [`ToolCall::id`], if the interface has ids.
    pub id: Option<String>,
    /// The tool, as far as the program says.
    pub tool: Option<String>,
    /// The result.
    pub content: String,
}

/// Gets the calls that a program is to run.
pub type OnCalls = Box<dyn FnOnce(&[ToolCall]) + Send>;

/// A program's turn.
pub struct ProgramTurn {
    user: UserId,
    message: String,
    first: Wishes,
    later: Wishes,
    tools: Vec<ToolSpec>,
    handover: Arc<(Mutex<Handover>, Condvar)>,
}

#[derive(Default)]
struct Handover {
    /// The response that can carry calls; none while the program runs them.
    on_calls: Option<OnCalls>,
    /// What the program runs.
    calls: Vec<ToolCall>,
    /// What came back.
    results: Option<Vec<Option<String>>>,
}

/// The turns of programs, until they end.
#[derive(Default)]
pub struct Programs(Mutex<HashMap<TurnId, Arc<ProgramTurn>>>);

impl Programs {
    /// Notes what a program wants of a turn that begins.
    pub fn add(&self, turn: TurnId, program: ProgramTurn) {
        lock(&self.0).insert(turn, Arc::new(program));
    }

    /// The program of a turn.
    pub fn get(&self, turn: TurnId) -> Option<Arc<ProgramTurn>> {
        lock(&self.0).get(&turn).cloned()
    }

    /// Notes that a response of a turn has ended. Unless the program runs calls of its own
    /// now, it takes no more.
    pub fn leave(&self, turn: TurnId) {
        let mut programs = lock(&self.0);
        if let Some(program) = programs.get(&turn) {
            let mut handover = lock(&program.handover.0);
            if !handover.calls.is_empty() {
                return;
            }
            handover.on_calls = None;
            drop(handover);
            programs.remove(&turn);
        }
    }

    /// Forgets the program of a turn that has ended.
    pub fn remove(&self, turn: TurnId) {
        lock(&self.0).remove(&turn);
    }

    /// The turn of this person that waits for these results of calls after this message.
    pub fn waiting(
        &self,
        user: UserId,
        message: &str,
        returned: &[Returned],
    ) -> Option<(TurnId, Arc<ProgramTurn>)> {
        let programs = lock(&self.0);
        let mut found: Vec<_> = programs
            .iter()
            .filter(|(_, program)| program.user == user && program.waits_for(message, returned))
            .collect();
        // The newest, if the same was asked twice.
        found.sort_by_key(|(turn, _)| **turn);
        let (turn, program) = found.pop()?;
        Some((*turn, Arc::clone(program)))
    }
}

impl ProgramTurn {
    /// A turn of this person, begun with this message, whose calls `on_calls` gets.
    pub fn new(
        user: UserId,
        message: String,
        wants: ProgramWishes,
        on_calls: OnCalls,
    ) -> ProgramTurn {
        let mut later = wants.wishes.clone();
        // It would call for ever.
        later.must_call = None;
        let handover = Handover {
            on_calls: Some(on_calls),
            ..Handover::default()
        };
        ProgramTurn {
            user,
            message,
            first: wants.wishes,
            later,
            tools: wants.tools,
            handover: Arc::new((Mutex::new(handover), Condvar::new())),
        }
    }

    /// Goes on with these results; `on_calls` gets the next calls.
    pub fn go_on(&self, returned: &[Returned], on_calls: OnCalls) {
        let (handover, told) = &*self.handover;
        let mut handover = lock(handover);
        let results = handover.calls.iter().enumerate().map(|(place, call)| {
            let by_id = returned
                .iter()
                .find(|one| one.id.as_ref() == Some(&call.id));
            by_id
                .or_else(|| returned.get(place))
                .map(|one| one.content.clone())
        });
        handover.results = Some(results.collect());
        handover.on_calls = Some(on_calls);
        told.notify_all();
    }

    fn waits_for(&self, message: &str, returned: &[Returned]) -> bool {
        let handover = lock(&self.handover.0);
        let calls = &handover.calls;
        if calls.is_empty() || handover.results.is_some() || calls.len() != returned.len() {
            return false;
        }
        let is_named = |one: &Returned| {
            let id = one.id.as_ref();
            id.is_some_and(|id| calls.iter().any(|call| call.id == *id))
        };
        let is_alike = |(one, call): (&Returned, &ToolCall)| {
            one.tool.as_ref().is_none_or(|tool| *tool == call.tool)
        };
        returned.iter().all(is_named)
            || self.message == message && returned.iter().zip(calls).all(is_alike)
    }
}

impl Program for ProgramTurn {
    fn wishes(&self, is_first: bool) -> &Wishes {
        match is_first {
            true => &self.first,
            false => &self.later,
        }
    }

    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn run(&self, calls: &[ToolCall], deadline: Instant, cancel: &Cancel) -> Vec<Option<String>> {
        let (state, told) = &*self.handover;
        let mut handover = lock(state);
        let Some(on_calls) = handover.on_calls.take() else {
            return vec![None; calls.len()];
        };
        handover.calls = calls.to_vec();
        handover.results = None;
        on_calls(calls);
        drop(handover);
        let for_hook = Arc::clone(&self.handover);
        let hook = move || {
            // Whoever waits has seen that it is not cancelled, or holds the lock no more.
            drop(lock(&for_hook.0));
            for_hook.1.notify_all();
        };
        let until = deadline.min(Instant::now() + PATIENCE);
        let results = cancel.guard(hook, || {
            let mut handover = lock(state);
            while handover.results.is_none() && !cancel.is_cancelled() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = told.wait_timeout(handover, left);
                handover = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            handover.calls.clear();
            handover.results.take()
        });
        results.unwrap_or_else(|| vec![None; calls.len()])
    }
}

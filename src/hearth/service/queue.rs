//! What the workers do next: turns, one at a time in each conversation, and what
//! goes out. Whoever has much waiting waits for it alone: people and webhook accounts take
//! turns, and so do receivers. Only ids wait here; everything else is in the database.

mod lanes;
mod receivers;
mod rounds;

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::outgoing::Reach;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ConversationId, TurnId};
use base::language::Said;
use base::sync::{Condvar, Mutex, MutexGuard, lock};
use config::Limits;
use lanes::Lanes;
use net::cancel::Cancel;
use receivers::Receivers;

pub use lanes::{Requester, TurnJob};
pub use receivers::Due;

/// What a worker is given.
pub enum Job {
    Turn(TurnJob, Cancel),
    Outgoing(Due),
}

/// How much runs and how much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Turns that run.
    pub running: usize,
    /// Turns that wait for a worker.
    pub waiting: usize,
    /// What waits for a worker to go out.
    pub due_deliveries: usize,
}

/// The outcome of a request to stop a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// It was not running and is now out of the queue: the caller ends it.
    Taken,
    /// It runs and was signalled to stop; its worker ends it.
    Signalled,
    /// It is not in the queue.
    Unknown,
}

/// What waits for workers, and what runs. Only [`WorkQueue::next`] and
/// [`WorkQueue::stop`] block.
pub struct WorkQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Most turns, and most that goes out, at a time: neither may take all workers from
    /// the other.
    most_turns: usize,
    most_outgoing: usize,
    /// Most turns of one requester at a time: the last worker is left to the others.
    most_turns_of_one: usize,
}

#[derive(Default)]
struct QueueState {
    turns: Lanes,
    running: HashMap<TurnId, (Requester, Cancel)>,
    receivers: Receivers,
    /// Workers that wait for something to do.
    idle: usize,
    /// How many of them are to end.
    dismissed: usize,
    is_stopping: bool,
}

/// A place in the queue for a message that is not stored yet. Dropping it
/// gives the place back.
pub struct Reservation<'a> {
    queue: &'a WorkQueue,
    conversation: Option<ConversationId>,
    requester: Requester,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.turns.release(self.conversation, &self.requester);
    }
}

impl WorkQueue {
    /// A queue for this many workers.
    pub fn new(workers: usize) -> WorkQueue {
        let most_turns = (workers - (workers / 8).max(usize::from(workers > 1))).max(1);
        WorkQueue {
            state: Mutex::default(),
            changed: Condvar::new(),
            most_turns,
            most_outgoing: (workers / 2).max(1),
            most_turns_of_one: (most_turns - 1).max(1),
        }
    }

    /// Reserves a place for a message.
    ///
    /// # Errors
    /// `server_error` 503 when `waiting_turns` wait already, or so many that the other places
    /// are kept for people, and for those who have fewer waiting;
    /// `rate_limited` when `waiting_turns_per_conversation` wait in this one, for their
    /// turn or for a person.
    pub fn reserve(
        &self,
        conversation: Option<ConversationId>,
        requester: Requester,
        limits: &Limits,
    ) -> Result<Reservation<'_>> {
        let mut state = self.lock();
        if state.is_stopping {
            return Err(Error::overloaded(Said::of("error.stopping", &[]), 5));
        }
        state.turns.reserve(conversation, &requester, limits)?;
        Ok(Reservation {
            queue: self,
            conversation,
            requester,
        })
    }

    /// Checks that not too many turns of a conversation wait for a person; for those
    /// whose places are not reserved by conversation.
    ///
    /// # Errors
    /// `rate_limited` when `waiting_turns_per_conversation` do.
    pub fn check_suspended(&self, conversation: ConversationId, limits: &Limits) -> Result<()> {
        self.lock().turns.check_suspended(conversation, limits)
    }

    /// Whether any turn waits for a person.
    pub fn has_suspended(&self) -> bool {
        self.lock().turns.has_suspended()
    }

    /// Queues a turn that was stored.
    pub fn submit(&self, job: TurnJob) {
        if self.lock().turns.add(job) {
            self.changed.notify_one();
        }
    }

    /// Queues a turn that was stored, and publishes it by `publish`: before it runs,
    /// but not before it can be withdrawn.
    pub fn announce(&self, job: TurnJob, publish: impl FnOnce()) {
        let turn = job.turn;
        {
            let mut state = self.lock();
            state.turns.hold(turn);
            state.turns.add(job);
        }
        publish();
        self.lock().turns.release_held(turn);
        self.changed.notify_one();
    }

    /// Adds a turn that waited for a person when the server last stopped.
    pub fn adopt_suspended(
        &self,
        turn: TurnId,
        conversation: ConversationId,
        requester: Requester,
    ) {
        let mut state = self.lock();
        state.turns.add_suspended(turn, conversation, requester);
    }

    /// Waits for something to do; `None` when the server stops, and for a worker that
    /// is dismissed.
    pub fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            // What goes out first: it is short, and bounded to its share.
            if let Some(due) = state.receivers.take(self.most_outgoing) {
                return Some(Job::Outgoing(due));
            }
            let QueueState { turns, running, .. } = &mut *state;
            let has_room = |requester: &Requester| {
                let own = running.values().filter(|(one, _)| one == requester);
                own.count() < self.most_turns_of_one
            };
            if running.len() < self.most_turns
                && let Some(job) = turns.take(has_room)
            {
                let cancel = Cancel::default();
                running.insert(job.turn, (job.requester.clone(), cancel.clone()));
                return Some(Job::Turn(job, cancel));
            }
            if state.dismissed > 0 {
                state.dismissed -= 1;
                return None;
            }
            state.idle += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Ends the workers that have nothing to do, but for one.
    pub fn dismiss_idle(&self) {
        let mut state = self.lock();
        state.dismissed = state.idle.saturating_sub(1);
        self.changed.notify_all();
    }

    /// A turn has ended: its conversation's next one is ready.
    pub fn turn_ended(&self, turn: TurnId, conversation: ConversationId) {
        let mut state = self.lock();
        state.running.remove(&turn);
        state.turns.advance(turn, conversation);
        self.wake(&state, 1);
    }

    /// A turn's worker has suspended it until a person decides: the conversation's
    /// next one is ready. Returns false if somebody has signalled the turn to stop:
    /// then it still runs, and the worker ends it. Unless the server stops, too: the
    /// turn is on disk and waits on at the next start.
    pub fn turn_suspended(&self, turn: TurnId, conversation: ConversationId) -> bool {
        let mut state = self.lock();
        let running = state.running.get(&turn);
        let is_cancelled = running.is_some_and(|(_, cancel)| cancel.is_cancelled());
        if is_cancelled && !state.is_stopping {
            return false;
        }
        state.running.remove(&turn);
        state.turns.suspend(turn, conversation);
        self.wake(&state, 1);
        true
    }

    /// A turn waits until the database can be written, and its conversation with it.
    pub fn turn_deferred(&self, turn: TurnId, conversation: ConversationId) {
        let mut state = self.lock();
        state.running.remove(&turn);
        state.turns.defer(turn, conversation);
        self.wake(&state, 1);
    }

    /// A person has decided, or the database can be written: the turn continues, or
    /// waits for the one that runs.
    pub fn resume(&self, turn: TurnId, conversation: ConversationId) {
        if self.lock().turns.resume(turn, conversation) {
            self.changed.notify_one();
        }
    }

    /// Takes a turn out of the queue, or signals its worker to stop.
    pub fn withdraw(&self, turn: TurnId, conversation: ConversationId) -> Withdrawn {
        let mut state = self.lock();
        if let Some((_, cancel)) = state.running.get(&turn).cloned() {
            drop(state);
            cancel.cancel();
            return Withdrawn::Signalled;
        }
        if !state.turns.remove(turn, conversation) {
            return Withdrawn::Unknown;
        }
        self.wake(&state, 1);
        Withdrawn::Taken
    }

    /// Whether a turn that is running is to stop.
    pub fn is_cancelled(&self, turn: TurnId) -> bool {
        let state = self.lock();
        let running = state.running.get(&turn);
        running.is_some_and(|(_, cancel)| cancel.is_cancelled())
    }

    /// Takes all turns of a conversation that is gone out of the queue, or signals their
    /// worker to stop. Returns which they were.
    pub fn withdraw_all(&self, conversation: ConversationId) -> Vec<TurnId> {
        let mut state = self.lock();
        let turns = state.turns.of(conversation);
        let mut running = Vec::new();
        for turn in &turns {
            match state.running.get(turn) {
                Some((_, cancel)) => running.push(cancel.clone()),
                None => {
                    state.turns.remove(*turn, conversation);
                }
            }
        }
        drop(state);
        for cancel in running {
            cancel.cancel();
        }
        turns
    }

    /// Queues what is due to go out now and not queued yet.
    pub fn offer(&self, due: impl IntoIterator<Item = Due>, now: Timestamp) {
        let mut state = self.lock();
        let offered = state.receivers.offer(due, now);
        self.wake(&state, offered);
    }

    /// An attempt has ended, and met the receiver like this, if one was made. Returns
    /// whether the receiver has just stopped answering.
    pub fn attempt_ended(&self, due: &Due, reach: Option<Reach>, now: Timestamp) -> bool {
        let mut state = self.lock();
        let change = state.receivers.ended(due, reach, now);
        let more = match change {
            Some(Reach::Answered) => self.most_outgoing,
            _ => 1,
        };
        self.wake(&state, more);
        change == Some(Reach::Silent)
    }

    /// The conversations with turns that have not ended.
    pub fn conversations(&self) -> HashSet<ConversationId> {
        self.lock().turns.conversations()
    }

    /// How much runs and how much waits now.
    pub fn load(&self) -> Load {
        let state = self.lock();
        Load {
            running: state.running.len(),
            waiting: state.turns.waiting(),
            due_deliveries: state.receivers.due(),
        }
    }

    /// Whether the server stops: a turn that was signalled to stop then continues
    /// at the next start.
    pub fn is_stopping(&self) -> bool {
        self.lock().is_stopping
    }

    /// Gives out no more work, waits until the running jobs have ended or `grace` has
    /// passed, then signals the rest to stop.
    pub fn stop(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        let mut state = self.lock();
        state.is_stopping = true;
        self.changed.notify_all();
        while !state.running.is_empty() || state.receivers.running() > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let running = state.running.values().map(|(_, cancel)| cancel.clone());
        let running: Vec<Cancel> = running.collect();
        drop(state);
        for cancel in running {
            cancel.cancel();
        }
    }

    /// Wakes as many workers as there are new jobs; more would find nothing to do.
    /// While the server stops, wakes everyone: [`WorkQueue::stop`] waits here, too.
    fn wake(&self, state: &QueueState, jobs: usize) {
        if state.is_stopping {
            self.changed.notify_all();
        } else {
            for _ in 0..jobs.min(self.most_outgoing) {
                self.changed.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }
}

#[cfg(test)]
mod tests;

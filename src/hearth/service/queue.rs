//! What the workers do next: turns, one at a time in each conversation, and
//! deliveries. Only ids wait here; everything else is in the database.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::error::{Error, Result};
use base::ids::{ConversationId, DeliveryId, TurnId};
use base::sync::lock;
use config::Limits;
use net::cancel::Cancel;
use store::{Message, Turn};

/// Deliveries that may wait in memory; the rest wait in the database.
const DUE_DELIVERIES: usize = 1_024;
/// A message up to this size travels with its turn to the worker; a longer one
/// is read from the database again, so that a full queue stays small.
const CARRIED_BYTES: usize = 4 * 1024;

/// A turn to run.
#[derive(Debug)]
pub struct TurnJob {
    pub turn: TurnId,
    pub conversation: ConversationId,
    /// The turn as it was just stored, if nothing has happened in it yet: it
    /// may run before it can be read from the database.
    pub fresh: Option<Box<(Turn, Message)>>,
}

/// What a worker is given.
pub enum Job {
    Turn(TurnJob, Cancel),
    Deliver(DeliveryId),
}

/// How much runs and how much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Turns that run.
    pub running: usize,
    /// Turns that wait for a worker.
    pub waiting: usize,
    /// Deliveries that wait for a worker.
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
    /// Most turns, and most deliveries, that run at a time: neither may take
    /// all workers from the other.
    most_turns: usize,
    most_deliveries: usize,
}

#[derive(Default)]
struct QueueState {
    lanes: HashMap<ConversationId, Lane>,
    ready: VecDeque<TurnJob>,
    /// Turns that wait in `ready` or in a lane, and places reserved.
    waiting: usize,
    reserved: HashMap<ConversationId, usize>,
    running: HashMap<TurnId, Cancel>,
    due: VecDeque<DeliveryId>,
    /// Deliveries in `due` or with a worker.
    delivering: HashSet<DeliveryId>,
    deliveries_running: usize,
    is_stopping: bool,
}

/// One conversation's turns.
struct Lane {
    active: TurnId,
    phase: Phase,
    waiting: VecDeque<TurnJob>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ready,
    Running,
    /// Suspended until a person decides.
    Suspended,
    /// Decided before its worker had suspended it.
    Resumed,
}

/// A place in the queue for a message that is not stored yet. Dropping it
/// gives the place back.
pub struct Reservation<'a> {
    queue: &'a WorkQueue,
    conversation: Option<ConversationId>,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.waiting -= 1;
        if let Some(conversation) = self.conversation
            && let Some(places) = state.reserved.get_mut(&conversation)
        {
            *places -= 1;
            if *places == 0 {
                state.reserved.remove(&conversation);
            }
        }
    }
}

impl WorkQueue {
    /// A queue for this many workers.
    pub fn new(workers: usize) -> WorkQueue {
        WorkQueue {
            state: Mutex::default(),
            changed: Condvar::new(),
            most_turns: (workers - (workers / 8).max(usize::from(workers > 1))).max(1),
            most_deliveries: (workers / 2).max(1),
        }
    }

    /// Reserves a place for a message.
    ///
    /// # Errors
    /// `server_error` 503 when `waiting_turns` wait already;
    /// `rate_limited` when `waiting_turns_per_conversation` wait in this one.
    pub fn reserve(
        &self,
        conversation: Option<ConversationId>,
        limits: &Limits,
    ) -> Result<Reservation<'_>> {
        let mut state = self.lock();
        if state.is_stopping {
            return Err(Error::overloaded(
                "the server is stopping; try again in a moment",
                5,
            ));
        }
        if state.waiting >= limits.waiting_turns {
            return Err(Error::overloaded(
                format!(
                    "{} messages wait for an answer already; try again later",
                    state.waiting
                ),
                10,
            ));
        }
        if let Some(conversation) = conversation {
            let reserved = state.reserved.get(&conversation).copied().unwrap_or(0);
            let waiting = state
                .lanes
                .get(&conversation)
                .map_or(0, |lane| lane.waiting.len());
            if waiting + reserved >= limits.waiting_turns_per_conversation {
                return Err(Error::rate_limited(
                    format!("{waiting} messages wait in this conversation already"),
                    5,
                ));
            }
            *state.reserved.entry(conversation).or_default() += 1;
        }
        state.waiting += 1;
        Ok(Reservation {
            queue: self,
            conversation,
        })
    }

    /// Queues a turn that was stored.
    pub fn submit(&self, mut job: TurnJob) {
        if job
            .fresh
            .as_ref()
            .is_some_and(|fresh| fresh.1.content.len() > CARRIED_BYTES)
        {
            job.fresh = None;
        }
        let mut state = self.lock();
        state.waiting += 1;
        match state.lanes.get_mut(&job.conversation) {
            Some(lane) => {
                job.fresh = None;
                lane.waiting.push_back(job);
            }
            None => {
                state
                    .lanes
                    .insert(job.conversation, Lane::of(job.turn, Phase::Ready));
                state.ready.push_back(job);
                self.changed.notify_one();
            }
        }
    }

    /// Adds a turn that waited for a person when the server last stopped.
    pub fn adopt_suspended(&self, turn: TurnId, conversation: ConversationId) {
        self.lock()
            .lanes
            .insert(conversation, Lane::of(turn, Phase::Suspended));
    }

    /// Waits for something to do; `None` when the server stops.
    pub fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            // Deliveries first: they are short, and bounded to their share.
            if state.deliveries_running < self.most_deliveries
                && let Some(delivery) = state.due.pop_front()
            {
                state.deliveries_running += 1;
                return Some(Job::Deliver(delivery));
            }
            if state.running.len() < self.most_turns
                && let Some(job) = state.ready.pop_front()
            {
                state.waiting -= 1;
                if let Some(lane) = state.lanes.get_mut(&job.conversation) {
                    lane.phase = Phase::Running;
                }
                let cancel = Cancel::default();
                state.running.insert(job.turn, cancel.clone());
                return Some(Job::Turn(job, cancel));
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A turn has ended: its conversation's next one is ready.
    pub fn turn_ended(&self, turn: TurnId, conversation: ConversationId) {
        let mut state = self.lock();
        state.running.remove(&turn);
        state.advance(turn, conversation);
        self.wake(&state, 1);
    }

    /// A turn's worker has suspended it until a person decides.
    pub fn turn_suspended(&self, turn: TurnId, conversation: ConversationId) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.running.remove(&turn);
        if let Some(lane) = state.lanes.get_mut(&conversation) {
            if lane.phase == Phase::Resumed {
                lane.phase = Phase::Ready;
                state.go_on(turn, conversation);
            } else {
                lane.phase = Phase::Suspended;
            }
        }
        self.wake(&guard, 1);
    }

    /// A person has decided: the turn continues.
    pub fn resume(&self, turn: TurnId, conversation: ConversationId) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(lane) = state
            .lanes
            .get_mut(&conversation)
            .filter(|lane| lane.active == turn)
        else {
            return;
        };
        match lane.phase {
            Phase::Running => lane.phase = Phase::Resumed,
            Phase::Suspended => {
                lane.phase = Phase::Ready;
                state.go_on(turn, conversation);
                self.changed.notify_one();
            }
            Phase::Ready | Phase::Resumed => {}
        }
    }

    /// Takes a turn out of the queue, or signals its worker to stop.
    pub fn withdraw(&self, turn: TurnId, conversation: ConversationId) -> Withdrawn {
        let mut guard = self.lock();
        if let Some(cancel) = guard.running.get(&turn).cloned() {
            drop(guard);
            cancel.cancel();
            return Withdrawn::Signalled;
        }
        let state = &mut *guard;
        let Some(lane) = state.lanes.get_mut(&conversation) else {
            return Withdrawn::Unknown;
        };
        if lane.active == turn {
            let before = state.ready.len();
            state.ready.retain(|job| job.turn != turn);
            state.waiting -= before - state.ready.len();
            state.advance(turn, conversation);
            self.wake(&guard, 1);
            return Withdrawn::Taken;
        }
        match lane.waiting.iter().position(|job| job.turn == turn) {
            Some(place) => {
                lane.waiting.remove(place);
                state.waiting -= 1;
                Withdrawn::Taken
            }
            None => Withdrawn::Unknown,
        }
    }

    /// Queues deliveries that are due and not queued yet.
    pub fn offer_deliveries(&self, due: impl IntoIterator<Item = DeliveryId>) {
        let mut state = self.lock();
        let mut offered = 0;
        for delivery in due {
            // The rest stay due in the database and are offered again.
            if state.due.len() < DUE_DELIVERIES && state.delivering.insert(delivery) {
                state.due.push_back(delivery);
                offered += 1;
            }
        }
        self.wake(&state, offered);
    }

    /// An attempt at a delivery has ended.
    pub fn delivery_ended(&self, delivery: DeliveryId) {
        let mut state = self.lock();
        state.deliveries_running -= 1;
        state.delivering.remove(&delivery);
        self.wake(&state, 1);
    }

    /// How much runs and how much waits now.
    pub fn load(&self) -> Load {
        let state = self.lock();
        Load {
            running: state.running.len(),
            waiting: state.waiting,
            due_deliveries: state.due.len(),
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
        while !state.running.is_empty() || state.deliveries_running > 0 {
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
        let running: Vec<Cancel> = state.running.values().cloned().collect();
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
            for _ in 0..jobs.min(self.most_deliveries) {
                self.changed.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }
}

impl QueueState {
    /// Queues a turn that waited for a person, whose lane is ready again.
    fn go_on(&mut self, turn: TurnId, conversation: ConversationId) {
        self.waiting += 1;
        self.ready.push_back(TurnJob {
            turn,
            conversation,
            fresh: None,
        });
    }

    /// Makes the conversation's next turn ready after `turn`.
    fn advance(&mut self, turn: TurnId, conversation: ConversationId) {
        let Some(lane) = self
            .lanes
            .get_mut(&conversation)
            .filter(|lane| lane.active == turn)
        else {
            return;
        };
        match lane.waiting.pop_front() {
            Some(job) => {
                lane.active = job.turn;
                lane.phase = Phase::Ready;
                self.ready.push_back(job);
            }
            None => {
                self.lanes.remove(&conversation);
            }
        }
    }
}

impl Lane {
    fn of(active: TurnId, phase: Phase) -> Lane {
        Lane {
            active,
            phase,
            waiting: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Which turns may run: one at a time in each conversation, in their order. A turn
//! that waits for a person is outside this order until that person decides.

use std::collections::{HashMap, HashSet, VecDeque};

use base::error::{Error, Result};
use base::ids::{ConversationId, TurnId};
use config::Limits;
use store::{Message, Turn};

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

/// The turns of all conversations.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: HashMap<ConversationId, Lane>,
    ready: VecDeque<TurnJob>,
    /// Turns that do not run yet, because they are still being published.
    held: HashSet<TurnId>,
    /// Turns that wait in `ready` or in a lane, and places reserved.
    waiting: usize,
    /// Turns that wait for a person.
    suspended: usize,
    reserved: HashMap<ConversationId, usize>,
}

/// One conversation's turns.
#[derive(Default)]
struct Lane {
    active: Option<(TurnId, Phase)>,
    waiting: VecDeque<TurnJob>,
    /// Turns that wait for a person's decision. The others do not wait for them.
    suspended: Vec<TurnId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ready,
    Running,
    /// Decided before its worker had suspended it.
    Resumed,
    /// Deferred until the database can be written: the next turns would fail, too.
    Deferred,
}

impl Lanes {
    /// Turns that wait, and places reserved.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Those with turns, or places for them.
    pub(super) fn conversations(&self) -> HashSet<ConversationId> {
        let lanes = self.lanes.keys();
        lanes.chain(self.reserved.keys()).copied().collect()
    }

    /// Reserves a place for a turn that is not stored yet.
    ///
    /// # Errors
    /// As [`WorkQueue::reserve`](super::WorkQueue::reserve).
    pub(super) fn reserve(
        &mut self,
        conversation: Option<ConversationId>,
        limits: &Limits,
    ) -> Result<()> {
        let all = self.waiting;
        if all >= limits.waiting_turns {
            return Err(Error::overloaded(
                format!("{all} messages wait for an answer already; try again later"),
                10,
            ));
        }
        if let Some(conversation) = conversation {
            let lane = self.lanes.get(&conversation);
            let waiting = lane.map_or(0, |lane| lane.waiting.len());
            let suspended = lane.map_or(0, |lane| lane.suspended.len());
            let reserved = self.reserved.get(&conversation).copied().unwrap_or(0);
            if waiting + suspended + reserved >= limits.waiting_turns_per_conversation {
                return Err(too_many(waiting + reserved, suspended));
            }
            self.reserved.insert(conversation, reserved + 1);
        }
        self.waiting += 1;
        Ok(())
    }

    /// Whether any turn waits for a person.
    pub(super) fn has_suspended(&self) -> bool {
        self.suspended > 0
    }

    /// Checks that not too many turns of a conversation wait for a person.
    ///
    /// # Errors
    /// `rate_limited` when `waiting_turns_per_conversation` do.
    pub(super) fn check_suspended(
        &self,
        conversation: ConversationId,
        limits: &Limits,
    ) -> Result<()> {
        let lane = self.lanes.get(&conversation);
        let suspended = lane.map_or(0, |lane| lane.suspended.len());
        if suspended >= limits.waiting_turns_per_conversation {
            Err(too_many(0, suspended))
        } else {
            Ok(())
        }
    }

    /// Gives a reserved place back.
    pub(super) fn release(&mut self, conversation: Option<ConversationId>) {
        self.waiting -= 1;
        if let Some(conversation) = conversation
            && let Some(places) = self.reserved.get_mut(&conversation)
        {
            *places -= 1;
            if *places == 0 {
                self.reserved.remove(&conversation);
            }
        }
    }

    /// A turn that is about to be added does not run until [`Lanes::release_held`].
    pub(super) fn hold(&mut self, turn: TurnId) {
        self.held.insert(turn);
    }

    /// A turn may run.
    pub(super) fn release_held(&mut self, turn: TurnId) {
        self.held.remove(&turn);
    }

    /// Adds a turn; returns whether it is ready now.
    pub(super) fn add(&mut self, mut job: TurnJob) -> bool {
        self.waiting += 1;
        let is_long = |fresh: &(Turn, Message)| fresh.1.content.len() > CARRIED_BYTES;
        if job.fresh.as_deref().is_some_and(is_long) {
            job.fresh = None;
        }
        let lane = self.lanes.entry(job.conversation).or_default();
        if lane.active.is_some() {
            job.fresh = None;
            lane.waiting.push_back(job);
            return false;
        }
        lane.active = Some((job.turn, Phase::Ready));
        self.ready.push_back(job);
        true
    }

    /// Adds a turn that waits for a person's decision.
    pub(super) fn add_suspended(&mut self, turn: TurnId, conversation: ConversationId) {
        let lane = self.lanes.entry(conversation).or_default();
        lane.suspended.push(turn);
        self.suspended += 1;
    }

    /// Takes the next ready turn, to run it.
    pub(super) fn take(&mut self) -> Option<TurnJob> {
        let is_free = |job: &TurnJob| !self.held.contains(&job.turn);
        let place = self.ready.iter().position(is_free)?;
        let job = self.ready.remove(place)?;
        self.waiting -= 1;
        if let Some(phase) = self.phase_of(job.turn, job.conversation) {
            *phase = Phase::Running;
        }
        Some(job)
    }

    /// The turn's worker has suspended it until a person decides: the conversation's
    /// next one is ready. If somebody has already decided, this one is ready again.
    pub(super) fn suspend(&mut self, turn: TurnId, conversation: ConversationId) {
        match self.phase_of(turn, conversation) {
            Some(Phase::Resumed) => self.make_ready(turn, conversation),
            Some(_) => {
                self.add_suspended(turn, conversation);
                self.advance(turn, conversation);
            }
            None => {}
        }
    }

    /// The turn waits until the database can be written, and its conversation with it.
    pub(super) fn defer(&mut self, turn: TurnId, conversation: ConversationId) {
        if let Some(phase) = self.phase_of(turn, conversation) {
            *phase = Phase::Deferred;
        }
    }

    /// A person has decided, or the database can be written; returns whether the turn
    /// is ready now.
    pub(super) fn resume(&mut self, turn: TurnId, conversation: ConversationId) -> bool {
        match self.phase_of(turn, conversation) {
            Some(phase @ Phase::Running) => {
                *phase = Phase::Resumed;
                return false;
            }
            Some(Phase::Deferred) => {
                self.make_ready(turn, conversation);
                return true;
            }
            Some(Phase::Ready | Phase::Resumed) => return false,
            None => {}
        }
        let Some(lane) = self.lanes.get_mut(&conversation) else {
            return false;
        };
        if !lane.end_suspension(turn) {
            return false;
        }
        self.suspended -= 1;
        if lane.active.is_none() {
            self.make_ready(turn, conversation);
            return true;
        }
        // Before younger ones, as after a restart.
        let place = lane.waiting.partition_point(|job| job.turn < turn);
        lane.waiting.insert(place, unread(turn, conversation));
        self.waiting += 1;
        false
    }

    /// Removes a turn that is not running; returns whether it was here.
    pub(super) fn remove(&mut self, turn: TurnId, conversation: ConversationId) -> bool {
        if self.phase_of(turn, conversation).is_some() {
            let before = self.ready.len();
            self.ready.retain(|job| job.turn != turn);
            self.waiting -= before - self.ready.len();
            self.advance(turn, conversation);
            return true;
        }
        let Some(lane) = self.lanes.get_mut(&conversation) else {
            return false;
        };
        if let Some(place) = lane.waiting.iter().position(|job| job.turn == turn) {
            lane.waiting.remove(place);
            self.waiting -= 1;
            return true;
        }
        let was_suspended = lane.end_suspension(turn);
        self.suspended -= usize::from(was_suspended);
        self.drop_if_empty(conversation);
        was_suspended
    }

    /// The turns of a conversation, its active one last.
    pub(super) fn of(&self, conversation: ConversationId) -> Vec<TurnId> {
        let Some(lane) = self.lanes.get(&conversation) else {
            return Vec::new();
        };
        let waiting = lane.waiting.iter().map(|job| job.turn);
        let active = lane.active.map(|(turn, _)| turn);
        let suspended = lane.suspended.iter().copied();
        suspended.chain(waiting).chain(active).collect()
    }

    /// Makes the conversation's next turn ready after `turn`.
    pub(super) fn advance(&mut self, turn: TurnId, conversation: ConversationId) {
        let lane = self.lanes.get_mut(&conversation);
        let Some(lane) = lane.filter(|lane| lane.is_active(turn)) else {
            return;
        };
        let next = lane.waiting.pop_front();
        lane.active = next.as_ref().map(|job| (job.turn, Phase::Ready));
        match next {
            Some(job) => self.ready.push_back(job),
            None => self.drop_if_empty(conversation),
        }
    }

    fn drop_if_empty(&mut self, conversation: ConversationId) {
        let lane = self.lanes.get(&conversation);
        if lane.is_some_and(|lane| lane.active.is_none() && lane.suspended.is_empty()) {
            self.lanes.remove(&conversation);
        }
    }

    /// The phase of a conversation's active turn, if this is it.
    fn phase_of(&mut self, turn: TurnId, conversation: ConversationId) -> Option<&mut Phase> {
        let (active, phase) = self.lanes.get_mut(&conversation)?.active.as_mut()?;
        (*active == turn).then_some(phase)
    }

    /// Makes a turn the ready one of its conversation.
    fn make_ready(&mut self, turn: TurnId, conversation: ConversationId) {
        if let Some(lane) = self.lanes.get_mut(&conversation) {
            lane.active = Some((turn, Phase::Ready));
        }
        self.waiting += 1;
        self.ready.push_back(unread(turn, conversation));
    }
}

impl Lane {
    fn is_active(&self, turn: TurnId) -> bool {
        self.active.is_some_and(|(active, _)| active == turn)
    }

    /// Returns whether the turn was suspended.
    fn end_suspension(&mut self, turn: TurnId) -> bool {
        let place = self.suspended.iter().position(|one| *one == turn);
        place.map(|place| self.suspended.remove(place)).is_some()
    }
}

/// Too many messages wait in a conversation: these for their turn, those for a person.
fn too_many(queued: usize, suspended: usize) -> Error {
    let all = queued + suspended;
    if suspended == 0 {
        return Error::rate_limited(
            format!("{all} messages wait in this conversation already"),
            5,
        );
    }
    let already = match queued {
        0 => String::new(),
        _ => format!(" already, {suspended} of them"),
    };
    Error::rate_limited(
        format!(
            "{all} messages wait in this conversation{already} for permission to use a tool; try \
             again once it is given or refused"
        ),
        60,
    )
}

/// A turn to be read from the database.
fn unread(turn: TurnId, conversation: ConversationId) -> TurnJob {
    TurnJob {
        turn,
        conversation,
        fresh: None,
    }
}

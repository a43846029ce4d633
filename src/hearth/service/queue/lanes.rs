//! Which turns may run: one at a time in each conversation, in their order.

use std::collections::{HashMap, VecDeque};

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
    /// Turns that wait in `ready` or in a lane, and places reserved.
    waiting: usize,
    reserved: HashMap<ConversationId, usize>,
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

impl Lanes {
    /// Turns that wait, and places reserved.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
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
            let reserved = self.reserved.get(&conversation).copied().unwrap_or(0);
            if waiting + reserved >= limits.waiting_turns_per_conversation {
                return Err(Error::rate_limited(
                    format!("{waiting} messages wait in this conversation already"),
                    5,
                ));
            }
            self.reserved.insert(conversation, reserved + 1);
        }
        self.waiting += 1;
        Ok(())
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

    /// Adds a turn; returns whether it is ready now.
    pub(super) fn add(&mut self, mut job: TurnJob) -> bool {
        self.waiting += 1;
        let is_long = |fresh: &(Turn, Message)| fresh.1.content.len() > CARRIED_BYTES;
        if job.fresh.as_deref().is_some_and(is_long) {
            job.fresh = None;
        }
        match self.lanes.get_mut(&job.conversation) {
            Some(lane) => {
                job.fresh = None;
                lane.waiting.push_back(job);
                false
            }
            None => {
                let lane = Lane::of(job.turn, Phase::Ready);
                self.lanes.insert(job.conversation, lane);
                self.ready.push_back(job);
                true
            }
        }
    }

    /// Adds a turn that waits for a person's decision.
    pub(super) fn add_suspended(&mut self, turn: TurnId, conversation: ConversationId) {
        let lane = Lane::of(turn, Phase::Suspended);
        self.lanes.insert(conversation, lane);
    }

    /// Takes the next ready turn, to run it.
    pub(super) fn take(&mut self) -> Option<TurnJob> {
        let job = self.ready.pop_front()?;
        self.waiting -= 1;
        if let Some(lane) = self.lanes.get_mut(&job.conversation) {
            lane.phase = Phase::Running;
        }
        Some(job)
    }

    /// The turn's worker has suspended it until a person decides; if somebody has
    /// already decided, it is ready again.
    pub(super) fn suspend(&mut self, turn: TurnId, conversation: ConversationId) {
        match self.lanes.get_mut(&conversation) {
            Some(lane) if lane.phase == Phase::Resumed => self.make_ready(turn, conversation),
            Some(lane) => lane.phase = Phase::Suspended,
            None => {}
        }
    }

    /// A person has decided; returns whether the turn is ready now.
    pub(super) fn resume(&mut self, turn: TurnId, conversation: ConversationId) -> bool {
        match self.lane_of(turn, conversation) {
            Some(lane) if lane.phase == Phase::Running => {
                lane.phase = Phase::Resumed;
                false
            }
            Some(lane) if lane.phase == Phase::Suspended => {
                self.make_ready(turn, conversation);
                true
            }
            _ => false,
        }
    }

    /// Removes a turn that is not running; returns whether it was here.
    pub(super) fn remove(&mut self, turn: TurnId, conversation: ConversationId) -> bool {
        let Some(lane) = self.lanes.get_mut(&conversation) else {
            return false;
        };
        if lane.active == turn {
            let before = self.ready.len();
            self.ready.retain(|job| job.turn != turn);
            self.waiting -= before - self.ready.len();
            self.advance(turn, conversation);
            return true;
        }
        let place = lane.waiting.iter().position(|job| job.turn == turn);
        if let Some(place) = place {
            lane.waiting.remove(place);
            self.waiting -= 1;
        }
        place.is_some()
    }

    /// Makes the conversation's next turn ready after `turn`.
    pub(super) fn advance(&mut self, turn: TurnId, conversation: ConversationId) {
        let Some(lane) = self.lane_of(turn, conversation) else {
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

    /// The lane of a conversation whose active turn this is.
    fn lane_of(&mut self, turn: TurnId, conversation: ConversationId) -> Option<&mut Lane> {
        let lane = self.lanes.get_mut(&conversation);
        lane.filter(|lane| lane.active == turn)
    }

    /// Queues a suspended turn again.
    fn make_ready(&mut self, turn: TurnId, conversation: ConversationId) {
        if let Some(lane) = self.lanes.get_mut(&conversation) {
            lane.phase = Phase::Ready;
        }
        self.waiting += 1;
        self.ready.push_back(TurnJob {
            turn,
            conversation,
            fresh: None,
        });
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

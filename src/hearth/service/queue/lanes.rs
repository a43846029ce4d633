//! Which turns may run: one at a time in each conversation, in their order. A turn
//! that waits for a person is outside this order until that person decides. Of those
//! that may run, each party's come in turns, and within a party those of each credential.

use std::collections::{HashMap, HashSet, VecDeque};

use super::rounds::Rounds;
use base::error::{Error, Result};
use base::ids::{ConversationId, TokenId, TurnId, UserId};
use base::language::Said;
use config::Limits;
use store::{Message, Turn};

/// A message up to this size travels with its turn to the worker; a longer one
/// is read from the database again, so that a full queue stays small.
const CARRIED_BYTES: usize = 4 * 1024;

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// A person; none for what nobody owns.
    Person(Option<UserId>),
    /// A webhook account.
    Account(String),
}

/// Who asks for a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requester {
    party: Party,
    /// What they showed; none for schedules, for accounts, and after a restart.
    credential: Option<TokenId>,
}

impl Requester {
    /// The person, or else the webhook account.
    pub fn new(
        user: Option<UserId>,
        account: Option<&str>,
        credential: Option<TokenId>,
    ) -> Requester {
        let party = match (user, account) {
            (None, Some(account)) => Party::Account(account.to_owned()),
            (user, _) => Party::Person(user),
        };
        Requester { party, credential }
    }
}

/// A turn to run.
#[derive(Debug)]
pub struct TurnJob {
    pub turn: TurnId,
    pub conversation: ConversationId,
    pub requester: Requester,
    /// The turn as it was just stored, if nothing has happened in it yet: it
    /// may run before it can be read from the database.
    pub fresh: Option<Box<(Turn, Message)>>,
}

/// The turns of all conversations.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: HashMap<ConversationId, Lane>,
    ready: Rounds<Party, Rounds<Option<TokenId>, VecDeque<TurnJob>>>,
    /// Turns that do not run yet, because they are still being published.
    held: HashSet<TurnId>,
    /// Turns that wait in `ready` or in a lane, and places reserved.
    waiting: HashMap<Requester, usize>,
    /// Turns that wait for a person.
    suspended: usize,
    reserved: HashMap<ConversationId, usize>,
}

/// One conversation's turns.
#[derive(Default)]
struct Lane {
    active: Option<Active>,
    waiting: VecDeque<TurnJob>,
    /// Turns that wait for a person's decision. The others do not wait for them.
    suspended: Vec<(TurnId, Requester)>,
}

struct Active {
    turn: TurnId,
    requester: Requester,
    phase: Phase,
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
        self.waiting.values().sum()
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
        requester: &Requester,
        limits: &Limits,
    ) -> Result<()> {
        let all = self.waiting();
        let left = limits.waiting_turns.saturating_sub(all);
        let kept = limits
            .waiting_turns_for_people
            .min(limits.waiting_turns / 2);
        let own = self.waiting.get(requester).copied().unwrap_or(0);
        // Of the places kept for people, everybody leaves others as many as they have.
        let is_person = matches!(requester.party, Party::Person(_));
        if left <= kept && !(is_person && own < left) {
            let full = Said::of("error.queue_full", &[("all", &all.to_string())]);
            return Err(Error::overloaded(full, 10));
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
        self.count(requester);
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
    pub(super) fn release(&mut self, conversation: Option<ConversationId>, requester: &Requester) {
        self.discount(requester);
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
        self.count(&job.requester);
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
        self.make_ready(job);
        true
    }

    /// Adds a turn that waits for a person's decision.
    pub(super) fn add_suspended(
        &mut self,
        turn: TurnId,
        conversation: ConversationId,
        requester: Requester,
    ) {
        let lane = self.lanes.entry(conversation).or_default();
        lane.suspended.push((turn, requester));
        self.suspended += 1;
    }

    /// Takes the next ready turn of those who may have another one run, to run it.
    pub(super) fn take(&mut self, may_run: impl Fn(&Requester) -> bool) -> Option<TurnJob> {
        let Lanes { ready, held, .. } = self;
        let job = ready.take(|_, credentials| {
            credentials.take(|_, jobs| {
                let is_free = |job: &TurnJob| !held.contains(&job.turn);
                may_run(&jobs.front()?.requester).then_some(())?;
                jobs.remove(jobs.iter().position(is_free)?)
            })
        })?;
        self.forget_idle();
        self.discount(&job.requester);
        if let Some(active) = self.active(job.turn, job.conversation) {
            active.phase = Phase::Running;
        }
        Some(job)
    }

    /// The turn's worker has suspended it until a person decides: the conversation's
    /// next one is ready. If somebody has already decided, this one is ready again.
    pub(super) fn suspend(&mut self, turn: TurnId, conversation: ConversationId) {
        let Some(active) = self.active(turn, conversation) else {
            return;
        };
        let requester = active.requester.clone();
        if active.phase == Phase::Resumed {
            self.make_ready_again(turn, conversation, requester);
        } else {
            self.add_suspended(turn, conversation, requester);
            self.advance(turn, conversation);
        }
    }

    /// The turn waits until the database can be written, and its conversation with it.
    pub(super) fn defer(&mut self, turn: TurnId, conversation: ConversationId) {
        if let Some(active) = self.active(turn, conversation) {
            active.phase = Phase::Deferred;
        }
    }

    /// A person has decided, or the database can be written; returns whether the turn
    /// is ready now.
    pub(super) fn resume(&mut self, turn: TurnId, conversation: ConversationId) -> bool {
        if let Some(active) = self.active(turn, conversation) {
            match active.phase {
                Phase::Running => active.phase = Phase::Resumed,
                Phase::Deferred => {
                    let requester = active.requester.clone();
                    self.make_ready_again(turn, conversation, requester);
                    return true;
                }
                Phase::Ready | Phase::Resumed => {}
            }
            return false;
        }
        let Some(lane) = self.lanes.get_mut(&conversation) else {
            return false;
        };
        let Some(requester) = lane.end_suspension(turn) else {
            return false;
        };
        self.suspended -= 1;
        if lane.active.is_none() {
            self.make_ready_again(turn, conversation, requester);
            return true;
        }
        // Before younger ones, as after a restart.
        let place = lane.waiting.partition_point(|job| job.turn < turn);
        let job = unread(turn, conversation, requester.clone());
        lane.waiting.insert(place, job);
        self.count(&requester);
        false
    }

    /// Removes a turn that is not running; returns whether it was here.
    pub(super) fn remove(&mut self, turn: TurnId, conversation: ConversationId) -> bool {
        if let Some(active) = self.active(turn, conversation) {
            if active.phase == Phase::Ready {
                let Requester { party, credential } = active.requester.clone();
                let jobs = self.ready.of(&party).of(&credential);
                jobs.retain(|job| job.turn != turn);
                self.forget_idle();
                self.discount(&Requester { party, credential });
            }
            self.advance(turn, conversation);
            return true;
        }
        let Some(lane) = self.lanes.get_mut(&conversation) else {
            return false;
        };
        if let Some(place) = lane.waiting.iter().position(|job| job.turn == turn) {
            if let Some(job) = lane.waiting.remove(place) {
                self.discount(&job.requester);
            }
            return true;
        }
        let was_suspended = lane.end_suspension(turn).is_some();
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
        let active = lane.active.as_ref().map(|active| active.turn);
        let suspended = lane.suspended.iter().map(|(turn, _)| *turn);
        suspended.chain(waiting).chain(active).collect()
    }

    /// Makes the conversation's next turn ready after `turn`.
    pub(super) fn advance(&mut self, turn: TurnId, conversation: ConversationId) {
        if self.active(turn, conversation).is_none() {
            return;
        }
        let lane = self.lanes.entry(conversation).or_default();
        lane.active = None;
        match lane.waiting.pop_front() {
            Some(job) => self.make_ready(job),
            None => self.drop_if_empty(conversation),
        }
    }

    fn drop_if_empty(&mut self, conversation: ConversationId) {
        let lane = self.lanes.get(&conversation);
        if lane.is_some_and(|lane| lane.active.is_none() && lane.suspended.is_empty()) {
            self.lanes.remove(&conversation);
        }
    }

    /// A conversation's active turn, if this is it.
    fn active(&mut self, turn: TurnId, conversation: ConversationId) -> Option<&mut Active> {
        let active = self.lanes.get_mut(&conversation)?.active.as_mut()?;
        (active.turn == turn).then_some(active)
    }

    /// Makes a turn that is counted the ready one of its conversation.
    fn make_ready(&mut self, job: TurnJob) {
        let lane = self.lanes.entry(job.conversation).or_default();
        lane.active = Some(Active {
            turn: job.turn,
            requester: job.requester.clone(),
            phase: Phase::Ready,
        });
        let Requester { party, credential } = &job.requester;
        self.ready.of(party).of(credential).push_back(job);
    }

    /// The same with one that has run before.
    fn make_ready_again(
        &mut self,
        turn: TurnId,
        conversation: ConversationId,
        requester: Requester,
    ) {
        self.count(&requester);
        self.make_ready(unread(turn, conversation, requester));
    }

    /// One more of these waits.
    fn count(&mut self, requester: &Requester) {
        *self.waiting.entry(requester.clone()).or_default() += 1;
    }

    /// One of these waits no longer.
    fn discount(&mut self, requester: &Requester) {
        if let Some(waiting) = self.waiting.get_mut(requester) {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(requester);
            }
        }
    }

    /// Whoever has nothing ready comes last again.
    fn forget_idle(&mut self) {
        self.ready.retain(|credentials| {
            credentials.retain(|jobs| !jobs.is_empty());
            credentials.len() > 0
        });
    }
}

impl Lane {
    /// Who asked for the turn, if it was suspended.
    fn end_suspension(&mut self, turn: TurnId) -> Option<Requester> {
        let place = self.suspended.iter().position(|(one, _)| *one == turn)?;
        Some(self.suspended.remove(place).1)
    }
}

/// Too many messages wait in a conversation: these for their turn, those for a person.
fn too_many(queued: usize, suspended: usize) -> Error {
    let (key, wait) = match (queued, suspended) {
        (_, 0) => ("error.conversation_full", 5),
        (0, _) => ("error.permissions_wait", 60),
        _ => ("error.conversation_waits", 60),
    };
    let (all, suspended) = ((queued + suspended).to_string(), suspended.to_string());
    let fields = [("all", &*all), ("suspended", &*suspended)];
    Error::rate_limited(Said::of(key, &fields), wait)
}

/// A turn to be read from the database.
fn unread(turn: TurnId, conversation: ConversationId, requester: Requester) -> TurnJob {
    TurnJob {
        turn,
        conversation,
        requester,
        fresh: None,
    }
}

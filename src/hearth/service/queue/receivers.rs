//! What is due to go out: the receivers take turns, and one that does not answer holds
//! up no other.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::rounds::Rounds;
use crate::outgoing::Reach;
use base::clock::Timestamp;
use store::Outgoing;

/// What may wait in memory for one receiver, and for all; the rest waits in the database.
const MAX_DUE_OF_ONE: usize = 64;
const MAX_DUE: usize = 1_024;
/// How long nothing is sent to a receiver that has not answered in time: no longer than
/// before the second attempt at what it did not take.
const PAUSE: Duration = Duration::from_secs(5);
/// Receivers that are remembered while nothing is due to them.
const MOST_RECEIVERS: usize = 256;

/// What goes out, and to which receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub outgoing: Outgoing,
    /// The origin of its address.
    pub receiver: String,
}

#[derive(Default)]
pub(super) struct Receivers {
    receivers: Rounds<String, Receiver>,
    /// What waits here or is with a worker.
    known: HashSet<Outgoing>,
    running: usize,
    /// When somebody last said what time it is.
    now: Timestamp,
}

#[derive(Default)]
struct Receiver {
    due: VecDeque<Outgoing>,
    running: usize,
    /// How the last attempt met it, and when that ended; none since the server started.
    last: Option<(Reach, Timestamp)>,
}

impl Receiver {
    fn answers(&self) -> bool {
        matches!(self.last, Some((Reach::Answered, _)))
    }
}

impl Receivers {
    /// What waits here.
    pub fn due(&self) -> usize {
        self.known.len() - self.running
    }

    /// Attempts that workers make.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Queues what is not queued yet, as far as there is room: the rest stays due in the
    /// database and is offered again. Returns for how many workers that may be work.
    pub fn offer(&mut self, due: impl IntoIterator<Item = Due>, now: Timestamp) -> usize {
        self.now = now;
        let mut work = 0;
        for Due { outgoing, receiver } in due {
            if self.receivers.len() >= MOST_RECEIVERS {
                self.receivers
                    .retain(|one| !one.due.is_empty() || one.running > 0);
            }
            let receiver = self.receivers.of(&receiver);
            let has_room = receiver.due.len() < MAX_DUE_OF_ONE && self.known.len() < MAX_DUE;
            let is_new = has_room && self.known.insert(outgoing);
            if is_new {
                receiver.due.push_back(outgoing);
            }
            // A pause may be over.
            work += usize::from(is_new || matches!(receiver.last, Some((Reach::Silent, _))));
        }
        work
    }

    /// Takes what goes out next, if one of so many slots is free for it. A receiver that
    /// answers leaves the others as many slots as it has. Any other has one; together these
    /// leave a quarter of all slots, and those that were silent leave half.
    pub fn take(&mut self, slots: usize) -> Option<Due> {
        let (free, now) = (slots.saturating_sub(self.running), self.now);
        let is_doubtful = |one: &&Receiver| one.running > 0 && !one.answers();
        let doubtful = self.receivers.queues().filter(is_doubtful).count();
        // A clock that was set back does not lengthen it.
        let is_paused = |at: Timestamp| (at..at.plus(PAUSE)).contains(&now);
        let may_begin = |receiver: &Receiver| match receiver.last {
            Some((Reach::Answered, _)) => receiver.running < free,
            _ if receiver.running > 0 || free == 0 => false,
            Some((Reach::Silent, at)) => !is_paused(at) && doubtful < slots.div_ceil(2),
            Some((Reach::Refused, _)) | None => doubtful < slots - slots / 4,
        };
        let due = self.receivers.take(|name, receiver| {
            if !may_begin(receiver) {
                return None;
            }
            let outgoing = receiver.due.pop_front()?;
            receiver.running += 1;
            Some(Due {
                outgoing,
                receiver: name.clone(),
            })
        })?;
        self.running += 1;
        Some(due)
    }

    /// An attempt has ended, and met the receiver like this, if one was made. Returns what
    /// has changed: whether the receiver answers again, or has stopped to.
    pub fn ended(&mut self, due: &Due, reach: Option<Reach>, now: Timestamp) -> Option<Reach> {
        self.now = now;
        self.running -= 1;
        self.known.remove(&due.outgoing);
        let receiver = self.receivers.of(&due.receiver);
        receiver.running -= 1;
        let before = receiver.last.replace((reach?, now));
        reach.filter(|reach| before.is_none_or(|(before, _)| before != *reach))
    }
}

//! The calls of one session that have ended here, and in which the server may still ask: what
//! it asks then must not reach the person of another call.

use std::time::{Duration, Instant};

use base::ids::UserId;

/// How long after its answer a server may still ask in a call.
const STILL_ASKS: Duration = Duration::from_secs(30);
/// Most calls without an answer that are told apart.
const MOST: usize = 64;
/// The number of a call whose answer is not waited for: no request has it.
const NO_ID: u64 = 0;

/// Those calls. There are no more of them than people and [`MOST`].
#[derive(Default)]
pub(super) struct EndedCalls(Vec<EndedCall>);

struct EndedCall {
    id: u64,
    /// Nobody where nobody could be asked.
    person: Option<UserId>,
    /// Without it, the server may not even have stopped.
    answered_at: Option<Instant>,
}

impl EndedCalls {
    /// A call has ended: with the server's answer, or because nobody waits any longer.
    pub(super) fn add(&mut self, id: u64, person: Option<UserId>, is_answered: bool) {
        let answered_at = is_answered.then(Instant::now);
        let ended = &mut self.0;
        let unanswered = ended.iter().filter(|one| one.answered_at.is_none()).count();
        let same = ended.iter_mut().find(|one| {
            one.person == person
                && (is_answered || unanswered >= MOST)
                && one.answered_at.is_some() == is_answered
        });
        match same {
            Some(same) if is_answered => same.answered_at = answered_at,
            // One of too many stands for all of this person.
            Some(same) => same.id = NO_ID,
            None => ended.push(EndedCall {
                id: if unanswered >= MOST { NO_ID } else { id },
                person,
                answered_at,
            }),
        }
    }

    /// The server has answered after all.
    pub(super) fn answered(&mut self, id: u64) {
        if let Some(place) = (self.0.iter()).position(|one| one.id == id && id != NO_ID) {
            let EndedCall { id, person, .. } = self.0.swap_remove(place);
            self.add(id, person, true);
        }
    }

    /// Whether a question may be meant for somebody else than this person, whose call began
    /// at `began`.
    pub(super) fn may_ask_others(&self, person: Option<UserId>, began: Instant) -> bool {
        self.0.iter().any(|one| {
            let is_over = |at: Instant| at + STILL_ASKS <= began;
            one.person != person && !one.answered_at.is_some_and(is_over)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_ask_until_it_is_answered_and_a_while_longer() {
        let (ada, bob) = (Some(UserId::from(1)), Some(UserId::from(2)));
        let mut ended = EndedCalls::default();
        let now = Instant::now();
        assert!(!ended.may_ask_others(bob, now));
        ended.add(1, ada, false);
        let later = now + Duration::from_secs(3_600);
        assert!(ended.may_ask_others(bob, later));
        assert!(ended.may_ask_others(None, later));
        assert!(!ended.may_ask_others(ada, now), "it is the same person");
        ended.answered(1);
        assert!(ended.may_ask_others(bob, now));
        assert!(!ended.may_ask_others(bob, later));
        ended.answered(1);
        assert_eq!(ended.0.len(), 1);
    }

    #[test]
    fn there_are_no_more_of_them_than_people_and_a_bound() {
        let (ada, bob) = (Some(UserId::from(1)), Some(UserId::from(2)));
        let mut ended = EndedCalls::default();
        let later = Instant::now() + Duration::from_secs(3_600);
        for id in 1..1_000 {
            ended.add(id, ada, false);
            ended.add(id + 1_000, ada, true);
        }
        ended.add(2_000, bob, false);
        assert!(ended.0.len() <= MOST + 2, "{}", ended.0.len());
        (0..=2_000).for_each(|id| ended.answered(id));
        assert!(ended.may_ask_others(None, later), "not all could be told");
        assert!(ended.may_ask_others(ada, later));
        assert!(ended.may_ask_others(bob, later));
    }
}

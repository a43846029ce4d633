use super::*;

use store::Outgoing;

/// Somebody with this number who showed this credential.
fn person(user: i64, credential: i64) -> Requester {
    Requester::new(Some(user.into()), None, Some(credential.into()))
}

fn account(name: &str) -> Requester {
    Requester::new(None, Some(name), None)
}

fn job_of(requester: Requester, turn: i64, conversation: i64) -> TurnJob {
    TurnJob {
        turn: turn.into(),
        conversation: conversation.into(),
        requester,
        fresh: None,
    }
}

fn job(turn: i64, conversation: i64) -> TurnJob {
    job_of(person(1, 1), turn, conversation)
}

const NOW: Timestamp = Timestamp::from_millis(0);

fn due_to(receiver: &str, id: i64) -> Due {
    Due {
        outgoing: Outgoing::Callback(id.into()),
        receiver: receiver.to_owned(),
    }
}

fn due(id: i64) -> Due {
    due_to("here", id)
}

/// The attempts that begin when workers ask for as many as they get.
fn begun(queue: &WorkQueue) -> Vec<Due> {
    std::iter::from_fn(|| queue.lock().receivers.take(queue.most_outgoing)).collect()
}

/// Lets a receiver answer an attempt, so that more may be made at once.
fn answer(queue: &WorkQueue, due: Due) {
    queue.offer([due.clone()], NOW);
    assert_eq!(begun(queue), std::slice::from_ref(&due));
    queue.attempt_ended(&due, Some(Reach::Answered), NOW);
}

fn next_turn(queue: &WorkQueue) -> (i64, Cancel) {
    match queue.next() {
        Some(Job::Turn(job, cancel)) => (job.turn.as_i64(), cancel),
        _ => panic!("expected a turn"),
    }
}

fn limits(waiting: usize, per_conversation: usize) -> Limits {
    Limits {
        waiting_turns: waiting,
        waiting_turns_for_people: 0,
        waiting_turns_per_conversation: per_conversation,
        ..Limits::default()
    }
}

#[test]
fn turns_of_one_conversation_run_one_after_the_other() {
    let queue = WorkQueue::new(8);
    for (turn, conversation) in [(1, 1), (2, 1), (3, 2)] {
        queue.submit(job(turn, conversation));
    }
    assert_eq!(next_turn(&queue).0, 1);
    assert_eq!(next_turn(&queue).0, 3, "2 waits for 1");
    queue.turn_ended(1.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 2);
    assert_eq!((queue.load().running, queue.load().waiting), (2, 0));
}

#[test]
fn a_suspended_turn_holds_neither_its_conversation_nor_a_worker() {
    let queue = WorkQueue::new(1);
    for (turn, conversation) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
        queue.submit(job(turn, conversation));
    }
    next_turn(&queue);
    assert!(queue.turn_suspended(1.into(), 1.into()));
    assert_eq!(next_turn(&queue).0, 4);
    queue.turn_ended(4.into(), 2.into());
    assert_eq!(next_turn(&queue).0, 2);
    // Decided while another one runs: it is the next, before those that came later.
    queue.resume(1.into(), 1.into());
    assert_eq!((queue.load().running, queue.load().waiting), (1, 2));
    queue.turn_ended(2.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 1);
    queue.turn_ended(1.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 3);
}

#[test]
fn suspended_turns_continue_as_they_are_decided() {
    let queue = WorkQueue::new(1);
    for turn in 1..=3 {
        queue.submit(job(turn, 1));
    }
    for turn in 1..=3 {
        assert_eq!(next_turn(&queue).0, turn);
        assert!(queue.turn_suspended(turn.into(), 1.into()));
    }
    assert!(queue.has_suspended());
    queue.resume(2.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 2);
    queue.resume(3.into(), 1.into());
    queue.resume(1.into(), 1.into());
    queue.resume(1.into(), 1.into());
    for turn in [2, 1, 3] {
        queue.turn_ended(turn.into(), 1.into());
        if turn != 3 {
            next_turn(&queue);
        }
    }
    assert_eq!((queue.load().running, queue.load().waiting), (0, 0));
    assert!(!queue.has_suspended());
}

#[test]
fn what_waits_for_the_database_holds_its_conversation() {
    let queue = WorkQueue::new(1);
    for (turn, conversation) in [(1, 1), (2, 1), (3, 2)] {
        queue.submit(job(turn, conversation));
    }
    next_turn(&queue);
    queue.turn_deferred(1.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 3);
    queue.turn_ended(3.into(), 2.into());
    assert_eq!(queue.load().waiting, 1, "2 waits for 1");
    queue.resume(1.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 1);
}

#[test]
fn a_decision_before_the_turn_is_suspended_is_not_lost() {
    let queue = WorkQueue::new(1);
    queue.submit(job(1, 1));
    next_turn(&queue);
    queue.resume(1.into(), 1.into());
    assert!(queue.turn_suspended(1.into(), 1.into()));
    assert_eq!(next_turn(&queue).0, 1);
}

#[test]
fn a_turn_that_is_signalled_to_stop_is_not_suspended() {
    let queue = WorkQueue::new(1);
    queue.submit(job(1, 1));
    queue.submit(job(2, 1));
    next_turn(&queue);
    assert_eq!(queue.withdraw(1.into(), 1.into()), Withdrawn::Signalled);
    assert!(!queue.turn_suspended(1.into(), 1.into()));
    assert_eq!(queue.load().running, 1, "its worker ends it");
    queue.turn_ended(1.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 2);
}

#[test]
fn suspended_turns_count_as_waiting_in_their_conversation() {
    let queue = WorkQueue::new(1);
    let limits = limits(9, 2);
    for turn in 1..=2 {
        queue.adopt_suspended(turn.into(), 1.into(), person(1, 1));
        assert_eq!(queue.check_suspended(1.into(), &limits).is_ok(), turn < 2);
    }
    let error = queue
        .reserve(Some(1.into()), person(1, 1), &limits)
        .err()
        .unwrap();
    assert_eq!(error.code(), base::error::Code::RateLimited);
    assert!(
        error.message().starts_with("2 messages wait") && error.message().contains("permission"),
        "{error}"
    );
    assert!(queue.reserve(Some(2.into()), person(1, 1), &limits).is_ok());
    assert_eq!(queue.withdraw(1.into(), 1.into()), Withdrawn::Taken);
    assert_eq!(queue.withdraw(1.into(), 1.into()), Withdrawn::Unknown);
    assert!(queue.reserve(Some(1.into()), person(1, 1), &limits).is_ok());
}

#[test]
fn withdrawing_finds_a_turn_wherever_it_is() {
    let queue = WorkQueue::new(1);
    for (turn, conversation) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
        queue.submit(job(turn, conversation));
    }
    let (_, cancel) = next_turn(&queue);
    assert_eq!(queue.withdraw(1.into(), 1.into()), Withdrawn::Signalled);
    assert!(cancel.is_cancelled());
    assert_eq!(queue.withdraw(2.into(), 1.into()), Withdrawn::Taken);
    assert_eq!(queue.withdraw(3.into(), 2.into()), Withdrawn::Taken);
    assert_eq!(queue.withdraw(9.into(), 9.into()), Withdrawn::Unknown);
    assert_eq!((queue.load().running, queue.load().waiting), (1, 1));
    queue.turn_ended(1.into(), 1.into());
    assert_eq!(next_turn(&queue).0, 4);
}

#[test]
fn the_queue_is_bounded_and_places_are_given_back() {
    let queue = WorkQueue::new(1);
    let limits = limits(2, 1);
    queue.submit(job(1, 1));
    next_turn(&queue);
    let place = queue
        .reserve(Some(1.into()), person(1, 1), &limits)
        .ok()
        .unwrap();
    let error = queue
        .reserve(Some(1.into()), person(1, 1), &limits)
        .err()
        .unwrap();
    assert_eq!(error.code(), base::error::Code::RateLimited);
    drop(place);
    let _one = queue
        .reserve(Some(1.into()), person(1, 1), &limits)
        .ok()
        .unwrap();
    let _two = queue.reserve(None, person(1, 1), &limits).ok().unwrap();
    assert_eq!(
        queue
            .reserve(None, person(1, 1), &limits)
            .err()
            .unwrap()
            .status(),
        503
    );
}

#[test]
fn deliveries_and_turns_leave_each_other_workers() {
    let queue = WorkQueue::new(4);
    answer(&queue, due(10));
    queue.offer((1..=9).map(due), NOW);
    queue.offer([due_to("there", 11)], NOW);
    for number in 1..=9 {
        queue.submit(job(number, number));
    }
    let (mut turns, mut deliveries) = (0, 0);
    for _ in 0..4 {
        match queue.next() {
            Some(Job::Turn(..)) => turns += 1,
            Some(Job::Outgoing(_)) => deliveries += 1,
            None => panic!("nothing to do"),
        }
    }
    assert_eq!((turns, deliveries), (2, 2));
}

#[test]
fn a_delivery_is_offered_to_one_worker_at_a_time() {
    let queue = WorkQueue::new(4);
    let one = due(1);
    queue.offer([one.clone(), one.clone()], NOW);
    assert!(matches!(queue.next(), Some(Job::Outgoing(found)) if found == one));
    queue.offer([one.clone()], NOW);
    assert_eq!(queue.load().due_deliveries, 0);
    queue.attempt_ended(&one, None, NOW);
    queue.offer([one], NOW);
    assert_eq!(queue.load().due_deliveries, 1);
}

#[test]
fn people_and_accounts_take_turns_and_so_do_the_credentials_of_one() {
    let queue = WorkQueue::new(1);
    let [page, program, other, webhook] =
        [person(1, 1), person(1, 2), person(2, 3), account("door")];
    for (requester, first) in [(program, 100), (webhook, 200), (page, 300), (other, 400)] {
        for turn in first..first + 3 {
            queue.submit(job_of(requester.clone(), turn, turn));
        }
    }
    let order: Vec<i64> = (0..12)
        .map(|_| {
            let (turn, _) = next_turn(&queue);
            queue.turn_ended(turn.into(), turn.into());
            turn
        })
        .collect();
    assert_eq!(
        order,
        [100, 200, 400, 300, 201, 401, 101, 202, 402, 301, 102, 302]
    );
}

#[test]
fn nobody_takes_every_worker() {
    let queue = WorkQueue::new(8);
    for turn in 1..=9 {
        queue.submit(job_of(account("door"), turn, turn));
    }
    for _ in 0..6 {
        next_turn(&queue);
    }
    queue.submit(job_of(person(1, 1), 10, 10));
    assert_eq!(next_turn(&queue).0, 10);
    assert_eq!((queue.load().running, queue.load().waiting), (7, 3));
}

#[test]
fn places_are_kept_for_people_and_nobody_takes_them_all() {
    let queue = WorkQueue::new(1);
    let limits = Limits {
        waiting_turns: 20,
        waiting_turns_for_people: 8,
        ..Limits::default()
    };
    let take_all = |requester: Requester| -> Vec<Reservation<'_>> {
        let reserve = || queue.reserve(None, requester.clone(), &limits).ok();
        std::iter::from_fn(reserve).collect()
    };
    let accounts = take_all(account("door"));
    assert_eq!(accounts.len(), 12);
    assert!(take_all(account("gate")).is_empty());
    let people: Vec<_> = (1..=4).map(|user| take_all(person(user, user))).collect();
    let taken: Vec<usize> = people.iter().map(Vec::len).collect();
    assert_eq!(taken, [4, 2, 1, 1]);
    drop((accounts, people));
    // Alone, one may have as many as an account; the page of the same person has others.
    let program = take_all(person(1, 1));
    assert_eq!(program.len(), 12);
    assert_eq!(take_all(person(1, 2)).len(), 4);
}

#[test]
fn a_small_queue_keeps_half_of_its_places() {
    let queue = WorkQueue::new(1);
    let limits = Limits {
        waiting_turns: 4,
        ..Limits::default()
    };
    let place = || queue.reserve(None, account("door"), &limits);
    let _two = (place().ok().unwrap(), place().ok().unwrap());
    assert_eq!(place().err().unwrap().status(), 503);
}

#[test]
fn a_receiver_that_does_not_answer_has_one_slot_and_then_none() {
    let queue = WorkQueue::new(16);
    queue.offer((1..=99).map(|id| due_to("silent", id)), NOW);
    assert_eq!(queue.load().due_deliveries, 64, "the rest waits on disk");
    let first = begun(&queue);
    assert_eq!(first.len(), 1, "it has never answered");
    queue.offer([due_to("other", 100)], NOW);
    assert_eq!(begun(&queue), [due_to("other", 100)]);
    assert!(queue.attempt_ended(&first[0], Some(Reach::Silent), NOW));
    assert!(begun(&queue).is_empty());
    let later = NOW.plus(Duration::from_secs(5));
    queue.offer([], later);
    let second = begun(&queue);
    assert_eq!(second.len(), 1);
    assert!(!queue.attempt_ended(&second[0], Some(Reach::Silent), later));
    let last = later.plus(Duration::from_secs(5));
    queue.offer([], last);
    let third = begun(&queue);
    assert!(!queue.attempt_ended(&third[0], Some(Reach::Answered), last));
    assert_eq!(begun(&queue).len(), 4, "of 8 slots, one is another's");
}

#[test]
fn receivers_leave_each_other_slots() {
    let queue = WorkQueue::new(16);
    for receiver in ["a", "b", "c"] {
        answer(&queue, due_to(receiver, 1));
    }
    for (receiver, first) in [("a", 100), ("b", 200), ("c", 300)] {
        queue.offer((first..first + 9).map(|id| due_to(receiver, id)), NOW);
        begun(&queue);
    }
    queue.offer([due_to("d", 400)], NOW);
    assert_eq!(
        begun(&queue),
        [due_to("d", 400)],
        "4, 2 and 1 of 8 are taken"
    );
}

#[test]
fn receivers_that_are_new_leave_slots_to_those_that_answer() {
    let queue = WorkQueue::new(16);
    answer(&queue, due_to("known", 1));
    queue.offer((2..=20).map(|id| due_to(&format!("{id}"), id)), NOW);
    assert_eq!(begun(&queue).len(), 6);
    queue.offer([due_to("known", 1)], NOW);
    assert_eq!(begun(&queue), [due_to("known", 1)]);
}

#[test]
fn silent_receivers_leave_half_of_the_slots() {
    let queue = WorkQueue::new(8);
    let silent: Vec<Due> = (1..=9).map(|id| due_to(&format!("{id}"), id)).collect();
    for due in &silent {
        queue.offer([due.clone()], NOW);
        assert_eq!(begun(&queue).len(), 1);
        queue.attempt_ended(due, Some(Reach::Silent), NOW);
    }
    queue.offer(silent, NOW.plus(Duration::from_secs(9)));
    assert_eq!(begun(&queue).len(), 2);
}

#[test]
fn stopping_ends_the_wait_of_every_worker_and_signals_the_turns() {
    let queue = WorkQueue::new(2);
    queue.submit(job(1, 1));
    let (_, cancel) = next_turn(&queue);
    queue.stop(Duration::from_millis(1));
    assert!(queue.next().is_none() && cancel.is_cancelled());
}

#[cfg(feature = "shuttle")]
mod interleavings;

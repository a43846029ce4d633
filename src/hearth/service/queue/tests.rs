use super::*;

fn job(turn: i64, conversation: i64) -> TurnJob {
    TurnJob {
        turn: turn.into(),
        conversation: conversation.into(),
        fresh: None,
    }
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
        queue.adopt_suspended(turn.into(), 1.into());
        assert_eq!(queue.check_suspended(1.into(), &limits).is_ok(), turn < 2);
    }
    let error = queue.reserve(Some(1.into()), &limits).err().unwrap();
    assert_eq!(error.code(), base::error::Code::RateLimited);
    assert!(
        error.message().starts_with("2 messages wait") && error.message().contains("permission"),
        "{error}"
    );
    assert!(queue.reserve(Some(2.into()), &limits).is_ok());
    assert_eq!(queue.withdraw(1.into(), 1.into()), Withdrawn::Taken);
    assert_eq!(queue.withdraw(1.into(), 1.into()), Withdrawn::Unknown);
    assert!(queue.reserve(Some(1.into()), &limits).is_ok());
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
    let place = queue.reserve(Some(1.into()), &limits).ok().unwrap();
    let error = queue.reserve(Some(1.into()), &limits).err().unwrap();
    assert_eq!(error.code(), base::error::Code::RateLimited);
    drop(place);
    let _one = queue.reserve(Some(1.into()), &limits).ok().unwrap();
    let _two = queue.reserve(None, &limits).ok().unwrap();
    assert_eq!(queue.reserve(None, &limits).err().unwrap().status(), 503);
}

#[test]
fn deliveries_and_turns_leave_each_other_workers() {
    let queue = WorkQueue::new(4);
    queue.offer((1..=9).map(|id| Outgoing::Callback(id.into())));
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
    let one = Outgoing::Callback(1.into());
    queue.offer([one, one]);
    assert!(matches!(queue.next(), Some(Job::Outgoing(found)) if found == one));
    queue.offer([one]);
    assert!(queue.lock().due.is_empty());
    queue.attempt_ended(one);
    queue.offer([one]);
    assert_eq!(queue.lock().due.len(), 1);
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

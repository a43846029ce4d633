use super::*;

fn job(turn: i64, conversation: i64) -> TurnJob {
    TurnJob {
        turn: turn.into(),
        conversation: conversation.into(),
        fresh: None,
    }
}

fn next_turn(schedule: &Schedule) -> (i64, Cancel) {
    match schedule.next() {
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
    let schedule = Schedule::new(8);
    for (turn, conversation) in [(1, 1), (2, 1), (3, 2)] {
        schedule.submit(job(turn, conversation));
    }
    assert_eq!(next_turn(&schedule).0, 1);
    assert_eq!(next_turn(&schedule).0, 3, "2 waits for 1");
    schedule.turn_ended(1.into(), 1.into());
    assert_eq!(next_turn(&schedule).0, 2);
    assert_eq!(schedule.load(), (2, 0));
}

#[test]
fn a_suspended_turn_holds_its_conversation_and_no_worker() {
    let schedule = Schedule::new(1);
    schedule.submit(job(1, 1));
    schedule.submit(job(2, 1));
    schedule.submit(job(3, 2));
    next_turn(&schedule);
    schedule.turn_suspended(1.into(), 1.into());
    assert_eq!(next_turn(&schedule).0, 3);
    schedule.turn_ended(3.into(), 2.into());
    schedule.resume(1.into(), 1.into());
    assert_eq!(next_turn(&schedule).0, 1);
}

#[test]
fn a_decision_before_the_turn_is_put_away_is_not_lost() {
    let schedule = Schedule::new(1);
    schedule.submit(job(1, 1));
    next_turn(&schedule);
    schedule.resume(1.into(), 1.into());
    schedule.turn_suspended(1.into(), 1.into());
    assert_eq!(next_turn(&schedule).0, 1);
}

#[test]
fn withdrawing_finds_a_turn_wherever_it_is() {
    let schedule = Schedule::new(1);
    for (turn, conversation) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
        schedule.submit(job(turn, conversation));
    }
    let (_, cancel) = next_turn(&schedule);
    assert_eq!(schedule.withdraw(1.into(), 1.into()), Withdrawn::Told);
    assert!(cancel.is_cancelled());
    assert_eq!(schedule.withdraw(2.into(), 1.into()), Withdrawn::Taken);
    assert_eq!(schedule.withdraw(3.into(), 2.into()), Withdrawn::Taken);
    assert_eq!(schedule.withdraw(9.into(), 9.into()), Withdrawn::Unknown);
    assert_eq!(schedule.load(), (1, 1));
    schedule.turn_ended(1.into(), 1.into());
    assert_eq!(next_turn(&schedule).0, 4);
}

#[test]
fn the_queue_is_bounded_and_places_are_given_back() {
    let schedule = Schedule::new(1);
    let limits = limits(2, 1);
    schedule.submit(job(1, 1));
    next_turn(&schedule);
    let place = schedule.reserve(Some(1.into()), &limits).ok().unwrap();
    let error = schedule.reserve(Some(1.into()), &limits).err().unwrap();
    assert_eq!(error.code(), crate::error::Code::RateLimited);
    drop(place);
    let _one = schedule.reserve(Some(1.into()), &limits).ok().unwrap();
    let _two = schedule.reserve(None, &limits).ok().unwrap();
    assert_eq!(schedule.reserve(None, &limits).err().unwrap().status(), 503);
}

#[test]
fn deliveries_and_turns_leave_each_other_workers() {
    let schedule = Schedule::new(4);
    schedule.offer_deliveries((1..=9).map(DeliveryId::from));
    for number in 1..=9 {
        schedule.submit(job(number, number));
    }
    let (mut turns, mut deliveries) = (0, 0);
    for _ in 0..4 {
        match schedule.next() {
            Some(Job::Turn(..)) => turns += 1,
            Some(Job::Deliver(_)) => deliveries += 1,
            None => panic!("nothing to do"),
        }
    }
    assert_eq!((turns, deliveries), (2, 2));
}

#[test]
fn a_delivery_is_offered_to_one_worker_at_a_time() {
    let schedule = Schedule::new(4);
    let one = DeliveryId::from(1);
    schedule.offer_deliveries([one, one]);
    assert!(matches!(schedule.next(), Some(Job::Deliver(id)) if id == one));
    schedule.offer_deliveries([one]);
    assert!(schedule.lock().due.is_empty());
    schedule.delivery_ended(one);
    schedule.offer_deliveries([one]);
    assert_eq!(schedule.lock().due.len(), 1);
}

#[test]
fn stopping_ends_the_wait_of_every_worker_and_tells_the_turns() {
    let schedule = Schedule::new(2);
    schedule.submit(job(1, 1));
    let (_, cancel) = next_turn(&schedule);
    schedule.stop(Duration::from_millis(1));
    assert!(schedule.next().is_none() && cancel.is_cancelled());
}

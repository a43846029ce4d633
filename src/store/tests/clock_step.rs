//! What waits when the clock is set.

use std::time::Duration;

use crate::testing::*;
use base::calendar::Timing;
use base::clock::Timestamp;
use base::ids::DeliveryId;

const DAY: i64 = 86_400_000;
const HOUR: i64 = 3_600_000;

/// A callback that waits an hour for its second attempt.
fn retried(store: &Store, name: &str) -> DeliveryId {
    let turn = begin(store, named(name), "ring");
    let finished = store.finish_turn(
        turn.id,
        done("yes?"),
        Usage::default(),
        "m",
        Some(callback("{}")),
        Vec::new(),
    );
    let id = finished.unwrap().into_inner().delivery.unwrap().id;
    let next_at = store.inner.clock.now().shifted(HOUR);
    let error = "refused".into();
    store
        .record_attempt(id, Attempt::Retry { error, next_at })
        .unwrap();
    id
}

fn assert_near(time: Timestamp, expected: Timestamp) {
    let apart = (time.as_millis() - expected.as_millis()).abs();
    assert!(apart < HOUR / 2, "{time}, not about {expected}");
}

fn schedule(store: &Store, prompt: &str, is_wait: bool) -> Schedule {
    let schedule = NewSchedule::new(
        prompt,
        Some(Timing {
            is_wait,
            ..Timing::once(store.inner.clock.now().shifted(HOUR))
        }),
    );
    store.add_schedule(&all(), schedule).unwrap()
}

#[test]
fn what_waits_waits_as_long_as_before() {
    for step in [DAY, -DAY] {
        let dir = TemporaryDirectory::new();
        let clock = Clock::system();
        clock.run_evenly();
        let store = open_with(&dir, &clock);
        let old = retried(&store, "old");
        let early = schedule(&store, "old", true);
        store.close();
        let store = open_with(&dir, &clock);
        let new = retried(&store, "new");
        let wait = schedule(&store, "in an hour", true);
        let time = schedule(&store, "at six", false);
        let turn = begin(&store, Target::New, "work");
        let expires_at = clock.now().shifted(HOUR);
        let asked = vec![question("shell")];
        store
            .suspend_turn(turn.id, vec![], turn.audience_id, asked, expires_at)
            .unwrap();
        let user = store.add_user("ann", UserRole::User, "hash").unwrap();
        let token = store
            .add_token(NewToken {
                expires_at: Some(clock.now().shifted(HOUR)),
                ..NewToken::session(user.id, UserRole::User, [1; 32])
            })
            .unwrap();
        store.begin_turn(keyed("a", "b", 0, Target::New)).unwrap();

        clock.set_by(step);
        let before = clock.now();
        store.follow_clock(clock.step().unwrap()).unwrap();
        assert_near(clock.now(), before.shifted(step));
        let in_an_hour = clock.now().shifted(HOUR);
        assert_near(
            store.seen(&all()).delivery(new).unwrap().next_at,
            in_an_hour,
        );
        let next_at = |id| {
            store
                .seen(&all())
                .schedule(id)
                .unwrap()
                .timing
                .unwrap()
                .next_at
        };
        assert_near(next_at(wait.id), in_an_hour);
        assert_near(next_at(time.id), before.shifted(HOUR));
        let approval = store
            .seen(&Viewer::server())
            .approvals_of(turn.id)
            .unwrap()
            .remove(0);
        assert_near(approval.expires_at, in_an_hour);
        let expires_at = store.tokens(true).unwrap()[0].expires_at;
        assert_near(expires_at.unwrap(), in_an_hour);
        assert!(store.token_role(token.id).unwrap().is_some());
        let again = store.begin_turn(keyed("a", "b", 0, Target::New)).unwrap();
        assert!(matches!(*again, Begun::Repeat(_)), "the key holds a day");
        clock.advance(Duration::from_secs(25 * 3600));
        let later = store.begin_turn(keyed("a", "b", 0, Target::New)).unwrap();
        assert!(matches!(*later, Begun::New { .. }), "and no longer");

        // What an earlier run stored does not wait longer, but may have come due:
        // that run's clock may have been right.
        let of_earlier = match step {
            ..0 => in_an_hour,
            _ => before.shifted(HOUR),
        };
        assert_near(
            store.seen(&all()).delivery(old).unwrap().next_at,
            of_earlier,
        );
        assert_near(next_at(early.id), of_earlier);
    }
}

#[test]
fn a_link_of_an_earlier_run_works_no_longer_than_it_said() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    clock.run_evenly();
    let store = open_with(&dir, &clock);
    let expires_at = clock.now().shifted(DAY);
    let link = crate::NewInvitation {
        fingerprint: [1; 32],
        created_by: "ann".to_owned(),
        expires_at,
    };
    store.invite("bob", UserRole::User, link).unwrap();
    store.close();
    let store = open_with(&dir, &clock);
    clock.set_by(HOUR);
    store.follow_clock(clock.step().unwrap()).unwrap();
    assert_eq!(store.invitations().unwrap()[0].expires_at, expires_at);
}

#[test]
fn at_a_start_with_a_clock_in_the_past_callbacks_wait_as_long_as_before() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let tried = retried(&store, "tried");
    let turn = begin(&store, named("new"), "ring");
    let delayed = NewDelivery {
        delay: Duration::from_secs(60),
        ..callback("{}")
    };
    let finished = store.finish_turn(
        turn.id,
        done("x"),
        Usage::default(),
        "m",
        Some(delayed),
        Vec::new(),
    );
    let new = finished.unwrap().into_inner().delivery.unwrap().id;
    store.close();
    clock.set_by(-DAY);
    for _ in 0..2 {
        let store = open_with(&dir, &clock);
        store.settle(Vec::new()).unwrap();
        assert_near(
            store.seen(&all()).delivery(tried).unwrap().next_at,
            clock.now().shifted(HOUR),
        );
        assert!(store.seen(&all()).delivery(new).unwrap().next_at <= clock.now());
        store.close();
    }
}

#[test]
fn conversations_of_a_clock_that_was_ahead_go_in_time() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    clock.run_evenly();
    clock.follow(400 * DAY);
    let store = open_with(&dir, &clock);
    conversation(&store, "from the future");
    store.follow_clock(-400 * DAY).unwrap();
    let days = |days: u64| Duration::from_secs(days * 86_400);
    clock.advance(days(20));
    conversation(&store, "from today");
    clock.advance(days(11));
    let delete = || store.delete_idle_conversation(days(30)).unwrap();
    assert_ne!(delete(), Deleted::Nothing);
    assert_eq!(delete(), Deleted::Nothing);
}

#[test]
fn a_conversation_keeps_its_time_when_the_clock_was_wrong_for_a_moment() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    clock.run_evenly();
    let store = open_with(&dir, &clock);
    let follow = |step| {
        clock.set_by(step);
        store.follow_clock(clock.step().unwrap()).unwrap();
    };
    let turn = begin(&store, Target::New, "hello");
    clock.advance(Duration::from_secs(3600));
    finish(&store, &turn, "hello");
    let (id, other) = (turn.conversation_id, conversation(&store, "wrong"));
    let before = store.seen(&all()).conversation(id).unwrap();
    assert!(before.updated_at > before.created_at);
    clock.advance(Duration::from_secs(1));

    for step in [-DAY, DAY] {
        follow(step);
        let meanwhile = [id, other].map(|id| store.seen(&all()).conversation(id).unwrap());
        let is_in_order = |one: &Conversation| one.updated_at >= one.created_at;
        assert!(meanwhile.iter().all(is_in_order), "{meanwhile:?}");
        begin(&store, Target::Existing(other), "during it");
        follow(-step);
        let after = store.seen(&all()).conversation(id).unwrap();
        assert_eq!(after.updated_at, before.updated_at, "set by {step}");
        assert!(is_in_order(
            &store.seen(&all()).conversation(other).unwrap()
        ));
    }
}

//! Schedules: what is due, and that a run is one commit.

use std::time::Duration;

use crate::testing::*;
use base::calendar::Timing;
use base::clock::{Clock, Timestamp};
use base::error::Code;

fn new(prompt: &str, timing: Timing) -> NewSchedule {
    NewSchedule {
        owner: Some("ann".to_owned()),
        ..NewSchedule::new(prompt, Some(timing))
    }
}

fn once(next_at: Timestamp) -> Timing {
    Timing::once(next_at)
}

fn daily(next_at: Timestamp) -> Timing {
    let cron = "0 8 * * *".parse().unwrap();
    Timing {
        cron: Some(cron),
        ..Timing::once(next_at)
    }
}

fn in_seconds(seconds: u64) -> Timestamp {
    Clock::system().now().plus(Duration::from_secs(seconds))
}

#[test]
fn schedules_are_kept_in_the_order_of_their_next_times() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    assert_eq!(store.next_schedule_at().unwrap().uncommitted(), None);
    let (sooner, later) = (in_seconds(60), in_seconds(90));
    let second = store
        .add_schedule(&all(), new(" daily ", daily(later)))
        .unwrap();
    let first = store
        .add_schedule(&all(), new("once", once(sooner)))
        .unwrap();
    assert_eq!(second.text, "daily");
    store.close();
    let store = open(&dir);
    let ids: Vec<_> = store
        .seen(&all())
        .schedules()
        .unwrap()
        .iter()
        .map(|s| s.id)
        .collect();
    assert_eq!(ids, [first.id, second.id]);
    let found = store.seen(&all()).schedule(second.id).unwrap();
    assert_eq!((found.timing, found.last_at), (second.timing, None));
    assert_eq!(
        store.next_schedule_at().unwrap().uncommitted(),
        Some(sooner)
    );
    assert!(
        store
            .due_schedules(in_seconds(0))
            .unwrap()
            .uncommitted()
            .is_empty()
    );
    assert_eq!(store.due_schedules(sooner).unwrap().uncommitted().len(), 1);
    assert_eq!(store.due_schedules(later).unwrap().uncommitted().len(), 2);
    store.delete_schedule(&all(), first.id).unwrap();
    let again = store.delete_schedule(&all(), first.id).unwrap_err();
    assert_eq!(again.code(), Code::NotFound);
    assert!(
        store
            .add_schedule(&all(), new("next", once(later)))
            .unwrap()
            .id
            > second.id
    );
}

#[test]
fn schedules_of_a_guest_do_not_run() {
    let store = TestStore::new();
    let mia = store.add_user("mia", UserRole::User, "-").unwrap().id;
    let of_mia = || NewSchedule {
        owner_id: Some(mia),
        audience: Audience::Private,
        ..new("water", daily(in_seconds(0)))
    };
    let paused = |id| store.seen(&all()).schedule(id).unwrap().is_paused;
    let run = |known: Schedule| {
        let begun = store.run_schedule(known, "water!".into(), None);
        assert!(begun.unwrap().is_none());
    };
    let before = store.add_schedule(&all(), of_mia()).unwrap();
    let others = store
        .add_schedule(&all(), new("feed", daily(in_seconds(0))))
        .unwrap();
    store.set_role(mia, UserRole::Viewer).unwrap();
    assert!(paused(before.id) && !paused(others.id));
    let resumed = store.pause_schedule(&all(), before.id, false, Some(in_seconds(0)));
    assert_eq!(resumed.unwrap_err().code(), Code::InvalidRequest);
    run(before.clone());
    // One that an older version left running.
    let left = store.add_schedule(&all(), of_mia()).unwrap();
    assert!(!paused(left.id));
    run(left.clone());
    assert!(paused(left.id));

    // It is theirs to delete, and to resume once they are a guest no more.
    let guest = Viewer::person(mia, UserRole::Viewer);
    store.delete_schedule(&guest, left.id).unwrap();
    store.set_role(mia, UserRole::User).unwrap();
    let resumed = store.pause_schedule(&all(), before.id, false, Some(in_seconds(0)));
    assert!(!resumed.unwrap().is_paused);
}

#[test]
fn a_run_begins_a_turn_and_moves_the_schedule_on() {
    let store = TestStore::new();
    let due = in_seconds(0);
    let schedule = store
        .add_schedule(&all(), new("water", daily(due)))
        .unwrap();
    let next = in_seconds(86_400);
    let run = |known: &Schedule| store.run_schedule(known.clone(), "water!".into(), Some(next));
    let begun = run(&schedule).unwrap().unwrap();
    assert_eq!(begun.turn().channel, "schedule");
    let message = store.seen(&all()).message(begun.turn().message_id).unwrap();
    assert_eq!(message.content, "water!");
    assert_eq!(message.speaker.as_deref(), Some("ann"));
    let moved = store.seen(&all()).schedule(schedule.id).unwrap();
    assert_eq!(moved.timing.as_ref().unwrap().next_at, next);
    assert!(moved.last_at.is_some());
    assert_eq!(moved.conversation_id, Some(begun.turn().conversation_id));
    // Running an outdated schedule does nothing.
    assert!(run(&schedule).unwrap().is_none());
    assert_eq!(store.unfinished_turns().unwrap().uncommitted().len(), 1);
    // The next run continues the conversation of the first.
    finish(&store, begun.turn(), "done");
    let second = run(&moved).unwrap().unwrap();
    assert_eq!(second.turn().conversation_id, begun.turn().conversation_id);
}

#[test]
fn one_that_runs_once_stays_for_a_week_with_its_run() {
    let (dir, clock) = (TemporaryDirectory::new(), Clock::system());
    let store = open_with(&dir, &clock);
    let conversation = conversation(&store, "hello");
    let mut asked = new("bins", once(in_seconds(0)));
    asked.conversation_id = Some(conversation);
    let schedule = store.add_schedule(&all(), asked).unwrap();
    let run = store.run_schedule(schedule.clone(), "bins".into(), None);
    assert_eq!(run.unwrap().unwrap().turn().conversation_id, conversation);
    let id = schedule.id;
    let over = store.seen(&all()).schedule(id).unwrap();
    assert!(over.timing.is_none() && over.told_at.is_none());
    assert_eq!(store.seen(&all()).runs_of(id).unwrap().len(), 1);
    let again = store.run_schedule(schedule, "bins".into(), None).unwrap();
    assert!(again.is_none());
    // It counts towards no limit, and no more than twenty are kept.
    for _ in 0..25 {
        let limited = NewSchedule {
            most: 1,
            ..new("post", once(in_seconds(0)))
        };
        let schedule = store.add_schedule(&all(), limited).unwrap();
        store.run_schedule(schedule, "post".into(), None).unwrap();
    }
    assert_eq!(store.seen(&all()).schedules().unwrap().len(), 20);
    assert!(store.seen(&all()).schedule(id).is_err());
    clock.advance(Duration::from_secs(8 * 24 * 60 * 60));
    store.purge().unwrap();
    assert!(store.seen(&all()).schedules().unwrap().is_empty());
}

#[test]
fn a_paused_one_does_not_run_and_one_without_its_conversation_does() {
    let store = TestStore::new();
    let conversation = conversation(&store, "hello");
    let due = in_seconds(0);
    let mut asked = new("bins", daily(due));
    asked.conversation_id = Some(conversation);
    let schedule = store.add_schedule(&all(), asked).unwrap();
    store
        .pause_schedule(&all(), schedule.id, true, Some(due))
        .unwrap();
    assert!(
        store
            .due_schedules(in_seconds(9))
            .unwrap()
            .uncommitted()
            .is_empty()
    );
    assert_eq!(store.next_schedule_at().unwrap().uncommitted(), None);
    let run = store.run_schedule(schedule.clone(), "bins".into(), None);
    assert!(run.unwrap().is_none());
    store.delete_conversation(&all(), conversation).unwrap();
    let resumed = store
        .pause_schedule(&all(), schedule.id, false, Some(due))
        .unwrap();
    assert_eq!((resumed.is_paused, resumed.conversation_id), (false, None));
    let run = store.run_schedule(resumed, "bins".into(), None).unwrap();
    assert_ne!(run.unwrap().turn().conversation_id, conversation);
}

#[test]
fn what_cannot_be_is_refused() {
    let store = TestStore::new();
    let refused = |prompt: &str, conversation| {
        let mut asked = new(prompt, once(in_seconds(60)));
        asked.conversation_id = conversation;
        store.add_schedule(&all(), asked).unwrap_err()
    };
    assert_eq!(refused(" \n", None).code(), Code::InvalidRequest);
    assert_eq!(
        refused(&"x".repeat(4_001), None).code(),
        Code::InvalidRequest
    );
    let nowhere = Some(base::ids::ConversationId::from(7));
    assert_eq!(refused("x", nowhere).code(), Code::NotFound);
    let full = |prompt: &str| NewSchedule {
        most: 100,
        ..new(prompt, once(in_seconds(60)))
    };
    for _ in 0..100 {
        store.add_schedule(&all(), full("x")).unwrap();
    }
    let one_more = store.add_schedule(&all(), full("x")).unwrap_err();
    assert!(one_more.message().contains("100 schedules"), "{one_more}");
    // Those of somebody else count for themselves.
    let mia = store.add_user("mia", UserRole::User, "-").unwrap().id;
    let of_mia = NewSchedule {
        owner_id: Some(mia),
        ..full("x")
    };
    store.add_schedule(&all(), of_mia).unwrap();
}

#[test]
fn a_person_s_schedules_go_with_the_person() {
    let store = TestStore::new();
    store.add_user("root", UserRole::Admin, "-").unwrap();
    let ann = store.add_user("ann", UserRole::User, "-").unwrap();
    let mut hers = new("hers", once(in_seconds(60)));
    hers.owner_id = Some(ann.id);
    store.add_schedule(&all(), hers).unwrap();
    let mut of_others = new("of others", once(in_seconds(60)));
    of_others.channel = "webhook:ci".to_owned();
    store.add_schedule(&all(), of_others).unwrap();
    store.remove_user(ann.id, None).unwrap();
    let left = store.seen(&all()).schedules().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].text, "of others");
}

#[test]
fn no_trigger_runs_a_routine_more_than_thirty_times_an_hour() {
    let store = TestStore::new();
    let ann = store.add_user("ann", UserRole::User, "-").unwrap().id;
    let calendar = store
        .add_calendar(NewCalendar {
            name: "Family".to_owned(),
            url: "https://example.test/family.ics".to_owned(),
            username: None,
            password: None,
            owner_id: ann,
            audience: Audience::Household,
            is_read_only: true,
            may_be_local: false,
            refresh_minutes: 60,
        })
        .unwrap();
    let soon = in_seconds(1_800);
    let bring_list = || {
        let add = vec!["milk".to_owned()];
        let change = ListChange {
            add,
            ..ListChange::default()
        };
        store.update_list(&all(), "shop", change).unwrap();
    };
    let bring_message = || {
        let household = Audience::Household;
        let text = "Somebody is at the door".to_owned();
        let new = NewTurn::new(all(), named("front"), household, "webhook:door", text);
        store.begin_turn(new).unwrap();
    };
    let bring_event = || {
        let event = EventTime {
            uid: "choir".to_owned(),
            starts_at: soon,
            ends_at: soon.plus(Duration::from_secs(60)),
            title: "Choir".to_owned(),
            ..EventTime::default()
        };
        store.event_changed(calendar, "choir", vec![event]).unwrap();
    };
    let triggers: [(&str, &dyn Fn()); 3] = [
        ("list shop", &bring_list),
        ("webhook door", &bring_message),
        ("event 0", &bring_event),
    ];
    for (trigger, bring) in triggers {
        let routine = NewSchedule {
            owner_id: Some(ann),
            trigger: Some(trigger.parse().unwrap()),
            ..NewSchedule::new("What is new?", None)
        };
        let id = store.add_schedule(&all(), routine).unwrap().id;
        let known = || store.seen(&all()).schedule(id).unwrap();
        let next_at = || known().timing.map(|timing| timing.next_at);
        for run in 0..30 {
            bring();
            assert!(next_at().unwrap() <= soon, "{trigger}: run {run} may come");
            let begun = store.run_schedule(known(), "What is new?".to_owned(), None);
            assert!(begun.unwrap().is_some(), "{trigger}: run {run}");
        }
        bring();
        let runs = store.seen(&all()).runs_of(id).unwrap();
        let hour = Duration::from_secs(3_600);
        assert_eq!(runs.len(), 30, "{trigger}");
        assert_eq!(next_at(), Some(runs[29].at.plus(hour)), "{trigger}");
    }
}

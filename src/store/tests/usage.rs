//! Token usage.

use std::time::Duration;

use crate::testing::*;

fn used(input: u64, output: u64, cached: u64) -> Usage {
    Usage {
        input,
        output,
        cached,
    }
}

#[test]
fn usage_is_kept_by_turn_day_and_month() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let first = begin(&store, Target::New, "one");
    store.note_usage(first.id, used(100, 10, 50), "a", Purpose::Reply);
    store
        .finish_turn(
            first.id,
            done("hi"),
            used(200, 20, 0),
            "b",
            None,
            Vec::new(),
        )
        .unwrap();
    let turn = store.seen(&all()).turn(first.id).unwrap();
    assert_eq!(turn.usage, used(300, 30, 50));
    assert_eq!(turn.model.as_deref(), Some("b"));
    assert_eq!(
        store
            .seen(&Viewer::server())
            .tokens_of_month(clock.now())
            .unwrap(),
        330
    );

    clock.advance(Duration::from_secs(40 * 24 * 3600));
    assert_eq!(
        store
            .seen(&Viewer::server())
            .tokens_of_month(clock.now())
            .unwrap(),
        0
    );
    let second = begin(&store, Target::New, "two");
    store
        .finish_turn(second.id, done("hi"), used(1, 2, 0), "b", None, Vec::new())
        .unwrap();
    assert_eq!(
        store
            .seen(&Viewer::server())
            .tokens_of_month(clock.now())
            .unwrap(),
        3
    );
    for period in [Period::Day, Period::Month] {
        let rows = store.usage(period, UsageBy::Period, 10).unwrap();
        let seen: Vec<(&str, u64, Usage)> = rows
            .iter()
            .map(|row| (row.model.as_str(), row.turns, row.usage))
            .collect();
        assert_eq!(
            seen,
            [
                ("b", 1, used(1, 2, 0)),
                ("a", 0, used(100, 10, 50)),
                ("b", 1, used(200, 20, 0)),
            ]
        );
        assert_eq!(
            rows[0].period.len(),
            if period == Period::Day { 10 } else { 7 }
        );
        assert_eq!(store.usage(period, UsageBy::Period, 1).unwrap().len(), 1);
    }
    store.close();
}

#[test]
fn usage_is_summed_by_person_and_purpose() {
    let dir = TemporaryDirectory::new();
    let store = open_with(&dir, &Clock::system());
    let ann = store.add_user("ann", UserRole::User, "hash").unwrap();
    let turn = begin(&store, Target::New, "one");
    store
        .finish_turn(
            turn.id,
            done("hi"),
            used(200, 20, 100),
            "large",
            None,
            Vec::new(),
        )
        .unwrap();
    store.note_usage(turn.id, used(50, 5, 0), "small", Purpose::Title);
    store.note_usage_of(ann.id, used(7, 0, 0), "vectors", Purpose::Embedding);
    store.flush().unwrap();
    let rows = store.usage(Period::Month, UsageBy::Purpose, 10).unwrap();
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.person.as_deref(),
                row.purpose.as_deref(),
                &*row.model,
                row.usage,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (None, Some("reply"), "large", used(200, 20, 100)),
            (None, Some("title"), "small", used(50, 5, 0)),
            (Some("ann"), Some("embedding"), "vectors", used(7, 0, 0)),
        ]
    );
    // A question beside the conversation is not what answered.
    let turn = store.seen(&all()).turn(turn.id).unwrap();
    assert_eq!(turn.model.as_deref(), Some("large"));
}

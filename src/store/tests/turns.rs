//! Turns: beginning, steps, ends, idempotency.

use std::time::Duration;

use crate::testing::*;
use base::error::Code;

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        provider_id: None,
        tool: "clock".to_owned(),
        arguments: "{\"broken".to_owned(),
        extra: None,
    }
}

fn steps() -> Vec<Step> {
    vec![
        Step::Reply {
            text: "let me see".to_owned(),
            calls: vec![call("1"), call("2")],
            extra: Some(serde_json::json!({"signature": "x"})),
            result_chars: None,
        },
        Step::Started {
            call_id: "1".to_owned(),
        },
        Step::Result {
            call_id: "1".to_owned(),
            ok: false,
            content: "no".to_owned(),
            outside: true,
            private: true,
            memories: Vec::new(),
            files: Vec::new(),
            page: None,
        },
    ]
}

#[test]
fn a_key_runs_its_request_once_within_24_hours() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let first = match store
        .begin_turn(keyed("user:1", "a", 1, Target::New))
        .unwrap()
        .into_inner()
    {
        Begun::New { turn, .. } => turn,
        Begun::Repeat(_) | Begun::Again(_) => panic!("the first is new"),
    };
    // (hours later, key, request, what comes of it)
    for (later, key, request, expected) in [
        (0, "a", 1, "repeat"),
        (23, "a", 1, "repeat"),
        (0, "a", 2, "422"),
        (0, "b", 2, "new"),
        (1, "a", 2, "new"),
        (0, "a", 1, "422"),
        (23, "b", 2, "new"),
    ] {
        clock.advance(hours(later));
        let begun = store.begin_turn(keyed("user:1", key, request, Target::New));
        let outcome = match begun.map(Durable::into_inner) {
            Ok(Begun::New { .. }) => "new",
            Ok(Begun::Repeat(turn) | Begun::Again(turn)) => {
                assert_eq!(turn.id, first.id);
                "repeat"
            }
            Err(error) => {
                assert_eq!((error.code(), error.status()), (Code::InvalidRequest, 422));
                "422"
            }
        };
        assert_eq!(outcome, expected, "{key} {request} {later} h later");
    }
    let other_scope = keyed("webhook:door", "a", 9, Target::New);
    assert!(matches!(
        store.begin_turn(other_scope).map(Durable::into_inner),
        Ok(Begun::New { .. })
    ));
}

#[test]
fn a_refused_request_does_not_use_up_its_key() {
    let store = TestStore::new();
    let nowhere = Target::Existing(base::ids::ConversationId::from(7));
    let error = store
        .begin_turn(keyed("user:1", "a", 1, nowhere))
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(matches!(
        store
            .begin_turn(keyed("user:1", "a", 1, Target::New))
            .map(Durable::into_inner),
        Ok(Begun::New { .. })
    ));
}

#[test]
fn a_turn_goes_from_its_message_to_its_reply() {
    let store = TestStore::new();
    let turn = begin(&store, Target::New, "  \n what time is it?\nplease");
    assert_eq!(turn.state, TurnState::Queued);
    let conversation = store
        .seen(&all())
        .conversation(turn.conversation_id)
        .unwrap();
    assert_eq!(conversation.title, "what time is it?");
    assert_eq!(conversation.latest, turn.message_id);

    store.mark_running(turn.id, turn.created_at);
    store
        .record_steps(turn.id, steps(), turn.audience_id)
        .unwrap();
    store.mark_running(turn.id, turn.created_at.plus(Duration::from_secs(9)));
    store.flush().unwrap();
    let running = store.seen(&all()).turn(turn.id).unwrap();
    assert_eq!(running.state, TurnState::Running);
    assert_eq!(running.started_at, Some(turn.created_at), "the first one");
    assert_eq!(
        store.seen(&Viewer::server()).steps(turn.id).unwrap(),
        steps()
    );

    let usage = Usage {
        input: 10,
        output: 20,
        cached: 5,
    };
    let finished = store.finish_turn(turn.id, done("noon"), usage, "m", None, Vec::new());
    let reply = finished.unwrap().into_inner().reply.unwrap();
    assert_eq!(reply.role, Role::Assistant);
    let stored = store.seen(&all()).turn(turn.id).unwrap();
    assert_eq!(stored.state, TurnState::Done);
    assert_eq!(stored.reply_id, Some(reply.id));
    let conversation = store
        .seen(&all())
        .conversation(turn.conversation_id)
        .unwrap();
    assert_eq!(conversation.latest, reply.id);
    assert_eq!(conversation.message_count, 2);
    assert_eq!(conversation.updated_at, reply.created_at);
    assert!(store.unfinished_turns().unwrap().uncommitted().is_empty());
    assert_eq!(store.seen(&all()).counts().unwrap().usage, usage);
}

#[test]
fn an_ended_turn_takes_nothing_more() {
    let store = TestStore::new();
    let failure = Error::server("the model is down", "detail")
        .with_status(504)
        .with_retry_after(7);
    for end in [
        done("hi"),
        TurnEnd::failed(failure.clone()),
        TurnEnd::Cancelled {
            said: String::new(),
        },
    ] {
        let turn = begin(&store, Target::New, "hello");
        testing::end(&store, &turn, end.clone());
        for error in [
            store
                .finish_turn(
                    turn.id,
                    end.clone(),
                    Usage::default(),
                    "m",
                    None,
                    Vec::new(),
                )
                .unwrap_err(),
            store
                .record_steps(turn.id, steps(), turn.audience_id)
                .unwrap_err(),
            store
                .suspend_turn(turn.id, vec![], turn.audience_id, vec![], turn.created_at)
                .unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::NotFound, "{end:?}: {error}");
        }
        store.mark_running(turn.id, turn.created_at);
        store.flush().unwrap();
        let stored = store.seen(&all()).turn(turn.id).unwrap();
        assert!(stored.state.is_final());
        match end {
            TurnEnd::Failed { .. } => assert_eq!(stored.error, Some(failure.clone())),
            _ => assert_eq!(stored.error, None),
        }
    }
    assert_eq!(
        store
            .seen(&all())
            .turn(base::ids::TurnId::from(5))
            .unwrap_err()
            .code(),
        Code::NotFound
    );
}

#[test]
fn the_past_is_what_was_answered_oldest_first() {
    let store = TestStore::new();
    let first = exchange(&store, Target::New, "one", "1");
    let target = || Target::Existing(first.conversation_id);
    let second = begin(&store, target(), "two");
    store
        .record_steps(second.id, steps(), second.audience_id)
        .unwrap();
    finish(&store, &second, "2");
    for outcome in [
        TurnEnd::Cancelled {
            said: "so far".to_owned(),
        },
        TurnEnd::failed(Error::not_found("x")),
    ] {
        let turn = begin(&store, target(), "lost");
        store
            .record_steps(turn.id, steps(), turn.audience_id)
            .unwrap();
        end(&store, &turn, outcome);
    }
    exchange(&store, Target::New, "elsewhere", "0");
    exchange(&store, target(), "three", "3");
    begin(&store, target(), "now");
    let past = |most| {
        let past = past(&store, first.conversation_id, most, 10_000);
        assert_eq!(past.has_more, most < 5);
        let texts = past.turns.iter().map(|turn| {
            let reply = turn.reply.as_ref().map_or("", |reply| &reply.content);
            let text = format!("{}={reply}", turn.message.content);
            (text, turn.steps.len())
        });
        texts.collect::<Vec<_>>()
    };
    let turn = |text: &str, steps| (text.to_owned(), steps);
    assert_eq!(past(0), []);
    assert_eq!(past(2), [turn("lost=", 3), turn("three=3", 0)]);
    let both = [turn("lost=so far", 3), turn("lost=", 3)];
    let (before, after) = ([turn("one=1", 0), turn("two=2", 3)], [turn("three=3", 0)]);
    assert_eq!(past(9), [&before[..], &both, &after].concat());
}

#[test]
fn a_reply_that_was_waited_for_stands_where_it_came() {
    let store = TestStore::new();
    let first = exchange(&store, Target::New, "one", "1");
    let target = || Target::Existing(first.conversation_id);
    let suspended = |text: &str| {
        let turn = begin(&store, target(), text);
        store
            .suspend_turn(
                turn.id,
                steps(),
                turn.audience_id,
                vec![question("run")],
                turn.created_at,
            )
            .unwrap();
        turn
    };
    let (early, late, lost) = (suspended("early"), suspended("late"), suspended("lost"));
    let shown = || {
        let past = past(&store, first.conversation_id, 9, 10_000);
        let texts = past.turns.iter().map(|turn| turn.message.content.clone());
        (texts.collect::<Vec<_>>().join(" "), past.suspended)
    };
    assert_eq!(shown(), ("one".to_owned(), 3));
    exchange(&store, target(), "two", "2");
    assert_eq!(shown(), ("one two".to_owned(), 3));
    let reply = finish(&store, &early, "yes").reply.unwrap();
    assert_eq!(reply.in_reply_to, Some(early.message_id));
    // A question, and a reply that comes before that of the next.
    let (three, four) = (
        begin(&store, target(), "three"),
        begin(&store, target(), "four"),
    );
    let reply = finish(&store, &three, "3").reply.unwrap();
    assert_eq!(reply.in_reply_to, Some(three.message_id));
    let reply = finish(&store, &four, "4").reply.unwrap();
    assert_eq!(reply.in_reply_to, Some(four.message_id));
    end(&store, &lost, TurnEnd::failed(Error::not_found("x")));
    let reply = finish(&store, &late, "no").reply.unwrap();
    let stored = store.seen(&all()).message(reply.id).unwrap();
    assert_eq!(stored.in_reply_to, Some(late.message_id));
    let five = exchange(&store, target(), "five", "5");
    let stored = store.seen(&all()).message(five.reply_id.unwrap()).unwrap();
    assert_eq!(stored.in_reply_to, None, "it follows its question");
    // What never got a word of reply stands where it ended.
    let all = "one two early three four lost late five";
    assert_eq!(shown(), (all.to_owned(), 0));
    // A summary covers what was answered up to its turn, not what was asked.
    store
        .save_summary(
            first.conversation_id,
            early.id,
            "so far",
            early.audience_id,
            0,
        )
        .unwrap();
    assert_eq!(shown().0, "three four lost late five");
}

#[test]
fn a_callback_is_given_the_question_that_others_overtook() {
    let store = TestStore::new();
    let deliver = |turn: &Turn| {
        let new = NewDelivery {
            more: Vec::new(),
            of_file: None,
            body: Box::new(|_, question| format!("{question:?}")),
            ..callback("")
        };
        let finished = store.finish_turn(
            turn.id,
            done("x"),
            Usage::default(),
            "m",
            Some(new),
            Vec::new(),
        );
        let delivery = finished.unwrap().into_inner().delivery.unwrap();
        body(&store, delivery.id)
    };
    let one = begin(&store, named("c"), "one");
    let two = begin(&store, named("c"), "two");
    for turn in [&two, &one] {
        let named = match turn.id == two.id {
            true => None,
            false => Some(one.message_id),
        };
        assert_eq!(deliver(turn), format!("{named:?}"));
    }
}

#[test]
fn the_past_is_read_no_further_than_fits() {
    let store = TestStore::new();
    let size = 1_000;
    let first = exchange(&store, Target::New, "0", &"x".repeat(size));
    let target = || Target::Existing(first.conversation_id);
    for number in 1..6 {
        exchange(&store, target(), &number.to_string(), &"x".repeat(size));
    }
    begin(&store, target(), "now");
    let read = |bytes| {
        let past = past(&store, first.conversation_id, 100, bytes);
        let names: Vec<String> = past
            .turns
            .iter()
            .map(|turn| turn.message.content.clone())
            .collect();
        (names.concat(), past.has_more)
    };
    for (bytes, names, has_more) in [
        (0, "5", true),
        (size, "5", true),
        (2 * (size + 1), "45", true),
        (6 * (size + 1) - 1, "12345", true),
        (6 * (size + 1), "012345", false),
    ] {
        assert_eq!(read(bytes), (names.to_owned(), has_more), "{bytes}");
    }
}

#[test]
fn steps_that_are_too_long_are_left_out_of_the_newest_turn() {
    let store = TestStore::new();
    let turn = begin(&store, Target::New, "hello");
    store
        .record_steps(turn.id, steps(), turn.audience_id)
        .unwrap();
    finish(&store, &turn, "hi");
    begin(&store, Target::Existing(turn.conversation_id), "now");
    for (bytes, count) in [(20, 0), (10_000, 3)] {
        let past = past(&store, turn.conversation_id, 9, bytes);
        assert_eq!(past.turns.len(), 1);
        assert_eq!(past.turns[0].steps.len(), count, "{bytes}");
    }
}

#[test]
fn a_summary_stands_for_the_turns_up_to_its_own() {
    let store = TestStore::new();
    let one = exchange(&store, Target::New, "one", "1");
    let id = one.conversation_id;
    let two = exchange(&store, Target::Existing(id), "two", "2");
    exchange(&store, Target::Existing(id), "three", "3");
    let now = begin(&store, Target::Existing(id), "now");
    let before = past(&store, id, 9, 9_999);
    assert_eq!((before.summary, before.turns.len()), (None, 3));
    for (turn, text, left) in [(one.id, "first", 2), (two.id, "second", 1)] {
        store
            .save_summary(id, turn, text, one.audience_id, 0)
            .unwrap();
        let past = past(&store, id, 9, 9_999);
        let summary = Summary {
            turn_id: turn,
            content: text.to_owned(),
        };
        assert_eq!((past.summary, past.turns.len()), (Some(summary), left));
        assert!(!past.has_more);
    }
    assert_eq!(
        store
            .seen(&all())
            .messages(id, 9, None)
            .unwrap()
            .messages
            .len(),
        7
    );
    finish(&store, &now, "done");
    store.delete_conversation(&all(), id).unwrap();
    let gone = store
        .save_summary(id, two.id, "x", two.audience_id, 0)
        .unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert_eq!(past(&store, id, 9, 9).summary, None);
}

#[test]
fn a_name_is_one_conversation_of_its_account() {
    let store = TestStore::new();
    let named = |account: &str| {
        let target = Target::Named {
            account: account.to_owned(),
            name: "door".to_owned(),
        };
        begin(&store, target, "ring")
    };
    let (first, second, other) = (named("a"), named("a"), named("b"));
    assert_eq!(first.conversation_id, second.conversation_id);
    assert_ne!(first.conversation_id, other.conversation_id);
    assert_eq!(second.external_name.as_deref(), Some("door"));
    let stored = store.seen(&all()).turn(second.id).unwrap();
    assert_eq!(stored.external_name.as_deref(), Some("door"));
    assert_eq!(begin(&store, Target::New, "no name").external_name, None);
}

#[test]
fn counts_tell_what_is_unfinished() {
    let store = TestStore::new();
    conversation(&store, "done");
    begin(&store, Target::New, "a");
    begin(&store, Target::New, "b");
    let running = begin(&store, Target::New, "c");
    store.mark_running(running.id, running.created_at);
    store.flush().unwrap();
    let counts = store.seen(&all()).counts().unwrap();
    assert_eq!(counts.conversations, 4);
    assert_eq!(
        counts.turns,
        [(TurnState::Queued, 2), (TurnState::Running, 1)]
    );
    let unfinished = store.unfinished_turns().unwrap().uncommitted();
    assert_eq!(unfinished.len(), 3);
    assert!(unfinished.is_sorted_by_key(|turn| turn.id));
}

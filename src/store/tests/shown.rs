//! What the model was shown, and is shown again.

use crate::testing::*;

fn memory(store: &Store, content: &str) -> Memory {
    let new = NewMemory {
        content: content.to_owned(),
        ..NewMemory::default()
    };
    store.remember(new).unwrap()
}

#[test]
fn memories_stay_with_their_turn_until_they_are_forgotten() {
    let store = TestStore::new();
    let turn = begin(&store, Target::New, "hello");
    let (id, conversation) = (turn.id, turn.conversation_id);
    let kept = ["b", "a", "c"].map(|text| memory(&store, text).id);
    store.note_shown(id, kept.map(|id| (id, ShownAs::Match)).to_vec());
    finish(&store, &turn, "hi");
    let shown = |viewer: &Viewer| {
        let memories = store.seen(viewer).shown_memories(id).unwrap();
        let of_turn: Vec<String> = memories.into_iter().map(|one| one.content).collect();
        of_turn.concat()
    };
    let of_past = || {
        let past = past(&store, conversation, 9, 9_999);
        let memories = past.turns[0].memories.iter();
        memories.map(|one| one.content.clone()).collect::<String>()
    };
    assert_eq!((shown(&all()), of_past()), ("bac".into(), "bac".into()));
    let known = kept[..2].iter().copied().collect();
    let more = store
        .seen(&all())
        .relevant_memories("hello", None, &known, 9_999)
        .unwrap();
    assert_eq!(more.len(), 1, "only what is new");
    assert_eq!(more[0].id, kept[2]);
    store.forget(&all(), kept[1]).unwrap();
    assert_eq!((shown(&all()), of_past()), ("bc".into(), "bc".into()));
    // Nobody is shown what they do not see, whenever it was shown.
    assert_eq!(shown(&Viewer::account("door")), "");
    // One that is forgotten meanwhile, and a turn that is gone, change nothing.
    store.note_shown(id, vec![(kept[1], ShownAs::Match)]);
    store.note_shown(base::ids::TurnId::from(5), vec![(kept[0], ShownAs::Match)]);
    store.flush().unwrap();
    assert_eq!(of_past(), "bc");
    store.delete_conversation(&all(), conversation).unwrap();
    assert_eq!(shown(&all()), "");
}

#[test]
fn what_is_folded_stays_so() {
    let store = TestStore::new();
    let one = begin(&store, Target::New, "1");
    let id = one.conversation_id;
    finish(&store, &one, "a");
    let [two, three] = ["2", "3"].map(|text| {
        let turn = begin(&store, Target::Existing(id), text);
        finish(&store, &turn, "b");
        turn.id
    });
    let view = |with_hidden| {
        store.flush().unwrap();
        let wanted = WantedPast {
            with_memories: false,
            most_turns: 9,
            most_bytes: 9_999,
            with_hidden,
        };
        let past = store.seen(&Viewer::server()).past(id, &wanted).unwrap();
        let turns = past.turns.iter().map(|turn| {
            let mark = if turn.is_shortened { "s" } else { "" };
            format!("{}{mark}", turn.message.content)
        });
        (turns.collect::<Vec<_>>().join(" "), past.has_hidden)
    };
    assert_eq!(view(false), ("1 2 3".to_owned(), false));
    store.fold(id, None, Some(two), 1);
    assert_eq!(view(false), ("1s 2s 3".to_owned(), false));
    store.fold(id, Some(one.id), Some(three), 1);
    store.fold(id, None, Some(one.id), 1);
    assert_eq!(view(false), ("2s 3s".to_owned(), true));
    assert_eq!(view(true), ("1s 2s 3s".to_owned(), true));
    store
        .save_summary(id, one.id, "so far", one.audience_id, 0)
        .unwrap();
    assert_eq!(view(true), ("2s 3s".to_owned(), false));
}

/// A turn reads only what is new, as long as nothing else was written.
#[test]
fn a_past_is_kept_until_anything_changes() {
    let dir = TemporaryDirectory::new();
    let (store, other) = (open(&dir), open(&dir));
    let first = exchange(&store, Target::New, "1", "a");
    let id = first.conversation_id;
    let next = |text: &str| exchange(&store, Target::Existing(id), text, "b");
    let text = |past: &Past| {
        let turns = past.turns.iter().map(|turn| turn.message.content.as_str());
        turns.collect::<Vec<_>>().join(" ")
    };
    // Where the text of the first question is in memory.
    let read = || {
        let past = past(&store, id, 99, 9_999);
        (text(&past), past.turns[0].message.content.as_ptr())
    };
    next("2");
    let (before, place) = read();
    assert_eq!(before, "1 2");
    next("3");
    assert_eq!(read(), ("1 2 3".to_owned(), place), "it was not read again");

    let memory = memory(&store, "secret");
    assert_eq!(read().0, "1 2 3");
    let turn = begin(&store, Target::Existing(id), "4");
    store.note_shown(turn.id, vec![(memory.id, ShownAs::Other)]);
    finish(&store, &turn, "c");
    let told = || {
        let past = past(&store, id, 99, 9_999);
        let memories = past.turns.iter().map(|turn| turn.memories.len());
        memories.sum::<usize>()
    };
    assert_eq!((told(), told()), (1, 1));
    store.forget(&all(), memory.id).unwrap();
    assert_eq!(told(), 0);

    // Another process is noticed when the next turn begins.
    assert_eq!(read().0, "1 2 3 4");
    other.delete_message(&all(), first.message_id).unwrap();
    next("5");
    assert!(!read().0.contains('1'));

    // Less room than was read with.
    assert_eq!(past(&store, id, 2, 9_999).turns.len(), 2);
    assert_eq!(past(&store, id, 99, 5).turns.len(), 2);
}

/// What a model was shown keeps its order: the one in which turns ended.
#[test]
fn turns_stand_in_the_order_in_which_they_ended() {
    let store = TestStore::new();
    let first = begin(&store, Target::New, "waits");
    let id = first.conversation_id;
    let [second, third, fourth] =
        ["fails", "stopped", "answered"].map(|text| begin(&store, Target::Existing(id), text));
    let end = |turn: &Turn, end: TurnEnd| {
        let ended = store.finish_turn(turn.id, end, Usage::default(), "m", None, Vec::new());
        ended.unwrap();
    };
    let order = || {
        store.flush().unwrap();
        let past = past(&store, id, 9, 9_999);
        let order = past.turns.iter().map(|turn| turn.message.content.clone());
        order.collect::<Vec<_>>().join(" ")
    };
    let failed = || TurnEnd::failed(Error::server("the model is down", "detail"));
    let said = String::new();
    end(&third, TurnEnd::Cancelled { said });
    assert_eq!(order(), "stopped");
    finish(&store, &fourth, "a");
    store.fold(id, Some(fourth.id), None, 1);
    end(&second, failed());
    assert_eq!(order(), "fails", "it ended after what is hidden");
    end(&first, failed());
    assert_eq!(order(), "fails waits");
    store.unfold(id).unwrap();
    assert_eq!(order(), "stopped answered fails waits");
    store.fold(id, Some(second.id), None, 1);
    assert_eq!(order(), "waits");
}

#[test]
fn what_was_said_before_the_end_stays_with_the_reason() {
    let store = TestStore::new();
    let cut = |reason| TurnEnd::Done {
        reply: "so".to_owned(),
        finish_reason: reason,
    };
    let said = "so".to_owned();
    let error = Error::server("the model is down", "detail");
    let interrupted = Some(FinishReason::Interrupted);
    for (end, reason) in [
        (cut(None), None),
        (cut(Some(FinishReason::Length)), Some(FinishReason::Length)),
        (
            TurnEnd::Failed {
                error,
                said: said.clone(),
            },
            interrupted,
        ),
        (TurnEnd::Cancelled { said }, interrupted),
    ] {
        let turn = begin(&store, Target::New, "hello");
        let reply = testing::end(&store, &turn, end).reply.unwrap();
        let stored = store.seen(&all()).message(reply.id).unwrap();
        assert_eq!(
            (stored.content.as_str(), stored.finish_reason),
            ("so", reason)
        );
        let past = past(&store, turn.conversation_id, 9, 9_999);
        assert_eq!(past.turns[0].reply.as_ref().unwrap().finish_reason, reason);
    }
}

#[test]
fn tools_that_were_called_are_counted_for_later_conversations() {
    let store = TestStore::new();
    let call = |tool: &str, arguments: &str| Step::Reply {
        text: String::new(),
        calls: vec![ToolCall {
            id: arguments.to_owned(),
            provider_id: None,
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            extra: None,
        }],
        result_chars: None,
        extra: None,
    };
    let turn = begin(&store, Target::New, "hello");
    let steps = vec![call("a", "1"), call("b", "2"), call("b", "3")];
    store
        .record_steps(turn.id, steps, turn.audience_id)
        .unwrap();
    finish(&store, &turn, "hi");
    let later = begin(&store, Target::New, "hello again");
    let seen = store.seen(&all());
    assert_eq!(seen.most_called(later.conversation_id).unwrap(), ["b", "a"]);
    assert!(seen.most_called(turn.conversation_id).unwrap().is_empty());
    assert_eq!(
        seen.arguments_of(turn.conversation_id, "b").unwrap(),
        ["2", "3"]
    );
    assert!(
        seen.arguments_of(later.conversation_id, "b")
            .unwrap()
            .is_empty()
    );
}

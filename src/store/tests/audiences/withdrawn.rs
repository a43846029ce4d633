//! What the model made of what tools found for the readers of a conversation.

use super::*;

fn result(call_id: &str, content: &str, private: bool) -> Step {
    Step::Result {
        call_id: call_id.to_owned(),
        ok: true,
        content: content.to_owned(),
        outside: false,
        private,
        memories: Vec::new(),
        files: Vec::new(),
        page: None,
    }
}

fn reply(call_id: &str, text: &str) -> Step {
    Step::Reply {
        text: text.to_owned(),
        calls: vec![ToolCall {
            id: call_id.to_owned(),
            provider_id: None,
            tool: "lamp".to_owned(),
            arguments: format!("{{\"text\":{text:?}}}"),
            extra: Some(text.into()),
        }],
        extra: Some(text.into()),
        result_chars: None,
    }
}

#[test]
fn what_came_of_a_private_result_goes_with_it() {
    let house = House::new();
    let store = &house.store;
    let (ann, id) = (house.viewer("ann"), house.id("diary"));
    let past = begin(store, Target::Existing(id), "now");
    let steps = vec![
        reply("1", "before"),
        result("1", "4711", true),
        reply("2", "4711"),
        result("2", "showed 4711", false),
    ];
    store
        .record_steps(past.id, steps, past.audience_id)
        .unwrap();
    finish(store, &past, "done");
    let harmless = begin(store, Target::Existing(id), "and?");
    let kept = vec![reply("3", "kept"), result("3", "kept, too", false)];
    (store.record_steps(harmless.id, kept.clone(), harmless.audience_id)).unwrap();
    finish(store, &harmless, "done");
    let runs = begin(store, Target::Existing(id), "and?");
    let found = vec![reply("4", "before"), result("4", "4711", true)];
    store
        .record_steps(runs.id, found, runs.audience_id)
        .unwrap();
    store
        .share_conversation(&ann, id, &audience("bob"))
        .unwrap();
    // What the model said before it was shared, and is stored after.
    let late = vec![reply("5", "4711"), result("5", "showed 4711", false)];
    store.record_steps(runs.id, late, runs.audience_id).unwrap();
    for turn in [past.id, runs.id] {
        let steps = store.seen(&Viewer::server()).steps(turn).unwrap();
        let text = serde_json::to_string(&steps).unwrap();
        assert!(!text.contains("4711"), "{text}");
        assert!(text.contains("before"), "{text}");
        let withdrawn =
            |step: &Step| matches!(step, Step::Reply { calls, .. } if calls[0].is_withdrawn());
        assert_eq!(
            steps.iter().filter(|step| withdrawn(step)).count(),
            1,
            "{text}"
        );
    }
    assert_eq!(
        store.seen(&Viewer::server()).steps(harmless.id).unwrap(),
        kept
    );
}

/// So are a result that is kept whole, and what a routine waits to tell.
#[test]
fn what_waits_to_be_read_goes_with_what_was_private() {
    let house = House::new();
    let store = &house.store;
    let (ann, id) = (house.viewer("ann"), house.id("diary"));
    let turn = begin(store, Target::Existing(id), "now");
    let private = Some(turn.audience_id);
    let keep = || store.keep_result(id, "4711", false, private).unwrap();
    let kept = keep().unwrap();
    let routine = NewSchedule {
        owner_id: Some(house.people["ann"].0),
        conversation_id: Some(id),
        trigger: Some("webhook safe".parse().unwrap()),
        ..NewSchedule::new("Who was it?", None)
    };
    let routine = store.add_schedule(&ann, routine).unwrap().id;
    let (text, ann_alone) = ("The code is 4711".to_owned(), audience("ann"));
    let message = NewTurn::new(
        all(),
        named("safe"),
        ann_alone,
        "webhook:safe",
        text.clone(),
    );
    store.begin_turn(message).unwrap();
    let waits = || store.seen(&all()).schedule(routine).unwrap().trigger_text;
    assert_eq!(waits(), Some(text));
    store
        .share_conversation(&ann, id, &Audience::Household)
        .unwrap();
    assert_eq!(waits(), None);
    assert!(store.seen(&all()).kept_result(id, kept).is_err());
    assert_eq!(keep(), None, "a tool found it for fewer people");
}

/// A picture that a tool made of what it found goes, one of a turn without that stays.
#[test]
fn what_tools_brought_after_a_private_result_goes_with_it() {
    let house = House::new();
    let store = &house.store;
    let (ann, id) = (house.viewer("ann"), house.id("diary"));
    let bring = |turn: &Turn| {
        let file = IncludedFile {
            name: "chart.png".to_owned(),
            declared_type: None,
            data: b"\x89PNG\r\n\x1a\n4711".to_vec(),
        };
        let limits = UploadLimits {
            bytes: 100,
            total_bytes: 1_000,
            time: Duration::from_secs(1),
        };
        store.keep_brought(turn.id, vec![file], limits).unwrap()
    };
    let with = |brought: &[Attachment]| match result("2", "a chart", false) {
        Step::Result {
            call_id,
            ok,
            content,
            outside,
            private,
            memories,
            ..
        } => Step::Result {
            call_id,
            ok,
            content,
            outside,
            private,
            memories,
            files: brought.to_vec(),
            page: None,
        },
        step => step,
    };
    let turns = [true, false].map(|private| {
        let turn = begin(store, Target::Existing(id), "now");
        let brought = bring(&turn);
        let running = brought[0].attachment_id;
        assert!(
            store
                .seen(&house.viewer("bob"))
                .attachment(running)
                .is_err()
        );
        assert!(store.seen(&ann).attachment(running).is_ok());
        let found = result("1", "4711", private);
        let steps = vec![reply("1", "a"), found, reply("2", "b"), with(&brought)];
        store
            .record_steps(turn.id, steps.clone(), turn.audience_id)
            .unwrap();
        assert_eq!(store.seen(&Viewer::server()).steps(turn.id).unwrap(), steps);
        finish(store, &turn, "done");
        brought[0].attachment_id
    });
    let carried = |viewer: &Viewer| {
        let page = store.seen(viewer).messages(id, 100, None).unwrap();
        let replies = page
            .messages
            .into_iter()
            .rev()
            .filter(|message| message.content == "done");
        let counts: Vec<usize> = replies.map(|reply| reply.attachments.len()).collect();
        counts
    };
    assert_eq!(carried(&ann)[..2], [1, 1]);
    let bob = house.viewer("bob");
    assert!(store.seen(&bob).attachment(turns[1]).is_err());
    store
        .share_conversation(&ann, id, &audience("bob"))
        .unwrap();
    assert_eq!(carried(&bob)[..2], [1, 0]);
    for viewer in [&ann, &bob] {
        assert!(store.seen(viewer).attachment(turns[0]).is_err());
        assert_eq!(
            store.seen(viewer).attachment(turns[1]).unwrap().name,
            "chart.png"
        );
    }
}

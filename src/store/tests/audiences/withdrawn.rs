//! What the model made of what tools found for the readers of a conversation.

use super::*;

fn result(call_id: &str, content: &str, private: bool) -> Step {
    Step::Result {
        call_id: call_id.to_owned(),
        ok: true,
        content: content.to_owned(),
        outside: false,
        private,
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
        let steps = store.steps(turn).unwrap();
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
    assert_eq!(store.steps(harmless.id).unwrap(), kept);
}

//! What is left of a memory that was forgotten.

use crate::testing::*;
use base::ids::MemoryId;

fn call(id: &str, arguments: &str) -> Step {
    Step::Reply {
        text: String::new(),
        calls: vec![ToolCall {
            id: id.to_owned(),
            provider_id: None,
            tool: "remember".to_owned(),
            arguments: arguments.to_owned(),
            extra: None,
        }],
        extra: Some(arguments.into()),
        result_chars: None,
    }
}

fn result(id: &str, content: String, memories: Vec<MemoryId>) -> Step {
    Step::Result {
        call_id: id.to_owned(),
        ok: true,
        content,
        outside: false,
        private: true,
        memories,
        files: Vec::new(),
        page: None,
    }
}

fn text(store: &Store, turn: &Turn) -> String {
    serde_json::to_string(&store.seen(&Viewer::server()).steps(turn.id).unwrap()).unwrap()
}

#[test]
fn a_memory_goes_from_the_steps_that_tell_it() {
    let store = TestStore::new();
    let turn = begin(&store, Target::New, "hello");
    let tea = store
        .remember(NewMemory {
            told_in: Some(turn.id),
            ..fact("Ann drinks\ntea.", None)
        })
        .unwrap();
    let milk = store.remember(fact("Bo drinks milk.", None)).unwrap();
    let line = |memory: &Memory| format!("{} (2026, from Ann): {}", memory.id, memory.content);
    let steps = vec![
        call(
            "1",
            r#"{"content": "ann drinks tea", "search_words": ["beverage"], "share": true}"#,
        ),
        Step::Started {
            call_id: "1".to_owned(),
        },
        result("1", "Remembered".to_owned(), Vec::new()),
        call("2", r#"{"query": "drinks"}"#),
        result(
            "2",
            format!("{}\n{}", line(&tea), line(&milk)),
            vec![tea.id, milk.id],
        ),
        call("3", r#"{"query": "drinks"}"#),
        // In part only, as of a long one.
        result(
            "3",
            "Ann drinks [... left out ...]".to_owned(),
            vec![tea.id],
        ),
        // It waits for a person, who is to allow it as it is.
        call("4", r#"{"content": "Ann drinks tea"}"#),
    ];
    let record = |steps| {
        store
            .record_steps(turn.id, steps, turn.audience_id)
            .unwrap()
    };
    record(steps);
    let forgotten = store.seen(&Viewer::server()).forgotten_memories().unwrap();
    store.forget(&all(), tea.id).unwrap();
    assert_eq!(
        store.seen(&Viewer::server()).forgotten_memories().unwrap(),
        forgotten + 1
    );
    let left = store.seen(&Viewer::server()).steps(turn.id).unwrap();
    let arguments = |step: &Step| match step {
        Step::Reply { calls, extra, .. } => (calls[0].arguments.clone(), extra.is_some()),
        step => panic!("{step:?}"),
    };
    let removed = r#"{"content":"[removed: forgotten since]","share":true}"#;
    assert_eq!(arguments(&left[0]), (removed.to_owned(), false));
    assert_eq!(arguments(&left[7]).0, r#"{"content": "Ann drinks tea"}"#);
    let found = format!(
        "{} (2026, from Ann): [removed: forgotten since]\n{}",
        tea.id,
        line(&milk)
    );
    assert_eq!(left[4], result("2", found, vec![milk.id]));
    assert_eq!(
        left[6],
        result("3", "[removed: forgotten since]".to_owned(), Vec::new())
    );
    // One that was forgotten while the model was told it.
    record(vec![result("4", line(&tea), vec![milk.id, tea.id])]);
    assert!(!text(&store, &turn).contains("drinks\\ntea"));
    // Nor is a summary kept that was begun before.
    let id = turn.conversation_id;
    finish(&store, &turn, "hi");
    let save = |forgotten| store.save_summary(id, turn.id, "x", turn.audience_id, forgotten);
    let summary = || past(&store, id, 9, 9_999).summary;
    save(forgotten).unwrap();
    assert_eq!(summary(), None);
    save(forgotten + 1).unwrap();
    assert!(summary().is_some());
    // The summary of it is made anew.
    store.forget(&all(), milk.id).unwrap();
    assert_eq!(summary(), None);
    assert!(!text(&store, &turn).contains("milk"));
}

#[test]
fn the_file_keeps_nothing_of_what_is_forgotten() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    for number in 0..20 {
        let kept = format!("the shelf of number {number} holds kept cassettes");
        store.remember(fact(&kept, None)).unwrap();
    }
    let gone = store
        .remember(NewMemory {
            search_words: vec!["zanderzweig".to_owned()],
            ..fact("The quagga is called Xaver.", None)
        })
        .unwrap();
    store.flush().unwrap();
    store.forget(&all(), gone.id).unwrap();
    store.close();
    let file = std::fs::read(dir.path().join("hearth.db")).unwrap();
    let has = |text: &str| {
        file.windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    assert!(has("kept cassettes"));
    assert!(!has("quagga") && !has("zanderzweig"));
}

//! Other words by which a memory is found.

use std::collections::HashSet;

use crate::NewMemory;
use crate::testing::*;

/// What is shown with a message.
fn shown(store: &TestStore, message: &str) -> Vec<String> {
    let found = store
        .seen(&all())
        .relevant_memories(message, None, &HashSet::new(), 0)
        .unwrap();
    found.into_iter().map(|memory| memory.content).collect()
}

/// A fact with other words by which it is found.
fn worded(content: &str, words: &[&str]) -> NewMemory {
    NewMemory {
        search_words: words.iter().map(|word| (*word).to_owned()).collect(),
        ..fact(content, None)
    }
}

#[test]
fn a_memory_is_found_by_its_search_words() {
    for (memory, words, message) in [
        (
            "Mr Osei opens at eight",
            &["family doctor", "ill"][..],
            "who is our family doctor?",
        ),
        ("Felix kommt um vier", &["Nachhilfe"], "wann ist Nachhilfe?"),
        ("李师傅周三来", &["修水管"], "水管找谁修"),
        ("ป้าแดงมาทุกวันพุธ", &["แม่บ้าน"], "แม่บ้านมาวันไหน"),
    ] {
        let store = TestStore::new();
        let kept = store.remember(worded(memory, words)).unwrap();
        for number in 0..60 {
            let text = format!("shelf {number} holds cassettes of the years {number} to {number}9");
            store.remember(fact(&text, None)).unwrap();
        }
        assert_eq!(shown(&store, message), [memory], "{message}");
        let found = store.seen(&all()).recall(words[0], None, 10).unwrap();
        assert_eq!(found[0].search_words, words);
        store.forget(&all(), kept.id).unwrap();
        assert!(shown(&store, message).is_empty());
        assert!(
            store
                .seen(&all())
                .recall(words[0], None, 10)
                .unwrap()
                .is_empty()
        );
        store.remember(fact(memory, None)).unwrap();
        assert!(shown(&store, message).is_empty(), "{message}");
        // Said once more, with words.
        store.remember(worded(memory, words)).unwrap();
        assert_eq!(shown(&store, message), [memory], "{message}");
        // And with others: the newest come first.
        let again = store
            .remember(worded(memory, &["kettle", words[0]]))
            .unwrap();
        let both = [&["kettle"], words].concat();
        assert_eq!(again.search_words.len(), both.len());
        assert_eq!(again.search_words[..2], ["kettle", words[0]]);
        assert_eq!(shown(&store, message), [memory], "{message}");
        let listed = store.seen(&all()).recall("kettle", None, 10).unwrap();
        assert_eq!(listed[0].search_words, again.search_words);
    }
}

#[test]
fn search_words_are_few_and_clean() {
    let store = TestStore::new();
    let long = "x".repeat(300);
    let many: Vec<String> = (0..20).map(|number| format!("word {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let thai = "ก".repeat(120);
    for (given, kept) in [
        (&["  a\n b ", "A b.", "", "…", "c"][..], &["a b", "c"][..]),
        (
            &[
                "\u{202e}m\u{200b}ilk\u{feff}",
                "\u{2066}\u{2069}",
                "a\u{0}b",
            ],
            &["milk", "a b"],
        ),
        (&many, &many[..16]),
        (&[&long, "y"], &[&long[..240]]),
        (&[&thai, &thai[3..], &"ก".repeat(2)], &[&thai, &thai[3..]]),
        (&[], &[]),
    ] {
        let memory = store.remember(worded("tea at four", given)).unwrap();
        assert_eq!(memory.search_words, kept);
        let listed = store.seen(&all()).memories().unwrap();
        assert_eq!(listed[0].search_words, kept);
        store.forget(&all(), memory.id).unwrap();
    }
}

#[test]
fn what_comes_from_outside_adds_no_search_words_to_what_the_household_knows() {
    let store = TestStore::new();
    let tea = store.remember(fact("tea at four", None)).unwrap();
    let from_outside = || NewMemory {
        is_outside: true,
        ..worded("Tea at four.", &["bank"])
    };
    let same = store.remember(from_outside()).unwrap();
    assert_eq!((same.id, same.search_words), (tea.id, Vec::new()));
    store.forget(&all(), tea.id).unwrap();
    let new = store.remember(from_outside()).unwrap();
    assert_eq!(new.search_words, ["bank"]);
}

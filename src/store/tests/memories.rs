//! Memories: storing and finding them.

use crate::testing::*;
use base::error::Code;

#[test]
fn the_same_text_is_remembered_once() {
    let store = TestStore::new();
    let first = store.remember(fact("tea at four", Some("ann"))).unwrap();
    let again = store.remember(fact(" tea at four\n", None)).unwrap();
    assert_eq!(first.id, again.id);
    assert_eq!(again.speaker.as_deref(), Some("ann"));
    store.remember(fact("coffee at five", None)).unwrap();
    let all = store.memories(&all()).unwrap();
    let texts: Vec<&str> = all.iter().map(|m| m.content.as_str()).collect();
    assert_eq!(texts, ["coffee at five", "tea at four"]);
    let empty = store.remember(fact(" ", None)).unwrap_err();
    assert_eq!(empty.code(), Code::InvalidRequest);
}

#[test]
fn recall_finds_any_word_as_a_prefix_without_accents() {
    let store = TestStore::new();
    for text in [
        "Zoë is allergic to peanuts",
        "the bins go out on Tuesday",
        "Zoë's birthday is on 3 May",
    ] {
        store.remember(fact(text, None)).unwrap();
    }
    for (query, expected) in [
        (
            "zoe allergy allerg",
            vec!["Zoë is allergic to peanuts", "Zoë's birthday is on 3 May"],
        ),
        ("when do the bins go?", vec!["the bins go out on Tuesday"]),
        ("birth", vec!["Zoë's birthday is on 3 May"]),
        ("elephant", vec![]),
        ("", vec![]),
    ] {
        let found = store.recall(&all(), query, 10).unwrap();
        let found: Vec<&str> = found.iter().map(|m| m.content.as_str()).collect();
        assert_eq!(found, expected, "{query}");
    }
    assert_eq!(store.recall(&all(), "zoe", 1).unwrap().len(), 1);
}

#[test]
fn what_is_forgotten_is_not_recalled() {
    let store = TestStore::new();
    let memory = store
        .remember(fact("the safe opens with 1234", None))
        .unwrap();
    store.forget(&all(), memory.id).unwrap();
    assert!(store.recall(&all(), "safe", 10).unwrap().is_empty());
    assert_eq!(
        store.forget(&all(), memory.id).unwrap_err().code(),
        Code::NotFound
    );
}

#[test]
fn what_matters_for_a_message_comes_best_first() {
    let store = TestStore::new();
    assert!(
        store
            .relevant_memories(&all(), "anything", 5)
            .unwrap()
            .is_empty()
    );
    for text in [
        "Zoë is allergic to peanuts",
        "the bins go out on Tuesday",
        "the boiler is in the cellar",
        "the key of the cellar hangs beside the door",
        "the wifi is called hearth",
        "granny comes to dinner on Sunday",
    ] {
        store.remember(fact(text, None)).unwrap();
    }
    for (message, expected) in [
        ("Can zoe eat this cake?", vec!["Zoë is allergic to peanuts"]),
        (
            "When do the bins go out?",
            vec!["the bins go out on Tuesday"],
        ),
        (
            "where is the key of the cellar?",
            vec![
                "the key of the cellar hangs beside the door",
                "the boiler is in the cellar",
            ],
        ),
        ("is it on?", vec![]),
        ("hello", vec![]),
    ] {
        let found = store.relevant_memories(&all(), message, 5).unwrap();
        let found: Vec<&str> = found.iter().map(|m| m.content.as_str()).collect();
        assert_eq!(found, expected, "{message}");
    }
    let one = store
        .relevant_memories(&all(), "the key of the cellar", 1)
        .unwrap();
    assert_eq!(one.len(), 1);
}

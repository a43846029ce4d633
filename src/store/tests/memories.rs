//! Memories: storing and finding them.

use std::collections::HashSet;

use crate::testing::*;
use crate::{NewMemory, ShownAs, Target};
use base::error::Code;
use base::ids::MemoryId;

#[test]
fn the_same_text_is_remembered_once() {
    let store = TestStore::new();
    let first = store.remember(fact("tea at four", Some("ann"))).unwrap();
    let again = store.remember(fact(" tea at four\n", None)).unwrap();
    assert_eq!(first.id, again.id);
    assert_eq!(again.speaker.as_deref(), Some("ann"));
    store.remember(fact("coffee at five", None)).unwrap();
    let all = store.seen(&all()).memories().unwrap();
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
        let found = store.seen(&all()).recall(query, None, 10).unwrap();
        let found: Vec<&str> = found.iter().map(|m| m.content.as_str()).collect();
        assert_eq!(found, expected, "{query}");
    }
    assert_eq!(store.seen(&all()).recall("zoe", None, 1).unwrap().len(), 1);
}

#[test]
fn a_long_memory_is_searched_to_its_end() {
    let store = TestStore::new();
    for filler in ["rule", "規則三十二番目也"] {
        let rules: String = (0..300)
            .map(|number| format!("{filler} {number}; "))
            .collect();
        let text = format!(
            "{} the neighbour has 4711",
            &rules[..rules.floor_char_boundary(3_900)]
        );
        let kept = store.remember(fact(&text, None)).unwrap();
        for query in ["neighbour", "4711"] {
            let found = store.seen(&all()).recall(query, None, 10).unwrap();
            assert!(found.iter().any(|memory| memory.id == kept.id), "{query}");
        }
    }
}

#[test]
fn what_is_forgotten_is_not_recalled() {
    let store = TestStore::new();
    let memory = store
        .remember(fact("the safe opens with 1234", None))
        .unwrap();
    store.forget(&all(), memory.id).unwrap();
    assert!(
        store
            .seen(&all())
            .recall("safe", None, 10)
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        store.forget(&all(), memory.id).unwrap_err().code(),
        Code::NotFound
    );
}

#[test]
fn case_space_and_last_punctuation_make_no_new_memory() {
    let store = TestStore::new();
    let first = store
        .remember(fact("The safe opens with 1234.", None))
        .unwrap();
    for same in [
        "the safe  opens with 1234",
        "The safe opens with 1234!",
        "THE SAFE OPENS WITH 1234",
    ] {
        assert_eq!(
            store.remember(fact(same, None)).unwrap().id,
            first.id,
            "{same}"
        );
    }
    for other in [
        "The safe opens with 12345.",
        "The safe opens with 123 4",
        "C++",
        "C",
    ] {
        assert_ne!(
            store.remember(fact(other, None)).unwrap().id,
            first.id,
            "{other}"
        );
    }
    assert_eq!(store.seen(&all()).memories().unwrap().len(), 5);
}

#[test]
fn a_memory_is_replaced_by_id_or_text() {
    let store = TestStore::new();
    let texts = || -> Vec<String> {
        let all = store.seen(&all()).memories().unwrap();
        all.into_iter().map(|memory| memory.content).collect()
    };
    let old = store
        .remember(fact("The bins go out on Monday.", None))
        .unwrap();
    let (new, replaced) = store
        .replace_memory(
            &all(),
            &old.id.to_string(),
            fact("The bins go out on Tuesday.", None),
        )
        .unwrap();
    assert_eq!((replaced.id, texts()), (old.id, vec![new.content]));
    let by_text = "the bins go out on tuesday";
    store
        .replace_memory(&all(), by_text, fact("The bins go out on Friday.", None))
        .unwrap();
    assert_eq!(texts(), ["The bins go out on Friday."]);
    // Once more the same.
    let (same, _) = store
        .replace_memory(&all(), &texts()[0], fact("the bins go out on Friday", None))
        .unwrap();
    assert_eq!(texts(), [same.content]);
    // What fails changes nothing.
    for (replaced, new, code) in [
        (by_text, "x", Code::NotFound),
        ("mem_06xsxhbnrc21v", "x", Code::NotFound),
        ("the bins go out on Friday", " ", Code::InvalidRequest),
    ] {
        let error = store
            .replace_memory(&all(), replaced, fact(new, None))
            .unwrap_err();
        assert_eq!(error.code(), code, "{replaced}");
        assert_eq!(texts().len(), 1);
    }
}

const HOUSEHOLD: [&str; 6] = [
    "Zoë is allergic to peanuts",
    "the bins go out on Tuesday",
    "the boiler is in the cellar",
    "the key of the cellar hangs beside the door",
    "the wifi is called hearth",
    "granny comes to dinner on Sunday",
];

/// Room for everything that most households know.
const ROOM: usize = 12_000;

/// What fits a message.
fn shown(store: &TestStore, message: &str) -> Vec<String> {
    shown_within(store, message, 0)
}

/// What is shown with a message.
fn shown_within(store: &TestStore, message: &str, most_bytes: usize) -> Vec<String> {
    let found = store
        .seen(&all())
        .relevant_memories(message, None, &HashSet::new(), most_bytes)
        .unwrap();
    found.into_iter().map(|memory| memory.content).collect()
}

#[test]
fn a_small_set_is_shown_whole_and_oldest_first() {
    let store = TestStore::new();
    let shown = |message: &str| shown_within(&store, message, ROOM);
    assert!(shown("anything").is_empty());
    for text in HOUSEHOLD {
        store.remember(fact(text, None)).unwrap();
    }
    for message in ["hello", "what may zoe not eat?", ""] {
        assert_eq!(shown(message), HOUSEHOLD, "{message}");
    }
    // What comes from outside would make the whole conversation one with text from
    // outside.
    let outside = NewMemory {
        is_outside: true,
        ..fact("the parcel lies in the shed", None)
    };
    store.remember(outside).unwrap();
    assert_eq!(shown("hello"), HOUSEHOLD);
    assert_eq!(shown("where is the parcel?").len(), 7);
}

#[test]
fn sixty_facts_are_shown_whole_with_any_message() {
    let store = TestStore::new();
    for number in 0..60 {
        let text = format!("shelf {number} holds cassettes of the years {number} to {number}9");
        store.remember(fact(&text, None)).unwrap();
    }
    assert_eq!(shown_within(&store, "hello", ROOM).len(), 60);
    assert!(!store.seen(&all()).has_many_memories(ROOM).unwrap());
}

#[test]
fn beyond_its_share_the_most_used_and_the_newest_are_shown_beside_what_fits() {
    let store = TestStore::new();
    let keep = |text: &str| store.remember(fact(text, None)).unwrap().id;
    let (spade, rake) = (keep("the spade leans on the shed"), keep("Zoë likes tea"));
    for number in 0..60 {
        keep(&format!(
            "shelf {number} holds cassettes of the years {number} to {number}9"
        ));
    }
    for shown_as in [ShownAs::Other, ShownAs::Match] {
        let turn = begin(&store, Target::New, "hello");
        store.note_shown(turn.id, vec![(rake, shown_as)]);
        finish(&store, &turn, "hi");
    }
    // Room for five.
    let found = |message: &str, shown: &[MemoryId]| -> Vec<(String, ShownAs)> {
        let known = shown.iter().copied().collect();
        let seen = store.seen(&all());
        let found = seen.relevant_memories(message, None, &known, 420).unwrap();
        let found = found.into_iter();
        found.map(|one| (one.content, one.shown_as)).collect()
    };
    let first = found("where is the spade?", &[]);
    let texts: Vec<&str> = first.iter().map(|(text, _)| text.as_str()).collect();
    let newest = [57, 58, 59]
        .map(|number| format!("shelf {number} holds cassettes of the years {number} to {number}9"));
    let expected = ["the spade leans on the shed", "Zoë likes tea"];
    let expected = expected
        .into_iter()
        .chain(newest.iter().map(String::as_str));
    assert_eq!(texts, expected.collect::<Vec<_>>());
    let as_what: Vec<ShownAs> = first.iter().map(|(_, shown_as)| *shown_as).collect();
    assert_eq!(as_what[..2], [ShownAs::Match, ShownAs::Other]);
    // What was shown has taken its room; what fits is shown all the same.
    let all_ids = store.seen(&all()).memories().unwrap();
    let shown: Vec<MemoryId> = all_ids.iter().take(10).map(|one| one.id).collect();
    assert_eq!(found("hello", &shown), []);
    assert_eq!(found("where is the spade?", &shown).len(), 1);
    assert_eq!(found("where is the spade?", &[spade]).len(), 4);
}

#[test]
fn what_was_before_is_shown_as_such_and_never_alone() {
    let store = TestStore::new();
    let keep = |text: &str| store.remember(fact(text, None)).unwrap().id;
    keep("the bins go out on Tuesday evening");
    for text in HOUSEHOLD {
        if !text.contains("bins") {
            keep(text);
        }
    }
    let newer = keep("the bins now go out on Friday evening");
    let found = |most_bytes: usize| -> Vec<(String, ShownAs)> {
        let seen = store.seen(&all());
        let found = seen.relevant_memories("bins?", None, &HashSet::new(), most_bytes);
        let found = found.unwrap().into_iter();
        found.map(|one| (one.content, one.shown_as)).collect()
    };
    let whole = found(ROOM);
    let (last, others) = whole.split_last().unwrap();
    assert_eq!(last.0, "the bins go out on Tuesday evening");
    assert_eq!(last.1, ShownAs::Former);
    assert!(
        others
            .iter()
            .all(|(_, shown_as)| *shown_as == ShownAs::Other)
    );
    assert_eq!(
        others.last().unwrap().0,
        "the bins now go out on Friday evening"
    );
    for most_bytes in [0, 100, 250] {
        let found = found(most_bytes);
        assert_eq!(found[0].0, "the bins now go out on Friday evening");
        assert!(found.iter().all(|(text, _)| !text.contains("Tuesday")));
    }
    // Once the newer one is forgotten, the older one holds.
    let older = store.seen(&all()).outdated_by(newer).unwrap().unwrap();
    assert_eq!(older.content, "the bins go out on Tuesday evening");
    store.forget(&all(), newer).unwrap();
    let found = found(ROOM);
    assert!(
        found
            .iter()
            .all(|(_, shown_as)| *shown_as == ShownAs::Other)
    );
}

#[test]
fn who_is_outside_corrects_nothing() {
    let store = TestStore::new();
    store
        .remember(fact("the bins go out on Tuesday evening", None))
        .unwrap();
    let outside = NewMemory {
        is_outside: true,
        ..fact("the bins now go out on Friday evening", None)
    };
    let newer = store.remember(outside).unwrap();
    let seen = store.seen(&all());
    assert!(seen.outdated_by(newer.id).unwrap().is_none());
    let shown = seen.relevant_memories("hello", None, &HashSet::new(), ROOM);
    let shown = shown.unwrap();
    assert_eq!((shown.len(), shown[0].shown_as), (1, ShownAs::Other));
}

#[test]
fn of_a_larger_set_what_matters_is_shown_best_first() {
    let store = TestStore::new();
    for text in HOUSEHOLD {
        store.remember(fact(text, None)).unwrap();
    }
    for number in 0..60 {
        let text = format!("shelf {number} holds cassettes of the years {number} to {number}9");
        store.remember(fact(&text, None)).unwrap();
    }
    for (message, expected) in [
        ("Is this cake safe for zoe?", &HOUSEHOLD[..1]),
        ("When do the bins go out?", &HOUSEHOLD[1..2]),
        ("where is the key of the cellar?", &[HOUSEHOLD[3]]),
        ("anything in the cellars?", &[HOUSEHOLD[3], HOUSEHOLD[2]]),
        ("is it on?", &[]),
        ("hello", &[]),
        (
            "what would you tell the king of Norway about the weather?",
            &[],
        ),
    ] {
        assert_eq!(shown(&store, message), expected, "{message}");
    }
    // Of two that say the same of the same subject, the newer.
    store
        .remember(fact("the bins now go out on Friday", None))
        .unwrap();
    assert_eq!(
        shown(&store, "when do the bins go out?"),
        ["the bins now go out on Friday"]
    );
}

/// What is new of one of them says nothing of the other.
#[test]
fn a_newer_memory_of_somebody_else_replaces_none() {
    let store = TestStore::new();
    let words = ["diet", "no meat", "dinner", "vegetarian", "what to cook"];
    for text in [
        "Priya does not eat meat",
        "Priya works on Mondays",
        "Maya plays the cello",
        "Maya has not eaten meat since the new year",
    ] {
        let words = words.iter().filter(|_| text.contains("meat"));
        let new = NewMemory {
            search_words: words.map(|word| (*word).to_owned()).collect(),
            ..fact(text, None)
        };
        store.remember(new).unwrap();
    }
    for number in 0..60 {
        let text = format!("shelf {number} holds cassettes of the years {number} to {number}9");
        store.remember(fact(&text, None)).unwrap();
    }
    let shown = shown(
        &store,
        "what could I cook for Priya and Maya, without meat?",
    );
    assert!(
        shown.iter().any(|text| text == "Priya does not eat meat"),
        "{shown:?}"
    );
}

#[test]
fn a_word_is_found_in_other_forms_and_in_compounds() {
    for (memory, message) in [
        ("Die Winterreifen liegen im Keller", "wo sind die Reifen?"),
        (
            "Danmarksturen er flyttet til juli",
            "når drar vi til Danmark?",
        ),
        ("Passene ligger i skapet", "hvor er passet mitt?"),
        ("Julepynten står på loftet", "hvor er pynten?"),
        ("Los pintores vienen de Lugo", "qué pintor tenemos"),
        ("猫砂放在阳台的蓝色柜子里", "猫砂在哪"),
        ("茶在左边的柜子里", "茶"),
        ("合鍵はお隣に預けてある", "合鍵はどこ？"),
        ("ไวไฟชื่อ BaanKhanun", "ไวไฟชื่ออะไร"),
    ] {
        let store = TestStore::new();
        store.remember(fact(memory, None)).unwrap();
        for number in 0..60 {
            let text = format!("shelf {number} holds cassettes of the years {number} to {number}9");
            store.remember(fact(&text, None)).unwrap();
        }
        assert_eq!(shown(&store, message), [memory], "{message}");
    }
}

#[test]
fn what_was_remembered_and_forgotten_since_the_last_question_counts() {
    let store = TestStore::new();
    let keep = |text: &str| store.remember(fact(text, None)).unwrap().id;
    for number in 0..60 {
        keep(&format!(
            "shelf {number} holds cassettes of the years {number} to {number}9"
        ));
    }
    let spade = "where is the spade?";
    assert!(shown(&store, spade).is_empty());
    let first = keep("the spade leans on the shed");
    assert_eq!(shown(&store, spade), ["the spade leans on the shed"]);
    // As many as before.
    store.forget(&all(), first).unwrap();
    keep("the rake lies in the spade bed");
    assert_eq!(shown(&store, spade), ["the rake lies in the spade bed"]);
    let last = keep("a spade is lent to Arne");
    store.forget(&all(), last).unwrap();
    assert_eq!(shown(&store, spade), ["the rake lies in the spade bed"]);
}

#[test]
fn what_is_known_by_another_word_is_found() {
    for (memory, message) in [
        ("Zoë was born on 3 May 2015", "when is zoe's birthday?"),
        ("Oma ist Vegetarierin", "Was kann ich für Oma kochen?"),
        (
            "Le plombier est M. Aubry",
            "il y a une fuite dans la cuisine",
        ),
        (
            "Lucía y Javier se casaron en mayo",
            "¿cuándo es la boda de Lucía?",
        ),
        ("美咲は卵アレルギー", "美咲の夕飯は何がいい？"),
    ] {
        let store = TestStore::new();
        store.remember(fact(memory, None)).unwrap();
        for number in 0..60 {
            let text = format!("shelf {number} holds cassettes of the years {number} to {number}9");
            store.remember(fact(&text, None)).unwrap();
        }
        assert_eq!(shown(&store, message), [memory], "{message}");
    }
    // Whoever wants a poem does not ask for a date.
    let store = TestStore::new();
    for text in HOUSEHOLD.into_iter().chain(["Zoë was born on 3 May 2015"]) {
        store.remember(fact(text, None)).unwrap();
    }
    for number in 0..60 {
        let text = format!("shelf {number} holds cassettes of the years {number} to {number}9");
        store.remember(fact(&text, None)).unwrap();
    }
    assert!(shown(&store, "a birthday poem for a colleague, please").is_empty());
}

#[test]
fn what_is_near_by_its_meaning_is_shown_too() {
    let store = TestStore::new();
    let keep = |text: &str| store.remember(fact(text, None)).unwrap().id;
    let near = keep("Zoë cannot stand peanuts");
    let share = |number: usize| {
        format!("shelf {number} holds cassettes of the years {number} to {number}9")
    };
    let others: Vec<_> = (0..60).map(|number| keep(&share(number))).collect();
    let shown = |message: &str| -> Vec<MemoryId> {
        let seen = store.seen(&all());
        let found = seen.relevant_memories(message, Some(&towards(3)), &HashSet::new(), 0);
        found.unwrap().into_iter().map(|memory| memory.id).collect()
    };
    assert!(store.seen(&all()).has_many_memories(0).unwrap());
    let snack = "which snack is safe?";
    assert!(shown(snack).is_empty());
    let waiting = |model: &str| store.memories_without_vector(model, 100).unwrap();
    assert_eq!(waiting("one").len(), 61);
    assert_eq!(
        waiting("one")[0],
        (near, "Zoë cannot stand peanuts".to_owned())
    );
    let mut vectors: Vec<_> = others
        .iter()
        .enumerate()
        .map(|(number, id)| (*id, towards(number % 3)))
        .collect();
    vectors.push((near, towards(3)));
    store.keep_vectors("one", vectors).unwrap();
    assert_eq!(waiting("one"), []);
    assert_eq!(shown(snack), [near]);
    // Both orders count.
    assert_eq!(shown("where are those of 479?"), [others[47], near]);
    // Of another model, all are made anew.
    assert_eq!(waiting("two").len(), 61);
    assert!(shown(snack).is_empty());
    store.keep_vectors("one", vec![(near, towards(3))]).unwrap();
    assert_eq!(waiting("two").len(), 61);
    // What is forgotten has no vector either, and gets none.
    store.keep_vectors("two", vec![(near, towards(3))]).unwrap();
    let kept = || -> i64 {
        store
            .read(|connection| {
                let sql = "SELECT count(*) FROM memory_vectors";
                Ok(connection.query_row(sql, [], |row| row.get(0))?)
            })
            .unwrap()
    };
    assert_eq!(kept(), 1);
    store.forget(&all(), near).unwrap();
    assert_eq!(kept(), 0);
    store.keep_vectors("two", vec![(near, towards(3))]).unwrap();
    assert_eq!(kept(), 0);
}

#[test]
fn people_are_found_whose_name_is_a_word_of_grammar_elsewhere() {
    let store = TestStore::new();
    for name in ["Mia", "Ben", "Dan", "Per", "Ali", "Ella", "Mai"] {
        let text = format!("{name} plays the cello.");
        store.remember(fact(&text, None)).unwrap();
        let question = format!("what does {name} play?");
        let found = store.seen(&all()).recall(&question, None, 10).unwrap();
        assert_eq!(found[0].content, text);
    }
}

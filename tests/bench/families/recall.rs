//! Whether the memories that a message needs are found, and no others; and how long
//! that takes.

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::Instant;

use base::clock::Clock;
use base::testing::TemporaryDirectory;
use store::{MOST_DIMENSIONS, NewMemory, Store, Vector, Viewer};
use support::recall::{Found, Questions, SearchWords, measure as measure_corpus};

use crate::statistics::median;
use crate::table::{Figure, Table};

/// Memories of a large household, and of one of the largest; and the most milliseconds.
const MEMORIES: [(usize, f64); 2] = [(5_000, 5.0), (10_000, 10.0)];
/// What else is asked, and of memories with or without search words.
const OTHERS: [(&str, Questions, SearchWords); 5] = [
    (
        "held-out half, no search words",
        Questions::HeldOut,
        SearchWords::Without,
    ),
    ("other households", Questions::Other, SearchWords::With),
    (
        "other households, no search words",
        Questions::Other,
        SearchWords::Without,
    ),
    ("in other words", Questions::Indirect, SearchWords::With),
    (
        "in other words, no search words",
        Questions::Indirect,
        SearchWords::Without,
    ),
];
/// Search words of each memory, and those that many have.
const SEARCH_WORDS: usize = 12;
const COMMON: &str = "instructions paper light bulb repair guarantee shop proof open door lock \
    store shelf carton drawer find lost booklet electric bill";
/// Most numbers of a vector.
const DIMENSIONS: usize = MOST_DIMENSIONS;
const WRITERS: usize = 16;
const RUNS: usize = 21;

pub fn measure(table: &mut Table) {
    let (by_language, all) = measure_corpus(Questions::HeldOut, SearchWords::With);
    let all = ("all languages, held-out half", all);
    for (language, found) in by_language.into_iter().chain([all]) {
        let Found {
            both,
            shown,
            relevant,
        } = found;
        let is_sum = language.starts_with("all");
        let recall = Figure::new(format!("recall, {language}"), found.recall(), "%")
            .how(format!("{both} of {relevant} relevant memories shown"));
        let precision = Figure::new(format!("precision, {language}"), found.precision(), "%")
            .how(format!("{both} of {shown} shown memories relevant"));
        match is_sum {
            true => {
                table.add(recall.at_least(85.0));
                table.add(precision.at_least(80.0));
            }
            false => {
                table.add(recall);
                table.add(precision);
            }
        }
    }
    for (memories, most) in MEMORIES {
        let runs = format!("median of {RUNS} runs; it grows with their number");
        let figure = |what: String, search_words| {
            let took = Figure::new(what, took(memories, search_words), "ms");
            took.at_most(most).how(runs.clone())
        };
        table.add(figure(format!("choice among {memories} memories"), 0));
        let what = format!("the same with {SEARCH_WORDS} search words each, {memories}");
        table.add(figure(what, SEARCH_WORDS));
    }
    for (what, questions, search_words) in OTHERS {
        let (_, found) = measure_corpus(questions, search_words);
        let figure = |of: &str, value| Figure::new(format!("{of}, {what}"), value, "%");
        table.add(figure("recall", found.recall()));
        table.add(figure("precision", found.precision()));
    }
    for (memories, most) in MEMORIES {
        let (took, megabytes) = took_with_vectors(memories);
        table.add(
            Figure::new(format!("the same by vectors, {memories}"), took, "ms")
                .at_most(most)
                .how(format!("{DIMENSIONS} scripted numbers each; {RUNS} runs")),
        );
        table.add(
            Figure::new(format!("vectors of {memories} memories"), megabytes, "MB")
                .at_most(10.0)
                .how("by so much, the database is longer"),
        );
    }
}

/// Milliseconds to choose among so many memories with so many search words each.
fn took(memories: usize, search_words: usize) -> f64 {
    let dir = TemporaryDirectory::new();
    median_of_choices(&with_memories(&dir, memories, search_words), None)
}

/// The same with vectors, and their megabytes.
fn took_with_vectors(memories: usize) -> (f64, f64) {
    let dir = TemporaryDirectory::new();
    with_memories(&dir, memories, 0).close();
    let path = dir.path().join("hearth.db");
    let length = || fs::metadata(&path).expect("it is there").len() as f64;
    let before = length();
    let store = Store::open(&path, Clock::system()).expect("it was closed");
    let waiting = store.memories_without_vector("scripted", memories);
    // Directions without an order, the same in each run.
    let mut state = 1u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    let mut vector = || {
        let numbers: Vec<f32> = (0..DIMENSIONS).map(|_| number()).collect();
        Vector::of(&numbers, DIMENSIONS).expect("it has a direction")
    };
    let waiting = waiting.expect("the store is writable").into_iter();
    let vectors = waiting.map(|(id, _)| (id, vector())).collect();
    let kept = store.keep_vectors("scripted", vectors);
    assert!(kept.is_ok(), "{kept:?}");
    let took = median_of_choices(&store, Some(&vector()));
    store.close();
    (took, (length() - before) / 1e6)
}

/// A database with so many memories, each with so many search words: two of its own, and
/// others that many have.
fn with_memories(dir: &TemporaryDirectory, memories: usize, search_words: usize) -> Store {
    let store = Store::open(&dir.path().join("hearth.db"), Clock::system()).expect("a new file");
    let common: Vec<&str> = COMMON.split(' ').collect();
    let remember = |number: usize| {
        let content = format!(
            "The {} of box {number} is kept in the {} beside item{}.",
            ["key", "lamp", "manual", "receipt", "warranty"][number / 5 % 5],
            ["kitchen", "cellar", "garden", "attic", "hall"][number % 5],
            number * 7 % 4_001,
        );
        let search_word = |place: usize| match place {
            0 => format!("thing{number}"),
            1 => format!("{}{}", common[number % common.len()], number % 900),
            _ => common[(number * 3 + place * 7) % common.len()].to_owned(),
        };
        let kept = store.remember(NewMemory {
            content,
            search_words: (0..search_words).map(search_word).collect(),
            ..NewMemory::default()
        });
        assert!(kept.is_ok(), "{kept:?}");
    };
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || (writer..memories).step_by(WRITERS).for_each(remember));
        }
    });
    store
}

/// The median of the milliseconds that a choice takes, with this vector of the message.
fn median_of_choices(store: &Store, vector: Option<&Vector>) -> f64 {
    let message = "where did we put the manual of the lamp from item77 in the cellar?";
    median((0..RUNS).map(|_| {
        let began = Instant::now();
        let found = store.relevant_memories(&Viewer::server(), message, vector, &HashSet::new());
        assert!(found.is_ok_and(|found| !found.is_empty()));
        began.elapsed().as_secs_f64() * 1_000.0
    }))
}

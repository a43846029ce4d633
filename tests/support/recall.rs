//! How well memories are found: the corpus of questions in `tests/data/recall`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use base::clock::Clock;
use base::testing::TemporaryDirectory;
use serde_json::Value;
use store::{NewMemory, Store, Viewer};

/// The counts of one language, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Memories that were shown and are relevant.
    pub both: usize,
    pub shown: usize,
    pub relevant: usize,
}

impl Found {
    /// The percentage of the relevant memories that were shown.
    pub fn recall(self) -> f64 {
        100.0 * self.both as f64 / self.relevant.max(1) as f64
    }

    /// The percentage of the shown memories that are relevant.
    pub fn precision(self) -> f64 {
        100.0 * self.both as f64 / self.shown.max(1) as f64
    }
}

/// Whose questions are asked.
#[derive(Clone, Copy, Debug)]
pub enum Questions {
    /// Those by which the ranking was adjusted.
    Tuning,
    /// Those that it has never seen, of the same households.
    HeldOut,
    /// Those of other households, by which it was adjusted later.
    Other,
    /// The same, in other words than the memories have.
    Indirect,
}

/// Whether the memories are stored with other words by which they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchWords {
    With,
    Without,
}

/// The languages of the corpus with their counts over these questions, and the sum.
///
/// # Panics
/// When the corpus is not there.
pub fn measure(
    questions: Questions,
    search_words: SearchWords,
) -> (Vec<(&'static str, Found)>, Found) {
    let by_language: Vec<_> = LANGUAGES
        .iter()
        .map(|(language, code)| (*language, measure_language(code, questions, search_words)))
        .collect();
    let mut all = Found::default();
    for (_, found) in &by_language {
        all.both += found.both;
        all.shown += found.shown;
        all.relevant += found.relevant;
    }
    (by_language, all)
}

fn measure_language(code: &str, questions: Questions, search_words: SearchWords) -> Found {
    let (folder, half) = match questions {
        Questions::Tuning => ("", Some("tuning")),
        Questions::HeldOut => ("", Some("held_out")),
        Questions::Other => ("other", None),
        Questions::Indirect => ("indirect", None),
    };
    let path = Path::new(CORPUS).join(folder).join(format!("{code}.json"));
    let json = fs::read(&path).expect("the corpus is in the repository");
    let corpus: Value = serde_json::from_slice(&json).expect("the corpus is JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dir = TemporaryDirectory::new();
    let store = Store::open(&dir.path().join("hearth.db"), Clock::system()).expect("a new file");
    let mut ids = Vec::new();
    for memory in list(&corpus["memories"]) {
        let words = match search_words {
            SearchWords::With => list(&memory["search_words"]),
            SearchWords::Without => Vec::new(),
        };
        let new = NewMemory {
            content: text(&memory["content"]),
            search_words: words.iter().map(text).collect(),
            ..NewMemory::default()
        };
        let kept = store.remember(new).expect("the store is writable");
        ids.push((kept.id, memory["id"].clone()));
    }
    let mut found = Found::default();
    for question in list(&corpus["questions"]) {
        if half.is_some_and(|half| question["half"] != half) {
            continue;
        }
        let relevant = list(&question["relevant"]);
        let shown = store
            .seen(&Viewer::server())
            .relevant_memories(&text(&question["message"]), None, &HashSet::new())
            .expect("the store is readable");
        found.shown += shown.len();
        found.relevant += relevant.len();
        let is_relevant = |memory: &store::Memory| {
            let known = ids.iter().find(|(id, _)| *id == memory.id);
            known.is_some_and(|(_, id)| relevant.contains(id))
        };
        found.both += shown.iter().filter(|memory| is_relevant(memory)).count();
    }
    store.close();
    found
}

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/recall");

const LANGUAGES: [(&str, &str); 8] = [
    ("German", "de"),
    ("English", "en"),
    ("Spanish", "es"),
    ("French", "fr"),
    ("Japanese", "ja"),
    ("Norwegian", "no"),
    ("Thai", "th"),
    ("Chinese", "zh"),
];

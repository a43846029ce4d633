//! How well memories are found: the corpus of questions in `tests/data/recall`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::thread;

use base::clock::Clock;
use base::ids::MemoryId;
use base::testing::TemporaryDirectory;
use serde_json::Value;
use store::{Memory, NewMemory, Store, Viewer};

/// The counts of one language, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Memories that were shown and are relevant.
    pub both: usize,
    pub shown: usize,
    pub relevant: usize,
}

impl Found {
    fn add(&mut self, other: Found) {
        self.both += other.both;
        self.shown += other.shown;
        self.relevant += other.relevant;
    }

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
    /// Those of households that were written last: nothing was adjusted by them.
    Recent,
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
    by_language.iter().for_each(|(_, found)| all.add(*found));
    (by_language, all)
}

/// The sum over the held-out questions of all languages, in one store with so many memories:
/// those of all households, with search words, and where things are that nobody asks about.
///
/// # Panics
/// When the corpus is not there.
pub fn measure_among(memories: usize) -> Found {
    let dir = TemporaryDirectory::new();
    let store = Store::open(&dir.path().join("hearth.db"), Clock::system()).expect("a new file");
    let corpora: Vec<(Value, Kept)> = LANGUAGES
        .iter()
        .map(|(_, code)| {
            let corpus = read(code);
            let kept = keep(&store, &corpus, SearchWords::With);
            (corpus, kept)
        })
        .collect();
    let known: usize = corpora.iter().map(|(_, kept)| kept.len()).sum();
    let fill = |number: usize| {
        let (sentence, things, places) = FILLERS[number % FILLERS.len()];
        let one = |of: &str, place: usize| {
            let words: Vec<&str> = of.split(' ').collect();
            words[place % words.len()].to_owned()
        };
        let content = sentence
            .replace("THING", &one(things, number / 8))
            .replace("PLACE", &one(places, number / 40))
            .replace("NUMBER", &(1_000 + number).to_string());
        remember(&store, content, Vec::new());
    };
    // Many at a time share a commit.
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || (known + writer..memories).step_by(WRITERS).for_each(fill));
        }
    });
    let mut found = Found::default();
    for (corpus, kept) in &corpora {
        found.add(ask(&store, corpus, kept, Some("held_out"), 0));
    }
    store.close();
    found
}

/// Of pairs of memories of which the newer one says something else of the same thing, each
/// in a household of its language and asked about: how many older ones were shown alone, how
/// many of the newer ones name the older one, and how many pairs there are.
///
/// # Panics
/// When the corpus is not there.
pub fn contradictions(most_bytes: usize) -> (usize, usize, usize) {
    let (mut stale, mut named, mut all) = (0, 0, 0);
    each_in_household("contradictions", |store, pairs| {
        let text = |pair: &Value, place: usize| text(&pair[place]);
        for pair in pairs {
            remember(store, text(pair, 0), Vec::new());
        }
        for pair in pairs {
            let newer = remember(store, text(pair, 1), Vec::new());
            let seen = store.seen(&Viewer::server());
            let older = seen.outdated_by(newer).expect("the store is readable");
            named += usize::from(older.is_some_and(|older| older.content == text(pair, 0)));
        }
        for pair in pairs {
            let shown = shown(store, &text(pair, 2), most_bytes);
            let has = |place| shown.iter().any(|one| one.content == text(pair, place));
            stale += usize::from(has(0) && !has(1));
            all += 1;
        }
    });
    (stale, named, all)
}

/// How many of the memories that a question asks for in other words are shown, each in a
/// household of its language, and how many there are.
///
/// # Panics
/// When the corpus is not there.
pub fn synonyms(most_bytes: usize) -> (usize, usize) {
    let (mut found, mut all) = (0, 0);
    each_in_household("synonyms", |store, pairs| {
        let kept = pairs
            .iter()
            .map(|pair| remember(store, text(&pair[0]), Vec::new()));
        for (id, pair) in kept.collect::<Vec<_>>().into_iter().zip(pairs) {
            let shown = shown(store, &text(&pair[1]), most_bytes);
            found += usize::from(shown.iter().any(|one| one.id == id));
            all += 1;
        }
    });
    (found, all)
}

fn each_in_household(name: &str, mut look: impl FnMut(&Store, &[Value])) {
    let corpus = read(name);
    for (_, code) in LANGUAGES {
        let dir = TemporaryDirectory::new();
        let path = dir.path().join("hearth.db");
        let store = Store::open(&path, Clock::system()).expect("a new file");
        keep(&store, &read(code), SearchWords::With);
        look(&store, &list(&corpus[code]));
        store.close();
    }
}

fn measure_language(code: &str, questions: Questions, search_words: SearchWords) -> Found {
    let (folder, half) = match questions {
        Questions::Tuning => ("", Some("tuning")),
        Questions::HeldOut => ("", Some("held_out")),
        Questions::Other => ("other/", None),
        Questions::Indirect => ("indirect/", None),
        Questions::Recent => ("recent/", None),
    };
    let corpus = read(&format!("{folder}{code}"));
    let dir = TemporaryDirectory::new();
    let store = Store::open(&dir.path().join("hearth.db"), Clock::system()).expect("a new file");
    let kept = keep(&store, &corpus, search_words);
    let found = ask(&store, &corpus, &kept, half, 0);
    store.close();
    found
}

/// The memories of a household, each with its name in the corpus.
type Kept = Vec<(MemoryId, Value)>;

fn read(name: &str) -> Value {
    let path = Path::new(CORPUS).join(format!("{name}.json"));
    let json = fs::read(&path).expect("the corpus is in the repository");
    serde_json::from_slice(&json).expect("the corpus is JSON")
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn remember(store: &Store, content: String, search_words: Vec<String>) -> MemoryId {
    let new = NewMemory {
        content,
        search_words,
        ..NewMemory::default()
    };
    store.remember(new).expect("the store is writable").id
}

fn keep(store: &Store, corpus: &Value, search_words: SearchWords) -> Kept {
    let memories = list(&corpus["memories"]).into_iter();
    let kept = memories.map(|memory| {
        let words = match search_words {
            SearchWords::With => list(&memory["search_words"]),
            SearchWords::Without => Vec::new(),
        };
        let words = words.iter().map(text).collect();
        (
            remember(store, text(&memory["content"]), words),
            memory["id"].clone(),
        )
    });
    kept.collect()
}

fn shown(store: &Store, message: &str, most_bytes: usize) -> Vec<Memory> {
    let seen = store.seen(&Viewer::server());
    let shown = seen.relevant_memories(message, None, &HashSet::new(), most_bytes);
    shown.expect("the store is readable")
}

fn ask(store: &Store, corpus: &Value, kept: &Kept, half: Option<&str>, most_bytes: usize) -> Found {
    let mut found = Found::default();
    for question in list(&corpus["questions"]) {
        if half.is_some_and(|half| question["half"] != half) {
            continue;
        }
        let relevant = list(&question["relevant"]);
        let shown = shown(store, &text(&question["message"]), most_bytes);
        found.shown += shown.len();
        found.relevant += relevant.len();
        let is_relevant = |memory: &&Memory| {
            let known = kept.iter().find(|(id, _)| *id == memory.id);
            known.is_some_and(|(_, id)| relevant.contains(id))
        };
        found.both += shown.iter().filter(is_relevant).count();
    }
    found
}

/// Threads that remember at a time.
const WRITERS: usize = 64;

/// What fills a store, by language: a sentence, things and places.
const FILLERS: [(&str, &str, &str); 8] = [
    (
        "The THING NUMBER lies in the PLACE.",
        "key lamp manual receipt cable",
        "kitchen cellar garden attic hall",
    ),
    (
        "THING NUMBER liegt im PLACE.",
        "Schlüssel Lampe Anleitung Quittung Kabel",
        "Keller Garten Flur Bad Schuppen",
    ),
    (
        "THING NUMBER se trouve dans PLACE.",
        "clé lampe notice facture câble",
        "cave jardin couloir grenier garage",
    ),
    (
        "THING NUMBER está en PLACE.",
        "llave lámpara manual recibo cable",
        "sótano jardín pasillo desván garaje",
    ),
    (
        "THING NUMBER ligger i PLACE.",
        "nøkkel lampe håndbok kvittering kabel",
        "kjelleren hagen gangen loftet garasjen",
    ),
    (
        "THINGNUMBER放在PLACE。",
        "钥匙 台灯 说明书 收据 电线",
        "厨房 阳台 车库 书房 客厅",
    ),
    (
        "THINGNUMBERはPLACEにある。",
        "鍵 電球 説明書 領収書 電線",
        "台所 物置 車庫 書斎 玄関",
    ),
    (
        "THINGNUMBERอยู่ในPLACE",
        "กุญแจ โคมไฟ คู่มือ ใบเสร็จ สายไฟ",
        "ครัว สวน โรงรถ ห้องนอน ห้องน้ำ",
    ),
];

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

//! Measures searching a million messages. It checks no limit, so run it by hand:
//! `cargo test --release -p store search_speed -- --ignored --nocapture`.
//! With `HEARTH_SEARCH_DB=FILE` the database is created once and kept.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::testing::*;
use base::clock::Clock;

const MESSAGES: i64 = 1_000_000;
/// Words of a language; the n-th is used 1/n as often as the first.
const WORDS: usize = 50_000;
const QUERIES: usize = 200;

/// A sequence of numbers that is the same in every run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    /// A place in a list whose n-th entry comes up 1/n as often as the first.
    fn zipf(&mut self, count: usize) -> usize {
        let fraction = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((count as f64).powf(fraction) - 1.0) as usize
    }
}

fn words() -> Vec<String> {
    const COMMON: [&str; 24] = [
        "the", "to", "and", "a", "of", "i", "you", "is", "in", "it", "that", "for", "on", "what",
        "this", "was", "be", "with", "have", "at", "house", "light", "when", "please",
    ];
    const SYLLABLES: [&str; 32] = [
        "ba", "con", "da", "er", "fi", "ga", "hou", "in", "jo", "ka", "li", "ma", "ne", "on",
        "per", "qua", "re", "sta", "the", "un", "ver", "wi", "xa", "ye", "zo", "pro", "tion",
        "ment", "ing", "ly", "tha", "sho",
    ];
    let mut numbers = Numbers(7);
    let mut words: Vec<String> = COMMON.map(str::to_owned).to_vec();
    while words.len() < WORDS {
        let count = 1 + numbers.below(4);
        words.push(
            (0..count)
                .map(|_| SYLLABLES[numbers.below(SYLLABLES.len())])
                .collect(),
        );
    }
    words
}

fn fill(path: &PathBuf, words: &[String]) {
    let store = Store::open(path, Clock::system()).unwrap();
    let turn = begin(&store, Target::New, "the first");
    finish(&store, &turn, "reply");
    store.close();
    let mut connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
        .unwrap();
    let mut numbers = Numbers(42);
    let id = turn.conversation_id.as_i64();
    let from = id + 100;
    let start = Instant::now();
    for part in 0..100 {
        let transaction = connection.transaction().unwrap();
        {
            let mut insert = transaction
                .prepare(
                    "INSERT INTO messages (id, conversation_id, role, content, created_at)
                     VALUES (?1, ?2, 'user', ?3, 0)",
                )
                .unwrap();
            for place in 0..MESSAGES / 100 {
                let count = 4 + numbers.below(36);
                let text: Vec<&str> = (0..count)
                    .map(|_| words[numbers.zipf(words.len())].as_str())
                    .collect();
                let row = from + part * (MESSAGES / 100) + place;
                insert.execute((row, id, text.join(" "))).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
    println!("filled in {:?}", start.elapsed());
}

#[test]
#[ignore = "measures"]
fn a_search_in_a_million_messages() {
    let dir = TempDir::new();
    let path = match std::env::var_os("HEARTH_SEARCH_DB") {
        Some(path) => PathBuf::from(path),
        None => dir.path().join("hearth.db"),
    };
    let words = words();
    if !path.exists() {
        fill(&path, &words);
    }
    let store = Store::open(&path, Clock::system()).unwrap();
    println!("{} MB", std::fs::metadata(&path).unwrap().len() / 1_000_000);
    let mut numbers = Numbers(99);
    let mut kinds: Vec<(&str, Vec<String>)> = [
        ("a common word", "the"),
        ("one letter", "i"),
        ("a common beginning", "tha"),
        ("two letters", "th"),
        ("two common words", "the house"),
        ("three common words", "what is the"),
        ("common and typing", "the light sho"),
        ("nothing", "qwertyuiop"),
    ]
    .map(|(name, query)| (name, vec![query.to_owned(); QUERIES]))
    .to_vec();
    for (name, count) in [("one word", 1), ("two words", 2), ("three words", 3)] {
        let mut typical = || {
            let chosen: Vec<&str> = (0..count)
                .map(|_| words[numbers.zipf(words.len())].as_str())
                .collect();
            chosen.join(" ")
        };
        kinds.push((name, (0..QUERIES).map(|_| typical()).collect()));
    }
    for (name, queries) in kinds {
        let mut times: Vec<(Duration, String)> = queries
            .into_iter()
            .map(|query| {
                let start = Instant::now();
                store.search_messages(&query, 50).unwrap();
                (start.elapsed(), query)
            })
            .collect();
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100].0;
        println!(
            "{name}: p50 {:?}, p99 {:?}, longest {:?} ({})",
            at(50),
            at(99),
            times[QUERIES - 1].0,
            times[QUERIES - 1].1
        );
    }
}

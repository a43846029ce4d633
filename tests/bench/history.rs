//! Whether starting, reading, searching and remembering get slower as years gather.

use std::collections::HashSet;
use std::thread;

use base::clock::Clock;
use base::ids::ConversationId;
use rusqlite::{Connection, params};
use serde_json::json;
use store::{NewMemory, Store, Viewer};
use support::recall::{Questions, SearchWords, contradictions, measure, measure_among, synonyms};

use crate::clients::{WebSocket, one_by_one};
use crate::home::{Home, Server, directory_on_disk};
use crate::table::{Figure, Table, median, milliseconds};

const FEW: i64 = 10_000;
const MANY: i64 = 1_000_000;
const PER_CONVERSATION: i64 = 50;
const RUNS: usize = 5;
const STARTS: usize = 11;
const REQUESTS: usize = 1_000;
/// Searches of a run.
const SEARCHES: usize = 200;
/// An id's step of one millisecond.
const MILLISECOND: i64 = 1 << 22;
/// The id of the first conversation: some day in 2025.
const FIRST: i64 = 10_000_000_000 * MILLISECOND;
/// Memories of one of the largest households.
const MEMORIES: usize = 10_000;
const WRITERS: usize = 16;

/// Numbers that are the same in every run (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % limit
    }

    /// So many of 50,000 words: as in a language, the n-th is used 1/n as often as the first.
    fn words(&mut self, count: i64) -> String {
        let word = |_| {
            let fraction = self.below(1 << 24) as f64 / f64::from(1 << 24);
            match 50_000f64.powf(fraction) as u32 {
                0 | 1 => "the".to_owned(),
                rank => format!("w{rank:x}"),
            }
        };
        (0..count).map(word).collect::<Vec<String>>().join(" ")
    }
}

pub fn history(table: &mut Table) {
    let homes = [FEW, MANY].map(|messages| {
        let home = Home::new(json!({}));
        fill(&home, messages);
        // After a crash the whole database would be checked first.
        home.start().stop();
        home
    });
    let start = |home: &Home| {
        let starts = (0..STARTS).map(|_| {
            let server = home.start();
            let took = milliseconds(server.started_in);
            server.stop();
            took
        });
        median(starts)
    };
    let [few, many] = homes.each_ref().map(start);
    let figure = Figure::new("start with 1,000,000 messages", many, "ms").at_most(10.0);
    table.add(figure.floor(few, "with 10,000"));

    let servers = homes.each_ref().map(Home::start);
    let mut clients = servers.each_ref().map(Server::client);
    let mut random = Random(1);
    let mut took = [vec![], vec![]];
    for run in 0..=RUNS {
        // By turns, so that what else the machine does meets both.
        for (place, messages) in [FEW, MANY].into_iter().enumerate() {
            let latencies = one_by_one(REQUESTS, |_| {
                let id = conversation_id(random.below(messages / PER_CONVERSATION));
                let id = ConversationId::from(id);
                clients[place].ask(&format!(
                    r#"{{"type":"get_messages","conversation_id":"{id}","limit":50}}"#
                ));
            });
            // The first run fills caches.
            if run > 0 {
                took[place].push(latencies.p99());
            }
        }
    }
    let [few, many] = took.map(median);
    let figure = Figure::new("get_messages of 1,000,000, p99", many, "ms");
    table.add(figure.floor(few, "of 10,000").at_most(few * 1.5));

    let mut search = |query: &mut dyn FnMut() -> String, share| {
        let runs = (0..RUNS).map(|_| {
            let searches = one_by_one(SEARCHES, |_| search(&mut clients[1], &query()));
            searches.percentile(share)
        });
        median(runs)
    };
    let common = search(&mut || "the".to_owned(), 0.99);
    table.add(Figure::new("search for a common word, p99", common, "ms").at_most(5.0));
    for (words, most) in [(3, 60.0), (6, 150.0)] {
        let before = servers[1].processor_us();
        let took = search(&mut || random.words(words), 1.0);
        let each = (servers[1].processor_us() - before) / (RUNS * SEARCHES) as f64 / 1e3;
        let name = format!("search for {words} words, longest");
        table.add(Figure::new(&name, took, "ms").at_most(most));
        // That of a machine with nothing else to do.
        let name = "the same, processor time of each";
        table.add(Figure::new(name, each, "ms").at_most(most / 2.0));
    }
}

fn search(client: &mut WebSocket, query: &str) {
    client.ask(&format!(
        r#"{{"type":"search_messages","query":"{query}","limit":50}}"#
    ));
}

/// Conversations come one after the other, each with its messages behind it.
fn conversation_id(number: i64) -> i64 {
    FIRST + number * (PER_CONVERSATION + 1) * MILLISECOND
}

/// Writes messages straight into the database, and the index of words at the end.
fn fill(home: &Home, messages: i64) {
    let connection = Connection::open(home.database()).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; BEGIN;")
        .unwrap();
    let mut conversation = connection
        .prepare(
            "INSERT INTO conversations
                 (id, title, channel, created_at, updated_at, message_count, latest)
             VALUES (?1, ?5, 'websocket', ?2, ?2, ?3, ?4)",
        )
        .unwrap();
    let mut message = connection
        .prepare(
            "INSERT INTO messages (id, conversation_id, role, content, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .unwrap();
    let (mut random, mut titles) = (Random(42), Random(43));
    for number in 0..messages {
        let (place, now) = (number % PER_CONVERSATION, 1_750_000_000_000 + number);
        let id = conversation_id(number / PER_CONVERSATION);
        if place == 0 {
            let latest = id + PER_CONVERSATION * MILLISECOND;
            conversation
                .execute(params![id, now, PER_CONVERSATION, latest, titles.words(4)])
                .unwrap();
        }
        let role = ["user", "assistant"][(number % 2) as usize];
        let count = 4 + random.below(36);
        let row = params![
            id + (place + 1) * MILLISECOND,
            id,
            role,
            random.words(count),
            now
        ];
        message.execute(row).unwrap();
    }
    drop((conversation, message));
    let rest = "UPDATE meta SET value = 0 WHERE key IN ('indexed_to', 'titled_to');
        COMMIT;
        PRAGMA wal_checkpoint(TRUNCATE);";
    connection.execute_batch(rest).unwrap();
    drop(connection);
    // Not beside what is measured.
    let store = Store::open(&home.database(), Clock::system()).unwrap();
    while store.index_messages().unwrap() {}
    store.close();
}

/// Bytes of memories that go with a message to a model with a large window.
const SHARE: usize = 12_000;

/// Whether the memories that a message needs are found, and no others; and how long that
/// takes.
pub fn recall(table: &mut Table) {
    let (shown, all) = synonyms(SHARE);
    let percent = 100.0 * shown as f64 / all as f64;
    let name = "of at most 60 facts, those asked for in other words";
    table.add(Figure::new(name, percent, "%").at_least(92.0));
    let (stale, named, all) = contradictions(0);
    table.add(Figure::new("outdated facts shown alone", stale as f64, "").at_most(0.0));
    let percent = 100.0 * named as f64 / all as f64;
    table.add(Figure::new("outdated facts that are named", percent, "%").at_least(90.0));
    let of_few = |questions| measure(questions, SearchWords::With).1;
    for (among, found, recall, precision) in [
        ("at most 60", of_few(Questions::HeldOut), 92.0, 85.0),
        ("24, written last,", of_few(Questions::Recent), 85.0, 85.0),
        ("5,000", measure_among(5_000), 85.0, 80.0),
    ] {
        let name = format!("relevant of {among} facts that are found");
        table.add(Figure::new(&name, found.recall(), "%").at_least(recall));
        let name = format!("found of {among} facts that are relevant");
        table.add(Figure::new(&name, found.precision(), "%").at_least(precision));
    }

    let by_words = support::search::measure().into_iter();
    let by_words = by_words.map(|(language, halves)| (language, halves, 75.0));
    let by_meaning = [
        ("English with vectors", "en"),
        ("later English with vectors", "later"),
    ];
    let by_meaning = by_meaning
        .map(|(language, code)| (language, support::search::measure_by_meaning(code), 82.0));
    for (language, halves, least) in by_words.chain(by_meaning) {
        for (half, evidence) in support::search::HALVES.into_iter().zip(halves) {
            let name = format!("evidence in ten passages of a conversation, {language}, {half}");
            let figure = Figure::new(&name, evidence.found, "%").at_least(least);
            table.add(figure.floor(
                evidence.floor_with_neighbours,
                "bm25 of FTS5, with neighbours",
            ));
        }
    }

    let folder = directory_on_disk();
    let store = Store::open(&folder.path().join("hearth.db"), Clock::system()).unwrap();
    let remember = |number: usize| {
        let content = format!(
            "The {} of box {number} is kept in the {} beside item{}.",
            ["key", "lamp", "manual", "receipt", "warranty"][number / 5 % 5],
            ["kitchen", "cellar", "garden", "attic", "hall"][number % 5],
            number * 7 % 4_001,
        );
        let new = NewMemory {
            content,
            ..NewMemory::default()
        };
        store.remember(new).unwrap();
    };
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || (writer..MEMORIES).step_by(WRITERS).for_each(remember));
        }
    });
    let message = "where did we put the manual of the lamp from item77 in the cellar?";
    let took = one_by_one(21, |_| {
        let found =
            store
                .seen(&Viewer::server())
                .relevant_memories(message, None, &HashSet::new(), SHARE);
        assert!(!found.unwrap().is_empty());
    });
    table.add(Figure::new("choice among 10,000 memories, p50", took.p50(), "ms").at_most(10.0));
    store.close();
}

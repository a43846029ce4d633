//! Whether reading and searching get slower as years of messages gather.

use base::ids::ConversationId;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::home::{Home, Server, unlimited};
use crate::load::one_by_one;
use crate::statistics::{Latencies, median, milliseconds};
use crate::table::{Figure, Table, number};
use crate::websocket::WebSocket;
use crate::words::Words;

const FEW: i64 = 10_000;
const MANY: i64 = 1_000_000;
const MESSAGES_PER_CONVERSATION: i64 = 50;
const RUNS: usize = 7;
const REQUESTS: usize = 1_000;
const STARTS: usize = 5;
/// Searches of a kind.
const SEARCHES: usize = 200;
/// The word that is in most messages.
const COMMON: &str = "the";
/// An id's step of one millisecond (see ids.rs).
const MILLISECOND: i64 = 1 << 22;
/// The id of the first conversation: some day in 2025.
const FIRST: i64 = 10_000_000_000 * MILLISECOND;

pub fn measure(table: &mut Table) {
    let homes = [FEW, MANY].map(|messages| {
        let home = Home::new(json!({ "limits": unlimited() }));
        fill(&home, messages);
        (home, messages)
    });
    // After a crash the whole database would be checked first.
    let start = |home: &Home| {
        home.start().stop();
        let starts = (0..STARTS).map(|_| {
            let server = home.start();
            let took = milliseconds(server.started_in);
            server.stop();
            took
        });
        median(starts)
    };
    let [few, many] = homes.each_ref().map(|(home, _)| start(home));
    let name = format!("start with {} messages", number(MANY as f64));
    let how = format!("median of {STARTS}; floor: with {}", number(FEW as f64));
    table.add(
        Figure::new(name, many, "ms")
            .floor(few)
            .at_most(10.0)
            .how(how),
    );

    let servers = homes.each_ref().map(|(home, _)| home.start());
    for (name, ask) in [
        ("get_messages", get_messages as fn(&mut Reader)),
        ("list_conversations", list_conversations),
    ] {
        let mut readers = [0, 1].map(|place| Reader::new(&homes[place], &servers[place]));
        let mut runs = [const { Vec::<Latencies>::new() }; 2];
        // In turns, so that what else the machine does meets both.
        for run in 0..=RUNS {
            for (reader, runs) in readers.iter_mut().zip(&mut runs) {
                let latencies = one_by_one(REQUESTS, |_| ask(reader));
                // The first fills caches.
                if run > 0 {
                    runs.push(latencies);
                }
            }
        }
        let of = |part: fn(&Latencies) -> f64| {
            runs.each_ref()
                .map(|runs| median(runs.iter().map(part)) * 1000.0)
        };
        let [few, many] = of(Latencies::p50);
        table.add(Figure::new(format!("{name}, p50"), many, "us").floor(few));
        let [few, many] = of(Latencies::p99);
        table.add(
            Figure::new(format!("{name}, p99"), many, "us")
                .floor(few)
                .at_most(few * 1.5)
                .how(format!(
                    "median of {RUNS} runs of {REQUESTS} with {}; floor: with {}",
                    number(MANY as f64),
                    number(FEW as f64)
                )),
        );
    }
    let mut person = WebSocket::signed_in(servers[1].address, &homes[1].0.token);
    search(&mut person, table);
}

/// Searches as somebody makes them who has written for years.
fn search(person: &mut WebSocket, table: &mut Table) {
    let mut words = Words::new(99);
    let mut search = |query: &mut dyn FnMut() -> String| {
        one_by_one(SEARCHES, |_| {
            let query = query();
            person.ask(&format!(
                r#"{{"type":"search_messages","query":"{query}","limit":50}}"#
            ));
        })
    };
    let common = search(&mut || COMMON.to_owned());
    let random = search(&mut || words.text(3));
    let how = format!("{SEARCHES} searches in {}", number(MANY as f64));
    table.add(
        Figure::new("search for a common word, p99", common.p99(), "ms")
            .at_most(5.0)
            .how(how.clone()),
    );
    table.add(
        Figure::new(
            "search for three words, longest",
            random.percentile(1.0),
            "ms",
        )
        .at_most(20.0)
        .how(how),
    );
}

/// Somebody who looks at one page after another.
struct Reader {
    websocket: WebSocket,
    conversations: i64,
    random: u64,
}

impl Reader {
    fn new((home, messages): &(Home, i64), server: &Server) -> Reader {
        Reader {
            websocket: WebSocket::signed_in(server.address, &home.token),
            conversations: messages / MESSAGES_PER_CONVERSATION,
            random: 1,
        }
    }

    /// Any conversation (Knuth's MMIX generator picks it).
    fn conversation(&mut self) -> i64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as i64 % self.conversations
    }
}

fn get_messages(reader: &mut Reader) {
    let id = ConversationId::from(conversation_id(reader.conversation()));
    reader.websocket.ask(&format!(
        r#"{{"type":"get_messages","conversation_id":"{id}","limit":{MESSAGES_PER_CONVERSATION}}}"#
    ));
}

fn list_conversations(reader: &mut Reader) {
    reader
        .websocket
        .ask(r#"{"type":"list_conversations","limit":50}"#);
}

/// Conversations come one after the other, each with its messages behind it.
fn conversation_id(number: i64) -> i64 {
    FIRST + number * (MESSAGES_PER_CONVERSATION + 1) * MILLISECOND
}

/// Writes messages straight into the database, and the index of their words at
/// the end: faster than word by word.
fn fill(home: &Home, messages: i64) {
    let connection = Connection::open(home.database()).unwrap();
    let trigger: String = connection
        .query_row(
            "SELECT sql FROM sqlite_schema WHERE name = 'messages_fts_insert'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; DROP TRIGGER messages_fts_insert; BEGIN;")
        .unwrap();
    let conversations = messages / MESSAGES_PER_CONVERSATION;
    let each = (MESSAGES_PER_CONVERSATION + 1) * MILLISECOND;
    connection
        .execute(
            "WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
             INSERT INTO conversations
                 (id, title, channel, created_at, updated_at, message_count, latest)
             SELECT ?2 + i * ?3, 'Conversation number ' || i, 'websocket',
                 1750000000000 + i, 1750000000000 + i, ?4, ?2 + i * ?3 + ?4 * ?5
             FROM n",
            params![
                conversations,
                FIRST,
                each,
                MESSAGES_PER_CONVERSATION,
                MILLISECOND
            ],
        )
        .unwrap();
    let mut insert = connection
        .prepare(
            "INSERT INTO messages (id, conversation_id, role, content, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .unwrap();
    let mut words = Words::new(42);
    for number in 0..messages {
        let conversation = conversation_id(number / MESSAGES_PER_CONVERSATION);
        let place = number % MESSAGES_PER_CONVERSATION + 1;
        insert
            .execute(params![
                conversation + place * MILLISECOND,
                conversation,
                ["user", "assistant"][(number % 2) as usize],
                words.message(),
                1_750_000_000_000 + number,
            ])
            .unwrap();
    }
    drop(insert);
    connection
        .execute_batch(&format!(
            "{trigger};
             INSERT INTO messages_fts (messages_fts) VALUES ('rebuild');
             COMMIT;
             PRAGMA wal_checkpoint(TRUNCATE);"
        ))
        .unwrap();
}

//! Whether reading and searching get slower as years of messages gather.

use std::time::Instant;

use base::ids::ConversationId;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::home::{Home, Server, unlimited};
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
/// Searches of a run.
const SEARCHES: usize = 200;
/// How much slower it may be where not everybody sees everything.
const SLOWER_AMONG_TEN: f64 = 1.5;
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
    let among_ten = (homes[1].0.copy(), MANY);
    mix_audiences(&among_ten.0);
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
    let mut readers = [0, 1].map(|place| Reader::new(&homes[place], &servers[place]));
    for (name, ask) in [
        ("get_messages", get_messages as fn(&mut Reader)),
        ("list_conversations", list_conversations),
    ] {
        let runs = in_turns(&mut readers, REQUESTS, ask);
        let [few, many] = medians(&runs, |run| run.p50() * 1000.0);
        table.add(Figure::new(format!("{name}, p50"), many, "us").floor(few));
        let [few, many] = medians(&runs, |run| run.p99() * 1000.0);
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
    let [few, many] = servers;
    few.stop();
    let server = among_ten.0.start();
    let [_, many_reader] = readers;
    compare(&mut [many_reader, Reader::new(&among_ten, &server)], table);
    server.stop();
    many.stop();
}

/// Lists and searches where everybody sees everything, and the same where each of ten
/// people sees about half.
fn compare(readers: &mut [Reader; 2], table: &mut Table) {
    let runs = in_turns(readers, REQUESTS, list_conversations);
    let [all, half] = medians(&runs, |run| run.p50() * 1000.0);
    let name = "list_conversations among ten people, p50";
    table.add(Figure::new(name, half, "us").floor(all));
    let [all, half] = medians(&runs, |run| run.p99() * 1000.0);
    let among_ten = |name: &str, unit, all: f64, half: f64, requests: usize| {
        Figure::new(format!("{name} among ten people, p99"), half, unit)
            .floor(all)
            .at_most(all * SLOWER_AMONG_TEN)
            .how(format!(
                "median of {RUNS} runs of {requests}; floor: all for the household"
            ))
    };
    table.add(among_ten("list_conversations", "us", all, half, REQUESTS));

    let how = format!("median of {RUNS} runs of {SEARCHES}");
    let name = "search for a common word";
    let runs = in_turns(readers, SEARCHES, search_common);
    let [all, half] = medians(&runs, Latencies::p99);
    table.add(
        Figure::new(format!("{name}, p99"), all, "ms")
            .at_most(5.0)
            .how(how.clone()),
    );
    table.add(among_ten(name, "ms", all, half, SEARCHES));
    let name = "search for three words";
    let runs = in_turns(readers, SEARCHES, search_three);
    let [longest, _] = medians(&runs, |run| run.percentile(1.0));
    table.add(
        Figure::new(format!("{name}, longest"), longest, "ms")
            .at_most(20.0)
            .how(how),
    );
    let [all, half] = medians(&runs, Latencies::p99);
    table.add(among_ten(name, "ms", all, half, SEARCHES));
}

/// So many requests of two readers in a run, in turns, so that what else the machine
/// does meets both.
fn in_turns(
    readers: &mut [Reader; 2],
    requests: usize,
    ask: fn(&mut Reader),
) -> [Vec<Latencies>; 2] {
    let mut runs = [const { Vec::new() }; 2];
    for run in 0..=RUNS {
        let mut took = [const { Vec::new() }; 2];
        for _ in 0..requests {
            for (reader, took) in readers.iter_mut().zip(&mut took) {
                let began = Instant::now();
                ask(reader);
                took.push(began.elapsed());
            }
        }
        // The first fills caches.
        if run > 0 {
            for (runs, took) in runs.iter_mut().zip(took) {
                runs.push(Latencies::new(took));
            }
        }
    }
    runs
}

/// The middle of the runs of each.
fn medians(runs: &[Vec<Latencies>; 2], part: impl Fn(&Latencies) -> f64) -> [f64; 2] {
    runs.each_ref().map(|runs| median(runs.iter().map(&part)))
}

/// Somebody who looks at one page after another.
struct Reader {
    websocket: WebSocket,
    conversations: i64,
    random: u64,
    words: Words,
}

impl Reader {
    fn new((home, messages): &(Home, i64), server: &Server) -> Reader {
        Reader {
            websocket: WebSocket::signed_in(server.address, &home.token),
            conversations: messages / MESSAGES_PER_CONVERSATION,
            random: 1,
            words: Words::new(99),
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

fn search_common(reader: &mut Reader) {
    search(&mut reader.websocket, COMMON);
}

fn search_three(reader: &mut Reader) {
    search(&mut reader.websocket, &reader.words.text(3));
}

/// As somebody searches who has written for years.
fn search(websocket: &mut WebSocket, query: &str) {
    websocket.ask(&format!(
        r#"{{"type":"search_messages","query":"{query}","limit":50}}"#
    ));
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

/// Shares the conversations among the user and nine more people: four of ten are the
/// household's, four are private and two are for three people.
fn mix_audiences(home: &Home) {
    const PEOPLE: i64 = 10;
    let connection = Connection::open(home.database()).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; BEGIN;")
        .unwrap();
    let own: i64 = connection
        .query_row("SELECT min(id) FROM users", [], |row| row.get(0))
        .unwrap();
    let person = |number: i64| own + number % PEOPLE;
    for number in 1..PEOPLE {
        let name = format!("person {number}");
        connection
            .execute(
                "INSERT INTO users (id, name, folded_name, role, password_hash, created_at)
                 VALUES (?1, ?2, ?2, 'user', '-', 0)",
                params![person(number), name],
            )
            .unwrap();
    }
    let audience = |mut people: Vec<i64>| -> i64 {
        people.sort_unstable();
        let key: Vec<String> = people.iter().map(i64::to_string).collect();
        let insert = "INSERT INTO audiences (members) VALUES (?)";
        connection.execute(insert, [key.join(",")]).unwrap();
        let id = connection.last_insert_rowid();
        for person in people {
            let insert = "INSERT INTO audience_members (user_id, audience_id) VALUES (?1, ?2)";
            connection.execute(insert, [person, id]).unwrap();
        }
        id
    };
    let private: Vec<i64> = (0..PEOPLE).map(|one| audience(vec![person(one)])).collect();
    let of_three: Vec<i64> = (0..PEOPLE)
        .flat_map(|one| [(one, 1, 2), (one, 2, 5)])
        .map(|(one, second, third)| {
            audience(vec![person(one), person(one + second), person(one + third)])
        })
        .collect();
    let mut update = connection
        .prepare("UPDATE conversations SET audience_id = ?2, owner_id = ?3 WHERE id = ?1")
        .unwrap();
    for number in 0..MANY / MESSAGES_PER_CONVERSATION {
        let one = number / 10;
        let audience = match number % 10 {
            0..=3 => 1,
            4..=7 => private[(one % PEOPLE) as usize],
            _ => of_three[(one % (2 * PEOPLE)) as usize],
        };
        update
            .execute([conversation_id(number), audience, person(one)])
            .unwrap();
    }
    drop(update);
    connection
        .execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")
        .unwrap();
}

//! How well what was said is found: the long conversations in `tests/data/search`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use base::clock::Clock;
use base::people::Audience;
use base::testing::TemporaryDirectory;
use protocol::command::SearchOrder;
use rusqlite::{Connection, params};
use serde_json::{from_value, json};
use store::{Ownership, Store, Vector, Viewer};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/search");
/// Of which model the vectors are in the corpus, and how many numbers each has.
const MODEL: &str = "all-MiniLM-L6-v2";
const DIMENSIONS: usize = 384;
/// The first day of 2027, after all conversations.
const AFTER_THE_LAST: i64 = 1_798_761_600_000;
/// Passages of an answer that count.
const FIRST: usize = 10;

/// The percentages of the evidence among the first ten passages of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    pub found: f64,
    /// By the full-text index of SQLite: any of the words, by its bm25.
    pub floor: f64,
    /// The same, when the messages before and after a hit count as found.
    pub floor_with_neighbours: f64,
}

/// The halves of the questions: the ranking may be adjusted by the first, every other one, and
/// only measured by the second.
pub const HALVES: [&str; 2] = ["tuning", "held out"];

/// The languages of the corpus, with what was found of each of its [`HALVES`].
///
/// # Panics
/// When the corpus is not there.
pub fn measure() -> Vec<(&'static str, [Evidence; 2])> {
    let languages = [
        ("English", "en"),
        ("later English", "later"),
        ("German", "de"),
    ];
    languages
        .map(|(language, code)| (language, measure_language(code, None)))
        .to_vec()
}

/// What was found in one of the English corpora, of each of the [`HALVES`], with the vectors of a
/// small model, which are recorded.
///
/// # Panics
/// When the corpus is not there.
pub fn measure_by_meaning(code: &str) -> [Evidence; 2] {
    let recorded = fs::read(Path::new(CORPUS).join(format!("{code}.vectors")));
    let recorded = recorded.expect("it is in the repository");
    let vector = |bytes: &[u8]| {
        let numbers: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte as i8)).collect();
        Vector::of(&numbers, DIMENSIONS).expect("a direction")
    };
    let vectors: Vec<Vector> = recorded.chunks(DIMENSIONS).map(vector).collect();
    measure_language(code, Some(&vectors))
}

fn lines(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(Path::new(CORPUS).join(name)).expect("it is in the repository");
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(fields).collect()
}

/// `vectors` has those of the messages, and then those of the questions.
fn measure_language(code: &str, vectors: Option<&[Vector]>) -> [Evidence; 2] {
    let messages = lines(&format!("{code}.tsv"));
    let dir = TemporaryDirectory::new();
    // "In May" is the last one, whenever this runs.
    let clock = Clock::system();
    clock.set_by(AFTER_THE_LAST - clock.now().as_millis());
    let store = Store::open(&dir.path().join("hearth.db"), clock).expect("a new file");
    let mut ids = vec![];
    // A conversation for each day.
    for day in messages.chunk_by(|one, other| one[0][..10] == other[0][..10]) {
        let new = json!({
            "title": "New conversation", "created_at": day[0][0], "updated_at": day[0][0],
        });
        let ownership = Ownership {
            owner: None,
            audience: Audience::Household,
            copy_for: None,
        };
        let new = from_value(new).expect("a conversation");
        let begun = store.begin_import(&format!("corpus:{}", day[0][0]), new, vec![], ownership);
        let mut import = begun.expect("the store is writable").expect("it is new");
        let message = |line: &Vec<String>| {
            let message = json!({
                "role": "user", "timestamp": line[0], "speaker": line[1], "content": line[2],
            });
            (from_value(message).expect("a message"), None)
        };
        import
            .add(day.iter().map(message).collect())
            .expect("the store is writable");
        let id = import.id();
        import.finish().expect("the store is writable");
        let page = store
            .seen(&Viewer::server())
            .messages(id, 100, None)
            .expect("it is there");
        ids.extend(page.messages.into_iter().map(|message| message.id));
    }
    if let Some(vectors) = vectors {
        let waiting = store.messages_without_vector(MODEL, ids.len());
        let waiting = waiting.expect("the store is writable").into_iter();
        let place = |id| {
            ids.iter()
                .position(|known| *known == id)
                .expect("it is there")
        };
        let made = waiting.map(|(message, _)| (message, vectors[place(message.id)].clone()));
        store
            .keep_message_vectors(MODEL, made.collect())
            .expect("the store is writable");
    }
    let floor = Connection::open_in_memory().expect("SQLite");
    let table = "CREATE VIRTUAL TABLE messages USING fts5 (content)";
    floor.execute_batch(table).expect("FTS5");
    for line in &messages {
        let add = "INSERT INTO messages (content) VALUES (?1)";
        floor
            .execute(add, params![format!("{}: {}", line[1], line[2])])
            .expect("SQLite");
    }

    let mut halves = [(0.0, [0.0; 3]); 2];
    let questions = lines(&format!("{code}.questions.tsv"));
    for (number, question) in questions.into_iter().enumerate() {
        let evidence: Vec<usize> = question[2]
            .split(' ')
            .map(|id| id.parse().expect("a number"))
            .collect();
        let vector = vectors.map(|vectors| &vectors[messages.len() + number]);
        let found = store
            .snapshot_to_search(&Viewer::server())
            .expect("a snapshot");
        let found = found.search_messages(&question[1], vector, FIRST, SearchOrder::Relevance);
        let hits = found.expect("the store is readable").hits;
        let passages = hits
            .iter()
            .flat_map(|hit| [&hit.before, &hit.message, &hit.after]);
        let place = |message: &store::Message| ids.iter().position(|id| *id == message.id);
        let found: HashSet<usize> = passages
            .flatten()
            .filter_map(place)
            .map(|place| place + 1)
            .collect();
        let words = question[1].split(|letter: char| !letter.is_alphanumeric());
        let words: Vec<String> = words
            .filter(|word| !word.is_empty())
            .map(|word| format!("\"{word}\""))
            .collect();
        let sql = "SELECT rowid FROM messages WHERE messages MATCH ?1 ORDER BY rank LIMIT ?2";
        let mut statement = floor.prepare_cached(sql).expect("SQLite");
        let rows = statement.query_map(params![words.join(" OR "), FIRST as i64], |row| row.get(0));
        let floor: HashSet<usize> = rows
            .expect("SQLite")
            .map(|id: rusqlite::Result<i64>| id.expect("SQLite") as usize)
            .collect();
        let beside = floor.iter().flat_map(|id| [id - 1, *id, id + 1]).collect();
        let share = |found: &HashSet<usize>| {
            let both = evidence.iter().filter(|id| found.contains(id)).count();
            both as f64 / evidence.len() as f64
        };
        let (all, sums) = &mut halves[number % 2];
        *all += 1.0;
        for (sum, found) in sums.iter_mut().zip([&found, &floor, &beside]) {
            *sum += share(found);
        }
    }
    store.close();
    halves.map(|(all, sums)| {
        let [found, floor, floor_with_neighbours] = sums.map(|sum| 100.0 * sum / all);
        Evidence {
            found,
            floor,
            floor_with_neighbours,
        }
    })
}

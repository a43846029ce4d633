//! What the tests of this member share.

use std::ops::Deref;

use std::time::{Duration, Instant};

pub use std::sync::Arc;

pub use rusqlite::params;

pub(crate) use crate::engine::job::Write;
pub(crate) use crate::engine::query::Statements;
pub use crate::*;
pub(crate) use crate::{chat::*, engine::*, home::*, keep::*, out::*, people::*, sight::*};
pub use base::clock::Clock;
pub use base::error::{Error, Result};
use base::ids::{ConversationId, DeliveryId};
pub use base::reply::FinishReason;
pub use base::testing::{MAX_WAIT, TemporaryDirectory};
pub use protocol::command::SearchOrder;

/// The database of a test.
pub fn open(dir: &TemporaryDirectory) -> Store {
    open_with(dir, &Clock::system())
}

pub fn open_with(dir: &TemporaryDirectory, clock: &Clock) -> Store {
    Store::open(&dir.path().join("hearth.db"), clock.clone()).unwrap()
}

/// A new database that is removed with the value.
pub struct TestStore {
    store: Store,
    _dir: TemporaryDirectory,
}

impl TestStore {
    pub fn new() -> TestStore {
        let dir = TemporaryDirectory::new();
        TestStore {
            store: open(&dir),
            _dir: dir,
        }
    }
}

impl Deref for TestStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// A number in the database.
pub fn number(store: &Store, sql: &str) -> i64 {
    let sql = sql.to_owned();
    store
        .read(move |connection| Ok(connection.query_row(&sql, [], |row| row.get(0))?))
        .unwrap()
}

/// A watcher that never stops a task.
pub fn unwatched() -> ProgressWatcher {
    Arc::new(|_| true)
}

/// Who sees everything.
pub fn all() -> Viewer {
    Viewer::server()
}

/// The newest messages with all words.
pub fn newest_with(store: &Store, viewer: &Viewer, query: &str, limit: usize) -> Vec<Message> {
    let found = store.snapshot_to_search(viewer).unwrap().search_messages(
        query,
        None,
        limit,
        SearchOrder::Newest,
    );
    let hits = found.unwrap().hits.into_iter();
    hits.filter_map(|hit| hit.message).collect()
}

/// What the household remembers.
pub fn fact(content: &str, speaker: Option<&str>) -> NewMemory {
    NewMemory {
        content: content.to_owned(),
        speaker: speaker.map(str::to_owned),
        ..NewMemory::default()
    }
}

/// A vector in one of 8 directions.
pub fn towards(direction: usize) -> Vector {
    let numbers: [f32; 8] = std::array::from_fn(|place| match place == direction {
        true => 1.0,
        false => 0.1,
    });
    Vector::of(&numbers, 8).unwrap()
}

/// A person's message.
pub fn message(target: Target, text: &str) -> NewTurn {
    let household = Audience::Household;
    NewTurn::new(all(), target, household, "websocket", text.to_owned())
}

/// The same with an idempotency key.
pub fn keyed(scope: &str, key: &str, request: u8, target: Target) -> NewTurn {
    NewTurn {
        idempotency: Some(IdempotencyKey {
            scope: scope.to_owned(),
            key: key.to_owned(),
            request: [request; 32],
            earlier_request: None,
        }),
        ..message(target, "hello")
    }
}

/// A conversation of the webhook account `door`.
pub fn named(name: &str) -> Target {
    Target::Named {
        account: "door".to_owned(),
        name: name.to_owned(),
    }
}

/// A request to allow a tool call.
pub fn question(tool: &str) -> NewApproval {
    NewApproval {
        call_id: format!("call of {tool}"),
        tool: tool.to_owned(),
        arguments: "{}".to_owned(),
        reason: "it writes".to_owned(),
        is_outside: false,
        outside_sources: String::new(),
        may_last: true,
    }
}

pub fn decision(verdict: Verdict) -> Decision {
    Decision {
        verdict,
        by: "ann".to_owned(),
    }
}

/// A callback to the webhook account `door`.
pub fn callback(body: &str) -> NewDelivery {
    NewDelivery {
        more: Vec::new(),
        of_file: None,
        account: "door".to_owned(),
        body: {
            let body = body.to_owned();
            Box::new(|_, _| body)
        },
        delay: Duration::ZERO,
    }
}

/// What a callback sends.
pub fn body(store: &Store, id: DeliveryId) -> String {
    let sql = "SELECT body FROM deliveries WHERE id = ?";
    let read = store.read(|connection| connection.value(sql, params![id]));
    read.unwrap().unwrap()
}

/// The end of a turn with a reply.
pub fn done(reply: &str) -> TurnEnd {
    TurnEnd::Done {
        reply: reply.to_owned(),
        finish_reason: None,
    }
}

/// What the model is shown of a conversation, with the memories that the server sees.
pub fn past(store: &Store, id: ConversationId, most_turns: usize, most_bytes: usize) -> Past {
    let wanted = WantedPast {
        with_memories: true,
        most_turns,
        most_bytes,
        with_hidden: false,
    };
    store.seen(&Viewer::server()).past(id, &wanted).unwrap()
}

/// Stores a message and returns its turn.
pub fn begin(store: &Store, target: Target, text: &str) -> Turn {
    match store
        .begin_turn(message(target, text))
        .unwrap()
        .into_inner()
    {
        Begun::New { turn, .. } => turn,
        Begun::Repeat(turn) | Begun::Again(turn) => panic!("{:?} is a repeat", turn.id),
    }
}

/// Ends a turn with a reply.
pub fn finish(store: &Store, turn: &Turn, reply: &str) -> Finished {
    end(store, turn, done(reply))
}

/// Ends a turn without a callback.
pub fn end(store: &Store, turn: &Turn, end: TurnEnd) -> Finished {
    store
        .finish_turn(turn.id, end, Usage::default(), "model", None, Vec::new())
        .unwrap()
        .into_inner()
}

/// A whole turn: message and reply.
pub fn exchange(store: &Store, target: Target, text: &str, reply: &str) -> Turn {
    let turn = begin(store, target, text);
    finish(store, &turn, reply).turn
}

/// A conversation with nothing under way.
pub fn conversation(store: &Store, text: &str) -> ConversationId {
    exchange(store, Target::New, text, "a reply").conversation_id
}

/// Waits for something that another thread does.
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < deadline, "in vain waited for: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// How many transactions the write-ahead log holds: frames that end one carry
/// the size of the database (<https://www.sqlite.org/fileformat2.html>, section 4.1).
pub fn commits(dir: &TemporaryDirectory) -> usize {
    let log = std::fs::read(dir.path().join("hearth.db-wal")).unwrap();
    log[32..]
        .chunks_exact(24 + 4096)
        .filter(|frame| frame[4..8] != [0; 4])
        .count()
}

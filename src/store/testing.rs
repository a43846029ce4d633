//! What the tests of this room share.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;
use base::ids::ConversationId;
use base::secret::reference;

/// A directory that is removed with the value.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> TempDir {
        let path = std::env::temp_dir().join(format!("hearth-store-{}", reference()));
        std::fs::create_dir(&path).unwrap();
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The database of a test.
pub fn open(dir: &TempDir) -> Store {
    Store::open(&dir.path().join("hearth.db"), Clock::system()).unwrap()
}

/// A person's message.
pub fn message(target: Target, text: &str) -> NewTurn {
    NewTurn {
        target,
        channel: "websocket".to_owned(),
        account: None,
        message: text.to_owned(),
        speaker: None,
        idempotency: None,
    }
}

/// Stores a message and returns its turn.
pub fn begin(store: &Store, target: Target, text: &str) -> Turn {
    match store.begin_turn(message(target, text)).unwrap() {
        Begun::New { turn, .. } => turn,
        Begun::Repeat(turn) => panic!("{:?} is a repeat", turn.id),
    }
}

/// Ends a turn with a reply.
pub fn finish(store: &Store, turn: &Turn, reply: &str) -> Finished {
    let end = TurnEnd::Done {
        reply: reply.to_owned(),
    };
    store
        .finish_turn(turn.id, end, Usage::default(), "model", None)
        .unwrap()
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
    let deadline = Instant::now() + Duration::from_secs(10);
    while !happened() {
        assert!(Instant::now() < deadline, "in vain waited for: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// How many transactions the write-ahead log holds: frames that end one carry
/// the size of the database (<https://www.sqlite.org/fileformat2.html>, section 4.1).
pub fn commits(dir: &TempDir) -> usize {
    let log = std::fs::read(dir.path().join("hearth.db-wal")).unwrap();
    log[32..]
        .chunks_exact(24 + 4096)
        .filter(|frame| frame[4..8] != [0; 4])
        .count()
}

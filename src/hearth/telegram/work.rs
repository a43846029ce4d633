//! The updates of Telegram that are not handled yet, and who handles them.

use serde_json::{Value, json};

use base::clock::Timestamp;
use base::ids::TurnId;
use net::task::Task;

/// Chats that are handled at the same time.
const HANDLERS: usize = 4;

/// What the threads of a bot share.
#[derive(Default)]
pub struct Work {
    /// What is on disk.
    pub stored: Stored,
    /// Chats that are handled now, each by one thread.
    pub handled: Vec<i64>,
    /// Turns that run, and their chats.
    pub writing: Vec<(TurnId, String)>,
    /// Whether a thread shows it.
    pub shows_writing: bool,
    /// All threads.
    pub tasks: Vec<Task>,
}

/// What is on disk.
#[derive(Clone, Default)]
pub struct Stored {
    /// The number of the next update.
    pub next: i64,
    /// When the newest came.
    pub newest_at: Timestamp,
    /// Those that are not handled yet, the oldest first.
    pub waiting: Vec<Value>,
}

impl Stored {
    /// As it is stored.
    pub fn parse(text: &str) -> Stored {
        let mut stored: Value = serde_json::from_str(text).unwrap_or_default();
        let waiting = match stored.get_mut("waiting").map(Value::take) {
            Some(Value::Array(waiting)) => waiting,
            _ => Vec::new(),
        };
        Stored {
            // Earlier versions stored the number alone.
            next: stored["next"].as_i64().or(stored.as_i64()).unwrap_or(0),
            newest_at: Timestamp::from_millis(stored["newest_at"].as_i64().unwrap_or(0)),
            waiting,
        }
    }

    /// To be stored.
    pub fn text(&self) -> String {
        let at = self.newest_at.as_millis();
        json!({ "next": self.next, "newest_at": at, "waiting": self.waiting }).to_string()
    }
}

/// The oldest update of a chat that no thread handles, if one more may be handled.
pub fn take_next(work: &mut Work) -> Option<(i64, Value)> {
    if work.handled.len() >= HANDLERS {
        return None;
    }
    let waiting = work.stored.waiting.iter();
    let mut waiting = waiting.map(|update| (chat_of(update), update));
    let (chat, update) = waiting.find(|(chat, _)| !work.handled.contains(chat))?;
    let update = update.clone();
    work.handled.push(chat);
    Some((chat, update))
}

/// The chat of an update; that of a button is its person's.
fn chat_of(update: &Value) -> i64 {
    let message = ["message", "edited_message"].map(|kind| &update[kind]["chat"]["id"]);
    let ids = message
        .into_iter()
        .chain([&update["callback_query"]["from"]["id"]]);
    ids.filter_map(Value::as_i64).next().unwrap_or_default()
}

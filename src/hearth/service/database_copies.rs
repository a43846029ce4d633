//! Copies of the database that a connection reads part by part.

use std::time::{Duration, Instant};

use super::Service;
use super::caller::Caller;
use base::error::Error;
use base::sync::lock;
use protocol::attachment::encode;
use serde_json::{Value, json};
use store::{BackupError, FileSnapshot};

/// How long a copy of the database is kept for whoever reads it.
const STALLED: Duration = Duration::from_secs(5 * 60);

/// A copy of the database that a connection reads.
pub(super) struct Copied {
    snapshot: FileSnapshot,
    /// The part that is next.
    next: u64,
    /// When the last was asked for.
    asked: Instant,
}

impl Service {
    /// The next part of a copy of the database. Whoever asks for it writes the file, where and
    /// as which user a server in its own walls could not.
    pub(super) fn back_up(&self, caller: &Caller<'_>, part: u64) -> Result<Value, Error> {
        let failed = |error: BackupError| Error::server("the database cannot be copied", error);
        let mut snapshots = lock(&self.snapshots);
        let last = snapshots.remove(&caller.connection);
        let mut snapshot = match last.filter(|last| last.next == part) {
            _ if part == 0 => {
                FileSnapshot::open(&self.data_dir.join("hearth.db")).map_err(failed)?
            }
            Some(last) => last.snapshot,
            None => {
                return Err(Error::invalid_request(
                    "\"part\" must be 0, and then within five minutes one more than that of the \
                     last",
                ));
            }
        };
        let piece = snapshot.next_piece().map_err(failed)?;
        let (done, bytes) = (piece.is_none(), snapshot.bytes());
        if !done {
            let copied = Copied {
                snapshot,
                next: part + 1,
                asked: Instant::now(),
            };
            snapshots.insert(caller.connection, copied);
        }
        Ok(json!({
            "part": part,
            "data": encode(&piece.unwrap_or_default()),
            "done": done,
            "bytes": bytes,
        }))
    }

    /// Lets go of the copies that nobody reads on: until then the database only grows.
    pub(super) fn end_stalled_copies(&self) {
        lock(&self.snapshots).retain(|_, copied| copied.asked.elapsed() < STALLED);
    }
}

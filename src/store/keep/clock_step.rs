//! What waits when the system's clock is set: it keeps waiting as long as it had to,
//! because its due time moves with the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::params;

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::meta;
use base::clock::Timestamp;
use base::error::Result;

/// Each moves what waits by `?1` milliseconds: rows with an id above `?2`, which were
/// stored since the start by the same clock; and if the clock is set back, also
/// older rows that would wait longer for it. If it is set ahead, the others were
/// stored by a clock that was right, before a start with one that was wrong.
const WAITS: [&str; 9] = [
    "UPDATE deliveries INDEXED BY deliveries_by_state SET next_at = next_at + ?1
     WHERE state IN ('pending', 'held') AND (id > ?2 OR ?1 < 0)",
    "UPDATE notifications SET next_at = next_at + ?1, expires_at = expires_at + ?1
     WHERE finished_at IS NULL AND (id > ?2 OR ?1 < 0)",
    "UPDATE approvals INDEXED BY approvals_undecided SET expires_at = expires_at + ?1
     WHERE verdict IS NULL AND (id > ?2 OR ?1 < 0)",
    "UPDATE schedules SET next_at = next_at + ?1 WHERE is_wait AND (id > ?2 OR ?1 < 0)",
    "UPDATE attachments INDEXED BY attachments_by_expiry SET expires_at = expires_at + ?1
     WHERE expires_at IS NOT NULL AND (id > ?2 OR ?1 < 0)",
    "UPDATE tokens SET expires_at = expires_at + ?1 WHERE expires_at IS NOT NULL AND id > ?2",
    "UPDATE invitations SET expires_at = expires_at + ?1 WHERE id > ?2",
    "UPDATE idempotency INDEXED BY idempotency_by_turn SET created_at = created_at + ?1
     WHERE turn_id > ?2",
    // Retention waits, too: what was said before a clock was set right is not years old.
    "UPDATE conversations SET updated_at = updated_at + ?1 WHERE latest > ?2",
];

/// Each brings the times to `?1`, the present, that lie in the future now: else
/// retention, for one, would wait until then. The first undoes that where the clock
/// was wrong only then.
const AHEAD: [&str; 4] = [
    "UPDATE conversations NOT INDEXED
     SET updated_at = max(conversations.created_at, last.created_at)
     FROM messages last WHERE last.id = latest
         AND updated_at < max(conversations.created_at, last.created_at)
         AND ?1 >= max(conversations.created_at, last.created_at)",
    "UPDATE conversations SET updated_at = ?1 WHERE updated_at > ?1",
    "UPDATE schedules SET planned_at = ?1 WHERE planned_at > ?1",
    "UPDATE meta SET value = ?1 WHERE key = 'last_attempt' AND value > ?1",
];

/// The key in `meta` of the last attempt that a delivery repeats: after it, the
/// clock was never earlier while it was right.
const LAST_ATTEMPT: &str = "last_attempt";

/// Notes that an attempt is made now.
pub(crate) fn note_attempt(write: &Write<'_>) -> Outcome<()> {
    meta::set(write, LAST_ATTEMPT, &write.now)
}

impl Store {
    /// Moves the clock by `step` milliseconds, and with it everything that waits, in
    /// one commit: callbacks, approvals, reminders after a while, and what tokens
    /// and idempotency keys have left.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written; the clock stays.
    pub fn follow_clock(&self, step: i64) -> Result<()> {
        let (clock, since) = (self.inner.clock.clone(), self.inner.last_at_open);
        let has_moved = Arc::new(AtomicBool::new(false));
        let moved = Arc::clone(&has_moved);
        let written = self.write(move |write| {
            // On the writer's thread: every later row has a time of the moved clock.
            clock.follow(step);
            moved.store(true, Ordering::SeqCst);
            for sql in WAITS {
                write.execute(sql, params![step, since])?;
            }
            for sql in AHEAD {
                write.execute(sql, params![clock.now()])?;
            }
            Ok(())
        });
        if written.is_err() && has_moved.load(Ordering::SeqCst) {
            self.inner.clock.follow(-step);
        }
        written
    }

    /// The largest id when the database was opened: rows with larger ones were
    /// stored since.
    pub fn last_at_open(&self) -> i64 {
        self.inner.last_at_open
    }
}

/// Corrects the due times of callbacks at a start. Those that were delayed
/// because an HTTP response might replace them are due: no such response is open
/// any more. And if the clock is behind the last attempt, the others wait as long
/// as after that: a Raspberry Pi has no battery clock.
pub(crate) fn release_deliveries(write: &Write<'_>) -> Outcome<()> {
    let last: Option<Timestamp> = meta::get(write.connection, LAST_ATTEMPT)?;
    let behind = last.map_or(0, |last| last.since(write.now).as_millis() as i64);
    write.execute(
        "UPDATE deliveries INDEXED BY deliveries_by_state
         SET next_at = ?1
         WHERE state IN ('pending', 'held') AND attempts = 0 AND next_at > ?1",
        params![write.now],
    )?;
    if behind > 0 {
        write.execute(
            "UPDATE deliveries INDEXED BY deliveries_by_state
             SET next_at = next_at - ?1
             WHERE state IN ('pending', 'held') AND attempts > 0",
            params![behind],
        )?;
        // Not subtracted again at the next start.
        note_attempt(write)?;
    }
    Ok(())
}

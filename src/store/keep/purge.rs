//! Retention: deleting old rows.

use std::time::Duration;

use rusqlite::params;

use crate::chat::search::vectors::MOST_COMPARED;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::keep::idempotency;
use crate::sight::audience::{self, Readers};
use base::error::Result;
use base::ids::{self, ConversationId};

/// How long finished deliveries and notifications are kept.
const KEEP_DELIVERIES: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long results of tools are kept whole.
const KEEP_RESULTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long reminders are kept that were told and not finished.
const KEEP_TOLD: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Most rows that one job deletes, so that other writes do not wait long.
const AT_ONCE: usize = 1000;

/// Each deletes the rows up to the time `?1`, at most `?2`, oldest first. Rows are
/// in the order of their age, so it reads no more than it deletes.
const OLD_ROWS: [(&str, Duration); 7] = [
    (
        "DELETE FROM idempotency WHERE (scope, key) IN (
             SELECT scope, key FROM (
                 SELECT scope, key, created_at FROM idempotency ORDER BY turn_id LIMIT ?2)
             WHERE created_at <= ?1)",
        idempotency::HOLDS,
    ),
    (
        "DELETE FROM deliveries WHERE id IN (
             SELECT id FROM (
                 SELECT id, finished_at FROM deliveries INDEXED BY deliveries_by_state
                 WHERE state = 'delivered' ORDER BY id LIMIT ?2)
             WHERE finished_at <= ?1)",
        KEEP_DELIVERIES,
    ),
    // Dead ones are few. One that was retried is younger than its id.
    (
        "DELETE FROM deliveries WHERE id IN (
             SELECT id FROM deliveries INDEXED BY deliveries_by_state
             WHERE state = 'dead' AND finished_at <= ?1 LIMIT ?2)",
        KEEP_DELIVERIES,
    ),
    (
        "DELETE FROM notifications WHERE id IN (
             SELECT id FROM (
                 SELECT id, finished_at FROM notifications ORDER BY id LIMIT ?2)
             WHERE finished_at <= ?1)",
        KEEP_DELIVERIES,
    ),
    (
        "DELETE FROM kept_results WHERE id IN (
             SELECT id FROM (SELECT id, created_at FROM kept_results ORDER BY id LIMIT ?2)
             WHERE created_at <= ?1)",
        KEEP_RESULTS,
    ),
    // Reminders that were told, and that nobody has finished.
    (
        "DELETE FROM schedules WHERE id IN (
             SELECT id FROM schedules
             WHERE ifnull(told_at, last_at) <= ?1 AND next_at IS NULL AND trigger IS NULL LIMIT ?2)",
        KEEP_TOLD,
    ),
    (
        "DELETE FROM tokens WHERE id IN (
             SELECT id FROM tokens WHERE expires_at <= ?1 LIMIT ?2)",
        Duration::ZERO,
    ),
];

/// A conversation without a message since `?1`, except those with an unfinished turn
/// or callback. An import counts as a message.
pub(crate) const IDLE: &str = "SELECT c.id FROM audiences a
     CROSS JOIN conversations c INDEXED BY conversations_by_audience ON c.audience_id = a.id
     WHERE max(updated_at, ifnull(imported_at, 0)) <= ?1 AND latest < ?2
         AND NOT EXISTS (SELECT 1 FROM turns INDEXED BY turns_unfinished
             WHERE conversation_id = c.id AND finished_at IS NULL)
         AND NOT EXISTS (SELECT 1 FROM deliveries
             WHERE conversation_id = c.id AND finished_at IS NULL)
     LIMIT 1";

/// A conversation that nobody sees: all of its audience are removed. One of a webhook
/// account stays its own.
const SEEN_BY_NOBODY: &str = "SELECT c.id FROM audiences a
     CROSS JOIN conversations c INDEXED BY conversations_by_audience ON c.audience_id = a.id
     WHERE a.id <> 1 AND c.account IS NULL
         AND NOT EXISTS (SELECT 1 FROM audience_members WHERE audience_id = a.id)
     LIMIT 1";

/// The rows of a conversation that are deleted before it, in parts (of messages about a
/// megabyte), so that a long one does not delay other writes; and whether there are more.
const PARTS: [(&str, &str); 2] = [
    (
        "DELETE FROM messages WHERE id IN (
             SELECT id FROM (
                 SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM (
                     SELECT id, octet_length(content) AS bytes FROM messages
                     WHERE conversation_id = ?1 ORDER BY id LIMIT ?2))
             WHERE before < 1000000)",
        "SELECT 1 FROM messages WHERE conversation_id = ?",
    ),
    (
        "DELETE FROM turns WHERE id IN (
             SELECT id FROM turns WHERE conversation_id = ?1 ORDER BY id LIMIT ?2)",
        "SELECT 1 FROM turns WHERE conversation_id = ?",
    ),
];

/// What [`Store::delete_idle_conversation`] deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// There is nothing to delete.
    Nothing,
    /// Of a long conversation; the rest is still there.
    Part,
    /// This conversation, and who saw it.
    Conversation(ConversationId, Readers),
}

impl Store {
    /// Deletes a conversation without a message for `idle`, or a part of it
    /// when it is long.
    pub fn delete_idle_conversation(&self, idle: Duration) -> Result<Deleted> {
        self.write(move |write| {
            let until = write.now.minus(idle);
            // Ids rise with time, so newer rows need not be read; unless the clock was
            // ahead once, and they with it.
            let newest = match write.ids.is_ahead_of(write.now) {
                true => i64::MAX,
                false => ids::first_at(until.plus(Duration::from_secs(1))),
            };
            let found: Option<ConversationId> = write.value(IDLE, params![until, newest])?;
            let Some(id) = found else {
                return Ok(Deleted::Nothing);
            };
            let readers = audience::readers_of(write.connection, id)?;
            Ok(match delete_part(write, id)? {
                true => Deleted::Conversation(id, readers),
                false => Deleted::Part,
            })
        })
    }

    /// Deletes what nobody sees any more.
    pub fn delete_unseen(&self) -> Result<()> {
        let has_more = || {
            self.write(|write| {
                let found = write.value(SEEN_BY_NOBODY, params![])?;
                match found {
                    Some(id) => delete_part(write, id).map(|_| true),
                    None => Ok(false),
                }
            })
        };
        while has_more()? {}
        Ok(())
    }

    /// Deletes idempotency keys older than 24 hours, expired tokens, deliveries and
    /// notifications that were delivered or given up more than 30 days ago, what nobody sees any
    /// more, vectors of old messages, and what is left of uploads that have expired and
    /// attachments that were deleted.
    pub fn purge(&self) -> Result<()> {
        for (sql, age) in OLD_ROWS {
            while self.delete_old(sql, age)? == AT_ONCE {}
        }
        self.delete_unseen()?;
        self.purge_message_vectors(MOST_COMPARED)?;
        while self.purge_attachments()? {}
        Ok(())
    }

    fn delete_old(&self, sql: &'static str, age: Duration) -> Result<usize> {
        self.write(move |write| {
            let until = write.now.minus(age);
            write.execute(sql, params![until, AT_ONCE])
        })
    }
}

/// Deletes a conversation, or a part of it when it is long; returns whether all of it
/// is gone.
pub(crate) fn delete_part(write: &Write<'_>, id: ConversationId) -> Outcome<bool> {
    for (delete, more) in PARTS {
        write.execute(delete, params![id, AT_ONCE])?;
        if write.exists(more, params![id])? {
            return Ok(false);
        }
    }
    write.execute("DELETE FROM conversations WHERE id = ?", params![id])?;
    Ok(true)
}

//! Deleting what has served its time.

use std::time::Duration;

use rusqlite::params;

use super::*;

/// How long deliveries are kept after their end.
const KEEP_DELIVERIES: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most rows that one job deletes, so that other writes need not wait long.
const AT_ONCE: usize = 1000;

/// Each deletes the oldest rows up to the time `?1`, at most `?2` of them, and
/// looks at no more than it deletes: rows lie in the order of their age.
const OLD_ROWS: [(&str, Duration); 4] = [
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
    // Dead ones are few, and one that was sent again died later than its id says.
    (
        "DELETE FROM deliveries WHERE id IN (
             SELECT id FROM deliveries INDEXED BY deliveries_by_state
             WHERE state = 'dead' AND finished_at <= ?1 LIMIT ?2)",
        KEEP_DELIVERIES,
    ),
    (
        "DELETE FROM tokens WHERE id IN (
             SELECT id FROM tokens WHERE expires_at <= ?1 LIMIT ?2)",
        Duration::ZERO,
    ),
];

impl Store {
    /// Deletes idempotency keys older than 24 hours, expired tokens, and
    /// deliveries that were delivered or given up more than 30 days ago.
    pub fn purge(&self) -> Result<()> {
        for (sql, age) in OLD_ROWS {
            while self.delete_old(sql, age)? == AT_ONCE {}
        }
        Ok(())
    }

    fn delete_old(&self, sql: &'static str, age: Duration) -> Result<usize> {
        self.write(move |write| {
            let until = write.now.minus(age);
            Ok(write.execute(sql, params![until, AT_ONCE as i64])?)
        })
    }
}

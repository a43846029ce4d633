//! Unfinished work and totals.

use rusqlite::{Row, params};

use crate::database::Store;
use crate::deliveries::{DeliveryState, UNDELIVERED_BY_STATE};
use crate::query::{row, rows};
use crate::turns::{TurnState, UNFINISHED_BY_STATE};
use crate::usage::{Usage, usage_from_row};
use base::error::Result;

/// Unfinished work and totals, for `server_info`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Conversations of all channels.
    pub conversations: u64,
    /// Unfinished turns by state.
    pub turns: Vec<(TurnState, u64)>,
    /// Deliveries that are not delivered, by state.
    pub deliveries: Vec<(DeliveryState, u64)>,
    /// Tokens used since the database was created.
    pub usage: Usage,
    /// Bytes of the database file, without its write-ahead log.
    pub database_bytes: u64,
}

impl Store {
    /// Unfinished work and totals.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        self.read(|connection| {
            let count = |sql| row(connection, sql, params![], |row| row.get::<_, i64>(0));
            let conversations = count("SELECT count(*) FROM conversations")?;
            let database_bytes =
                count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?;
            Ok(Counts {
                conversations: conversations.unwrap_or_default().unsigned_abs(),
                turns: rows(connection, UNFINISHED_BY_STATE, params![], counted)?,
                deliveries: rows(connection, UNDELIVERED_BY_STATE, params![], counted)?,
                usage: row(
                    connection,
                    "SELECT ifnull(sum(input), 0) AS input, ifnull(sum(output), 0) AS output,
                            ifnull(sum(cached), 0) AS cached FROM usage",
                    params![],
                    |row| usage_from_row(row, ["input", "output", "cached"]),
                )?
                .unwrap_or_default(),
                database_bytes: database_bytes.unwrap_or_default().unsigned_abs(),
            })
        })
    }
}

/// A state and its number of rows.
fn counted<T: rusqlite::types::FromSql>(row: &Row<'_>) -> rusqlite::Result<(T, u64)> {
    Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
}

//! Unfinished work and totals.

use rusqlite::types::FromSql;
use rusqlite::{Row, ToSql, params};

use crate::chat::conversation_list::OF_ACCOUNT;
use crate::chat::turns::{TurnState, UNFINISHED_BY_STATE, UNFINISHED_STATES};
use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::files;
use crate::keep::usage::{self, Usage};
use crate::out::deliveries::{DeliveryState, UNDELIVERED_BY_STATE, UNDELIVERED_STATES};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Seen, Sight, seen_columns};
use base::error::Result;

/// Unfinished work and totals, for `server_info`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Conversations of all channels that the viewer sees.
    pub conversations: u64,
    /// Unfinished turns in them by state.
    pub turns: Vec<(TurnState, u64)>,
    /// Deliveries of them that are not delivered, by state.
    pub deliveries: Vec<(DeliveryState, u64)>,
    /// Tokens used since the database was created: by everybody for who sees
    /// everything, else those of the viewer's own turns.
    pub usage: Usage,
    /// Bytes of attachments, those that are arriving included.
    pub attachment_bytes: u64,
    /// Bytes of the database file, without its write-ahead log.
    pub database_bytes: u64,
}

impl Snapshot<'_> {
    /// Unfinished work and totals.
    pub fn counts(&self) -> Result<Counts> {
        let sight = &self.sight;
        let count = |sql: &str, parameters: &[&dyn ToSql]| {
            let count: Option<u64> = self.value(sql, parameters)?;
            Outcome::Ok(count.unwrap_or_default())
        };
        let mut conversations = 0;
        match sight.seen() {
            Seen::All => conversations = count("SELECT count(*) FROM conversations", params![])?,
            Seen::Of(audiences) => {
                for audience in audiences {
                    conversations += match sight.has_caller() {
                        false => count(COUNT_OF_AUDIENCE, params![audience])?,
                        true => {
                            let of = params![audience];
                            let seen = sight.seen_rows(OF_AUDIENCE, of, usize::MAX, |_| Ok(()))?;
                            seen.len() as u64
                        }
                    };
                }
            }
            Seen::OfAccount(account) => {
                let parameters = params![account, i64::MAX];
                let all = sight.seen_rows(OF_ACCOUNT, parameters, usize::MAX, |_| Ok(()))?;
                conversations = all.len() as u64;
            }
        }
        let connection = self.connection();
        let (turns, deliveries, usage) = match sight.seen() {
            Seen::All => (
                self.rows(UNFINISHED_BY_STATE, params![], counted)?,
                self.rows(UNDELIVERED_BY_STATE, params![], counted)?,
                usage::all(connection)?,
            ),
            Seen::Of(_) | Seen::OfAccount(_) => (
                tally(sight, UNFINISHED_STATES)?,
                tally(sight, UNDELIVERED_STATES)?,
                usage::by(connection, self.sight.viewer.user_id())?,
            ),
        };
        Ok(Counts {
            attachment_bytes: files::bytes_stored(connection)?,
            conversations,
            turns,
            deliveries,
            usage,
            database_bytes: count(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                params![],
            )?,
        })
    }
}

pub(crate) const COUNT_OF_AUDIENCE: &str = "SELECT count(*) FROM conversations \
     INDEXED BY conversations_by_audience WHERE audience_id = ?";

/// The same one by one, for one who does not see all of them.
const OF_AUDIENCE: &str = concat!(
    "SELECT ",
    seen_columns!("c"),
    "FROM conversations c INDEXED BY conversations_by_audience WHERE audience_id = ?"
);

/// How many of the rows that are seen have each state.
fn tally<T: FromSql + PartialEq>(sight: &Sight<'_>, sql: &str) -> Outcome<Vec<(T, u64)>> {
    let mut found: Vec<(T, u64)> = Vec::new();
    for state in sight.seen_rows(sql, params![], usize::MAX, |row| Ok(row.get("state")?))? {
        match found.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => found.push((state, 1)),
        }
    }
    Ok(found)
}

/// A state and its number of rows.
fn counted<T: FromSql>(row: &Row<'_>) -> Outcome<(T, u64)> {
    Ok(row.try_into()?)
}

//! The one database file: conversations, turns, deliveries, memories, schedules,
//! people.
//!
//! One writer thread commits whatever has queued in one transaction under
//! `synchronous=FULL` and answers each caller only after it; a small pool of
//! readers serves everything else. SQL lives in this room alone.
//!
//! Reads see what is committed. What is written behind (`begin_turn_behind`,
//! `mark_running`, a delivery's success) is visible to later writes at once,
//! and to reads within 5 ms. Nothing leaves the process on the strength of it:
//! what is sent, answered or run with an effect rests on a row that a reader has
//! seen, or on a write that has returned from its commit.

mod approvals;
mod backup;
mod columns;
mod commit;
mod connection;
mod conversations;
mod deliveries;
mod excerpt;
mod failure;
mod fulltext;
mod history;
mod idempotency;
mod import;
mod integrity;
mod machines;
mod memories;
mod meter;
mod people;
mod purge;
mod readers;
mod records;
mod replayed_history;
mod schedules;
mod schema;
mod tokens;
mod turns;
mod usage;
mod writer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Row, ToSql, params};

use self::failure::Outcome;
use self::readers::Readers;
use self::writer::{Answer, Write, Writer};
use base::clock::Clock;
use base::error::{Code, Error, Result};
use base::ids::Sequence;

pub use approvals::Decided;
pub use backup::{
    BackUp, BackedUp, BackupError, Contents, Enclosed, PARTIAL, back_up, inspect, unpack,
};
pub use excerpt::excerpt;
pub use import::{ImportedConversation, ImportedMessage, Importing};
pub use integrity::{
    Examination, Progress, Watch, check_at_start, check_integrity, examine, unwatched,
};
pub use meter::WriterMeter;
pub use people::look_up_role;
pub use records::*;
pub use schema::OpenError;
pub use tokens::SESSION;

/// The database. Clones share it; the writer thread ends, with everything
/// committed, when [`Store::close`] is called or the last clone is dropped.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    readers: Readers,
    writer: Writer,
    clock: Clock,
}

impl Store {
    /// Opens or creates the database at `path` and brings its schema up to date.
    /// The directory must exist; a new file is for its owner alone (0600).
    ///
    /// Errors (all name the path and what to do): not writable, not a
    /// database, damaged, or written by a newer version of Hearth.
    pub fn open(path: &Path, clock: Clock) -> Result<Store, OpenError> {
        let (connection, last) = schema::open(path)?;
        let writer = Writer::start(connection, Sequence::after(last), clock.clone())
            .map_err(|error| OpenError::thread(path, error))?;
        Ok(Store {
            inner: Arc::new(Inner {
                readers: Readers::new(path.to_owned()),
                writer,
                clock,
            }),
        })
    }

    /// Whether the last commit worked: `/health` is an error while it did not.
    /// While it did not, the writer tries again every second by itself.
    pub fn is_writable(&self) -> bool {
        self.inner.writer.is_writable()
    }

    /// What writing has come to.
    pub fn writer_meter(&self) -> &WriterMeter {
        self.inner.writer.meter()
    }

    /// How many writes wait for the writer thread.
    pub fn waiting_writes(&self) -> usize {
        self.inner.writer.waiting()
    }

    /// Waits until everything submitted so far is on disk.
    ///
    /// # Errors
    /// `server_error` when the commit failed.
    pub fn flush(&self) -> Result<()> {
        self.write(|_| Ok(()))
    }

    /// Commits what is queued, checkpoints and joins the writer. Later calls fail.
    pub fn close(&self) {
        // Readers first: SQLite empties the write-ahead log only without them.
        self.inner.readers.close();
        self.inner.writer.close();
    }

    /// A value of the `meta` table.
    pub fn meta(&self, key: &str) -> Result<Option<String>> {
        let key = key.to_owned();
        // Once, at the start: on the connection that is there.
        self.deferred_commit(move |write| {
            row(
                write.connection,
                "SELECT value FROM meta WHERE key = ?",
                params![key],
                |row| row.get(0),
            )
        })
    }

    /// Sets a value of the `meta` table, durably.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.write(move |write| {
            write.execute(
                "INSERT INTO meta (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = ?2",
                params![key, value],
            )?;
            Ok(())
        })
    }

    /// A number that changes when another process has written to the database
    /// (the command line, while the server runs): SQLite's `data_version`.
    pub fn foreign_changes(&self) -> Result<i64> {
        // On the writer's connection: to any other, its commits are foreign too.
        self.deferred_commit(|write| {
            let version = write
                .prepare("PRAGMA data_version")?
                .query_row([], |row| row.get(0))?;
            Ok(version)
        })
    }

    /// Runs statements on a reader.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        self.inner.readers.read(work)
    }

    /// Runs statements on the writer and returns when they are on disk.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.writer.call(Answer::Committed, work)
    }

    /// Runs statements on the writer and returns before they are on disk. What
    /// they find may be lost with its commit, too.
    fn deferred_commit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.writer.call(Answer::Behind, work)
    }
}

/// What calls get after [`Store::close`].
fn closed() -> Error {
    Error::new(
        Code::ServerError,
        "the database is closed: the server is stopping",
    )
    .with_status(503)
}

/// All rows of a cached statement.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    parameters: &[&dyn ToSql],
    mut from_row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Outcome<Vec<T>> {
    let mut found = Vec::new();
    each_row(connection, sql, parameters, &mut |row| {
        found.push(from_row(row)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The first row of a cached statement.
fn row<T>(
    connection: &Connection,
    sql: &str,
    parameters: &[&dyn ToSql],
    mut from_row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Outcome<Option<T>> {
    let mut found = None;
    each_row(connection, sql, parameters, &mut |row| {
        found = Some(from_row(row)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Shows the rows of a cached statement to `take`, until it has enough.
fn each_row(
    connection: &Connection,
    sql: &str,
    parameters: &[&dyn ToSql],
    take: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
) -> Outcome<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        if take(row)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// How many bytes a text of a row has, without copying it.
fn length(row: &Row<'_>, column: &str) -> rusqlite::Result<usize> {
    Ok(row.get_ref(column)?.as_bytes()?.len())
}

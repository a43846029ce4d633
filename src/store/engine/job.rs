//! A job of the writer thread, and the transaction that it runs in.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use rusqlite::{CachedStatement, Connection, ToSql};

use crate::engine::failure::{Outcome, closed};
use crate::engine::query::Statements;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::Sequence;
use base::sync::channel::Sender;
use base::sync::{Mutex, MutexGuard};

/// The open transaction, and the ids and the time for the rows of a job. Ids are
/// made nowhere else, so their order is the order of commits.
pub(crate) struct Write<'a> {
    pub connection: &'a Connection,
    pub now: Timestamp,
    pub(crate) ids: &'a Sequence,
    /// What [`Write::adds_to_the_end`] has said.
    pub(crate) adds: &'a Cell<bool>,
}

impl Write<'_> {
    /// The next id.
    pub fn id<I: From<i64>>(&self) -> I {
        self.ids.next(self.now)
    }

    /// Says that this job changes nothing of what models were shown before: it only adds to
    /// the end of a conversation. Any other is counted with its commit, and the past of all
    /// conversations is read again.
    pub fn adds_to_the_end(&self) {
        self.adds.set(true);
    }

    /// Takes that back.
    pub fn rewrites(&self) {
        self.adds.set(false);
    }

    /// A prepared statement, kept for the next time.
    pub fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// Runs a statement that returns no rows; returns how many it changed.
    pub fn execute(&self, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<usize> {
        Ok(self.prepare(sql)?.execute(parameters)?)
    }

    /// Inserts a row with these columns.
    pub fn insert(&self, table: &str, columns: &[(&str, &dyn ToSql)]) -> Outcome<()> {
        let (names, values): (Vec<&str>, Vec<&dyn ToSql>) = columns.iter().copied().unzip();
        let (names, places) = (names.join(", "), vec!["?"; values.len()].join(", "));
        // SELECT lets SQLite undo this statement alone when the disk is full, and not with VALUES
        // the whole transaction, which others are part of.
        let sql = format!("INSERT INTO {table} ({names}) SELECT {places}");
        self.run(&sql, &values)
    }

    /// Runs a statement, however many rows it changes.
    pub fn run(&self, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<()> {
        self.execute(sql, parameters).map(drop)
    }
}

impl Statements for Write<'_> {
    fn connection(&self) -> &Connection {
        self.connection
    }
}

/// Counts a commit that may have changed what models were shown before.
pub(crate) const COUNT_REWRITE: &str = "INSERT INTO meta (key, value) VALUES ('rewrites', 1)
     ON CONFLICT (key) DO UPDATE SET value = value + 1";

/// When a job's caller gets its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledge {
    /// After the commit.
    AfterCommit,
    /// As soon as the statements have run. The commit follows within
    /// `commit::DEFERRED_COMMIT`; if it fails, the write is lost.
    AfterRun,
    /// The same for statements that only read: they see the open transaction, and begin
    /// none.
    WithoutCommit,
}

/// One entry of the queue. Only its caller knows the type of its result.
pub(crate) struct Job {
    pub acknowledge: Acknowledge,
    /// Absent once it has run.
    pub work: Option<Work>,
    /// Absent when nobody waits.
    pub caller: Option<Caller>,
}

/// The statements of a job. They leave their result in a [`ResponseSlot`].
pub(crate) type Work = Box<dyn FnOnce(&Write<'_>) -> Outcome<()> + Send>;

/// A thread that waits for a job.
pub(crate) struct Caller {
    pub result: ResponseSlot<Result<()>>,
    /// Dropping it wakes the caller, even when there is no result.
    pub _done: Sender<()>,
}

/// Holds a result until its caller wakes.
pub(crate) type ResponseSlot<T> = Arc<Mutex<Option<T>>>;

impl Job {
    /// Runs it, once. A panic fails only this job.
    pub fn run(&mut self, write: &Write<'_>) -> Outcome<()> {
        let Some(work) = self.work.take() else {
            return Err(closed().into());
        };
        catch_unwind(AssertUnwindSafe(|| work(write))).unwrap_or_else(|panic| {
            let error = Error::server("the database could not be written", panic_message(&*panic));
            Err(error.into())
        })
    }

    /// Gives the caller its result and wakes it.
    pub fn answer(self, result: Result<()>) {
        match (self.caller, result) {
            (Some(caller), result) => *hold(&caller.result) = Some(result),
            (None, Err(error)) => log::warn!("a background write failed: {error}"),
            (None, Ok(())) => {}
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a job panicked: {}", text.unwrap_or("without a message"))
}

pub(crate) fn hold<T>(slot: &Mutex<Option<T>>) -> MutexGuard<'_, Option<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The one database file: conversations, turns, deliveries, memories, people.
//!
//! One writer thread commits whatever has queued in one transaction under
//! `synchronous=FULL` and answers each caller only after it; a small pool of
//! readers serves everything else. SQL lives in this room alone.

mod approvals;
mod conversations;
mod deliveries;
mod memories;
mod people;
mod records;
mod turns;

use std::path::Path;
use std::sync::Arc;

use crate::clock::Clock;
use crate::error::Result;

pub use records::*;

/// The database. Clones share it; the writer thread ends, with everything
/// committed, when [`Store::close`] is called or the last clone is dropped.
#[derive(Clone)]
pub struct Store {
    inner: Arc<()>,
}

impl Store {
    /// Opens or creates the database at `path` and brings its schema up to date.
    ///
    /// Errors (all name the path and what to do): not writable, not a
    /// database, damaged, or written by a newer version of Hearth.
    pub fn open(path: &Path, clock: Clock) -> Result<Store, OpenError> {
        let _ = (path, clock, Arc::new(()));
        todo!()
    }

    /// Whether the last commit worked: `/health` is an error while it did not.
    /// While it did not, the writer tries again every second by itself.
    pub fn is_writable(&self) -> bool {
        todo!()
    }

    /// Waits until everything submitted so far is on disk.
    pub fn flush(&self) -> Result<()> {
        todo!()
    }

    /// Commits what is queued, checkpoints and joins the writer. Later calls fail.
    pub fn close(&self) {
        todo!()
    }

    /// A value of the `meta` table.
    pub fn meta(&self, key: &str) -> Result<Option<String>> {
        let _ = key;
        todo!()
    }

    /// Sets a value of the `meta` table, durably.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        let _ = (key, value);
        todo!()
    }

    /// A number that changes when another process has written to the database
    /// (the command line, while the server runs): SQLite's `data_version`.
    pub fn foreign_changes(&self) -> Result<i64> {
        todo!()
    }
}

/// Why a database cannot be opened; its text names the path and the remedy.
#[derive(Debug)]
pub struct OpenError {}

impl std::fmt::Display for OpenError {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        todo!()
    }
}

/// The name of a session's token.
pub const SESSION: &str = "session";

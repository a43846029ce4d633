//! [`Store`], the handle on the database.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::commit::{Version, WriterMeter};
#[cfg(any(test, feature = "testing"))]
use crate::engine::commit_gate::{CommitGate, CommitHooks, Statements};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::readers::Readers;
use crate::engine::schema::{self, Cause, OpenError};
use crate::engine::writer::Writer;
use crate::home::memory_index::MemoryIndex;
use crate::keep::backup;
use base::clock::{Clock, Timestamp};
use base::error::Result;
use base::ids::{ConversationId, Sequence};
use base::sync::{Mutex, lock};

/// The database. Clones share it; the writer thread ends, with everything
/// committed, when [`Store::close`] is called or the last clone is dropped.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub readers: Arc<Readers>,
    pub writer: Writer,
    pub memory_index: MemoryIndex,
    /// What is kept of the pasts of conversations (`history::KeptPast`, which stands above).
    pub pasts: Mutex<Vec<(ConversationId, Box<dyn Any + Send>)>>,
    /// How many changes of what is shown of conversations are not committed yet.
    pub rearrangements: AtomicUsize,
    pub clock: Clock,
    pub last_at_open: i64,
    #[cfg(any(test, feature = "testing"))]
    pub commit_hooks: Arc<CommitHooks>,
}

impl Store {
    /// Opens or creates the database at `path` and brings its schema up to date, after a
    /// copy in the folder `backups` beside it (`hearth-schema-N.db`).
    /// The directory must exist; only the owner can read a new file (0600).
    ///
    /// # Errors
    /// The file cannot be written, is not a database, is damaged, or was written
    /// by a newer version of Hearth. Every error names the path and what to do.
    pub fn open(path: &Path, clock: Clock) -> Result<Store, OpenError> {
        #[cfg_attr(not(any(test, feature = "testing")), expect(unused_mut))]
        let (mut connection, last) = schema::open(path, backup::keep_before_migration)?;
        #[cfg(any(test, feature = "testing"))]
        let commit_hooks = CommitHooks::install(&mut connection).expect("hooks can be set");
        let readers = Arc::new(Readers::new(path.to_owned()));
        let ids = Sequence::after(last);
        let writer = Writer::start(connection, Arc::clone(&readers), ids, clock.clone())
            .map_err(|error| OpenError::new(path, Cause::Thread(error)))?;
        Ok(Store {
            inner: Arc::new(Inner {
                readers,
                writer,
                memory_index: MemoryIndex::default(),
                pasts: Mutex::default(),
                rearrangements: AtomicUsize::new(0),
                clock,
                last_at_open: last,
                #[cfg(any(test, feature = "testing"))]
                commit_hooks,
            }),
        })
    }

    /// Whether the last commit succeeded; `/health` reports an error otherwise.
    /// After a failure the writer retries every second.
    pub fn is_writable(&self) -> bool {
        self.inner.writer.is_writable()
    }

    /// Sizes and times of commits.
    pub fn writer_meter(&self) -> &WriterMeter {
        self.inner.writer.meter()
    }

    /// How many writes are queued.
    pub fn waiting_writes(&self) -> usize {
        self.inner.writer.waiting()
    }

    /// How often something was read from it, other than by the writer.
    pub fn reads(&self) -> u64 {
        self.inner.readers.lent()
    }

    /// Gives back the memory of what was read and written.
    pub fn release_memory(&self) {
        self.inner.readers.release();
        lock(&self.inner.pasts).clear();
        let released = self.look(|connection| {
            connection.flush_prepared_statement_cache();
            Ok(connection.execute_batch("PRAGMA shrink_memory")?)
        });
        if let Err(error) = released {
            log::debug!("memory of the database: {error}");
        }
    }

    /// Waits until everything submitted so far is committed.
    pub fn flush(&self) -> Result<()> {
        self.write(|_| Ok(()))
    }

    /// Commits what is queued, checkpoints and joins the writer. Later calls fail.
    pub fn close(&self) {
        // Readers first: SQLite can empty the write-ahead log only without them.
        self.inner.readers.close();
        self.inner.writer.close();
    }

    /// A gate before the commits that change one of `tables`. There is one.
    #[cfg(any(test, feature = "testing"))]
    pub fn commit_gate(&self, tables: &'static [&'static str]) -> CommitGate {
        self.inner.commit_hooks.gate(tables)
    }

    /// How many statements have run.
    #[cfg(any(test, feature = "testing"))]
    pub fn statements(&self) -> Statements {
        Statements {
            read: self.inner.readers.statements.load(Ordering::SeqCst),
            ..self.inner.commit_hooks.statements()
        }
    }

    /// Tells whether anything was committed since it was asked for before, here or by
    /// another process.
    pub fn version(&self) -> Result<Version> {
        // The writer looks for the commits of other processes before each job.
        self.look(|_| Ok(()))?;
        Ok(self.inner.writer.version())
    }

    /// Runs what hides or deletes messages, and returns once that is committed. Turns that
    /// begin meanwhile wait for it: they read their past from what is committed.
    pub(crate) fn rearrange<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.inner.rearrangements.fetch_add(1, Ordering::SeqCst);
        let done = work();
        self.inner.rearrangements.fetch_sub(1, Ordering::SeqCst);
        done
    }

    /// Whether what a turn would read of the past may not be committed yet.
    pub(crate) fn is_rearranging(&self) -> bool {
        self.inner.rearrangements.load(Ordering::SeqCst) > 0
    }

    /// Queues statements for the writer without waiting. A failure is logged.
    pub(crate) fn post(&self, work: impl FnOnce(&Write<'_>) -> Outcome<()> + Send + 'static) {
        self.inner.writer.post(work);
    }

    /// The clock that stamps every row.
    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }
}

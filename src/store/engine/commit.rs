//! The writer thread: group commit.
//!
//! A commit under `synchronous = FULL` costs an fsync, whatever its size. So the
//! thread commits whatever has queued in one transaction, then answers the
//! callers. The next jobs queue while it syncs.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::engine::connection::OpenFile;
use crate::engine::failure::{Failure, Outcome, is_storage_fault};
use crate::engine::job::{Acknowledge, COUNT_REWRITE, Job, Write};
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::Sequence;
use base::measure::Histogram;
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::channel::{Receiver, RecvTimeoutError};
use base::sync::{Mutex, lock};

/// Buckets for the jobs of one commit.
const JOBS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Buckets for the time of one commit, in microseconds.
const TIMES: &[u64] = &[
    50, 100, 250, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
];
/// How long a transaction stays open for more jobs when nobody waits for it.
const DEFERRED_COMMIT: Duration = Duration::from_millis(5);
/// Most jobs of one transaction: limits how long the first one waits.
const MOST_JOBS: usize = 256;
/// How often an unwritable database is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Bytes that a probe writes. More than a page, because a full disk may still have
/// room in its last block.
const PROBE_BYTES: i32 = 64 * 1024;
/// A checkpoint runs once this many frames (of 4 KiB) of the write-ahead log are
/// not in the database file.
const CHECKPOINT_FRAMES: i64 = 1000;

/// Changes whenever something is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// By this process.
    pub own: u64,
    /// By others: the command line, while the server runs.
    pub others: u64,
}

/// What the writer thread has done.
#[derive(Debug)]
pub struct WriterMeter {
    /// Jobs per transaction.
    pub batch: Histogram,
    /// Microseconds per commit.
    pub commit: Histogram,
    /// What it knows to be committed.
    pub(crate) version: Mutex<Version>,
}

impl Default for WriterMeter {
    fn default() -> WriterMeter {
        WriterMeter {
            batch: Histogram::new(JOBS),
            commit: Histogram::new(TIMES),
            version: Mutex::default(),
        }
    }
}

/// The writer thread's own state.
pub(crate) struct Committer {
    connection: Connection,
    /// Absent in memory.
    file: Option<OpenFile>,
    ids: Sequence,
    clock: Clock,
    jobs: Receiver<Box<Job>>,
    writable: Arc<AtomicBool>,
    meter: Arc<WriterMeter>,
    /// Whether the running job only adds to the end of a conversation.
    adds: Cell<bool>,
    /// SQLite's own, which changes with the writes of other processes.
    data_version: Option<i64>,
    /// When to probe next, while unwritable.
    probe_at: Instant,
}

/// The jobs of the open transaction.
#[derive(Default)]
struct Batch {
    jobs: usize,
    /// Jobs whose callers wait for the commit, with their results.
    waiting: Vec<(Box<Job>, Result<()>)>,
    /// When the first job with a deferred commit ran.
    deferred_since: Option<Instant>,
    changed: bool,
}

impl Batch {
    /// Answers the callers. `lost` replaces a success, but not an error.
    fn answer(self, lost: Option<&Error>) {
        for (job, result) in self.waiting {
            job.answer(result.and(lost.cloned().map_or(Ok(()), Err)));
        }
    }
}

impl Committer {
    pub fn new(
        connection: Connection,
        ids: Sequence,
        clock: Clock,
        jobs: Receiver<Box<Job>>,
        writable: Arc<AtomicBool>,
        meter: Arc<WriterMeter>,
    ) -> Committer {
        Committer {
            file: OpenFile::of(&connection),
            connection,
            ids,
            clock,
            jobs,
            writable,
            meter,
            adds: Cell::new(false),
            data_version: None,
            probe_at: Instant::now(),
        }
    }

    /// Works until the last sender is gone and the queue is empty.
    pub fn run(mut self) {
        loop {
            let job = if self.writable.load(Ordering::SeqCst) {
                self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else if Instant::now() >= self.probe_at {
                self.probe();
                continue;
            } else {
                self.jobs.recv_deadline(self.probe_at)
            };
            match job {
                Ok(job) => self.transaction(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // Then the file alone is the whole database and can be copied.
        if let Err(error) = self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)") {
            log::warn!("the write-ahead log could not be emptied at shutdown: {error}");
        }
    }

    fn transaction(&mut self, first: Box<Job>) {
        let mut batch = Batch::default();
        let mut next = Some(first);
        while let Some(job) = next {
            self.run_job(job, &mut batch);
            next = self.next_job(&batch);
        }
        self.commit(batch);
    }

    /// The next job of this transaction, or none when it is time to commit.
    fn next_job(&self, batch: &Batch) -> Option<Box<Job>> {
        if batch.jobs >= MOST_JOBS {
            return None;
        }
        if let Ok(job) = self.jobs.try_recv() {
            return Some(job);
        }
        let may_wait = batch.waiting.is_empty() && batch.changed;
        let since = batch.deferred_since.filter(|_| may_wait)?;
        self.jobs.recv_deadline(since + DEFERRED_COMMIT).ok()
    }

    fn run_job(&mut self, mut job: Box<Job>, batch: &mut Batch) {
        batch.jobs += 1;
        if self.connection.is_autocommit() {
            if job.acknowledge == Acknowledge::WithoutCommit {
                // An idle server commits nothing that would find out.
                if self.check_in_place().is_err() {
                    self.set_writable(false);
                }
                self.notice_other_processes();
                let result = job.run(&self.write()).map_err(Failure::on_read);
                return job.answer(result);
            }
            if let Err(error) = self.execute("BEGIN IMMEDIATE") {
                self.note_fault(&error);
                job.answer(Err(Failure::from(error).on_write()));
                return;
            }
            self.notice_other_processes();
        }
        let changes = self.connection.total_changes();
        let result = self.in_savepoint(&mut job);
        if self.connection.is_autocommit() {
            // SQLite rolls the whole transaction back after some disk errors: the
            // earlier jobs are undone too, whatever they returned.
            self.set_writable(false);
            let lost = Error::server(
                "the database could not be written",
                format_args!("{} jobs were rolled back with a failing one", batch.jobs),
            )
            .with_status(503);
            job.answer(result.and(Err(lost.clone())));
            std::mem::take(batch).answer(Some(&lost));
            return;
        }
        batch.changed |= result.is_ok() && self.connection.total_changes() != changes;
        match job.acknowledge {
            Acknowledge::AfterCommit => batch.waiting.push((job, result)),
            Acknowledge::AfterRun | Acknowledge::WithoutCommit => {
                batch.deferred_since.get_or_insert_with(Instant::now);
                job.answer(result);
            }
        }
    }

    /// Runs a job in a savepoint, so that its failure undoes it alone.
    fn in_savepoint(&mut self, job: &mut Job) -> Result<()> {
        let ran = self.try_job(job);
        if let Err(Failure::Sql(error)) = &ran {
            self.note_fault(error);
        }
        ran.map_err(Failure::on_write)
    }

    fn try_job(&self, job: &mut Job) -> Outcome<()> {
        self.execute("SAVEPOINT job")?;
        self.adds.set(false);
        let changes = self.connection.total_changes();
        let ran = job.run(&self.write());
        if self.connection.is_autocommit() {
            return ran;
        }
        let rewrites = self.connection.total_changes() != changes && !self.adds.get();
        let ran = ran.and_then(|()| match rewrites {
            true => Ok(self.execute(COUNT_REWRITE)?),
            false => Ok(()),
        });
        // RELEASE writes what the full-text index has buffered, so it can fail like
        // any statement.
        ran.and_then(|()| Ok(self.execute("RELEASE job")?))
            .inspect_err(|_| self.undo_job())
    }

    fn write(&self) -> Write<'_> {
        Write {
            connection: &self.connection,
            now: self.clock.now(),
            ids: &self.ids,
            adds: &self.adds,
        }
    }

    /// Undoes the running job, or the whole transaction if that fails.
    fn undo_job(&self) {
        let undone = self
            .execute("ROLLBACK TO job")
            .and_then(|()| self.execute("RELEASE job"));
        if undone.is_err() {
            self.roll_back();
        }
    }

    fn commit(&mut self, batch: Batch) {
        if self.connection.is_autocommit() {
            // Rolled back already, and its callers have their answers.
            return batch.answer(None);
        }
        let began = Instant::now();
        if let Err(lost) = self.check_in_place() {
            self.roll_back();
            self.set_writable(false);
            return batch.answer(Some(&lost));
        }
        match self.execute("COMMIT") {
            Ok(()) => {
                self.meter.batch.note(batch.jobs as u64);
                self.meter.commit.note_time(began.elapsed());
                if batch.changed {
                    lock(&self.meter.version).own += 1;
                    self.set_writable(true);
                }
                batch.answer(None);
                self.checkpoint_if_due();
            }
            Err(error) => {
                self.roll_back();
                self.set_writable(false);
                let lost = Failure::from(error).on_write();
                batch.answer(Some(&lost));
            }
        }
    }

    /// Checks that the file was not taken away: a commit would go to a file that
    /// nobody finds again.
    fn check_in_place(&self) -> Result<()> {
        let Some(file) = self.file.as_ref().filter(|file| !file.is_in_place()) else {
            return Ok(());
        };
        let path = file.path().display();
        if self.writable.load(Ordering::SeqCst) {
            log::error!(
                "{path} was moved, deleted or replaced while the server runs: nothing is stored; \
                 move it back, or stop the server and restore a backup"
            );
        }
        let detail = format_args!("{path} is not the file that was opened");
        Err(Error::server("the database file was taken away", detail).with_status(503))
    }

    /// Notes it if another process has written since the last transaction: the command line,
    /// while the server runs.
    fn notice_other_processes(&mut self) {
        let version = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
        let version = version.ok();
        if version.is_none() || version != self.data_version {
            if self.data_version.is_some() {
                lock(&self.meter.version).others += 1;
            }
            self.data_version = version;
        }
    }

    /// Tests whether the disk accepts data again: writes some and deletes it.
    fn probe(&mut self) {
        if self.check_in_place().is_err() {
            self.probe_at = Instant::now() + PROBE_EVERY;
            return;
        }
        let probed = self.connection.execute_batch(&format!(
            "BEGIN IMMEDIATE;
             INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', zeroblob({PROBE_BYTES}));
             COMMIT;
             DELETE FROM meta WHERE key = 'probe';"
        ));
        match probed {
            Ok(()) => {
                self.set_writable(true);
                self.checkpoint_if_due();
            }
            Err(_) => {
                self.roll_back();
                self.probe_at = Instant::now() + PROBE_EVERY;
            }
        }
    }

    /// Copies the write-ahead log into the database file once it is long enough.
    /// SQLite would do so inside a commit, before the callers have their answers.
    fn checkpoint_if_due(&self) {
        let checked =
            self.checkpoint("PRAGMA wal_checkpoint(NOOP)")
                .and_then(|frames| match frames {
                    CHECKPOINT_FRAMES.. => self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)"),
                    frames => Ok(frames),
                });
        if let Err(error) = checked {
            log::warn!("the write-ahead log could not be copied into the database: {error}");
        }
    }

    /// Runs a checkpoint and returns how many frames remain to be copied.
    fn checkpoint(&self, sql: &str) -> rusqlite::Result<i64> {
        self.connection
            .prepare_cached(sql)?
            .query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            log::error!("a failed transaction could not be rolled back: {error}");
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn note_fault(&mut self, error: &rusqlite::Error) {
        if is_storage_fault(error) {
            self.set_writable(false);
        }
    }

    fn set_writable(&mut self, writable: bool) {
        if self.writable.swap(writable, Ordering::SeqCst) == writable {
            return;
        }
        if writable {
            log::info!("the database can be written again");
        } else {
            self.probe_at = Instant::now() + PROBE_EVERY;
            log::error!("the database cannot be written; retrying every second");
        }
    }
}

//! The writer thread: group commit.
//!
//! A commit under `synchronous = FULL` costs an fsync, whatever its size. So the
//! thread commits whatever has queued in one transaction, then answers the
//! callers. The next jobs queue while it syncs.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::engine::connection::{BUSY_WAIT, OpenFile, set_journal_mode};
use crate::engine::failure::{Failure, Outcome, is_busy, is_storage_fault, unwritable};
use crate::engine::job::{Acknowledge, COUNT_REWRITE, Job, Write};
use crate::engine::readers::Readers;
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::Sequence;
use base::measure::Histogram;
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::channel::{Receiver, RecvTimeoutError};
use base::sync::{Mutex, lock, thread};

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
/// How often a lock that another program holds is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Bytes that a probe writes. More than a page, because a full disk may still have
/// room in its last block.
const PROBE_BYTES: i32 = 64 * 1024;
/// Why nothing is stored: the disk refuses it, or the file was taken away.
const UNWRITABLE: &str = "the database cannot be written";
/// Or another program is at it.
const LOCKED: &str = "another program has locked the database, so it cannot be written: end it";
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
    /// The write-ahead log and its index.
    log_and_index: Vec<OpenFile>,
    readers: Arc<Readers>,
    /// Jobs that came while another program held the lock.
    held: VecDeque<Box<Job>>,
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
        readers: Arc<Readers>,
        ids: Sequence,
        clock: Clock,
        jobs: Receiver<Box<Job>>,
        writable: Arc<AtomicBool>,
        meter: Arc<WriterMeter>,
    ) -> Committer {
        let file = OpenFile::of(&connection);
        Committer {
            log_and_index: file.as_ref().map_or_else(Vec::new, OpenFile::log_and_index),
            file,
            connection,
            readers,
            held: VecDeque::new(),
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
            let job = if let Some(job) = self.held.pop_front() {
                Ok(job)
            } else if self.writable.load(Ordering::SeqCst) {
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
    fn next_job(&mut self, batch: &Batch) -> Option<Box<Job>> {
        if batch.jobs >= MOST_JOBS {
            return None;
        }
        let queued = self.held.pop_front();
        if let Some(job) = queued.or_else(|| self.jobs.try_recv().ok()) {
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
                return self.look(*job);
            }
            if let Err(error) = self.begin() {
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
            self.set_unwritable(UNWRITABLE);
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

    /// Runs a job that only reads, outside of a transaction.
    fn look(&mut self, mut job: Job) {
        // An idle server commits nothing that would find out.
        if self
            .check_in_place()
            .and_then(|()| self.check_log())
            .is_err()
        {
            self.set_unwritable(UNWRITABLE);
        }
        self.notice_other_processes();
        let result = job.run(&self.write()).map_err(Failure::on_read);
        job.answer(result);
    }

    /// Begins a transaction. While another program holds the lock, jobs that only read go on.
    fn begin(&mut self) -> rusqlite::Result<()> {
        // All that is queued waits once: whoever comes later learns at once.
        let deadline = Instant::now() + self.patience();
        loop {
            self.connection.busy_timeout(Duration::ZERO)?;
            let begun = self.execute("BEGIN IMMEDIATE");
            self.connection.busy_timeout(BUSY_WAIT)?;
            match begun {
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    self.take_jobs(deadline.min(Instant::now() + LOCK_PAUSE));
                }
                begun => return begun,
            }
        }
    }

    /// How long to wait for what other programs or readers hold.
    fn patience(&self) -> Duration {
        match self.writable.load(Ordering::SeqCst) {
            true => BUSY_WAIT,
            false => Duration::ZERO,
        }
    }

    /// Runs the jobs that only read, and holds the others, until `deadline`.
    fn take_jobs(&mut self, deadline: Instant) {
        while self.held.len() < MOST_JOBS {
            match self.jobs.recv_deadline(deadline) {
                Ok(job) if job.acknowledge == Acknowledge::WithoutCommit => self.look(*job),
                Ok(job) => self.held.push_back(job),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        thread::sleep(deadline.saturating_duration_since(Instant::now()));
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
        let committed = self.check_in_place().and_then(|()| {
            let committed = self.execute("COMMIT");
            committed.map_err(|error| Failure::from(error).on_write())
        });
        if let Err(lost) = committed {
            self.roll_back();
            self.set_unwritable(UNWRITABLE);
            return batch.answer(Some(&lost));
        }
        self.meter.batch.note(batch.jobs as u64);
        self.meter.commit.note_time(began.elapsed());
        if batch.changed {
            lock(&self.meter.version).own += 1;
        }
        if let Err(lost) = self.check_log() {
            self.set_unwritable(UNWRITABLE);
            return batch.answer(Some(&lost));
        }
        if batch.changed {
            self.set_writable();
        }
        batch.answer(None);
        self.checkpoint_if_due();
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

    /// Checks that the write-ahead log was not taken away: without its name it ends with this
    /// process, and with it whatever was committed. If it was, that goes into the database
    /// file, and a new log is begun.
    fn check_log(&mut self) -> Result<()> {
        if self.log_and_index.iter().all(OpenFile::is_in_place) {
            return Ok(());
        }
        self.check_in_place()?;
        let copy = match self.patience() {
            Duration::ZERO => "PRAGMA wal_checkpoint(PASSIVE)",
            _ => "PRAGMA wal_checkpoint(FULL)",
        };
        let why = match self.checkpoint(copy) {
            Ok(..=0) => {
                self.renew_log();
                return Ok(());
            }
            Ok(frames) => format!("a reader keeps {frames} pages of it"),
            Err(error) => error.to_string(),
        };
        if self.writable.load(Ordering::SeqCst) {
            log::error!("the write-ahead log was taken away and cannot be saved: {why}");
        }
        Err(unwritable())
    }

    /// Begins another log, once the database file holds all that is in the old one. As long as
    /// somebody still reads, every commit goes there at once.
    fn renew_log(&mut self) {
        self.readers.release();
        let renewed = set_journal_mode(&self.connection, "delete")
            .and_then(|()| set_journal_mode(&self.connection, "wal"));
        match (renewed, &self.file) {
            (Ok(()), Some(file)) => {
                self.log_and_index = file.log_and_index();
                log::error!(
                    "{0}-wal or {0}-shm was moved, deleted or replaced while the server runs: \
                     what it held is now in {0}; leave these files alone",
                    file.path().display()
                );
            }
            (renewed, _) => log::debug!("no new write-ahead log yet: {renewed:?}"),
        }
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
        if self.check_in_place().is_ok() && self.write_probe().is_ok() && self.check_log().is_ok() {
            self.set_writable();
            self.checkpoint_if_due();
        } else {
            self.roll_back();
            self.probe_at = Instant::now() + PROBE_EVERY;
        }
    }

    fn write_probe(&mut self) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection.execute_batch(&format!(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', zeroblob({PROBE_BYTES}));
             COMMIT;
             DELETE FROM meta WHERE key = 'probe';"
        ))
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
        if is_busy(error) {
            self.set_unwritable(LOCKED);
        } else if is_storage_fault(error) {
            self.set_unwritable(UNWRITABLE);
        }
    }

    fn set_writable(&self) {
        if !self.writable.swap(true, Ordering::SeqCst) {
            log::info!("the database can be written again");
        }
    }

    fn set_unwritable(&mut self, why: &str) {
        if self.writable.swap(false, Ordering::SeqCst) {
            self.probe_at = Instant::now() + PROBE_EVERY;
            log::error!("{why}; retrying every second");
        }
    }
}

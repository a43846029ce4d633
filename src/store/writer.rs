//! The way to the one writer thread: a bounded queue of jobs and three ways
//! of waiting for what came of one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{any::Any, io};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use rusqlite::{CachedStatement, Connection};

use super::commit::Committer;
use super::failure::{Failure, Outcome, is_storage_fault};
use super::meter::WriterMeter;
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::ids::Sequence;

/// Most jobs that wait for the writer. The channel takes 32 bytes for each
/// place from the start.
const QUEUE: usize = 1024;
/// How long a caller waits for a place in the queue.
const QUEUE_WAIT: Duration = Duration::from_secs(10);
/// How long a caller waits for its answer. A commit that takes longer means a
/// disk that hangs.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// What a job works with: the open transaction, and the ids and the time of
/// what it stores. Ids are drawn here alone, so that their order is the order
/// of commits.
pub(super) struct Write<'a> {
    pub connection: &'a Connection,
    pub now: Timestamp,
    pub(super) ids: &'a Sequence,
}

impl Write<'_> {
    /// The next id.
    pub fn id<I: From<i64>>(&self) -> I {
        self.ids.next(self.now)
    }

    /// A prepared statement, kept for the next time.
    pub fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// Runs a statement that returns no rows; returns how many it changed.
    pub fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.prepare(sql)?.execute(parameters)
    }
}

/// When a job's caller is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// When it is on disk.
    Committed,
    /// As soon as it has run. It is on disk with the next commit, at the
    /// latest [`super::commit::BEHIND`] later; should that fail, it is lost.
    Behind,
}

/// What came of running a job's statements.
pub(super) enum Ran {
    /// They stay.
    Keep,
    /// They are undone, and the job's neighbours stay.
    Undo,
    /// The same, and the disk is at fault.
    Fault,
}

/// A job whose types only its caller knows.
pub(super) trait Work: Send {
    /// Runs it, once.
    fn run(&mut self, write: &Write<'_>) -> Ran;
    /// Tells the caller. `lost` takes the place of a success, not of a refusal.
    fn answer(self: Box<Self>, lost: Option<Error>);
}

/// One entry of the queue.
pub(super) struct Job {
    pub answer: Answer,
    pub work: Box<dyn Work>,
}

struct Call<T, F> {
    work: Option<F>,
    result: Option<Result<T>>,
    /// Absent when nobody waits.
    caller: Option<Caller<T>>,
}

/// Whoever waits for a job's answer.
struct Caller<T> {
    place: Place<T>,
    /// Wakes the caller by being dropped, whatever the place then holds. A
    /// channel of answers would be compiled anew for each type of them.
    _over: Sender<()>,
}

/// Where a job's answer is put down before its caller wakes.
type Place<T> = Arc<Mutex<Option<Result<T>>>>;

impl<T: Send, F: FnOnce(&Write<'_>) -> Outcome<T> + Send> Work for Call<T, F> {
    fn run(&mut self, write: &Write<'_>) -> Ran {
        let Some(work) = self.work.take() else {
            return Ran::Undo;
        };
        let (result, ran) = match catch_unwind(AssertUnwindSafe(|| work(write))) {
            Ok(Ok(value)) => (Ok(value), Ran::Keep),
            Ok(Err(failure)) => {
                let ran = match &failure {
                    Failure::Sql(error) if is_storage_fault(error) => Ran::Fault,
                    _ => Ran::Undo,
                };
                (Err(failure.on_write()), ran)
            }
            Err(panic) => {
                let error = Error::server("the database could not be written", words(&*panic));
                (Err(error), Ran::Undo)
            }
        };
        self.result = Some(result);
        ran
    }

    fn answer(self: Box<Self>, lost: Option<Error>) {
        let result = match (self.result, lost) {
            (Some(Ok(_)) | None, Some(lost)) => Err(lost),
            (Some(result), _) => result,
            (None, None) => Err(super::closed()),
        };
        match self.caller {
            Some(caller) => drop(hold(&caller.place).replace(result)),
            None => {
                if let Err(error) = result {
                    log::warn!("a write that nobody waits for failed: {error}");
                }
            }
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a job panicked: {}", text.unwrap_or("without a message"))
}

/// The handle on the writer thread.
pub(super) struct Writer {
    /// Absent once closed: the thread ends when the last sender is gone.
    jobs: RwLock<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    writable: Arc<AtomicBool>,
    meter: Arc<WriterMeter>,
}

impl Writer {
    /// Starts the writer thread, which owns `connection` from here on.
    pub fn start(connection: Connection, ids: Sequence, clock: Clock) -> io::Result<Writer> {
        let (sender, receiver) = bounded(QUEUE);
        let writable = Arc::new(AtomicBool::new(true));
        let meter = Arc::new(WriterMeter::default());
        let committer = Committer::new(
            connection,
            ids,
            clock,
            receiver,
            Arc::clone(&writable),
            Arc::clone(&meter),
        );
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || committer.run())?;
        Ok(Writer {
            jobs: RwLock::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            writable,
            meter,
        })
    }

    /// What writing has come to.
    pub fn meter(&self) -> &WriterMeter {
        &self.meter
    }

    /// How many jobs wait.
    pub fn waiting(&self) -> usize {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().map_or(0, Sender::len)
    }

    /// Whether the last commit worked.
    pub fn is_writable(&self) -> bool {
        self.writable.load(Ordering::SeqCst)
    }

    /// The queue, for tests that must know what is in it.
    #[cfg(test)]
    pub fn queue(&self) -> Sender<Job> {
        let jobs = self.jobs.read().expect("the lock is whole");
        jobs.clone().expect("the writer is open")
    }

    /// Runs a job and waits for its answer.
    pub fn call<T: Send + 'static>(
        &self,
        answer: Answer,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let place = Place::default();
        let (_over, over) = bounded(0);
        let caller = Caller {
            place: Arc::clone(&place),
            _over,
        };
        self.submit(answer, work, Some(caller))?;
        wait(&over)?;
        hold(&place).take().unwrap_or_else(|| Err(super::closed()))
    }

    /// Queues a job that nobody waits for. It is on disk as one that is
    /// answered [`Answer::Behind`]; a failure is logged.
    pub fn post(&self, work: impl FnOnce(&Write<'_>) -> Outcome<()> + Send + 'static) {
        if let Err(error) = self.submit(Answer::Behind, work, None) {
            log::warn!("a write that nobody waits for could not be queued: {error}");
        }
    }

    fn submit<T: Send + 'static>(
        &self,
        answer: Answer,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
        caller: Option<Caller<T>>,
    ) -> Result<()> {
        self.queue_up(Job {
            answer,
            work: Box::new(Call {
                work: Some(work),
                result: None,
                caller,
            }),
        })
    }

    fn queue_up(&self, job: Job) -> Result<()> {
        let jobs = self
            .jobs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(super::closed)?;
        jobs.send_timeout(job, QUEUE_WAIT)
            .map_err(|refused| match refused {
                SendTimeoutError::Timeout(_) => {
                    Error::overloaded("the database is busy: too much waits to be written", 10)
                }
                SendTimeoutError::Disconnected(_) => super::closed(),
            })
    }

    /// Commits what is queued and joins the thread.
    pub fn close(&self) {
        self.jobs
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The last handle may be dropped by the thread itself, which then ends
        // without being joined: it cannot wait for itself.
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
            && thread.join().is_err()
        {
            log::error!("the thread that writes the database ended with a panic");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

fn hold<T>(place: &Mutex<Option<Result<T>>>) -> MutexGuard<'_, Option<Result<T>>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the job to be over.
fn wait(over: &Receiver<()>) -> Result<()> {
    match over.recv_timeout(ANSWER_WAIT) {
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        Err(RecvTimeoutError::Timeout) => Err(Error::server(
            "the database did not answer in time; what was asked may still happen",
            format_args!("no answer of the writer within {ANSWER_WAIT:?}"),
        )
        .with_status(503)),
    }
}

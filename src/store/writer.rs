//! The way to the one writer thread: a bounded queue of jobs and three ways
//! of waiting for what came of one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{any::Any, io};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use rusqlite::{CachedStatement, Connection, ToSql};

use super::commit::Committer;
use super::failure::Outcome;
use super::meter::WriterMeter;
use base::clock::{Clock, Timestamp};
use base::error::{Error, Result};
use base::ids::Sequence;
use base::threads;

/// Most jobs that wait for the writer. The channel takes 16 bytes for each
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
    pub fn execute(&self, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<usize> {
        Ok(self.prepare(sql)?.execute(parameters)?)
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

/// One entry of the queue. Of what type its answer is, only its caller knows.
pub(super) struct Job {
    pub answer: Answer,
    /// Absent once it has run.
    work: Option<Work>,
    /// Absent when nobody waits.
    caller: Option<Caller>,
}

/// The statements of a job, which put what they found down for the caller.
type Work = Box<dyn FnOnce(&Write<'_>) -> Outcome<()> + Send>;

/// Whoever waits for a job to be over.
struct Caller {
    verdict: ResponseSlot<Result<()>>,
    /// Wakes the caller by being dropped, whatever the verdict then is.
    _over: Sender<()>,
}

/// Where something is put down for a caller before it wakes.
type ResponseSlot<T> = Arc<Mutex<Option<T>>>;

impl Job {
    /// Runs it, once. A panic is a failure of the job alone.
    pub fn run(&mut self, write: &Write<'_>) -> Outcome<()> {
        let Some(work) = self.work.take() else {
            return Err(super::closed().into());
        };
        catch_unwind(AssertUnwindSafe(|| work(write))).unwrap_or_else(|panic| {
            let error = Error::server("the database could not be written", words(&*panic));
            Err(error.into())
        })
    }

    /// Tells the caller what came of it.
    pub fn answer(self, result: Result<()>) {
        match (self.caller, result) {
            (Some(caller), result) => *hold(&caller.verdict) = Some(result),
            (None, Err(error)) => log::warn!("a write that nobody waits for failed: {error}"),
            (None, Ok(())) => {}
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
    jobs: RwLock<Option<Sender<Box<Job>>>>,
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
        let thread = threads::spawn(
            thread::Builder::new().name("store-writer".to_owned()),
            move || committer.run(),
        )?;
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
    pub fn queue(&self) -> Sender<Box<Job>> {
        let jobs = self.jobs.read().expect("the lock is whole");
        jobs.clone().expect("the writer is open")
    }

    /// Runs a job and waits for its answer.
    pub fn call<T: Send + 'static>(
        &self,
        answer: Answer,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let place = ResponseSlot::default();
        let found = Arc::clone(&place);
        self.wait_for(
            answer,
            Box::new(move |write| {
                *hold(&found) = Some(work(write)?);
                Ok(())
            }),
        )?;
        hold(&place).take().ok_or_else(super::closed)
    }

    /// Runs a job and waits until it is over. Apart from [`Writer::call`],
    /// which is compiled anew for each job.
    fn wait_for(&self, answer: Answer, work: Work) -> Result<()> {
        let verdict = ResponseSlot::default();
        let (_over, over) = bounded(0);
        self.queue_up(Box::new(Job {
            answer,
            work: Some(work),
            caller: Some(Caller {
                verdict: Arc::clone(&verdict),
                _over,
            }),
        }))?;
        wait(&over)?;
        hold(&verdict)
            .take()
            .unwrap_or_else(|| Err(super::closed()))
    }

    /// Queues a job that nobody waits for. It is on disk as one that is
    /// answered [`Answer::Behind`]; a failure is logged.
    pub fn post(&self, work: impl FnOnce(&Write<'_>) -> Outcome<()> + Send + 'static) {
        let queued = self.queue_up(Box::new(Job {
            answer: Answer::Behind,
            work: Some(Box::new(work)),
            caller: None,
        }));
        if let Err(error) = queued {
            log::warn!("a write that nobody waits for could not be queued: {error}");
        }
    }

    fn queue_up(&self, job: Box<Job>) -> Result<()> {
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

fn hold<T>(place: &Mutex<Option<T>>) -> MutexGuard<'_, Option<T>> {
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

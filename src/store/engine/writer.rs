//! The handle on the writer thread: a bounded queue of jobs and three ways of
//! waiting for one.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::engine::commit::{Committer, Version, WriterMeter};
use crate::engine::failure::{Outcome, closed};
use crate::engine::job::{Acknowledge, Caller, Job, ResponseSlot, Work, Write, hold};
use crate::engine::readers::{OpenSnapshot, Readers};
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::Sequence;
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use base::sync::thread::{self, JoinHandle};
use base::sync::{Mutex, RwLock, lock};

/// Most jobs that wait for the writer. The channel allocates 16 bytes for each
/// at the start.
const QUEUE: usize = 1024;

/// How long a caller waits while the queue is full.
const QUEUE_WAIT: Duration = Duration::from_secs(10);

/// How long a caller waits for its result. A commit that takes longer means that
/// the disk hangs.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// The handle on the writer thread.
pub(crate) struct Writer {
    /// Absent once closed: the thread ends when the last sender is gone.
    jobs: RwLock<Option<Sender<Box<Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    writable: Arc<AtomicBool>,
    meter: Arc<WriterMeter>,
}

impl Writer {
    /// Starts the writer thread, which owns `connection` from here on. `readers` are those of
    /// the same database.
    pub fn start(
        connection: Connection,
        readers: Arc<Readers>,
        ids: Sequence,
        clock: Clock,
    ) -> io::Result<Writer> {
        let (sender, receiver) = bounded(QUEUE);
        let writable = Arc::new(AtomicBool::new(true));
        let meter = Arc::new(WriterMeter::default());
        let committer = Committer::new(
            connection,
            readers,
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

    /// Sizes and times of commits.
    pub fn meter(&self) -> &WriterMeter {
        &self.meter
    }

    /// What was committed, as far as is known.
    pub fn version(&self) -> Version {
        *lock(&self.meter.version)
    }

    /// How many jobs wait.
    pub fn waiting(&self) -> usize {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().map_or(0, Sender::len)
    }

    /// Whether the last commit succeeded.
    pub fn is_writable(&self) -> bool {
        self.writable.load(Ordering::SeqCst)
    }

    /// The queue, for tests that must know what is in it.
    #[cfg(test)]
    pub fn queue(&self) -> Sender<Box<Job>> {
        let jobs = self.jobs.read().expect("the lock is whole");
        jobs.clone().expect("the writer is open")
    }

    /// Runs a job and waits for its result.
    pub fn call<T: Send + 'static>(
        &self,
        acknowledge: Acknowledge,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let slot = ResponseSlot::default();
        let found = Arc::clone(&slot);
        self.wait_for(
            acknowledge,
            Box::new(move |write| {
                *hold(&found) = Some(work(write)?);
                Ok(())
            }),
        )?;
        hold(&slot).take().ok_or_else(closed)
    }

    /// Runs a job and waits for its end. Separate from [`Writer::call`], which the
    /// compiler repeats for every type of result.
    fn wait_for(&self, acknowledge: Acknowledge, work: Work) -> Result<()> {
        OpenSnapshot::none_here();
        let result = ResponseSlot::default();
        let (_done, done) = bounded(0);
        self.enqueue(Box::new(Job {
            acknowledge,
            work: Some(work),
            caller: Some(Caller {
                result: Arc::clone(&result),
                _done,
            }),
        }))?;
        wait(&done)?;
        hold(&result).take().unwrap_or_else(|| Err(closed()))
    }

    /// Queues a job that nobody waits for, with a deferred commit. A failure is
    /// logged.
    pub fn post(&self, work: impl FnOnce(&Write<'_>) -> Outcome<()> + Send + 'static) {
        let queued = self.enqueue(Box::new(Job {
            acknowledge: Acknowledge::AfterRun,
            work: Some(Box::new(work)),
            caller: None,
        }));
        if let Err(error) = queued {
            log::warn!("a background write could not be queued: {error}");
        }
    }

    fn enqueue(&self, job: Box<Job>) -> Result<()> {
        let jobs = self
            .jobs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(closed)?;
        jobs.send_timeout(job, QUEUE_WAIT)
            .map_err(|refused| match refused {
                SendTimeoutError::Timeout(_) => {
                    Error::overloaded("the database is busy: too many writes are queued", 10)
                }
                SendTimeoutError::Disconnected(_) => closed(),
            })
    }

    /// Commits what is queued and joins the thread.
    pub fn close(&self) {
        self.jobs
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // Held until the thread has ended: a second caller returns no earlier.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        // The writer thread itself may drop the last handle. It cannot join itself.
        if let Some(thread) = thread.take()
            && thread.thread().id() != thread::current().id()
            && thread.join().is_err()
        {
            log::error!("the database writer thread panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Waits for the end of a job.
fn wait(done: &Receiver<()>) -> Result<()> {
    match done.recv_timeout(ANSWER_WAIT) {
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        Err(RecvTimeoutError::Timeout) => Err(Error::server(
            "the database did not answer in time; the request may still be carried out",
            format_args!("no answer of the writer within {ANSWER_WAIT:?}"),
        )
        .with_status(503)),
    }
}

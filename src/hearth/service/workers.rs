//! The threads that run turns and send what goes out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::queue::{Due, Job, TurnJob};
use super::state::{Deferred, Service};
use super::turns::requester_of;
use base::error::{Code, Error, Result};
use base::language::Said;
use base::sync::lock;
use net::cancel::Cancel;
use net::task::Task;
use store::{Destination, Outgoing, TurnEnd, TurnState, Usage};

/// How long a turn waits before it is tried again on a database that could not
/// be written: a disk that is nearly full takes some writes and not others.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// The running threads. [`Workers::stop`] ends and joins them.
pub struct Workers(Arc<Pool>);

/// Workers are started as they are needed: one that takes a job while no other
/// waits for one starts the next, up to `most`. A server that is left alone for
/// [`QUIET`] has one.
struct Pool {
    service: Arc<Service>,
    most: usize,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    tasks: Vec<Task>,
    workers: usize,
    /// Workers that run a job.
    busy: usize,
    is_stopping: bool,
}

impl Workers {
    /// Resumes what was unfinished when the server last stopped, then starts
    /// the first of at most `most` workers, and the timekeeper.
    ///
    /// # Errors
    /// The database cannot be read, or a thread cannot be started.
    pub fn start(service: &Arc<Service>, most: usize) -> Result<Workers> {
        // Before anybody can connect: what another process changes from here on is noticed.
        let version = service.store.version()?;
        let unfinished = service.resume_unfinished()?;
        if unfinished > 0 {
            log::info!("resuming {unfinished} unfinished turns");
        }
        let pool = Arc::new(Pool {
            service: Arc::clone(service),
            most: most.max(1),
            threads: Mutex::default(),
        });
        pool.start_worker(&mut pool.lock())?;
        let service = Arc::clone(service);
        let of_calendars = Arc::clone(&service);
        let keep_time = move || service.keep_time(version);
        let keep_calendars = move || of_calendars.keep_calendars();
        pool.lock().spawn("timekeeper".to_owned(), keep_time)?;
        pool.lock().spawn("calendars".to_owned(), keep_calendars)?;
        Ok(Workers(pool))
    }

    /// Gives running turns and deliveries `grace` to finish, leaves the rest for the
    /// next start, and joins the threads.
    pub fn stop(&self, grace: Duration) {
        let service = &self.0.service;
        service.queue.stop(grace);
        service.wakes.stop();
        service.calendar_wakes.stop();
        service.voices.stop();
        let tasks = {
            let mut threads = self.0.lock();
            threads.is_stopping = true;
            std::mem::take(&mut threads.tasks)
        };
        drop(tasks);
        // No turn ends any more: release those who still wait for one.
        service.hub.close();
    }
}

impl Pool {
    /// Starts one more worker.
    fn start_worker(self: &Arc<Pool>, threads: &mut Threads) -> Result<()> {
        let pool = Arc::clone(self);
        threads.spawn(format!("worker-{}", threads.workers + 1), move || {
            pool.work()
        })?;
        threads.workers += 1;
        Ok(())
    }

    fn work(self: &Arc<Pool>) {
        while let Some(job) = self.service.queue.next() {
            self.keep_a_spare();
            match job {
                Job::Turn(job, cancel) => self.service.work_on_turn(job, &cancel),
                Job::Outgoing(due) => self.service.work_on_outgoing(&due),
            }
            self.lock().busy -= 1;
        }
        let mut threads = self.lock();
        threads.workers -= 1;
        self.start_spare(&mut threads);
    }

    /// Notes that this worker is busy, and starts another if none is left to wait
    /// for the next job. If that fails, the next job waits for a worker.
    fn keep_a_spare(self: &Arc<Pool>) {
        let mut threads = self.lock();
        threads.busy += 1;
        self.start_spare(&mut threads);
    }

    fn start_spare(self: &Arc<Pool>, threads: &mut Threads) {
        let is_last = threads.busy == threads.workers && threads.workers < self.most;
        if is_last
            && !threads.is_stopping
            && let Err(error) = self.start_worker(threads)
        {
            log::warn!("{error}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Threads> {
        lock(&self.threads)
    }
}

impl Threads {
    fn spawn(&mut self, name: String, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let task = Task::start(name.clone(), &Cancel::default(), |_| body())
            .map_err(|error| Error::server(format!("thread {name} cannot be started"), error))?;
        self.tasks.retain(|task| !task.is_over());
        self.tasks.push(task);
        Ok(())
    }
}

impl Service {
    fn resume_unfinished(&self) -> Result<usize> {
        self.finish_removals();
        self.settle()?;
        let unfinished = self.store.unfinished_turns()?.uncommitted();
        let count = unfinished.len();
        let mut has_questions = false;
        for turn in unfinished {
            let requester = requester_of(&turn, None);
            let (turn, conversation, state) = (turn.id, turn.conversation_id, turn.state);
            if state == TurnState::WaitingApproval {
                has_questions = true;
                self.queue.adopt_suspended(turn, conversation, requester);
            } else {
                self.queue.submit(TurnJob {
                    turn,
                    conversation,
                    requester,
                    fresh: None,
                });
            }
        }
        if has_questions {
            self.end_lost_questions();
        }
        self.notify_of_waiting()?;
        Ok(count)
    }

    /// A panic fails its turn, not the worker.
    fn work_on_turn(&self, job: TurnJob, cancel: &Cancel) {
        let (id, conversation) = (job.turn, job.conversation);
        if catch_unwind(AssertUnwindSafe(|| self.run_turn(job, cancel))).is_ok() {
            return;
        }
        let error = Error::server(Said::of("error.turn_broke", &[]), format!("{id} panicked"));
        match self.server_snapshot().and_then(|seen| seen.turn(id)) {
            Ok(turn) => self.conclude(&turn, TurnEnd::failed(error), Usage::default(), ""),
            Err(_) => self.queue.turn_ended(id, conversation),
        }
    }

    fn work_on_outgoing(&self, due: &Due) {
        let outgoing = due.outgoing;
        let attempt = catch_unwind(AssertUnwindSafe(|| self.sender.attempt(outgoing)));
        let reach = match &attempt {
            Ok(Ok((_, reach))) => *reach,
            Ok(Err(_)) | Err(_) => None,
        };
        let now = self.clock.now();
        if self.queue.attempt_ended(due, reach, now) {
            log::warn!(
                "{} does not answer: one attempt at a time is made there until it does",
                due.receiver
            );
        }
        match attempt {
            Ok(Ok((Some(delivery), _))) => self.delivery_changed(&delivery),
            Ok(Ok((None, _))) => {}
            // Its conversation or its person has gone.
            Ok(Err(error)) if error.code() == Code::NotFound => {}
            // Still due in the database: the timekeeper offers it again.
            Ok(Err(error)) => log::warn!("{outgoing}: {error}"),
            Err(_) => log::error!("{outgoing}: panicked"),
        }
    }

    /// Queues what is due to go out, each for its receiver.
    pub(super) fn offer(&self, due: impl IntoIterator<Item = (Outgoing, Destination)>) {
        let due = due.into_iter().map(|(outgoing, to)| Due {
            outgoing,
            receiver: self.sender.receiver(&to),
        });
        let due: Vec<Due> = due.collect();
        self.queue.offer(due, self.clock.now());
    }

    /// Defers a turn until the database can be written again.
    /// Its conversation waits with it.
    pub(super) fn defer(&self, deferred: Deferred) {
        let (turn, conversation) = deferred.ids();
        let retry_at = Instant::now() + RETRY_AFTER;
        lock(&self.deferred).push((retry_at, deferred));
        self.queue.turn_deferred(turn, conversation);
    }

    /// Stops the running turns now; they continue at the next start.
    pub fn abandon_turns(&self) {
        self.queue.stop(Duration::ZERO);
    }
}

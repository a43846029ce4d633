//! The threads that run turns and deliveries, and the timekeeper, which starts what
//! is due.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::backups::Nightly;
use super::embedding::Embedding;
use super::queue::{Job, Outgoing, TurnJob};
use super::routines::Planner;
use super::state::{Deferred, Service};
use super::wakes::Wake;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::DeliveryId;
use base::sync::lock;
use base::threads;
use net::cancel::Cancel;
use store::{Deleted, Provisional, TurnEnd, TurnState, Usage, Viewer};

/// How often the timekeeper checks what has no due time.
const TICK: Duration = Duration::from_secs(1);
/// How long nobody asks for anything before memory is given back.
const QUIET: Duration = Duration::from_secs(15);
/// How often old rows are purged.
const PURGE: Duration = Duration::from_secs(3600);
/// How long a turn waits before it is tried again on a database that could not
/// be written: a disk that is nearly full takes some writes and not others.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// Deliveries fetched from the database at a time.
const DUE_AT_A_TIME: usize = 256;
/// Old conversations deleted before the timekeeper checks what else is due.
const DELETED_AT_A_TIME: usize = 20;

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
    handles: Vec<JoinHandle<()>>,
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
        service.reserve_event_numbers();
        service.finish_removals();
        service.apply_account_audiences();
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
        // Before anybody can connect: what another process changes from here on
        // is noticed.
        let data_version = service.store.foreign_changes()?.uncommitted();
        let service = Arc::clone(service);
        let keep_time = move || service.keep_time(data_version);
        pool.lock().spawn("timekeeper".to_owned(), keep_time)?;
        Ok(Workers(pool))
    }

    /// Gives running turns and deliveries `grace` to finish, leaves the rest for the
    /// next start, and joins the threads.
    pub fn stop(&self, grace: Duration) {
        let service = &self.0.service;
        service.queue.stop(grace);
        service.wakes.stop();
        service.voices.stop();
        let handles = {
            let mut threads = self.0.lock();
            threads.is_stopping = true;
            std::mem::take(&mut threads.handles)
        };
        handles.into_iter().for_each(join);
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
                Job::Deliver(Outgoing::Callback(id)) => self.service.work_on_delivery(id),
                Job::Deliver(Outgoing::Notification(id)) => self.service.work_on_notification(id),
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

fn join(thread: JoinHandle<()>) {
    let name = thread.thread().name().unwrap_or("worker").to_owned();
    if thread.join().is_err() {
        log::error!("thread {name} ended in a panic");
    }
}

impl Threads {
    fn spawn(&mut self, name: String, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = threads::spawn(std::thread::Builder::new().name(name.clone()), body)
            .map_err(|error| Error::server(format!("thread {name} cannot be started"), error))?;
        for ended in self.handles.extract_if(.., |one| one.is_finished()) {
            join(ended);
        }
        self.handles.push(thread);
        Ok(())
    }
}

/// Gives memory back when nobody has asked for anything for a while.
#[derive(Default)]
struct Rest {
    /// What had been read, committed and published at the tick before.
    seen: (u64, u64),
    /// Since when that is so; none once memory was given back.
    quiet_since: Option<Instant>,
}

impl Rest {
    fn tick(&mut self, service: &Service) {
        let seen = (service.store.reads(), service.hub.seq());
        if std::mem::replace(&mut self.seen, seen) != seen {
            self.quiet_since = Some(Instant::now());
        }
        if self
            .quiet_since
            .is_some_and(|since| since.elapsed() >= QUIET)
        {
            self.quiet_since = None;
            service.queue.dismiss_idle();
            service.store.release_memory();
        }
    }
}

impl Service {
    fn resume_unfinished(&self) -> Result<usize> {
        self.store.release_deliveries()?;
        let unfinished = self.store.unfinished_turns()?.uncommitted();
        let count = unfinished.len();
        for turn in unfinished {
            if turn.state == TurnState::WaitingApproval {
                self.queue.adopt_suspended(turn.id, turn.conversation_id);
            } else {
                self.queue.submit(TurnJob {
                    turn: turn.id,
                    conversation: turn.conversation_id,
                    fresh: None,
                });
            }
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
        let error = Error::server(
            "the turn failed inside the server",
            format!("{id} panicked"),
        );
        match self.store.turn(&Viewer::server(), id) {
            Ok(turn) => self.conclude(&turn, TurnEnd::failed(error), Usage::default(), ""),
            Err(_) => self.queue.turn_ended(id, conversation),
        }
    }

    fn work_on_delivery(&self, id: DeliveryId) {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.deliver.deliver(id)));
        self.queue.delivery_ended(id);
        match attempt {
            Ok(Ok(Some(delivery))) => self.delivery_changed(&delivery),
            Ok(Ok(None)) => {}
            // Still due in the database: the timekeeper offers it again.
            Ok(Err(error)) => log::warn!("{id}: {error}"),
            Err(_) => log::error!("{id}: panicked"),
        }
    }

    /// Defers a turn until the database can be written again.
    /// Its conversation waits with it.
    pub(super) fn defer(&self, deferred: Deferred) {
        let (turn, conversation) = deferred.ids();
        let retry_at = Instant::now() + RETRY_AFTER;
        lock(&self.deferred).push((retry_at, deferred));
        self.queue.turn_deferred(turn, conversation);
    }

    /// Makes the timekeeper check for due deliveries now.
    pub(super) fn look_for_deliveries(&self) {
        self.wakes.look();
    }

    /// Makes everything notice that the clock was advanced.
    pub fn clock_advanced(&self) {
        self.wakes.look_at_everything();
    }

    /// Stops the running turns now; they continue at the next start.
    pub fn abandon_turns(&self) {
        self.queue.stop(Duration::ZERO);
    }

    fn keep_time(self: &Arc<Service>, mut data_version: i64) {
        let mut nightly = Nightly::new();
        let mut embedding = Embedding::default();
        let mut planner = Planner::default();
        // Whether there may be conversations that are too old. Not at once: the clock
        // may be wrong until the network has been asked.
        let mut may_delete = false;
        let mut next_tick = Instant::now();
        let mut next_purge = Instant::now() + PURGE;
        let mut next_schedule = None;
        let mut rest = Rest::default();
        loop {
            let now = Instant::now();
            if let Some(step) = self.clock.step()
                && self.follow_clock(step, &mut planner)
            {
                next_tick = now;
                (may_delete, next_purge) = (false, now + PURGE);
                nightly.look_now();
            }
            if now >= next_tick {
                next_tick = now + TICK;
                self.log_failure("approvals", self.expire_approvals());
                self.connections.expire(self.clock.now());
                self.reserve_event_numbers();
                self.resume_deferred();
                self.notice_other_processes(&mut data_version);
                nightly.tick(self);
                embedding.tick(self);
                if self.next_schedule().is_some() {
                    self.log_failure("schedules", self.plan_in_time_zone(&mut planner));
                }
                next_schedule = self.next_schedule();
                rest.tick(self);
                *lock(&self.last_tick) = Instant::now();
                log::logger().flush();
            }
            if now >= next_purge {
                next_purge = now + PURGE;
                self.log_failure("purge", self.store.purge());
                self.finish_removals();
                may_delete = true;
            }
            if may_delete {
                may_delete = self.delete_idle_conversations();
            }
            if next_schedule.is_some_and(|at| at <= self.clock.now()) {
                self.log_failure("schedules", self.run_due_schedules(&mut planner));
                next_schedule = self.next_schedule();
            }
            self.log_failure("deliveries", self.offer_due_deliveries());
            self.log_failure("notifications", self.offer_due_notifications());
            let wait = self
                .time_to_next_delivery()
                .min(self.time_to(next_schedule));
            match self.wakes.wait(wait.min(TICK)) {
                Wake::Look => {}
                Wake::Everything => {
                    next_tick = Instant::now();
                    next_purge = next_tick;
                    nightly.look_now();
                }
                Wake::Stop => {
                    embedding.stop();
                    break nightly.stop();
                }
            }
        }
    }

    /// Follows the system's clock, which was set by `step` milliseconds, and corrects
    /// what waits. Returns whether that worked; the next round tries it again.
    fn follow_clock(&self, step: i64, planner: &mut Planner) -> bool {
        if !self.store.is_writable() {
            return false;
        }
        if let Err(error) = self.store.follow_clock(step) {
            log::warn!("the clock was set, and the times of what waits are not corrected: {error}");
            return false;
        }
        self.connections.clock_set(step, self.store.last_at_open());
        let direction = if step < 0 { "back" } else { "ahead" };
        log::info!(
            "the clock was set {direction} by {:?}; what waits, waits as long as before",
            Duration::from_millis(step.unsigned_abs())
        );
        self.log_failure("schedules", self.plan_after_step(step, planner));
        true
    }

    /// Deletes some of the conversations that are older than
    /// `retention.conversations_days`; returns whether there may be more.
    fn delete_idle_conversations(&self) -> bool {
        let Some(days) = self.settings.current().retention.conversations_days else {
            return false;
        };
        let idle = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        for _ in 0..DELETED_AT_A_TIME {
            match self.store.delete_idle_conversation(idle) {
                Ok(Deleted::Part) => {}
                Ok(Deleted::Conversation(id, readers)) => {
                    self.hub.delete(id, readers, &self.queue.conversations());
                }
                Ok(Deleted::Nothing) => return false,
                Err(error) => {
                    log::warn!("retention: {error}");
                    return false;
                }
            }
        }
        true
    }

    fn log_failure(&self, what: &str, result: Result<()>) {
        if let Err(error) = result {
            log::warn!("{what}: {error}");
        }
    }

    fn offer_due_deliveries(&self) -> Result<()> {
        let due = self.store.due_deliveries(self.clock.now(), DUE_AT_A_TIME)?;
        self.queue
            .offer_deliveries(due.into_iter().map(|delivery| delivery.id));
        Ok(())
    }

    fn time_to_next_delivery(&self) -> Duration {
        // What is already due has been offered; the next tick or wake-up checks it
        // again.
        let next_at = self.store.next_delivery_at();
        self.time_to(next_at.map_or(None, Provisional::uncommitted))
    }

    fn time_to(&self, due: Option<Timestamp>) -> Duration {
        match due {
            Some(at) if at > self.clock.now() => at.since(self.clock.now()),
            _ => TICK,
        }
    }

    fn resume_deferred(&self) {
        if !self.store.is_writable() {
            return;
        }
        let now = Instant::now();
        let due: Vec<Deferred> = {
            let mut deferred = lock(&self.deferred);
            deferred
                .extract_if(.., |(retry_at, _)| *retry_at <= now)
                .map(|(_, one)| one)
                .collect()
        };
        for deferred in due {
            match deferred {
                Deferred::Run { turn, conversation } => self.queue.resume(turn, conversation),
                Deferred::Conclude {
                    turn,
                    end,
                    usage,
                    model,
                } => {
                    self.conclude(&turn, end, usage, &model);
                }
            }
        }
    }

    /// The command line writes to the database while the server runs: tokens
    /// that it revoked close their connections.
    fn notice_other_processes(&self, known: &mut i64) {
        let version = match self.store.foreign_changes() {
            Ok(version) => version.uncommitted(),
            Err(error) => return log::warn!("database: {error}"),
        };
        if std::mem::replace(known, version) != version {
            self.close_revoked();
            self.finish_removals();
        }
    }
}

//! The timekeeper: starts what is due, and looks after what has no time of its own.
//!
//! It asks the database when something is next due, and asks again when something was
//! committed, when it is woken, and every [`LOOK`]: clocks are set and machines sleep. So an
//! idle server runs one statement a second, which finds what other processes have written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::backups::Nightly;
use super::embedding::Embedding;
use super::routines::Planner;
use super::state::{Deferred, Service};
use super::wakes::Wake;
use base::clock::Timestamp;
use base::error::Result;
use base::sync::lock;
#[cfg(feature = "tls")]
use net::tls::household;
use store::{Deleted, Provisional, Version};

/// How often it looks at what has no due time.
const TICK: Duration = Duration::from_secs(1);
/// How often it asks at least when something is due.
const LOOK: Duration = Duration::from_secs(30);
/// How long nobody asks for anything before memory is given back.
const QUIET: Duration = Duration::from_secs(15);
/// How often old rows are purged.
const PURGE: Duration = Duration::from_secs(3600);
/// What goes out, fetched from the database at a time, of each webhook account.
const DUE_AT_A_TIME: usize = 64;
/// How long new messages wait to be indexed together, and what was left at a start. A search
/// does not wait for that.
const INDEX_AFTER: Duration = Duration::from_secs(20);
/// How long others may write between two parts of the index of messages.
const INDEX_PAUSE: Duration = Duration::from_millis(5);
/// Old conversations deleted before it looks at what else is due.
const DELETED_AT_A_TIME: usize = 20;

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
    /// Has what is due looked for now.
    pub(super) fn look_for_due(&self) {
        self.wakes.look();
    }

    /// Makes everything notice that the clock was advanced.
    pub fn clock_advanced(&self) {
        self.wakes.look_at_everything();
        self.calendar_wakes.look();
    }

    /// Runs until the server stops. `version` is that of the database before anybody could
    /// connect.
    pub(super) fn keep_time(self: &Arc<Service>, mut version: Version) {
        let mut nightly = Nightly::new();
        let mut embedding = Embedding::default();
        let mut planner = Planner::default();
        let mut rest = Rest::default();
        // Whether there may be conversations that are too old. Not at once: the clock
        // may be wrong until the network has been asked.
        let mut may_delete = false;
        // When to index messages, if there may be any that are not.
        let mut index_at = Some(Instant::now() + INDEX_AFTER);
        let mut next_purge = self.clock.now().plus(PURGE);
        let mut next_tick = Instant::now();
        let mut next_look = Instant::now();
        let mut next_due = None;
        for guest in self.store.blind_guests().unwrap_or_default() {
            log::info!("guest {guest} sees no conversation: none names them; see `hearth doctor`");
        }
        loop {
            let now = Instant::now();
            if let Some(step) = self.clock.step()
                && self.follow_clock(step, &mut planner)
            {
                (next_tick, next_look) = (now, now);
                (may_delete, next_purge) = (false, self.clock.now().plus(PURGE));
                nightly.look_now();
            }
            if now >= next_tick {
                next_tick = now + TICK;
                let has_changed = self.notice_changes(&mut version);
                if has_changed {
                    next_look = now;
                    index_at.get_or_insert(now + INDEX_AFTER);
                }
                self.connections.expire(self.clock.now());
                self.end_stalled_copies();
                self.refill_event_numbers();
                self.resume_deferred();
                self.observed_tick();
                nightly.tick(self);
                embedding.tick(self, has_changed);
                rest.tick(self);
                *lock(&self.last_tick) = Instant::now();
                log::logger().flush();
            }
            if self.is_due(next_purge) {
                next_purge = self.clock.now().plus(PURGE);
                self.logged("purge", self.store.purge());
                self.finish_removals();
                #[cfg(feature = "tls")]
                self.renew_certificate();
                may_delete = true;
            }
            if may_delete {
                may_delete = self.delete_idle_conversations();
            }
            if index_at.is_some_and(|at| at <= now) {
                let indexed = self.logged("search index", self.store.index_messages());
                index_at = indexed.unwrap_or(false).then_some(now);
            }
            if now >= next_look || next_due.is_some_and(|at| self.is_due(at)) {
                next_look = now + LOOK;
                self.logged("schedules", self.plan_in_time_zone(&mut planner));
                next_due = self.next_due();
                if next_due.is_some_and(|at| self.is_due(at)) {
                    self.start_what_is_due(&mut planner);
                    next_due = self.next_due();
                }
            }
            // What is due still cannot be done now: the next tick tries it again.
            let wait = next_due.map_or(TICK, |at| {
                if self.is_due(at) {
                    TICK
                } else {
                    at.since(self.clock.now())
                }
            });
            // Between two parts of the index others may write.
            let is_indexing = index_at.is_some_and(|at| at <= now);
            let wait = if is_indexing { INDEX_PAUSE } else { wait };
            match self.wakes.wait(wait.min(TICK)) {
                Wake::Time => {}
                Wake::Look => next_look = Instant::now(),
                Wake::Everything => {
                    (next_tick, next_look) = (Instant::now(), Instant::now());
                    next_purge = self.clock.now();
                    nightly.look_now();
                }
                Wake::Stop => {
                    embedding.stop();
                    break nightly.stop();
                }
            }
        }
    }

    /// Renews the certificate from the household's authority. The listeners notice by
    /// themselves.
    #[cfg(feature = "tls")]
    fn renew_certificate(&self) {
        if self.settings.current().tls.household
            && let Err(error) = household::renew(&self.data_dir, self.clock.now())
        {
            log::warn!("tls: the certificate is not renewed: {error}");
        }
    }

    fn is_due(&self, at: Timestamp) -> bool {
        at <= self.clock.now()
    }

    fn next_due(&self) -> Option<Timestamp> {
        let next = self.store.next_due().map(Provisional::uncommitted);
        self.logged("what is due", next).flatten()
    }

    fn start_what_is_due(&self, planner: &mut Planner) {
        self.logged("approvals", self.expire_approvals());
        self.logged("schedules", self.run_due_schedules(planner));
        let due = self.store.due_outgoing(self.clock.now(), DUE_AT_A_TIME);
        let offered = due.map(|due| self.offer(due));
        self.logged("what goes out", offered);
    }

    /// Whether anything was committed since the last look. Another process, the command
    /// line, may have revoked tokens, whose connections are closed.
    fn notice_changes(&self, known: &mut Version) -> bool {
        let Some(version) = self.logged("database", self.store.version()) else {
            return false;
        };
        let before = std::mem::replace(known, version);
        if before.others != version.others {
            // A command that ends access closes these as well, behind its answer.
            if let Ok(_ending) = self.ending.try_lock() {
                self.close_revoked();
            }
            self.finish_removals();
        }
        before != version
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
        self.logged("schedules", self.plan_after_step(step, planner));
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

    /// The result, or none after logging the error: once, where the database cannot be written,
    /// as whoever writes it does.
    pub(super) fn logged<T>(&self, what: &str, result: Result<T>) -> Option<T> {
        result
            .inspect_err(|error| match self.store.is_writable() {
                true => log::warn!("{what}: {error}"),
                false => log::debug!("{what}: {error}"),
            })
            .ok()
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
                Deferred::Run(turn, conversation) => self.queue.resume(turn, conversation),
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::wakes::Wakes;

    #[test]
    fn nothing_is_lost_however_often_the_timekeeper_is_woken() {
        const LONG: Duration = Duration::from_secs(60);
        let wakes = Wakes::default();
        (0..10).for_each(|_| wakes.look());
        wakes.look_at_everything();
        assert_eq!(wakes.wait(LONG), Wake::Everything);
        assert_eq!(wakes.wait(Duration::ZERO), Wake::Time);

        (0..10).for_each(|_| wakes.look());
        assert_eq!(wakes.wait(LONG), Wake::Look);
        wakes.stop();
        assert_eq!(wakes.wait(LONG), Wake::Stop);
        assert_eq!(wakes.wait(LONG), Wake::Stop);
    }
}

//! Reminders and routines: prompts that run at a set time.
//!
//! The timekeeper asks the database what is due; each run is then a turn like any
//! other. What fell due while the server was off runs once when it starts.

use std::time::Duration;

use super::Service;
use agent::message_text::marked_as_scheduled;
use base::calendar::Timing;
use base::clock::Timestamp;
use base::error::Result;
use base::ids::ScheduleId;
use protocol::command::CreateSchedule;
use store::{NewSchedule, SCHEDULE_CHANNEL, Schedule};

/// A run this long after its time is marked as late, even if the server was on: it
/// may have been short of workers, or the computer asleep.
const LATE: Duration = Duration::from_secs(60);

impl Service {
    /// Sets up a schedule for a user.
    ///
    /// # Errors
    /// `invalid_request`, `not_found`.
    pub fn create_schedule(&self, new: CreateSchedule, owner: &str) -> Result<Schedule> {
        let config = self.settings.current();
        if let Some(name) = &new.webhook {
            config.existing_account(name)?;
        }
        let (at, cron) = (new.at.as_deref(), new.cron.as_deref());
        let timing = Timing::new(at, cron, &config.zone(), self.clock.now())?;
        let schedule = self.store.add_schedule(NewSchedule {
            prompt: new.prompt,
            owner: Some(owner.to_owned()),
            conversation_id: new.conversation_id,
            channel: SCHEDULE_CHANNEL.to_owned(),
            account: new.webhook,
            timing,
        })?;
        log::info!("schedule {}: set up by {owner}", schedule.id);
        Ok(schedule)
    }

    /// Pauses a schedule or resumes it. What a repeating schedule missed meanwhile
    /// does not run.
    ///
    /// # Errors
    /// `not_found`.
    pub fn pause_schedule(&self, id: ScheduleId, is_paused: bool) -> Result<Schedule> {
        let schedule = self.store.schedule(id)?;
        let zone = self.settings.current().zone();
        let next_at = schedule.timing.after(self.clock.now(), &zone);
        self.store.pause_schedule(id, is_paused, next_at)
    }

    /// When a repeating schedule runs next after `now`.
    fn next_of(&self, schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
        let cron = schedule.timing.cron.as_ref()?;
        cron.next(now, &self.settings.current().zone())
    }

    /// Begins the turns of what is due.
    pub(super) fn run_due_schedules(&self) -> Result<()> {
        if !self.store.is_writable() {
            return Ok(());
        }
        let now = self.clock.now();
        for schedule in self.store.due_schedules(now)? {
            let id = schedule.id;
            if let Err(error) = self.run_due(schedule, now) {
                log::warn!("schedule {id}: {error}");
            }
        }
        Ok(())
    }

    fn run_due(&self, schedule: Schedule, now: Timestamp) -> Result<()> {
        let config = self.settings.current();
        // What came through a webhook runs only under its account's permissions.
        if schedule.channel != SCHEDULE_CHANNEL
            && let Some(name) = &schedule.account
            && config.webhook_account(name).is_none()
        {
            log::warn!(
                "schedule {}: paused: no webhook account {name:?}",
                schedule.id
            );
            let next_at = schedule.timing.after(now, &config.zone());
            return self
                .store
                .pause_schedule(schedule.id, true, next_at)
                .map(drop);
        }
        // With the queue full it stays due and is tried again.
        let Ok(place) = self.queue.reserve(schedule.conversation_id, &config.limits) else {
            return Ok(());
        };
        let (id, due) = (schedule.id, schedule.timing.next_at);
        let since_start = Duration::from_millis(self.uptime().as_millis() as u64);
        let is_late = now.since(due) > LATE || due < now.minus(since_start);
        let minute = config.zone().minute(due);
        let message = marked_as_scheduled(&schedule.prompt, &minute, is_late);
        let next_at = self.next_of(&schedule, now);
        if let Some(run) = self.store.run_schedule(schedule, message, next_at)? {
            log::info!("schedule {id}: runs{}", if is_late { ", late" } else { "" });
            self.start_turn(run.turn, run.message);
        }
        drop(place);
        Ok(())
    }

    /// Computes the next times again: of all repeating schedules when the configured
    /// time zone is no longer `planned_in`, else of those that a wrong clock planned.
    pub(super) fn plan_schedules(&self, planned_in: &mut Option<Option<String>>) -> Result<()> {
        let zone = &self.settings.current().time_zone;
        let now = self.clock.now();
        let to_plan = match planned_in {
            Some(known) if known == zone => self.store.misplanned_schedules(now)?,
            _ => self.store.schedules()?,
        };
        for schedule in to_plan {
            let next_at = match self.next_of(&schedule, now) {
                // What is due runs first.
                Some(next_at) if schedule.timing.next_at > now => next_at,
                _ => continue,
            };
            if next_at != schedule.timing.next_at {
                self.store.plan_schedule(&schedule, next_at)?;
            }
        }
        *planned_in = Some(zone.clone());
        Ok(())
    }

    /// When the next schedule is due.
    pub(super) fn next_schedule(&self) -> Option<Timestamp> {
        self.store.next_schedule_at().unwrap_or_else(|error| {
            log::warn!("schedules: {error}");
            None
        })
    }
}

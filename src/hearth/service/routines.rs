//! Reminders and routines: prompts that run at a set time.
//!
//! The timekeeper asks the database what is due; each run is then a turn like any
//! other. What fell due while the server was off runs once when it starts.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use super::queue::Requester;
use super::{Service, views};
use agent::model::fence::marked_as_scheduled;
use agent::tools::permission::Actor;
use base::calendar::Timing;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::ScheduleId;
use base::people::Audience;
use protocol::command::CreateSchedule;
use protocol::record;
use store::{Identity, NewSchedule, SCHEDULE_CHANNEL, Schedule, Viewer};

/// A run this long after its time is marked as late, even if the server was on: it
/// may have been short of workers, or the computer asleep.
const LATE: Duration = Duration::from_secs(60);

/// A repeating schedule runs no time twice for which it ran already, if the clock
/// was set back by up to this. A clock that was further off was wrong, and so was
/// what it ran.
const NEAR: Duration = Duration::from_secs(3 * 60 * 60);

/// Runs that are remembered, to recognise them after the clock was set back.
const RUNS: usize = 1_024;

/// What the timekeeper knows of schedules.
#[derive(Default)]
pub(super) struct Planner {
    /// The time zone for which next times were computed.
    zone: Option<Option<String>>,
    /// The latest runs: of which schedule, and when they were due.
    runs: VecDeque<(ScheduleId, Timestamp)>,
}

impl Planner {
    fn note_run(&mut self, schedule: ScheduleId, due: Timestamp) {
        if self.runs.len() >= RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back((schedule, due));
    }
}

impl Service {
    /// Sets up a schedule for a user.
    ///
    /// # Errors
    /// `invalid_request`, `not_found`; `unauthorized` for a webhook account where the user
    /// or the token may do less than others.
    pub fn create_schedule(&self, new: CreateSchedule, owner: &Identity) -> Result<Schedule> {
        let config = self.settings.current();
        if let Some(name) = &new.webhook {
            let actor = Actor::of_turn(&config, None, owner.person());
            if actor.is_narrowed_person() || owner.scope.is_narrow() {
                return Err(Error::unauthorized(
                    "results of schedules go to nobody else for somebody whose permissions are \
                     narrowed: leave out \"webhook\"",
                ));
            }
            config.existing_account(name)?;
        }
        let (at, cron) = (new.at.as_deref(), new.cron.as_deref());
        let timing = Timing::new(at, cron, &config.zone(), self.clock.now())?;
        let schedule = self.store.add_schedule(
            &owner.viewer(),
            NewSchedule {
                is_outside: false,
                prompt: new.prompt,
                owner: owner.person().map(str::to_owned),
                owner_id: owner.person().map(|_| owner.user_id),
                conversation_id: new.conversation_id,
                // What nobody owns is the household's.
                audience: match owner.person() {
                    Some(_) => self.usual_audience(),
                    None => Audience::Household,
                },
                channel: SCHEDULE_CHANNEL.to_owned(),
                account: new.webhook,
                timing,
            },
        )?;
        log::info!("{}: set up by {}", schedule.id, owner.user);
        self.publish_schedule(&schedule);
        Ok(schedule)
    }

    /// What is scheduled, as far as it is seen, the next first.
    pub(super) fn list_schedules(&self, viewer: &Viewer) -> Result<Value> {
        let schedules = self.store.snapshot(viewer)?.schedules()?;
        let views = schedules.iter().map(|one| self.schedule_view(one));
        Ok(views::records("schedules", views))
    }

    pub(super) fn schedule_view(&self, schedule: &Schedule) -> record::Schedule {
        let zone = self.settings.current().zone();
        views::schedule(schedule, &zone, self.clock.now())
    }

    /// Pauses a schedule or resumes it. What a repeating schedule missed meanwhile
    /// does not run.
    ///
    /// # Errors
    /// `not_found`, `unauthorized`, `invalid_request`: as in the store.
    pub fn pause_schedule(
        &self,
        viewer: &Viewer,
        id: ScheduleId,
        is_paused: bool,
    ) -> Result<Schedule> {
        let schedule = self.store.snapshot(viewer)?.schedule(id)?;
        let zone = self.settings.current().zone();
        let next_at = schedule.timing.after(self.clock.now(), &zone);
        let paused = self.store.pause_schedule(viewer, id, is_paused, next_at)?;
        self.publish_schedule(&paused);
        Ok(paused)
    }

    fn publish_schedule(&self, schedule: &Schedule) {
        self.hub
            .publish_schedule(schedule.id, schedule.readers.clone());
    }

    /// When a repeating schedule runs next after `from`.
    fn next_of(
        &self,
        schedule: &Schedule,
        from: Timestamp,
        planner: &Planner,
    ) -> Option<Timestamp> {
        let cron = schedule.timing.cron.as_ref()?;
        let zone = self.settings.current().zone();
        let mut next = cron.next(from, &zone)?;
        while planner.runs.contains(&(schedule.id, next)) {
            next = cron.next(next, &zone)?;
        }
        Some(next)
    }

    /// Begins the turns of what is due.
    pub(super) fn run_due_schedules(&self, planner: &mut Planner) -> Result<()> {
        if !self.store.is_writable() {
            return Ok(());
        }
        let now = self.clock.now();
        // One that is not committed yet is committed with its run.
        for schedule in self.store.due_schedules(now)?.uncommitted() {
            let id = schedule.id;
            let run = self.run_due(schedule, now, planner);
            self.logged(&id.to_string(), run);
        }
        Ok(())
    }

    fn run_due(&self, schedule: Schedule, now: Timestamp, planner: &mut Planner) -> Result<()> {
        let config = self.settings.current();
        // What came through a webhook runs only under its account's permissions.
        if schedule.channel != SCHEDULE_CHANNEL
            && let Some(name) = &schedule.account
            && config.webhook_account(name).is_none()
        {
            log::warn!("{}: paused: no webhook account {name:?}", schedule.id);
            let next_at = schedule.timing.after(now, &config.zone());
            return self
                .store
                .pause_schedule(&Viewer::server(), schedule.id, true, next_at)
                .map(drop);
        }
        // With the queue full it stays due and is tried again.
        let requester = Requester::new(schedule.owner_id, schedule.account.as_deref(), None);
        let conversation = schedule.conversation_id;
        let Ok(place) = (self.queue).reserve(conversation, requester, &config.limits) else {
            return Ok(());
        };
        let (id, due) = (schedule.id, schedule.timing.next_at);
        let readers = schedule.readers.clone();
        let since_start = Duration::from_millis(self.uptime().as_millis() as u64);
        let is_late = now.since(due) > LATE || due < now.minus(since_start);
        let minute = config.zone().minute(due);
        let message = marked_as_scheduled(&schedule.prompt, &minute, is_late);
        let next_at = self.next_of(&schedule, now, planner);
        if let Some(begun) = self.store.run_schedule(schedule, message, next_at)? {
            log::info!("{id}: runs{}", if is_late { ", late" } else { "" });
            planner.note_run(id, due);
            self.hub.publish_schedule(id, readers);
            self.start(begun, None, None);
        }
        drop(place);
        Ok(())
    }

    /// Computes the next times of repeating schedules again, at the start and when
    /// the configured time zone has changed.
    pub(super) fn plan_in_time_zone(&self, planner: &mut Planner) -> Result<()> {
        let zone = &self.settings.current().time_zone;
        if planner.zone.as_ref() == Some(zone) {
            return Ok(());
        }
        if self.store.next_schedule_at()?.uncommitted().is_none() {
            planner.zone = Some(zone.clone());
            return Ok(());
        }
        let now = self.clock.now();
        self.plan(planner, |schedule| match schedule.planned_at {
            // What is due runs first.
            _ if schedule.timing.next_at <= now => None,
            // The clock is a little behind: what ran does not run again.
            planned if planned > now && planned <= now.plus(NEAR) => Some(planned),
            _ => Some(now),
        })?;
        planner.zone = Some(zone.clone());
        Ok(())
    }

    /// Computes the next times of repeating schedules again after the clock was set by
    /// `step` milliseconds.
    pub(super) fn plan_after_step(&self, step: i64, planner: &mut Planner) -> Result<()> {
        let now = self.clock.now();
        planner.runs.retain(|(_, due)| *due <= now.plus(NEAR));
        self.plan(planner, |schedule| match schedule.planned_at {
            // What the step skipped is due, but not what a clock that was behind
            // planned at a start.
            planned if step > 0 && planned <= now => Some(planned),
            _ if schedule.timing.next_at <= now => None,
            _ => Some(now),
        })
    }

    /// Sets the next time of each repeating schedule to the first after what `from`
    /// returns, if anything.
    fn plan(&self, planner: &Planner, from: impl Fn(&Schedule) -> Option<Timestamp>) -> Result<()> {
        let schedules = self.store.snapshot(&Viewer::server())?.schedules()?;
        for schedule in schedules {
            let next_at = from(&schedule).and_then(|from| self.next_of(&schedule, from, planner));
            if let Some(next_at) = next_at
                && next_at != schedule.timing.next_at
            {
                self.store.plan_schedule(&schedule, next_at)?;
            }
        }
        Ok(())
    }
}

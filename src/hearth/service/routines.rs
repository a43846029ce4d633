//! Reminders, which are told as they are, and routines, which are prompts.
//!
//! The timekeeper asks the database what is due; the run of a routine is then a turn like any
//! other, and that of a reminder one that has ended. What fell due while the server was off runs
//! once when it starts.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::queue::Requester;
use super::webhooks::callback;
use super::{Service, views};
use agent::model::fence::{is_of_sender, marked_as_scheduled, outside};
use agent::tools::ScheduleRequest;
use agent::tools::permission::Actor;
use base::calendar::{Timing, Zone};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ScheduleId, UserId};
use base::language::Said;
use base::people::{Audience, folded};
use config::Config;
use protocol::command::{CreateSchedule, SnoozeReminder};
use protocol::record;
use store::{
    Identity, NewSchedule, SCHEDULE_CHANNEL, Schedule, Trigger, Turn, TurnEnd, User, UserRole,
    Viewer,
};

/// Under which the store keeps the time zone in which schedules were planned last.
const TIME_ZONE: &str = "time_zone";
/// A run this long after its time is marked as late, even if the server was on: it
/// may have been short of workers, or the computer asleep.
const LATE: Duration = Duration::from_secs(60);

/// A repeating schedule runs no time twice for which it ran already, if the clock
/// was set back by up to this. A clock that was further off was wrong, and so was
/// what it ran.
const NEAR: Duration = Duration::from_secs(3 * 60 * 60);

/// How long a reminder is put off by a button.
const SNOOZE_MINUTES: u64 = 10;

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
    /// Sets a reminder or a routine for a user.
    ///
    /// # Errors
    /// `invalid_request`, `not_found`; `unauthorized` for a webhook account or other people
    /// where the user or the token may do less than others.
    pub fn create_schedule(&self, new: CreateSchedule, owner: &Identity) -> Result<Schedule> {
        let config = self.settings.current();
        let is_narrow = || is_narrowed(&config, owner.person()) || owner.scope.is_narrow();
        if let Some(name) = &new.webhook {
            if is_narrow() {
                return Err(Error::unauthorized(
                    "results of schedules go to nobody else for somebody whose permissions are \
                     narrowed: leave out \"webhook\"",
                ));
            }
            config.account_seen_by(name, owner.person())?;
        }
        let is_other = |name: &String| folded(name) != folded(&owner.user);
        if new.people.iter().any(is_other) && is_narrow() {
            return Err(Error::unauthorized(Said::of("error.reminds_alone", &[])));
        }
        self.check_watched(new.only_if_changed.as_ref())?;
        let request = ScheduleRequest {
            say: new.say.as_deref(),
            prompt: new.prompt.as_deref(),
            at: new.at.as_deref(),
            cron: new.cron.as_deref(),
            on: new.on.as_deref(),
            people: &new.people,
            only_if_changed: new.only_if_changed.as_ref(),
        };
        let maker = NewSchedule {
            owner: owner.person().map(str::to_owned),
            owner_id: owner.person().map(|_| owner.user_id),
            conversation_id: new.conversation_id,
            // What nobody owns is the household's.
            audience: match owner.person() {
                Some(_) => self.usual_audience(),
                None => Audience::Household,
            },
            account: new.webhook,
            most: config.limits.schedules_per_person,
            ..NewSchedule::new("", None)
        };
        let mut new = request.schedules(maker, &config, &self.store, self.clock.now())?;
        if owner.role < UserRole::Admin {
            let others = new
                .iter_mut()
                .filter(|one| one.owner_id != Some(owner.user_id));
            others.for_each(|one| one.asked_by = Some(owner.user_id));
        }
        let mut made = self.store.add_schedules(&owner.viewer(), new)?;
        for schedule in &made {
            log::info!("{}: set up by {}", schedule.id, owner.user);
            self.publish_schedule(schedule);
            let asked = schedule.owner_id.filter(|_| schedule.asked_by.is_some());
            if let Some(person) = asked {
                let told = self.ask_to_remind(person, owner, schedule.id);
                self.logged("a question whether somebody may remind others", told);
            }
        }
        Ok(made.swap_remove(0))
    }

    /// Whether the results of what this person has set up may still go to a webhook account:
    /// they may have been narrowed since, or no longer see it.
    pub(super) fn may_send_to(&self, account: &str, person: Option<UserId>) -> bool {
        let Some(id) = person else {
            return true;
        };
        let found = self.server_snapshot().and_then(|seen| seen.user_by_id(id));
        let name = found.ok().flatten().map(|person| person.name);
        let config = self.settings.current();
        let may = name.as_deref().is_some_and(|name| {
            let is_seen = config.account_seen_by(account, Some(name)).is_ok();
            is_seen && !is_narrowed(&config, Some(name))
        });
        if !may {
            log::warn!("{id}: results go to the account {account:?} no longer");
        }
        may
    }

    /// Tells somebody that another person wants to remind them, and what they can do. What the
    /// reminder says is shown among the reminders alone: here it would be said to the model.
    fn ask_to_remind(&self, person: UserId, maker: &Identity, id: ScheduleId) -> Result<()> {
        let seen = self.server_snapshot()?;
        let (person, maker) = (seen.user_by_id(person)?, seen.user_by_id(maker.user_id)?);
        drop(seen);
        let (Some(person), Some(maker)) = (person, maker) else {
            return Ok(());
        };
        let words = person.words();
        let fields = [("name", maker.called())];
        let [title, text] =
            ["reminder.asks", "reminder.asks.text"].map(|key| words.say(key, &fields));
        self.tell(&person, &title, &text, &format!("notice:reminder:{id}"))
    }

    /// Checks that a routine watches nothing but tools that only read.
    fn check_watched(&self, given: Option<&Value>) -> Result<()> {
        let assistant = self.assistant();
        let calls = given.and_then(Value::as_array).into_iter().flatten();
        for name in calls.filter_map(|call| call["tool"].as_str()) {
            let tool = assistant.toolbox.get(name);
            let tool = tool.ok_or_else(|| {
                Error::not_found(format!("\"only_if_changed\": there is no tool {name:?}"))
            })?;
            if !tool.definition().is_read_only {
                return Err(Error::invalid_request(format!(
                    "\"only_if_changed\": the tool {name:?} does not only read"
                )));
            }
        }
        Ok(())
    }

    /// What is scheduled, as far as it is seen, the next first.
    pub(super) fn list_schedules(&self, viewer: &Viewer, by: &Identity) -> Result<Value> {
        let schedules = self.store.snapshot(viewer)?.schedules()?;
        let views = schedules.iter().map(|one| self.schedule_view(one, by));
        Ok(views::records("schedules", views))
    }

    /// What became of the runs of a schedule.
    pub(super) fn list_schedule_runs(&self, viewer: &Viewer, id: ScheduleId) -> Result<Value> {
        let seen = self.store.snapshot(viewer)?;
        seen.schedule(id)?;
        let runs = seen.runs_of(id)?;
        Ok(views::records("runs", runs))
    }

    pub(super) fn schedule_view(&self, schedule: &Schedule, by: &Identity) -> record::Schedule {
        let zone = self.settings.current().zone();
        let words = self.store.words_of(by.user_id);
        let mut view = views::schedule(schedule, &zone, self.clock.now(), words);
        let is_event = matches!(schedule.trigger, Some(Trigger::Event { .. }));
        // When somebody else has an event is not for others to know.
        let is_own = schedule.owner_id == by.person().map(|_| by.user_id);
        if is_event && is_own && !schedule.is_paused && schedule.timing.is_none() {
            view.when = words.say("when.no_event", &[("when", &view.when)]);
        }
        view
    }

    /// Finishes a reminder that was told.
    pub(super) fn finish_reminder(&self, viewer: &Viewer, id: ScheduleId) -> Result<Value> {
        let readers = self.store.finish_reminder(viewer, id)?;
        self.hub.publish_schedule(id, readers);
        Ok(json!({ "schedule_id": id }))
    }

    /// Has a reminder that was told come again.
    pub(super) fn snooze_reminder(
        &self,
        viewer: &Viewer,
        snooze: &SnoozeReminder,
    ) -> Result<Schedule> {
        let (id, wait) = (snooze.schedule_id, Duration::from_secs(60 * snooze.minutes));
        let again = self.store.snooze_reminder(viewer, id, wait)?;
        self.hub.publish_schedule(id, again.readers.clone());
        self.publish_schedule(&again);
        Ok(again)
    }

    /// The answer of a person to a reminder that they were told in a chat. They have no rights
    /// of an admin there.
    ///
    /// # Errors
    /// `not_found` where the reminder is not theirs; `invalid_request` where it was answered.
    pub fn answer_reminder(&self, person: &User, id: ScheduleId, is_done: bool) -> Result<()> {
        let viewer = Viewer::person(person.id, person.role).without_admin();
        let snooze = SnoozeReminder {
            schedule_id: id,
            minutes: SNOOZE_MINUTES,
        };
        match is_done {
            true => self.finish_reminder(&viewer, id).map(drop),
            false => self.snooze_reminder(&viewer, &snooze).map(drop),
        }
    }

    /// Tells somebody who is back once what was told while they were away.
    pub(super) fn tell_again(&self, person: &Identity) {
        if !self.hub.hears_reminders(person.user_id) {
            return;
        }
        match self.store.see_reminders(person.user_id) {
            Ok(unseen) => {
                for one in unseen {
                    self.hub.publish_reminder(&one, None, true);
                }
            }
            Err(error) => log::warn!("{}: reminders are not repeated: {error}", person.user),
        }
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
        let now = self.clock.now();
        let next_at = schedule.timing.map(|timing| timing.after(now, &zone));
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
        let cron = schedule.timing.as_ref()?.cron.as_ref()?;
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
        let Some(timing) = &schedule.timing else {
            return Ok(());
        };
        // What came through an account runs only under its permissions.
        if schedule.channel != SCHEDULE_CHANNEL
            && let Some(name) = &schedule.account
            && !config.has_account(name)
        {
            log::warn!("{}: paused: there is no account {name:?}", schedule.id);
            let next_at = timing.after(now, &config.zone());
            return self
                .store
                .pause_schedule(&Viewer::server(), schedule.id, true, Some(next_at))
                .map(drop);
        }
        let (id, due) = (schedule.id, timing.next_at);
        let since_start = Duration::from_millis(self.uptime().as_millis() as u64);
        let is_late = now.since(due) > LATE || due < now.minus(since_start);
        let minute = config.zone().minute(due);
        let next_at = self.next_of(&schedule, now, planner);
        if schedule.is_said {
            let message = marked_as_scheduled(REMINDER, &minute, is_late);
            return self.tell_reminder(schedule, message, next_at, planner);
        }
        // With the queue full it stays due and is tried again.
        let requester = Requester::new(schedule.owner_id, schedule.account.as_deref(), None);
        let conversation = schedule.conversation_id;
        let Ok(place) = (self.queue).reserve(conversation, requester, &config.limits) else {
            return Ok(());
        };
        let readers = schedule.readers.clone();
        let message = marked_as_scheduled(&prompt(&schedule), &minute, is_late);
        if let Some(begun) = self.store.run_schedule(schedule, message, next_at)? {
            log::info!("{id}: runs{}", if is_late { ", late" } else { "" });
            planner.note_run(id, due);
            self.hub.publish_schedule(id, readers);
            self.start(begun, None, None);
        }
        drop(place);
        Ok(())
    }

    /// Tells a reminder, without a model.
    fn tell_reminder(
        &self,
        schedule: Schedule,
        message: String,
        next_at: Option<Timestamp>,
        planner: &mut Planner,
    ) -> Result<()> {
        let due = schedule.timing.as_ref().map(|timing| timing.next_at);
        let owner = schedule.owner_id;
        let is_seen = owner.is_some_and(|owner| self.hub.hears_reminders(owner));
        let is_of_sender = is_of_sender(&schedule.channel);
        let chat = schedule.conversation_id.filter(|chat| {
            is_of_sender && self.is_linked(schedule.account.as_deref(), owner, *chat)
        });
        // The sender who asked hears of it, and nobody else; without one, its person.
        let services = match (chat, owner) {
            (None, Some(owner)) => self.services_of(owner)?,
            _ => Vec::new(),
        };
        let may_call_back = match (is_of_sender, &schedule.account) {
            (true, _) => chat.is_some(),
            (false, Some(account)) if schedule.channel == SCHEDULE_CHANNEL => {
                self.may_send_to(account, owner)
            }
            (false, _) => true,
        };
        let id = schedule.id;
        let words = self.store.words_of(owner);
        let callback = move |turn: &Turn, end: &TurnEnd| {
            let of_turn = || callback(&|| words, turn, end, Some(id));
            may_call_back.then(of_turn).flatten()
        };
        self.reserve_event_numbers();
        let told =
            (self.store).tell_reminder(schedule, message, next_at, services, is_seen, callback)?;
        let Some(told) = told else { return Ok(()) };
        let schedule = told.schedule.clone();
        log::info!("{}: told", schedule.id);
        if let Some(due) = due {
            planner.note_run(schedule.id, due);
        }
        self.publish_schedule(&schedule);
        self.hub.publish_begin(&told.begun);
        let finished = told.map(|told| told.finished);
        self.hub.publish_end(&finished);
        let message = finished.reply.as_ref().map(|reply| reply.id);
        self.hub.publish_reminder(&schedule, message, false);
        if let Some(delivery) = &finished.delivery {
            self.delivery_changed(delivery);
        }
        Ok(())
    }

    /// Computes the next times again, at the start and when the configured time zone has
    /// changed: those that were given on the household's clocks move with them.
    pub(super) fn plan_in_time_zone(&self, planner: &mut Planner) -> Result<()> {
        let config = self.settings.current();
        let zone = &config.time_zone;
        if planner.zone.as_ref() == Some(zone) {
            return Ok(());
        }
        // It may have changed while the server was off; of older versions nothing is known.
        let name = zone.as_deref().unwrap_or_default();
        let known = self.store.meta(TIME_ZONE)?.uncommitted();
        let has_changed = known.as_deref().is_some_and(|known| known != name);
        if known.as_deref() != Some(name) {
            self.store.set_meta(TIME_ZONE, name)?;
        }
        if self.store.next_schedule_at()?.uncommitted().is_none() {
            planner.zone = Some(zone.clone());
            return Ok(());
        }
        let now = self.clock.now();
        let moved = self.plan(|schedule, timing| {
            if timing.next_at <= now {
                // What is due runs first.
                return None;
            }
            if timing.cron.is_none() {
                return Some(timing.in_zone(&config.zone()));
            }
            let planned = schedule.planned_at;
            // The clock is a little behind: what ran does not run again.
            let is_near = planned > now && planned <= now.plus(NEAR);
            self.next_of(schedule, if is_near { planned } else { now }, planner)
        })?;
        planner.zone = Some(zone.clone());
        let mut moved_of: BTreeMap<UserId, Vec<Schedule>> = BTreeMap::new();
        for (schedule, next_at) in moved {
            let when = config.zone().minute(next_at);
            log::info!("{}: moved to {when} with the time zone", schedule.id);
            self.publish_schedule(&schedule);
            if let Some(owner) = schedule.owner_id.filter(|_| has_changed) {
                moved_of.entry(owner).or_default().push(schedule);
            }
        }
        for (owner, moved) in moved_of {
            self.logged(
                "schedules",
                self.tell_of_move(owner, &moved, &config.zone()),
            );
        }
        Ok(())
    }

    /// Tells a person what of theirs moved with the time zone.
    fn tell_of_move(&self, owner: UserId, moved: &[Schedule], zone: &Zone) -> Result<()> {
        let person = self.server_snapshot()?.user_by_id(owner)?;
        let Some(person) = person.filter(|person| !person.is_program()) else {
            return Ok(());
        };
        let words = person.words();
        // That of the machine has no name everywhere.
        let zone = zone.rules().iana_name().unwrap_or("/etc/localtime");
        let mut text = words.say("reminder.moved.text", &[("zone", zone)]);
        for schedule in moved {
            let said: String = schedule.text.chars().take(MOVED_CHARACTERS).collect();
            text.push_str(&format!("\n- {said}"));
        }
        let source = format!("notice:time_zone:{owner}:{}", self.clock.now().as_millis());
        self.tell(&person, &words.word("reminder.moved"), &text, &source)
    }

    /// Computes the next times of repeating schedules again after the clock was set by
    /// `step` milliseconds.
    pub(super) fn plan_after_step(&self, step: i64, planner: &mut Planner) -> Result<()> {
        let now = self.clock.now();
        planner.runs.retain(|(_, due)| *due <= now.plus(NEAR));
        let planner = &*planner;
        let moved = self.plan(|schedule, timing| {
            let from = match schedule.planned_at {
                // What the step skipped is due, but not what a clock that was behind
                // planned at a start.
                planned if step > 0 && planned <= now => planned,
                _ if timing.next_at <= now => return None,
                _ => now,
            };
            self.next_of(schedule, from, planner)
        });
        moved.map(drop)
    }

    /// Sets the next time of each schedule that waits for one to what `next` returns, if
    /// anything. Returns those that move.
    fn plan(
        &self,
        next: impl Fn(&Schedule, &Timing) -> Option<Timestamp>,
    ) -> Result<Vec<(Schedule, Timestamp)>> {
        let schedules = self.server_snapshot()?.schedules()?;
        let mut moved = Vec::new();
        for schedule in schedules.into_iter().filter(|one| one.trigger.is_none()) {
            let Some(timing) = &schedule.timing else {
                continue;
            };
            if let Some(next_at) = next(&schedule, timing)
                && next_at != timing.next_at
            {
                self.store.plan_schedule(&schedule, next_at)?;
                moved.push((schedule, next_at));
            }
        }
        Ok(moved)
    }
}

/// Whether the configuration lets this person do less than others.
fn is_narrowed(config: &Config, person: Option<&str>) -> bool {
    Actor::of_turn(config, None, person).is_narrowed_person()
}

/// What is said of the text of a schedule that moved.
const MOVED_CHARACTERS: usize = 80;
/// What the message of a reminder says before its text.
const REMINDER: &str = "Reminder";

/// What a routine asks, with what has happened. That is from outside where anybody may have
/// written it.
fn prompt(schedule: &Schedule) -> String {
    match &schedule.trigger_text {
        None => schedule.text.clone(),
        Some(text) if schedule.is_trigger_outside => {
            format!("{}\n\n{}", schedule.text, outside(text))
        }
        Some(text) => format!("{}\n\n{text}", schedule.text),
    }
}

//! Schedules: reminders, which are told as they are, and routines, which are prompts. Their runs
//! are in [`runs`](super::runs).

use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql, params};

use super::run_history;
use super::trigger::{Trigger, WatchedCall, plan_events};
use crate::chat::conversations;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row};
use crate::keep::usage::SCHEDULE_CHANNEL;
use crate::people::users::is_guest;
use crate::sight::audience::{self, Audience, Directory, Readers, UnknownName, intern};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, Viewer, seen_columns};
use base::calendar::Timing;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, ScheduleId, TurnId, UserId};
use base::language::Said;
use protocol::record::ScheduleRun;

/// Most schedules of all people together.
const MOST: usize = 2_000;

/// Most characters of a prompt or a reminder.
const TEXT_CHARACTERS: usize = 4_000;

/// A reminder or a routine.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What `delete_schedule` takes.
    pub id: ScheduleId,
    /// The text of a reminder, or what the assistant is asked: 1 to 4,000 characters.
    pub text: String,
    /// Whether it is a reminder: its text is sent as it is, and no model is asked.
    pub is_said: bool,
    /// The user who created it.
    pub owner: Option<String>,
    /// Whose it is, if that is a person with an account.
    pub owner_id: Option<UserId>,
    /// Who sees it, and the conversation that its first run creates.
    pub audience: Audience,
    /// Who sees it, for what is sent to many.
    pub readers: Readers,
    /// Where it runs; absent until the first run created its conversation.
    pub conversation_id: Option<ConversationId>,
    /// The channel of its turns, as [`Conversation::channel`](crate::Conversation::channel).
    pub channel: String,
    /// A webhook account that also gets the replies.
    pub account: Option<String>,
    /// When it runs next; absent while it waits for its trigger, or for its person to
    /// finish what it told.
    pub timing: Option<Timing>,
    /// What it waits for in place of a time.
    pub trigger: Option<Trigger>,
    /// What has happened there since the last run.
    pub trigger_text: Option<String>,
    /// Whether text from outside is among that.
    pub is_trigger_outside: bool,
    /// The calls that run first: without a change of their results, no model is asked.
    pub only_if_changed: Vec<WatchedCall>,
    /// Since when a reminder was told, and not finished or put off.
    pub told_at: Option<Timestamp>,
    /// The turn that told it.
    pub told_by: Option<TurnId>,
    /// When it last ran.
    pub last_at: Option<Timestamp>,
    /// What became of that run.
    pub last_run: Option<ScheduleRun>,
    /// The latest time at which its next time was computed. In the future, the clock
    /// was ahead then or is behind now.
    pub planned_at: Timestamp,
    /// Whether it does not run until it is resumed.
    pub is_paused: bool,
    /// Who asks whether they may remind its owner: resuming it says yes, to later ones, too.
    pub asked_by: Option<UserId>,
    /// Whether text from outside was at hand when it was created.
    pub is_outside: bool,
    /// Whether a model wrote its text.
    pub is_composed: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A schedule to store.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// The text of a reminder, or what the assistant is asked: 1 to 4,000 characters.
    pub text: String,
    /// Whether its text is sent as it is.
    pub is_said: bool,
    /// The user who creates it.
    pub owner: Option<String>,
    /// Whose it is, if that is a person with an account.
    pub owner_id: Option<UserId>,
    /// Where it runs, which the viewer must see; if absent, it gets its own.
    pub conversation_id: Option<ConversationId>,
    /// Who sees it, if it gets a conversation of its own.
    pub audience: Audience,
    /// The channel of its turns.
    pub channel: String,
    /// A webhook account that also gets the replies.
    pub account: Option<String>,
    /// When it runs, if that is a time.
    pub timing: Option<Timing>,
    /// What it waits for else.
    pub trigger: Option<Trigger>,
    /// The calls that run first.
    pub only_if_changed: Vec<WatchedCall>,
    /// Whether text from outside is at hand: its runs are then as careful as what set it up,
    /// also in another conversation.
    pub is_outside: bool,
    /// Whether a model wrote its text.
    pub is_composed: bool,
    /// Who asks its owner first whether they may remind them, unless they may already.
    pub asked_by: Option<UserId>,
    /// Most schedules of a person: `limits.schedules_per_person`.
    pub most: usize,
}

impl NewSchedule {
    /// A routine of nobody, which the household sees.
    pub fn new(text: &str, timing: Option<Timing>) -> NewSchedule {
        NewSchedule {
            text: text.to_owned(),
            is_said: false,
            owner: None,
            owner_id: None,
            conversation_id: None,
            audience: Audience::Household,
            channel: SCHEDULE_CHANNEL.to_owned(),
            account: None,
            timing,
            trigger: None,
            only_if_changed: Vec::new(),
            is_outside: false,
            is_composed: false,
            asked_by: None,
            most: usize::MAX,
        }
    }
}

impl Snapshot<'_> {
    /// A schedule.
    ///
    /// # Errors
    /// `not_found`.
    pub fn schedule(&self, id: ScheduleId) -> Result<Schedule> {
        Ok(find(&self.sight, id)?.0)
    }

    /// All schedules: what was told and not finished first, then the next one, and last the
    /// routines that run no more.
    pub fn schedules(&self) -> Result<Vec<Schedule>> {
        let all = self.sight.seen_rows(SCHEDULES, params![], MOST, |row| {
            from_row(&self.sight.directory, row)
        });
        Ok(all?)
    }
}

impl Store {
    /// Stores a schedule, durably.
    ///
    /// # Errors
    /// As of [`Store::add_schedules`].
    pub fn add_schedule(&self, viewer: &Viewer, new: NewSchedule) -> Result<Schedule> {
        let mut added = self.add_schedules(viewer, vec![new])?;
        Ok(added.remove(0))
    }

    /// Stores schedules, durably: all or none.
    ///
    /// # Errors
    /// `invalid_request` for an empty or long text, or when there are too many;
    /// `not_found` for the conversation.
    pub fn add_schedules(&self, viewer: &Viewer, new: Vec<NewSchedule>) -> Result<Vec<Schedule>> {
        self.write_for(viewer, move |write, sight| {
            new.into_iter().map(|new| add(write, sight, new)).collect()
        })
    }

    /// Deletes a schedule. Its turns continue. Returns who saw it.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it.
    pub fn delete_schedule(&self, viewer: &Viewer, id: ScheduleId) -> Result<Readers> {
        self.write_for(viewer, move |write, sight| {
            let (_, thing) = find(sight, id)?;
            sight.check_delete("schedule", &thing)?;
            write.execute("DELETE FROM schedules WHERE id = ?", params![id])?;
            audience::readers(write.connection, thing.audience_id)
        })
    }

    /// Pauses a schedule, or resumes it with its next run at `next_at`, if it has one.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it; `invalid_request` to
    /// resume one of a guest.
    pub fn pause_schedule(
        &self,
        viewer: &Viewer,
        id: ScheduleId,
        is_paused: bool,
        next_at: Option<Timestamp>,
    ) -> Result<Schedule> {
        self.write_for(viewer, move |write, sight| {
            let schedule = check_change(sight, id)?;
            if !is_paused && is_guest(write.connection, schedule.owner_id)? {
                return Err(Error::refused("error.schedule_of_guest", &[]).into());
            }
            if let Some(maker) = schedule.asked_by.filter(|_| !is_paused) {
                write.execute(
                    "INSERT OR IGNORE INTO reminders_allowed (person_id, maker_id) VALUES (?1, ?2)",
                    params![schedule.owner_id, maker],
                )?;
                write.execute(
                    "UPDATE schedules SET asked_by = NULL WHERE id = ?",
                    params![id],
                )?;
            }
            write.execute(
                "UPDATE schedules SET is_paused = ?2, next_at = ?3, planned_at = ?4 WHERE id = ?1",
                params![id, is_paused, next_at, write.now],
            )?;
            plan_events(write, Some(id))?;
            Ok(find(sight, id)?.0)
        })
    }
}

impl Store {
    /// Finishes a reminder that was told: one that comes once is gone, others come again at
    /// their next time. Returns who saw it.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it; `invalid_request` for
    /// what was not told.
    pub fn finish_reminder(&self, viewer: &Viewer, id: ScheduleId) -> Result<Readers> {
        self.write_for(viewer, move |write, sight| {
            Ok(finish(write, sight, id)?.readers)
        })
    }

    /// Finishes a reminder that was told, and has it told again after a while.
    ///
    /// # Errors
    /// As of [`Store::finish_reminder`].
    pub fn snooze_reminder(
        &self,
        viewer: &Viewer,
        id: ScheduleId,
        wait: Duration,
    ) -> Result<Schedule> {
        self.write_for(viewer, move |write, sight| {
            let told = finish(write, sight, id)?;
            let timing = Timing {
                is_wait: true,
                ..Timing::once(write.now.plus(wait))
            };
            let again = NewSchedule {
                is_said: true,
                owner: told.owner,
                owner_id: told.owner_id,
                conversation_id: told.conversation_id,
                audience: told.audience,
                channel: told.channel,
                account: told.account,
                is_outside: told.is_outside,
                is_composed: told.is_composed,
                ..NewSchedule::new(&told.text, Some(timing))
            };
            add(write, &Viewer::server().sight(write.connection)?, again)
        })
    }

    /// The reminders of a person that were told while nobody was there, which are now seen.
    pub fn see_reminders(&self, person: UserId) -> Result<Vec<Schedule>> {
        let unseen = self.look(move |connection| {
            connection.rows(UNSEEN, params![person], |row| {
                from_row(&Directory::new(connection), row)
            })
        })?;
        let unseen = unseen.uncommitted();
        if !unseen.is_empty() {
            self.write(move |write| {
                let see = "UPDATE schedules SET is_seen = 1 WHERE owner_id = ? AND is_seen = 0";
                write.run(see, params![person])
            })?;
        }
        Ok(unseen)
    }
}

/// Finishes what was told, and returns it.
fn finish(write: &Write<'_>, sight: &Sight<'_>, id: ScheduleId) -> Outcome<Schedule> {
    let schedule = check_change(sight, id)?;
    if schedule.told_at.is_none() {
        return Err(Error::refused("error.not_told", &[("id", &id.to_string())]).into());
    }
    write.execute(
        match schedule.timing {
            Some(_) => "UPDATE schedules SET told_at = NULL, told_by = NULL WHERE id = ?",
            None => "DELETE FROM schedules WHERE id = ?",
        },
        params![id],
    )?;
    Ok(schedule)
}

fn add(write: &Write<'_>, sight: &Sight<'_>, new: NewSchedule) -> Outcome<Schedule> {
    let text = new.text.trim().to_owned();
    check_new(write.connection, &text, new.owner_id, new.most)?;
    let audience_id = match new.conversation_id {
        Some(conversation) => conversations::check_seen(sight, conversation)?.audience_id,
        None if sight.viewer.is_household_only() => AudienceId::HOUSEHOLD,
        None => intern(write, new.owner_id, &new.audience, UnknownName::Skip)?,
    };
    let asked_by = match new.asked_by {
        Some(maker) => asks(write.connection, new.owner_id, maker)?,
        None => None,
    };
    let id: ScheduleId = write.id();
    let timing = new.timing.as_ref();
    write.insert(
        "schedules",
        &[
            ("id", &id),
            ("prompt", &text),
            ("is_said", &new.is_said),
            ("owner", &new.owner),
            ("conversation_id", &new.conversation_id),
            ("channel", &new.channel),
            ("account", &new.account),
            ("cron", &timing.and_then(|timing| timing.cron.as_ref())),
            ("next_at", &timing.map(|timing| timing.next_at)),
            ("is_wait", &timing.is_some_and(|timing| timing.is_wait)),
            ("local_at", &timing.and_then(|timing| timing.local.as_ref())),
            ("trigger", &new.trigger.as_ref().map(Trigger::to_string)),
            ("only_if_changed", &to_column(&new.only_if_changed)),
            ("planned_at", &write.now),
            ("created_at", &write.now),
            ("owner_id", &new.owner_id),
            ("audience_id", &audience_id),
            ("is_outside", &new.is_outside),
            ("is_composed", &new.is_composed),
            ("asked_by", &asked_by),
            ("is_paused", &asked_by.is_some()),
        ],
    )?;
    plan_events(write, Some(id))?;
    let all = Viewer::server().sight(write.connection)?;
    let (mut made, _) = find(&all, id)?;
    if made.trigger.is_some() && made.owner_id != sight.viewer.asker() {
        // When somebody else has an event is not for the maker to know.
        (made.timing, made.trigger_text) = (None, None);
    }
    Ok(made)
}

/// The maker, if this person has not said yet that they may remind them.
///
/// # Errors
/// `invalid_request` where the person was asked, and has not answered.
fn asks(connection: &Connection, person: Option<UserId>, maker: UserId) -> Outcome<Option<UserId>> {
    let allowed = "SELECT 1 FROM reminders_allowed WHERE person_id = ? AND maker_id = ?";
    if connection.exists(allowed, params![person, maker])? {
        return Ok(None);
    }
    let waits = "SELECT 1 FROM schedules WHERE asked_by = ?2 AND owner_id = ?1";
    if connection.exists(waits, params![person, maker])? {
        let name = "SELECT ifnull(display_name, name) FROM users WHERE id = ?";
        let name: Option<String> = connection.value(name, params![person])?;
        let name = name.unwrap_or_default();
        return Err(Error::refused("error.reminder_asked", &[("name", &name)]).into());
    }
    Ok(Some(maker))
}

const UNSEEN: &str = concat!(
    "SELECT ",
    seen_columns!("s"),
    ", s.* FROM schedules s INDEXED BY schedules_by_owner \
     WHERE owner_id = ? AND told_at IS NOT NULL AND is_seen = 0 ORDER BY told_at"
);

/// The calls as their column has them.
pub(crate) fn to_column(calls: &[WatchedCall]) -> Option<String> {
    (!calls.is_empty())
        .then(|| serde_json::to_string(calls).ok())
        .flatten()
}

const SCHEDULES: &str = concat!(
    "SELECT ",
    seen_columns!("s"),
    ", s.* FROM schedules s \
     ORDER BY next_at IS NULL AND told_at IS NULL AND trigger IS NULL, next_at"
);

const SCHEDULE: &str = concat!(
    "SELECT ",
    seen_columns!("s"),
    ", s.* FROM schedules s WHERE id = ?"
);

/// Refuses a text that is empty or too long, and more schedules than there may be.
///
/// # Errors
/// `invalid_request`.
pub(crate) fn check_new(
    connection: &Connection,
    text: &str,
    owner: Option<UserId>,
    most: usize,
) -> Outcome<()> {
    let refused = |key: &'static str, most: usize| {
        let why = Said::of(key, &[("most", &most.to_string())]);
        Err(Error::invalid_request(why).into())
    };
    if !(1..=TEXT_CHARACTERS).contains(&text.chars().count()) {
        return refused("error.schedule_text", TEXT_CHARACTERS);
    }
    let of_person = "SELECT count(*) FROM schedules WHERE owner_id IS ? AND told_at IS NULL
         AND (next_at IS NOT NULL OR trigger IS NOT NULL)";
    let count = |sql: &str, parameters: &[&dyn ToSql]| -> Outcome<usize> {
        Ok(connection.value(sql, parameters)?.unwrap_or_default())
    };
    if count(of_person, params![owner])? >= most {
        return refused("error.schedules_full", most);
    }
    if count("SELECT count(*) FROM schedules", params![])? >= MOST {
        return refused("error.schedules_of_home", MOST);
    }
    Ok(())
}

pub(crate) fn find(sight: &Sight<'_>, id: ScheduleId) -> Outcome<(Schedule, Belongs)> {
    sight.find_seen("schedule", SCHEDULE, id, |row| {
        from_row(&sight.directory, row)
    })
}

/// Checks that a viewer may change a schedule, and returns it.
///
/// # Errors
/// `not_found`; `unauthorized` for who may see and not change it.
pub(crate) fn check_change(sight: &Sight<'_>, id: ScheduleId) -> Outcome<Schedule> {
    let (schedule, thing) = find(sight, id)?;
    sight.check_change("schedule", &thing)?;
    Ok(schedule)
}

/// Of a row that begins with the [`seen_columns`].
pub(crate) fn from_row(directory: &Directory<'_>, row: &Row<'_>) -> Outcome<Schedule> {
    let thing = Belongs::from_row(row)?;
    let next_at: Option<Timestamp> = row.get("next_at")?;
    let timing = match next_at {
        Some(next_at) => Some(Timing {
            cron: row.get("cron")?,
            next_at,
            is_wait: row.get("is_wait")?,
            local: row.get("local_at")?,
        }),
        None => None,
    };
    let trigger: Option<String> = row.get("trigger")?;
    let watched: Option<String> = row.get("only_if_changed")?;
    let watched = watched.map_or(Ok(Vec::new()), |calls| serde_json::from_str(&calls));
    let id: ScheduleId = row.get("id")?;
    Ok(from_row!(row => Schedule {
        is_said, owner, conversation_id, channel, account, trigger_text, is_trigger_outside,
        told_at, told_by, last_at, planned_at, is_paused, is_outside, is_composed, asked_by,
        created_at;
        id: id,
        text: row.get("prompt")?,
        owner_id: thing.owner_id,
        audience: directory.audience(thing.owner_id, thing.audience_id)?,
        readers: directory.readers(thing.audience_id)?,
        timing: timing,
        trigger: trigger.and_then(|trigger| trigger.parse().ok()),
        only_if_changed: watched.map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
        })?,
        last_run: run_history::last(directory.connection(), id)?
    }))
}

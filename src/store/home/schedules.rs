//! Schedules. The turn of a run and the next time of its schedule are one commit,
//! so that a crash neither loses nor repeats a run.

use rusqlite::{Connection, Row, params};

use crate::chat::conversations::{self, NewConversation};
use crate::chat::new_turn::{self, Begun, NewTurn, Target};
use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{from_row, row, rows, value};
use crate::people::users::is_guest;
use crate::sight::audience::{self, Audience, Directory, Readers, UnknownName, intern};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, Viewer, seen_columns};
use base::calendar::Timing;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, ScheduleId, UserId};

/// Most schedules: each may cost a model call a minute.
const MOST: usize = 200;

/// Most characters of a prompt.
const PROMPT_CHARACTERS: usize = 4_000;

/// A prompt that runs once or repeatedly.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What `delete_schedule` takes.
    pub id: ScheduleId,
    /// The message to the assistant: 1 to 4,000 characters.
    pub prompt: String,
    /// The user who created it.
    pub owner: Option<String>,
    /// The same, if it is a person with an account.
    pub owner_id: Option<UserId>,
    /// Who sees it, and the conversation that its first run creates.
    pub audience: Audience,
    /// Who sees it, for what is sent to many.
    pub readers: Readers,
    /// Where it runs; absent until the first run creates its conversation.
    pub conversation_id: Option<ConversationId>,
    /// The channel of its turns, as [`Conversation::channel`](crate::Conversation::channel).
    pub channel: String,
    /// A webhook account that also gets the replies.
    pub account: Option<String>,
    /// When it runs.
    pub timing: Timing,
    /// When it last ran.
    pub last_at: Option<Timestamp>,
    /// The latest time at which its next time was computed. In the future, the clock
    /// was ahead then or is behind now.
    pub planned_at: Timestamp,
    /// Whether it does not run until it is resumed.
    pub is_paused: bool,
    /// Whether text from outside was at hand when it was created.
    pub is_outside: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A schedule to store.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// The message to the assistant: 1 to 4,000 characters.
    pub prompt: String,
    /// The user who creates it.
    pub owner: Option<String>,
    /// The same, if it is a person with an account.
    pub owner_id: Option<UserId>,
    /// Where it runs, which the viewer must see; if absent, it gets its own.
    pub conversation_id: Option<ConversationId>,
    /// Who sees it, if it gets a conversation of its own.
    pub audience: Audience,
    /// The channel of its turns.
    pub channel: String,
    /// A webhook account that also gets the replies.
    pub account: Option<String>,
    /// When it runs.
    pub timing: Timing,
    /// Whether text from outside is at hand: its runs are then as careful as what set it up,
    /// also in another conversation.
    pub is_outside: bool,
}

impl Snapshot<'_> {
    /// A schedule.
    ///
    /// # Errors
    /// `not_found`.
    pub fn schedule(&self, id: ScheduleId) -> Result<Schedule> {
        let (connection, sight) = self.parts();
        Ok(find(connection, sight, id)?.0)
    }

    /// All schedules, the next one first.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn schedules(&self) -> Result<Vec<Schedule>> {
        let (connection, sight) = self.parts();
        let all = sight.rows(connection, SCHEDULES, params![], MOST, |row| {
            from_row(connection, &mut sight.directory(), row)
        });
        Ok(all?)
    }
}

impl Store {
    /// Stores a schedule, durably.
    ///
    /// # Errors
    /// `invalid_request` for an empty or long prompt, or when there are 200;
    /// `not_found` for the conversation.
    pub fn add_schedule(&self, viewer: &Viewer, new: NewSchedule) -> Result<Schedule> {
        let viewer = viewer.clone();
        self.write(move |write| {
            let prompt = new.prompt.trim().to_owned();
            check_new(write.connection, &prompt)?;
            let audience_id = match new.conversation_id {
                Some(conversation) => {
                    let sight = viewer.sight(write.connection)?;
                    conversations::check_seen(write.connection, &sight, conversation)?.audience_id
                }
                None if viewer.is_household_only() => AudienceId::HOUSEHOLD,
                None => intern(write, new.owner_id, &new.audience, UnknownName::Skip)?,
            };
            let mut directory = Directory::default();
            let audience = directory.audience(write.connection, new.owner_id, audience_id)?;
            let schedule = Schedule {
                id: write.id(),
                prompt,
                owner: new.owner,
                owner_id: new.owner_id,
                audience,
                readers: directory.readers(write.connection, audience_id)?,
                conversation_id: new.conversation_id,
                channel: new.channel,
                account: new.account,
                timing: new.timing,
                last_at: None,
                planned_at: write.now,
                is_paused: false,
                is_outside: new.is_outside,
                created_at: write.now,
            };
            write.execute(
                "INSERT INTO schedules (id, prompt, owner, conversation_id, channel, account,
                     cron, next_at, planned_at, created_at, is_wait, owner_id, audience_id,
                     is_outside)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, ?12, ?13)",
                params![
                    schedule.id,
                    schedule.prompt,
                    schedule.owner,
                    schedule.conversation_id,
                    schedule.channel,
                    schedule.account,
                    schedule.timing.cron,
                    schedule.timing.next_at,
                    schedule.created_at,
                    schedule.timing.is_wait,
                    schedule.owner_id,
                    audience_id,
                    schedule.is_outside,
                ],
            )?;
            Ok(schedule)
        })
    }

    /// Deletes a schedule. Its turns continue. Returns who saw it.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it.
    pub fn delete_schedule(&self, viewer: &Viewer, id: ScheduleId) -> Result<Readers> {
        let viewer = viewer.clone();
        self.write(move |write| {
            let sight = viewer.sight(write.connection)?;
            let (_, thing) = find(write.connection, &sight, id)?;
            sight.check_delete(write.connection, "schedule", &thing)?;
            write.execute("DELETE FROM schedules WHERE id = ?", params![id])?;
            Ok(audience::readers(write.connection, thing.audience_id)?)
        })
    }

    /// Pauses a schedule, or resumes it with its next run at `next_at`.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it; `invalid_request` to
    /// resume one of a guest.
    pub fn pause_schedule(
        &self,
        viewer: &Viewer,
        id: ScheduleId,
        is_paused: bool,
        next_at: Timestamp,
    ) -> Result<Schedule> {
        let viewer = viewer.clone();
        self.write(move |write| {
            let owner = check_change(write, &viewer, id)?;
            if !is_paused && is_guest(write.connection, owner)? {
                let refused = "its owner is a guest (role viewer), whose schedules do not run";
                return Err(Error::invalid_request(refused).into());
            }
            write.execute(
                "UPDATE schedules SET is_paused = ?2, next_at = ?3, planned_at = ?4 WHERE id = ?1",
                params![id, is_paused, next_at, write.now],
            )?;
            Ok(find(write.connection, &viewer.sight(write.connection)?, id)?.0)
        })
    }

    /// The schedules that are due at `now`, the longest due first.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn due_schedules(&self, now: Timestamp) -> Result<Provisional<Vec<Schedule>>> {
        self.look(move |connection| {
            let mut directory = Directory::default();
            rows(connection, DUE_SCHEDULES, params![now], |row| {
                from_row(connection, &mut directory, row)
            })
        })
    }

    /// When the next schedule is due.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn next_schedule_at(&self) -> Result<Provisional<Option<Timestamp>>> {
        self.look(|connection| Ok(value(connection, NEXT_SCHEDULE, params![])?.flatten()))
    }

    /// Sets the next time of a schedule, unless it has changed since `known`.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn plan_schedule(&self, known: &Schedule, next_at: Timestamp) -> Result<()> {
        let (id, planned) = (known.id, known.timing.next_at);
        self.write(move |write| {
            write.execute(
                "UPDATE schedules SET next_at = ?3, planned_at = max(planned_at, ?4)
                 WHERE id = ?1 AND next_at = ?2",
                params![id, planned, next_at, write.now],
            )?;
            Ok(())
        })
    }

    /// Runs a due schedule: begins a turn with `message` and sets the next
    /// time, or deletes the schedule where there is none, in one commit.
    /// Nothing happens when it is no longer as `due` is; one of a guest is paused.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn run_schedule(
        &self,
        due: Schedule,
        message: String,
        next_at: Option<Timestamp>,
    ) -> Result<Option<Begun>> {
        self.write(move |write| {
            let stored = row(
                write.connection,
                STILL_DUE,
                params![due.id, due.timing.next_at],
                |row| {
                    let schedule = from_row(write.connection, &mut Directory::default(), row)?;
                    Ok((schedule, Belongs::from_row(row)?.audience_id))
                },
            )?;
            let Some((schedule, audience_id)) = stored else {
                return Ok(None);
            };
            if is_guest(write.connection, schedule.owner_id)? {
                let pause = "UPDATE schedules SET is_paused = 1 WHERE id = ?";
                write.execute(pause, params![schedule.id])?;
                return Ok(None);
            }
            let conversation_id = match schedule.conversation_id {
                Some(conversation_id) => conversation_id,
                None => {
                    let new = NewConversation {
                        channel: &schedule.channel,
                        message: &message,
                        account: schedule.account.as_deref(),
                        name: None,
                        sender_account: None,
                        owner: schedule.owner_id,
                        audience_id,
                        surface: None,
                    };
                    conversations::create(write, new)?.conversation_id
                }
            };
            if schedule.is_outside {
                let note = "UPDATE conversations SET has_outside_text = 1 WHERE id = ?";
                write.execute(note, params![conversation_id])?;
            }
            let (target, audience) = (Target::Existing(conversation_id), schedule.audience);
            let new = NewTurn {
                owner: schedule.owner_id,
                account: schedule.account,
                speaker: schedule.owner,
                ..NewTurn::new(
                    Viewer::server(),
                    target,
                    audience,
                    schedule.channel,
                    message,
                )
            };
            let begun = new_turn::begin(write, new)?;
            let id = schedule.id;
            match next_at {
                Some(next_at) => write.execute(
                    "UPDATE schedules SET next_at = ?2, planned_at = max(planned_at, ?3),
                         last_at = ?3, conversation_id = ?4 WHERE id = ?1",
                    params![id, next_at, write.now, conversation_id],
                )?,
                None => write.execute("DELETE FROM schedules WHERE id = ?", params![id])?,
            };
            Ok(Some(begun))
        })
    }
}

pub(crate) const DUE_SCHEDULES: &str = concat!(
    "SELECT ",
    seen_columns!("s"),
    ", s.* FROM schedules s INDEXED BY schedules_due \
     WHERE is_paused = 0 AND next_at <= ? ORDER BY next_at"
);

const STILL_DUE: &str = concat!(
    "SELECT ",
    seen_columns!("s"),
    ", s.* FROM schedules s WHERE id = ?1 AND next_at = ?2 AND is_paused = 0"
);

const SCHEDULES: &str = concat!(
    "SELECT ",
    seen_columns!("s"),
    ", s.* FROM schedules s ORDER BY next_at"
);

const SCHEDULE: &str = concat!(
    "SELECT ",
    seen_columns!("s"),
    ", s.* FROM schedules s WHERE id = ?"
);

pub(crate) const NEXT_SCHEDULE: &str =
    "SELECT min(next_at) FROM schedules INDEXED BY schedules_due WHERE is_paused = 0";

/// Refuses a prompt that is empty or too long, and more schedules than there may be.
///
/// # Errors
/// `invalid_request`.
pub(crate) fn check_new(connection: &Connection, prompt: &str) -> Outcome<()> {
    if !(1..=PROMPT_CHARACTERS).contains(&prompt.chars().count()) {
        return Err(Error::invalid_request(format!(
            "\"prompt\" must have 1 to {PROMPT_CHARACTERS} characters, not only white space"
        ))
        .into());
    }
    if count(connection)? >= MOST {
        return Err(Error::invalid_request(format!(
            "there are already {MOST} schedules; delete one first"
        ))
        .into());
    }
    Ok(())
}

fn count(connection: &Connection) -> Outcome<usize> {
    let count = row(
        connection,
        "SELECT count(*) FROM schedules",
        params![],
        |row| row.get::<_, i64>(0),
    )?;
    Ok(usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX))
}

fn find(connection: &Connection, sight: &Sight, id: ScheduleId) -> Outcome<(Schedule, Belongs)> {
    sight.find(connection, "schedule", SCHEDULE, id, |row| {
        from_row(connection, &mut sight.directory(), row)
    })
}

/// Checks that a viewer may change a schedule; returns its owner.
///
/// # Errors
/// `not_found`; `unauthorized` for who may see and not change it.
fn check_change(write: &Write<'_>, viewer: &Viewer, id: ScheduleId) -> Outcome<Option<UserId>> {
    let sight = viewer.sight(write.connection)?;
    let (_, thing) = find(write.connection, &sight, id)?;
    sight.check_change(write.connection, "schedule", &thing)?;
    Ok(thing.owner_id)
}

/// Of a row that begins with the [`seen_columns`].
fn from_row(
    connection: &Connection,
    directory: &mut Directory,
    row: &Row<'_>,
) -> rusqlite::Result<Schedule> {
    let thing = Belongs::from_row(row)?;
    Ok(from_row!(row => Schedule {
        id, prompt, owner, conversation_id, channel, account, last_at, planned_at, is_paused,
        is_outside, created_at;
        owner_id: thing.owner_id,
        audience: directory.audience(connection, thing.owner_id, thing.audience_id)?,
        readers: directory.readers(connection, thing.audience_id)?,
        timing: Timing {
            cron: row.get("cron")?,
            next_at: row.get("next_at")?,
            is_wait: row.get("is_wait")?,
        },
    }))
}

//! Runs of schedules. The turn of a run and the next time of its schedule are one commit,
//! so that a crash neither loses nor repeats a run.

use std::time::Duration;

use rusqlite::params;

use super::run_history::{RunOutcome, end_run, note_run, save_digest};
use super::schedules::{self, Schedule, from_row};
use super::trigger::plan_events;
use crate::chat::conversations::{self, NewConversation};
use crate::chat::new_turn::{self, Begun, NewTurn, Target};
use crate::chat::turn_end::{Finished, TurnEnd, end_turn};
use crate::chat::turns::{self, Turn};
use crate::chat::versions::{self, Rearranged};
use crate::engine::database::Store;
use crate::engine::durability::{Durable, Provisional};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::home::notifications::{self, NewNotification, NotificationCause};
use crate::keep::usage::{self, Purpose, Usage};
use crate::out::deliveries::{self, NewDelivery};
use crate::people::users::is_guest;
use crate::sight::audience::{Directory, readers_of};
use crate::sight::viewer::{Belongs, Viewer, seen_columns};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{AudienceId, ConversationId, TurnId};

/// A reminder that was told: its turn has begun and ended.
#[derive(Clone, Debug)]
pub struct Told {
    /// The schedule as it is now.
    pub schedule: Schedule,
    /// The turn's beginning.
    pub begun: Begun,
    /// Its end, with the message that tells it.
    pub finished: Finished,
}

impl Store {
    /// The schedules that are due at `now`, the longest due first.
    pub fn due_schedules(&self, now: Timestamp) -> Result<Provisional<Vec<Schedule>>> {
        self.look(move |connection| {
            let directory = Directory::new(connection);
            connection.rows(DUE_SCHEDULES, params![now], |row| from_row(&directory, row))
        })
    }

    /// When the next schedule is due.
    pub fn next_schedule_at(&self) -> Result<Provisional<Option<Timestamp>>> {
        self.look(|connection| Ok(connection.value(NEXT_SCHEDULE, params![])?.flatten()))
    }

    /// Sets the next time of a schedule, unless it has changed since `known`.
    pub fn plan_schedule(&self, known: &Schedule, next_at: Timestamp) -> Result<()> {
        let (id, planned) = (known.id, due_at(known));
        self.write(move |write| {
            write.run(
                "UPDATE schedules SET next_at = ?3, planned_at = max(planned_at, ?4)
                 WHERE id = ?1 AND next_at = ?2",
                params![id, planned, next_at, write.now],
            )
        })
    }

    /// Runs a due routine: begins a turn with `message` and sets the next time, in one commit.
    /// One that runs no more stays for a while, with what became of it. Nothing happens when it
    /// is no longer as `due` is; one of a guest is paused.
    pub fn run_schedule(
        &self,
        due: Schedule,
        message: String,
        next_at: Option<Timestamp>,
    ) -> Result<Option<Begun>> {
        self.write(move |write| {
            let Some((schedule, conversation)) = still_due(write, &due)? else {
                return Ok(None);
            };
            let begun = begin(write, &schedule, conversation, message)?;
            let id = schedule.id;
            write.execute(
                "UPDATE schedules SET next_at = ?2, planned_at = max(planned_at, ?3),
                     last_at = ?3, conversation_id = ?4, trigger_text = NULL,
                     is_trigger_outside = 0 WHERE id = ?1",
                params![id, next_at, write.now, conversation],
            )?;
            note_run(write, id, begun.turn().id, RunOutcome::Running)?;
            plan_events(write, Some(id))?;
            write.execute(FORGET_OVER, params![schedule.owner_id, KEPT_OVER])?;
            Ok(Some(begun))
        })
    }

    /// Tells a due reminder in its conversation, and by these services, in one commit with
    /// the next time; `is_seen` says whether its person is there. One that comes once waits until
    /// its person finishes it. Nothing happens when it is no longer as `due` is; one of a guest
    /// is paused.
    pub fn tell_reminder(
        &self,
        due: Schedule,
        message: String,
        next_at: Option<Timestamp>,
        services: Vec<&'static str>,
        is_seen: bool,
        delivery: impl FnOnce(&Turn, &TurnEnd) -> Option<NewDelivery> + Send + 'static,
    ) -> Result<Option<Durable<Told>>> {
        let told = self.durable_write(move |write| {
            let Some((schedule, conversation)) = still_due(write, &due)? else {
                return Ok(None);
            };
            let begun = begin(write, &schedule, conversation, message)?;
            let mut turn = begun.turn().clone();
            let end = TurnEnd::Done {
                reply: schedule.text.clone(),
                finish_reason: None,
            };
            let delivery = delivery(&turn, &end);
            let reply = end_turn(write, &mut turn, end, None)?;
            let to_tell = services.into_iter().filter_map(|service| {
                Some(NewNotification {
                    user_id: schedule.owner_id?,
                    service,
                    conversation_id: conversation,
                    cause: NotificationCause::Told,
                    about: Some(turn.id.as_i64()),
                    content: None,
                    delay: Duration::ZERO,
                })
            });
            notifications::insert(write, to_tell.collect())?;
            let delivery = delivery
                .map(|new| deliveries::insert(write, turn.id, conversation, new, None, None, &[]))
                .transpose()?;
            let id = schedule.id;
            write.execute(
                "UPDATE schedules SET next_at = ?2, planned_at = max(planned_at, ?3),
                     last_at = ?3, conversation_id = ?4, told_at = ?3, told_by = ?5, is_seen = ?6,
                     trigger_text = NULL, is_trigger_outside = 0 WHERE id = ?1",
                params![id, next_at, write.now, conversation, turn.id, is_seen],
            )?;
            note_run(write, id, turn.id, RunOutcome::Told)?;
            plan_events(write, Some(id))?;
            let sight = Viewer::server().sight(write.connection)?;
            Ok(Some(Told {
                schedule: schedules::find(&sight, id)?.0,
                begun,
                finished: Finished {
                    turn,
                    reply,
                    delivery,
                },
            }))
        })?;
        Ok(told.transpose())
    }

    /// Ends a routine's turn that has nothing to say: only its usage and the line among its
    /// runs stay. A conversation that holds nothing else goes, too, and is returned as deleted
    /// from it.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or has ended.
    pub fn silence_turn(
        &self,
        id: TurnId,
        outcome: RunOutcome,
        usage: Usage,
        model: &str,
    ) -> Result<(Rearranged, bool)> {
        let model = model.to_owned();
        let silence = move |write: &Write<'_>| {
            let mut turn = turns::find_unfinished(write, id)?;
            usage::add(write, id, usage, (&model, Purpose::Routine), 1)?;
            turn.usage.add(usage);
            save_digest(write, &turn)?;
            end_run(write, &turn, outcome)?;
            let conversation = turn.conversation_id;
            let readers = readers_of(write.connection, conversation)?;
            let deleted = versions::delete_exchange(write, turn.message_id, Some(id))?;
            versions::recount(write, conversation)?;
            let is_empty = write.execute(
                "DELETE FROM conversations WHERE id = ?1 AND channel = ?2 AND NOT EXISTS (
                     SELECT 1 FROM messages WHERE conversation_id = ?1)",
                params![conversation, turn.channel],
            )? > 0;
            let rearranged = Rearranged {
                conversation_id: conversation,
                readers,
                deleted,
            };
            Ok((rearranged, is_empty))
        };
        self.rearrange(|| self.write(silence))
    }
}

/// When a schedule is due, if it is to run at all.
fn due_at(schedule: &Schedule) -> Option<Timestamp> {
    schedule.timing.as_ref().map(|timing| timing.next_at)
}

/// The schedule as it is stored, and the conversation in which it runs, if it is still as it
/// was.
fn still_due(write: &Write<'_>, due: &Schedule) -> Outcome<Option<(Schedule, ConversationId)>> {
    let stored = write.row(STILL_DUE, params![due.id, due_at(due)], |row| {
        let schedule = from_row(&Directory::new(write.connection), row)?;
        Ok((schedule, Belongs::from_row(row)?.audience_id))
    })?;
    let Some((schedule, audience_id)) = stored else {
        return Ok(None);
    };
    if is_guest(write.connection, schedule.owner_id)? {
        let pause = "UPDATE schedules SET is_paused = 1 WHERE id = ?";
        write.execute(pause, params![schedule.id])?;
        return Ok(None);
    }
    let conversation = match schedule.conversation_id {
        Some(conversation) => conversation,
        None => new_conversation(write, &schedule, audience_id)?,
    };
    Ok(Some((schedule, conversation)))
}

fn new_conversation(
    write: &Write<'_>,
    schedule: &Schedule,
    audience_id: AudienceId,
) -> Outcome<ConversationId> {
    let new = NewConversation {
        channel: &schedule.channel,
        message: &schedule.text,
        account: schedule.account.as_deref(),
        name: None,
        sender_account: None,
        owner: schedule.owner_id,
        audience_id,
        surface: None,
    };
    Ok(conversations::create(write, new)?.conversation_id)
}

/// Begins the turn of a run. What set the schedule up, or caused the run, keeps its mark of
/// outside text.
fn begin(
    write: &Write<'_>,
    schedule: &Schedule,
    conversation: ConversationId,
    message: String,
) -> Outcome<Begun> {
    if schedule.is_outside || schedule.is_trigger_outside {
        conversations::note_outside_text(write, conversation)?;
    }
    let new = NewTurn {
        owner: schedule.owner_id,
        account: schedule.account.clone(),
        speaker: schedule.owner.clone(),
        schedule: Some(schedule.id),
        is_composed: schedule.is_composed,
        ..NewTurn::new(
            Viewer::server(),
            Target::Existing(conversation),
            schedule.audience.clone(),
            schedule.channel.clone(),
            message,
        )
    };
    new_turn::begin(write, new)
}

/// Routines of a person that run no more and are kept.
const KEPT_OVER: i64 = 20;

const FORGET_OVER: &str = "DELETE FROM schedules WHERE id IN (
     SELECT id FROM schedules INDEXED BY schedules_by_owner
     WHERE owner_id IS ?1 AND next_at IS NULL AND trigger IS NULL AND told_at IS NULL
     ORDER BY last_at DESC LIMIT -1 OFFSET ?2)";

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

pub(crate) const NEXT_SCHEDULE: &str =
    "SELECT min(next_at) FROM schedules INDEXED BY schedules_due WHERE is_paused = 0";

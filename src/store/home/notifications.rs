//! What phones are told: a queue that survives a restart, with one row for each cause,
//! person and service.

use std::time::Duration;

use rusqlite::{Connection, Row, params};

use crate::chat::approvals;
use crate::engine::database::Store;
use crate::engine::durability::Durable;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row, words};
use crate::keep::clock_step::note_attempt;
use crate::out::deliveries::Attempt;
use crate::people::push_subscriptions::{self, PUSH, PushSubscription};
use crate::people::senders::{self, TELEGRAM};
use crate::sight::askers;
use crate::sight::audience;
use crate::sight::viewer::Viewer;
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{ApprovalId, ConversationId, NotificationId, PushId, ScheduleId, TurnId, UserId};
use base::language::{Said, Words};
use base::people::UserRole;

/// Most notifications of one person that wait; more are not stored.
const MOST_WAITING: i64 = 100;
/// How long it is tried to send one.
const LIFE: Duration = Duration::from_secs(36 * 60 * 60);

/// Why a phone gets a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationCause {
    /// A tool call waits for this person's answer.
    Approval,
    /// A routine has run.
    Reminder,
    /// A reminder: also in quiet hours, as its person has chosen the time, but silently.
    Told,
    /// A reply is there.
    Reply,
    /// Somebody had the assistant tell them.
    Message,
}

words! { NotificationCause {
    Approval: "approval",
    Reminder: "reminder",
    Told: "told",
    Reply: "reply",
    Message: "message",
} }

/// What one service is to tell one person's phone.
#[derive(Clone, Debug)]
pub struct NewNotification {
    /// Who gets it.
    pub user_id: UserId,
    /// The service, as the settings call it, or [`PUSH`] for each of the person's browsers.
    pub service: &'static str,
    /// Where it comes from: it goes with that conversation.
    pub conversation_id: ConversationId,
    /// Why.
    pub cause: NotificationCause,
    /// The id of the approval or the turn, of which nobody is told twice; absent for a
    /// message.
    pub about: Option<i64>,
    /// The text of a message, or of a question for a chat; of the others it is read where it
    /// stands.
    pub content: Option<String>,
    /// How long it waits before it is sent.
    pub delay: Duration,
}

/// A notification that is due.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The same on every attempt.
    pub id: NotificationId,
    /// The name of the person.
    pub user: String,
    /// The service, as the settings call it, or [`PUSH`].
    pub service: String,
    /// The browser, of [`PUSH`]. Absent where it is not to be told any longer.
    pub browser: Option<(PushId, PushSubscription)>,
    /// The chat, where the service is [`TELEGRAM`]. Absent where the person has none any longer.
    pub chat: Option<String>,
    /// The question that it is about, where the person asked for it.
    pub own_question: Option<ApprovalId>,
    /// The reminder that it tells, until the person has finished it.
    pub reminder: Option<ScheduleId>,
    /// Where it comes from.
    pub conversation_id: ConversationId,
    /// Why.
    pub cause: NotificationCause,
    /// What it is about. Absent where it is not to be sent any longer: the question is
    /// answered, the reply is gone, or the person does not see it any longer.
    pub content: Option<String>,
    /// Attempts made so far.
    pub attempts: u32,
    /// When it is given up.
    pub expires_at: Timestamp,
    /// When the person wants quiet, by their own choice.
    pub quiet_hours: Option<String>,
    /// The words that the person reads.
    pub words: Words,
}

impl Store {
    /// Stores what phones are told, but for what was stored before and what is more than
    /// a person's share; returns how many were stored.
    pub fn add_notifications(&self, new: Vec<NewNotification>) -> Result<usize> {
        self.write(move |write| insert(write, new))
    }

    /// A notification if it is to be sent at `now`.
    ///
    /// # Errors
    /// `not_found`.
    pub fn notification_to_send(
        &self,
        id: NotificationId,
        now: Timestamp,
    ) -> Result<Option<Durable<Notification>>> {
        let found = self.durable_read(|connection| {
            let stored = find(connection, id)?;
            if stored.is_finished || stored.next_at > now {
                return Ok(None);
            }
            let content = content(connection, &stored)?;
            let browser = match stored.browser {
                Some(browser) => push_subscriptions::find(connection, browser, now)?,
                None => None,
            };
            let asked_in =
                (stored.cause == NotificationCause::Approval).then_some(stored.conversation_id);
            let chat = match stored.service == TELEGRAM {
                true => senders::chat_of(connection, stored.user_id, asked_in)?,
                false => None,
            };
            let own_question = match stored.cause {
                NotificationCause::Approval => {
                    let id = ApprovalId::from(stored.about);
                    approvals::find_if_there(connection, id)?
                        .filter(|one| one.user_id == Some(stored.user_id))
                        .map(|_| id)
                }
                _ => None,
            };
            Ok(Some(Notification {
                id,
                chat,
                own_question,
                reminder: told_reminder(connection, &stored)?,
                user: stored.user,
                service: stored.service,
                browser,
                conversation_id: stored.conversation_id,
                cause: stored.cause,
                content,
                attempts: stored.attempts,
                expires_at: stored.expires_at,
                quiet_hours: stored.quiet_hours,
                words: stored
                    .language
                    .map_or(Words::ENGLISH, |language| Words::of(&language)),
            }))
        })?;
        Ok(found.transpose())
    }

    /// Stores the outcome of an attempt, durably: a success that was forgotten would tell
    /// the person twice.
    pub fn record_notification(&self, id: NotificationId, attempt: Attempt) -> Result<()> {
        self.write(move |write| {
            match attempt {
                Attempt::Delivered | Attempt::Dead { .. } => write.execute(
                    "UPDATE notifications
                     SET attempts = attempts + 1, content = NULL, finished_at = ?2 WHERE id = ?1",
                    params![id, write.now],
                )?,
                Attempt::Retry { next_at, .. } => {
                    note_attempt(write)?;
                    write.execute(
                        "UPDATE notifications
                         SET attempts = attempts + 1, next_at = ?2 WHERE id = ?1",
                        params![id, next_at],
                    )?
                }
            };
            Ok(())
        })
    }

    /// Stores what is left of a notification that is sent in pieces.
    pub fn continue_notification(&self, id: NotificationId, rest: String) -> Result<()> {
        self.write(move |write| {
            let set = "UPDATE notifications SET content = ?2 WHERE id = ?1";
            write.run(set, params![id, rest])
        })
    }

    /// When a person wants quiet, by their own choice.
    pub fn quiet_hours(&self, person: UserId) -> Result<Option<String>> {
        let hours = "SELECT quiet_hours FROM users WHERE id = ?";
        self.read(move |connection| Ok(connection.value(hours, params![person])?.flatten()))
    }

    /// Sets when a person wants quiet.
    pub fn set_quiet_hours(&self, person: UserId, hours: Option<String>) -> Result<()> {
        self.write(move |write| {
            let set = "UPDATE users SET quiet_hours = ?2 WHERE id = ?1";
            write.execute(set, params![person, hours])?;
            // What waits for the end of the earlier ones is looked at again.
            write.run(
                "UPDATE notifications SET next_at = ?2
                 WHERE user_id = ?1 AND finished_at IS NULL AND attempts = 0 AND next_at > ?2",
                params![person, write.now],
            )
        })
    }

    /// Puts a notification off, because its person wants quiet until then.
    pub fn put_off_notification(&self, id: NotificationId, until: Timestamp) -> Result<()> {
        self.write(move |write| {
            write.run(
                "UPDATE notifications SET next_at = ?2 WHERE id = ?1",
                params![id, until],
            )
        })
    }
}

/// Stores what phones are told; returns how many were stored.
pub(crate) fn insert(write: &Write<'_>, new: Vec<NewNotification>) -> Outcome<usize> {
    let mut stored = 0;
    for new in new {
        if new.service != PUSH {
            stored += insert_one(write, &new, None)?;
            continue;
        }
        for browser in push_subscriptions::of_user(write, new.user_id)? {
            stored += insert_one(write, &new, Some(browser))?;
        }
    }
    Ok(stored)
}

fn insert_one(write: &Write<'_>, new: &NewNotification, browser: Option<PushId>) -> Outcome<usize> {
    let id: NotificationId = write.id();
    write.execute(
        "INSERT OR IGNORE INTO notifications
             (id, user_id, conversation_id, service, cause, about, content, attempts,
              created_at, next_at, expires_at, subscription_id)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10, ?12
         WHERE (SELECT count(*) FROM notifications INDEXED BY notifications_by_user
                WHERE user_id = ?2 AND finished_at IS NULL) < ?11",
        params![
            id,
            new.user_id,
            new.conversation_id,
            new.service,
            new.cause,
            new.about.unwrap_or(id.as_i64()),
            new.content,
            write.now,
            write.now.plus(new.delay),
            write.now.plus(LIFE),
            MOST_WAITING,
            browser,
        ],
    )
}

/// A row as it is stored.
struct Stored {
    user_id: UserId,
    user: String,
    role: UserRole,
    conversation_id: ConversationId,
    service: String,
    browser: Option<PushId>,
    cause: NotificationCause,
    about: i64,
    content: Option<String>,
    attempts: u32,
    next_at: Timestamp,
    expires_at: Timestamp,
    is_finished: bool,
    quiet_hours: Option<String>,
    language: Option<String>,
}

fn find(connection: &Connection, id: NotificationId) -> Outcome<Stored> {
    connection.find(
        "notification",
        "SELECT n.*, u.name, u.role, u.quiet_hours,
                ifnull(u.language, u.last_language) AS language FROM notifications n
         CROSS JOIN users u ON u.id = n.user_id WHERE n.id = ?",
        id,
        |row: &Row<'_>| {
            Ok(from_row!(row => Stored {
                user_id, role, conversation_id, service, cause, about, content, attempts,
                next_at, expires_at, quiet_hours, language;
                user: row.get("name")?,
                browser: row.get("subscription_id")?,
                is_finished: row.get::<_, Option<Timestamp>>("finished_at")?.is_some(),
            }))
        },
    )
}

/// The reminder that a notification tells its person, who has not finished it yet.
fn told_reminder(connection: &Connection, stored: &Stored) -> Outcome<Option<ScheduleId>> {
    if stored.cause != NotificationCause::Told {
        return Ok(None);
    }
    let told = "SELECT id FROM schedules INDEXED BY schedules_by_owner
                WHERE owner_id = ? AND told_by = ? AND told_at IS NOT NULL";
    let turn = TurnId::from(stored.about);
    connection.value(told, params![stored.user_id, turn])
}

/// What a notification is about, if it is still to be sent and its person sees it.
fn content(connection: &Connection, stored: &Stored) -> Outcome<Option<String>> {
    match stored.cause {
        NotificationCause::Message => Ok(stored.content.clone()),
        NotificationCause::Approval => {
            let found = approvals::find_if_there(connection, ApprovalId::from(stored.about))?;
            let Some(approval) = found else {
                return Ok(None);
            };
            let viewer = Viewer::person(stored.user_id, stored.role);
            let waits = approval.decision.is_none()
                && viewer.sees_approval_of(approval.user_id)
                && askers::still_sees(connection, approval.turn_id)?;
            let text = stored.content.clone().unwrap_or(approval.reason);
            Ok(waits.then_some(text))
        }
        NotificationCause::Reminder | NotificationCause::Told | NotificationCause::Reply => {
            let readers = audience::readers_of(connection, stored.conversation_id)?;
            if !readers.include(stored.user_id, stored.role) {
                return Ok(None);
            }
            if stored.content.is_some() {
                return Ok(stored.content.clone());
            }
            let words = Words::of(stored.language.as_deref().unwrap_or_default());
            let said = "SELECT m.content, t.error_message FROM turns t
                 LEFT JOIN messages m ON m.id = t.reply_id WHERE t.id = ?";
            let said = connection.row(said, params![TurnId::from(stored.about)], |row| {
                let (reply, error): (Option<String>, Option<Said>) = row.try_into()?;
                Ok(reply.or(error.map(|said| said.in_words(words))))
            })?;
            Ok(said.flatten())
        }
    }
}

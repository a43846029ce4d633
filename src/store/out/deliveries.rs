//! Webhook callbacks: a queue that keeps the order of each conversation.
//!
//! Of the undelivered callbacks of a conversation only the oldest is `pending`;
//! the later ones are `held` and move up when it is delivered or dead.

use std::time::Duration;

use rusqlite::{Connection, Row, params};

use crate::engine::database::Store;
use crate::engine::durability::{Durable, Provisional};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row, words};
use crate::keep::clock_step::note_attempt;
use crate::sight::audience::{self, Readers};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Sight, Viewer, select_seen};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ConversationId, DeliveryId, MessageId, TurnId};
use base::language::Said;
use protocol::record::Attachment;

/// Most rows of one list, whatever a caller asks for.
const MOST: usize = 1000;

/// A callback to send, stored in the same commit as the turn's end.
pub struct NewDelivery {
    /// The webhook account; the callback goes to its `outgoing_url`.
    pub account: String,
    /// Writes the JSON body.
    pub body: NewBody,
    /// The bodies of those that follow it, of a reply that is sent in pieces.
    pub more: Vec<String>,
    /// Writes the body of one more for each file that the reply carries, where those are sent.
    pub of_file: Option<FileBody>,
    /// How long after the turn's end the first attempt is due.
    pub delay: Duration,
}

/// Writes the JSON body of a callback. It is given why the turn failed in the commit that
/// ends it, if it did, and the message that is answered, if others came while its turn
/// waited.
pub type NewBody = Box<dyn FnOnce(Option<Error>, Option<MessageId>) -> String + Send>;

/// Writes the body of a file.
pub type FileBody = Box<dyn Fn(&Attachment) -> String + Send>;

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be sent at `next_at`.
    Pending,
    /// Waits for an earlier one of its conversation.
    Held,
    /// The receiver accepted it.
    Delivered,
    /// Given up; a person may send it again.
    Dead,
}

words! { DeliveryState {
    Pending: "pending",
    Held: "held",
    Delivered: "delivered",
    Dead: "dead",
} }

/// A webhook callback with all its attempts, without what is sent.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Sent as `webhook-id`, the same on every attempt.
    pub id: DeliveryId,
    /// The turn that it reports.
    pub turn_id: TurnId,
    /// Callbacks of one conversation are sent in order.
    pub conversation_id: ConversationId,
    /// Who sees that conversation.
    pub readers: Readers,
    /// The webhook account; the callback goes to its `outgoing_url`.
    pub account: String,
    /// Whether it is to be sent, was accepted, or was given up.
    pub state: DeliveryState,
    /// Attempts made so far.
    pub attempts: u32,
    /// When the turn ended.
    pub created_at: Timestamp,
    /// When the next attempt is due.
    pub next_at: Timestamp,
    /// Why the last attempt failed.
    pub last_error: Option<Said>,
}

/// A webhook callback to send.
#[derive(Clone, Debug)]
pub struct Callback {
    /// What is known of it.
    pub delivery: Delivery,
    /// The JSON body, exactly as it is sent on every attempt.
    pub body: String,
}

/// The outcome of one attempt at a delivery.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The receiver accepted it.
    Delivered,
    /// To be tried again.
    Retry {
        /// Why this attempt failed.
        error: Said,
        /// When to try again.
        next_at: Timestamp,
    },
    /// Given up.
    Dead {
        /// Why no further attempt is made.
        error: Said,
    },
}

impl Snapshot<'_> {
    /// A delivery.
    ///
    /// # Errors
    /// `not_found`.
    pub fn delivery(&self, id: DeliveryId) -> Result<Delivery> {
        Ok(find_seen(&self.sight, id)?)
    }

    /// The newest deliveries, of one state or of all, at most 1,000.
    pub fn deliveries(&self, state: Option<DeliveryState>, limit: usize) -> Result<Vec<Delivery>> {
        let limit = limit.min(MOST);
        let list = |sql, parameters| {
            self.sight.seen_rows(sql, parameters, limit, |row| {
                from_row(self.connection(), row)
            })
        };
        Ok(match state {
            Some(state) => list(DELIVERIES_OF_STATE, params![state])?,
            None => list(DELIVERIES, params![])?,
        })
    }
}

impl Store {
    /// A delivery if it is to be sent at `now`: it is committed as pending and due,
    /// and no write has changed it since.
    ///
    /// # Errors
    /// `not_found`, also until the delivery itself is committed.
    pub fn callback_to_send(
        &self,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<Option<Durable<Callback>>> {
        // First a reader, which sees only what is committed. If the commit of a
        // delivery failed, its turn would run again and send it under another id.
        let stored = self.durable_read(|connection| {
            let sql = "SELECT * FROM deliveries WHERE id = ?";
            connection.find("delivery", sql, id, |row| {
                Ok(Callback {
                    delivery: from_row(connection, row)?,
                    body: row.get("body")?,
                })
            })
        })?;
        // Then the writer's connection, which sees a success that is recorded but
        // not committed yet.
        let latest = self.look(move |connection| find(connection, id))?;
        let latest = latest.uncommitted();
        let is_due = latest.state == DeliveryState::Pending && latest.next_at <= now;
        let known = &stored.delivery;
        let is_unchanged = (known.state, known.attempts) == (latest.state, latest.attempts);
        Ok((is_due && is_unchanged).then_some(stored))
    }

    /// Stores the outcome of an attempt and moves the next held one up. `Delivered`
    /// has a deferred commit (a repeat after a crash carries the same id); `Retry`
    /// and `Dead` wait for theirs. A delivered one never changes again.
    ///
    /// # Errors
    /// `not_found`.
    pub fn record_attempt(
        &self,
        id: DeliveryId,
        attempt: Attempt,
    ) -> Result<Provisional<Delivery>> {
        let is_delivered = matches!(attempt, Attempt::Delivered);
        let store_it = move |write: &Write<'_>| record(write, id, attempt);
        match is_delivered {
            true => self.deferred_write(store_it),
            false => self.durable_write(store_it).map(Provisional::from),
        }
    }

    /// Makes a dead or waiting delivery due at once, with its attempts reset. It
    /// keeps its place in the order of its conversation.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` when it is delivered.
    pub fn retry_delivery(&self, viewer: &Viewer, id: DeliveryId) -> Result<Delivery> {
        self.write_for(viewer, move |write, sight| {
            let delivery = find_seen(sight, id)?;
            if delivery.state == DeliveryState::Delivered {
                return Err(Error::invalid_request(format!(
                    "the delivery {id} has already been delivered"
                ))
                .into());
            }
            // `settle_queue` makes it pending if it is the oldest.
            write.execute(
                "UPDATE deliveries
                 SET state = 'held', attempts = 0, next_at = ?2, finished_at = NULL WHERE id = ?1",
                params![id, write.now],
            )?;
            settle_queue(write, delivery.conversation_id)?;
            find(write.connection, id)
        })
    }
}

/// All but the body, which may be long.
macro_rules! delivery_columns {
    () => {
        "d.id, d.turn_id, d.conversation_id, d.account, d.state, d.attempts, \
         d.created_at, d.next_at, d.last_error "
    };
}

pub(crate) const DELIVERIES_OF_STATE: &str = select_seen!(
    "c",
    delivery_columns!(),
    "FROM deliveries d INDEXED BY deliveries_by_state \
     CROSS JOIN conversations c ON c.id = d.conversation_id \
     WHERE d.state = ?1 ORDER BY d.id DESC"
);

const DELIVERIES: &str = select_seen!(
    "c",
    delivery_columns!(),
    "FROM deliveries d CROSS JOIN conversations c ON c.id = d.conversation_id \
     ORDER BY d.id DESC"
);

const SEEN_DELIVERY: &str = select_seen!(
    "c",
    delivery_columns!(),
    "FROM deliveries d CROSS JOIN conversations c ON c.id = d.conversation_id \
     WHERE d.id = ?"
);

const DELIVERY: &str = concat!(
    "SELECT ",
    delivery_columns!(),
    "FROM deliveries d WHERE d.id = ?"
);

pub(crate) const UNDELIVERED_STATES: &str = select_seen!(
    "c",
    "d.state FROM deliveries d INDEXED BY deliveries_by_state \
     CROSS JOIN conversations c ON c.id = d.conversation_id \
     WHERE d.state IN ('pending', 'held', 'dead')"
);

pub(crate) const UNDELIVERED_BY_STATE: &str = "SELECT state, count(*) FROM deliveries \
     INDEXED BY deliveries_by_state WHERE state IN ('pending', 'held', 'dead') GROUP BY state";

pub(crate) const OLDEST_UNDELIVERED: &str = "SELECT id FROM deliveries \
     INDEXED BY deliveries_by_conversation \
     WHERE conversation_id = ? AND finished_at IS NULL ORDER BY id LIMIT 1";

/// Stores the callback of a turn that ends.
pub(crate) fn insert(
    write: &Write<'_>,
    turn_id: TurnId,
    conversation_id: ConversationId,
    new: NewDelivery,
    lost: Option<Error>,
    in_reply_to: Option<MessageId>,
    files: &[Attachment],
) -> Outcome<Delivery> {
    let (account, is_lost) = (new.account, lost.is_some());
    let body = (new.body)(lost, in_reply_to);
    let first = insert_one(write, turn_id, conversation_id, &account, &body, new.delay)?;
    let of_file = new.of_file.iter();
    let of_files = of_file.flat_map(|body| files.iter().map(body));
    let more = new.more.iter().cloned().chain(of_files);
    for body in more.filter(|_| !is_lost) {
        insert_one(write, turn_id, conversation_id, &account, &body, new.delay)?;
    }
    Ok(first)
}

fn insert_one(
    write: &Write<'_>,
    turn_id: TurnId,
    conversation_id: ConversationId,
    account: &str,
    body: &str,
    delay: Duration,
) -> Outcome<Delivery> {
    let state = match oldest_undelivered(write, conversation_id)? {
        Some(_) => DeliveryState::Held,
        None => DeliveryState::Pending,
    };
    let delivery = Delivery {
        id: write.id(),
        turn_id,
        conversation_id,
        readers: audience::readers_of(write.connection, conversation_id)?,
        account: account.to_owned(),
        state,
        attempts: 0,
        created_at: write.now,
        next_at: write.now.plus(delay),
        last_error: None,
    };
    write.insert(
        "deliveries",
        &[
            ("id", &delivery.id),
            ("turn_id", &delivery.turn_id),
            ("conversation_id", &delivery.conversation_id),
            ("account", &delivery.account),
            ("body", &body),
            ("state", &delivery.state),
            ("attempts", &0),
            ("created_at", &delivery.created_at),
            ("next_at", &delivery.next_at),
        ],
    )?;
    Ok(delivery)
}

pub(crate) fn record(write: &Write<'_>, id: DeliveryId, attempt: Attempt) -> Outcome<Delivery> {
    let delivery = find(write.connection, id)?;
    match attempt {
        _ if delivery.state == DeliveryState::Delivered => return Ok(delivery),
        Attempt::Delivered => write.execute(
            "UPDATE deliveries
             SET state = 'delivered', attempts = attempts + 1, last_error = NULL, finished_at = ?2
             WHERE id = ?1",
            params![id, write.now],
        )?,
        Attempt::Retry { error, next_at } => {
            note_attempt(write)?;
            write.execute(
                "UPDATE deliveries
                 SET attempts = attempts + 1, last_error = ?2, next_at = ?3 WHERE id = ?1",
                params![id, error, next_at],
            )?
        }
        Attempt::Dead { error } => write.execute(
            "UPDATE deliveries
             SET state = 'dead', attempts = attempts + 1, last_error = ?2, finished_at = ?3
             WHERE id = ?1",
            params![id, error, write.now],
        )?,
    };
    settle_queue(write, delivery.conversation_id)?;
    find(write.connection, id)
}

/// Makes the oldest undelivered callback of a conversation the pending one. Its
/// `next_at` stays, which has passed for a new one.
fn settle_queue(write: &Write<'_>, conversation: ConversationId) -> Outcome<()> {
    let Some(oldest) = oldest_undelivered(write, conversation)? else {
        return Ok(());
    };
    let moved_up = write.execute(
        "UPDATE deliveries SET state = 'pending' WHERE id = ? AND state = 'held'",
        params![oldest],
    )?;
    if moved_up > 0 {
        // One that a person retries may be older than the pending one.
        write.execute(
            "UPDATE deliveries INDEXED BY deliveries_by_conversation SET state = 'held'
             WHERE conversation_id = ?1 AND finished_at IS NULL AND state = 'pending' AND id <> ?2",
            params![conversation, oldest],
        )?;
    }
    Ok(())
}

fn oldest_undelivered(
    write: &Write<'_>,
    conversation: ConversationId,
) -> Outcome<Option<DeliveryId>> {
    write.value(OLDEST_UNDELIVERED, params![conversation])
}

fn find_seen(sight: &Sight<'_>, id: DeliveryId) -> Outcome<Delivery> {
    Ok(sight
        .find_seen("delivery", SEEN_DELIVERY, id, |row| {
            from_row(sight.connection(), row)
        })?
        .0)
}

fn find(connection: &Connection, id: DeliveryId) -> Outcome<Delivery> {
    connection.find("delivery", DELIVERY, id, |row| from_row(connection, row))
}

fn from_row(connection: &Connection, row: &Row<'_>) -> Outcome<Delivery> {
    Ok(from_row!(row => Delivery {
        id, turn_id, conversation_id, account, state, attempts, created_at, next_at, last_error;
        readers: audience::readers_of(connection, row.get("conversation_id")?)?,
    }))
}

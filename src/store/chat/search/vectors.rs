//! The vectors of messages, of one model at a time: how they are made, and what is near to one.

use rusqlite::{Row, params};

use super::Search;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::meta;
use crate::engine::query::Statements;
use crate::home::vector::{Vector, standing_out};
use crate::home::vectors::is_of_model;
use base::error::Result;
use base::ids::{ConversationId, MessageId};

/// Of which model the vectors are, or are going to be: while it is there, each new message gets
/// a place for its own.
const MODEL_KEY: &str = "message_vectors";
/// Most messages that have vectors, the newest ones: each question is compared with all of
/// them. With 384 numbers each they take 20 MB of the database.
pub(crate) const MOST_COMPARED: usize = 50_000;
/// Most messages that one write gives a place, or takes it.
const AT_ONCE: usize = 1_000;
/// How far a message stands out that is near, in standard deviations, and most that do.
const STANDING_OUT: f64 = 1.5;
const MOST_NEAR: usize = 50;

/// A message and those beside it, which its vector is made of too.
#[derive(Clone, Copy, Debug)]
pub struct MessageBetween {
    /// The message itself.
    pub id: MessageId,
    before: Option<MessageId>,
    after: Option<MessageId>,
}

impl Search<'_> {
    /// The messages that are near to a vector and seen, the nearest first.
    pub(super) fn near(&mut self, vector: &Vector) -> Outcome<Vec<(i64, ConversationId)>> {
        let mut found = Vec::new();
        let mut statement = self.sight.connection().prepare_cached(NEWEST)?;
        let mut rows = statement.query([MOST_COMPARED])?;
        while let Some(row) = rows.next()? {
            let (id, conversation) = (row.get(0)?, row.get(1)?);
            let made = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
            if let Some(likeness) = vector.likeness(made)
                && self.sees(conversation)?
            {
                found.push(((id, conversation), likeness));
            }
        }
        Ok(standing_out(found, STANDING_OUT, MOST_NEAR))
    }
}

impl Store {
    /// Whether messages have no vector of this model yet.
    pub fn has_messages_without_vector(&self, model: &str) -> Result<bool> {
        let model = model.to_owned();
        let waits = self.look(move |connection| {
            Ok(!is_of_model(connection, MODEL_KEY, &model)?
                || connection.exists(IS_WAITING, params![])?)
        });
        Ok(waits?.uncommitted())
    }

    /// Messages without a vector of this model, newest first, at most `most`, each as the passage
    /// that a search shows: between those before and after it, the beginnings of all three, and
    /// who says them. Another model than before makes all anew.
    pub fn messages_without_vector(
        &self,
        model: &str,
        most: usize,
    ) -> Result<Vec<(MessageBetween, String)>> {
        let key = model.to_owned();
        let is_known = self.look(move |connection| is_of_model(connection, MODEL_KEY, &key))?;
        if !is_known.uncommitted() {
            self.make_places(model)?;
        }
        let passage = |row: &Row<'_>| {
            let message = MessageBetween {
                id: row.get(0)?,
                before: row.get(1)?,
                after: row.get(2)?,
            };
            let lines: [Option<String>; 3] = [row.get(3)?, row.get(4)?, row.get(5)?];
            let lines: Vec<String> = lines.into_iter().flatten().collect();
            Ok((message, lines.join("\n")))
        };
        let found = self.look(move |connection| connection.rows(WITHOUT, params![most], passage));
        Ok(found?.uncommitted())
    }

    /// Stores vectors of this model. Those of messages that were deleted in the meantime or have
    /// others beside them now, and of a model that no longer is the one in use, are not stored.
    pub fn keep_message_vectors(
        &self,
        model: &str,
        vectors: Vec<(MessageBetween, Vector)>,
    ) -> Result<()> {
        let model = model.to_owned();
        self.write(move |write| {
            if is_of_model(write.connection, MODEL_KEY, &model)? {
                for (message, vector) in &vectors {
                    let MessageBetween { id, before, after } = message;
                    write.execute(KEEP, params![id, before, after, vector.to_bytes()])?;
                }
            }
            Ok(())
        })
    }

    /// Gives the newest messages a place for a vector of this model. The key says that it is
    /// done only at the end, so that it begins again after a crash.
    fn make_places(&self, model: &str) -> Result<()> {
        self.write(|write| {
            write.execute("DELETE FROM message_vectors", params![])?;
            meta::set(write, MODEL_KEY, &"")
        })?;
        let mut before = Some(i64::MAX);
        for _ in 0..MOST_COMPARED / AT_ONCE {
            let Some(newest) = before else { break };
            before = self.write(move |write| {
                let newest = params![newest, AT_ONCE];
                write.execute(MAKE_PLACES, newest)?;
                Ok(write.value(OLDEST_OF, newest)?.flatten())
            })?;
        }
        let model = model.to_owned();
        self.write(move |write| meta::set(write, MODEL_KEY, &model))
    }

    /// Deletes the vectors of all messages but the newest, so many.
    pub(crate) fn purge_message_vectors(&self, most: usize) -> Result<()> {
        let newest = self.look(move |connection| connection.value(NEWEST_TOO_OLD, params![most]));
        let Some(newest): Option<MessageId> = newest?.uncommitted() else {
            return Ok(());
        };
        let purge = || self.write(move |write| write.execute(PURGE, params![newest, AT_ONCE]));
        while purge()? == AT_ONCE {}
        Ok(())
    }
}

/// Those that are made.
const NEWEST: &str = "SELECT message_id, conversation_id, vector FROM message_vectors
     WHERE vector IS NOT NULL ORDER BY message_id DESC LIMIT ?1";

const IS_WAITING: &str = "SELECT 1 FROM message_vectors WHERE vector IS NULL LIMIT 1";

/// The message before or after `m` in its conversation.
macro_rules! beside {
    ($end:literal, $order:literal) => {
        concat!(
            "(SELECT ",
            $end,
            "(id) FROM messages WHERE conversation_id = m.conversation_id
               AND hidden_with IS NULL AND id ",
            $order,
            " m.id)"
        )
    };
}

const WITHOUT: &str = concat!(
    "SELECT m.id, b.id, a.id,
         ifnull(b.speaker || ': ', '') || substr(b.content, 1, 300),
         ifnull(m.speaker || ': ', '') || substr(m.content, 1, 1000),
         ifnull(a.speaker || ': ', '') || substr(a.content, 1, 300)
     FROM message_vectors v INDEXED BY message_vectors_to_make
     CROSS JOIN messages m ON m.id = v.message_id
     LEFT JOIN messages b ON b.id = ",
    beside!("max", "<"),
    " LEFT JOIN messages a ON a.id = ",
    beside!("min", ">"),
    " WHERE v.vector IS NULL ORDER BY v.message_id DESC LIMIT ?1"
);

const KEEP: &str = concat!(
    "UPDATE message_vectors SET vector = ?4 WHERE message_id = ?1 AND EXISTS
     (SELECT 1 FROM messages m WHERE m.id = ?1 AND ?2 IS ",
    beside!("max", "<"),
    " AND ?3 IS ",
    beside!("min", ">"),
    ")"
);

const MAKE_PLACES: &str = "INSERT OR IGNORE INTO message_vectors (message_id, conversation_id)
     SELECT id, conversation_id FROM messages WHERE id < ?1 ORDER BY id DESC LIMIT ?2";

const OLDEST_OF: &str = "SELECT min(id) FROM
     (SELECT id FROM messages WHERE id < ?1 ORDER BY id DESC LIMIT ?2)";

const NEWEST_TOO_OLD: &str = "SELECT message_id FROM message_vectors
     ORDER BY message_id DESC LIMIT 1 OFFSET ?1";

const PURGE: &str = "DELETE FROM message_vectors WHERE message_id IN
     (SELECT message_id FROM message_vectors WHERE message_id <= ?1 LIMIT ?2)";

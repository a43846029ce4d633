//! The history of a conversation, as the model sees it.

use rusqlite::{Connection, Row, Statement, params};

use crate::conversations;
use crate::database::Store;
use crate::failure::Outcome;
use crate::messages::{Message, message_from_row};
use crate::query::{length, row, rows};
use crate::steps::{Step, step_from_row};
use base::error::Result;
use base::ids::{ConversationId, MessageId, TurnId};

/// An earlier turn of a conversation.
#[derive(Clone, Debug)]
pub struct PastTurn {
    /// Its id.
    pub id: TurnId,
    /// Where its message came from, as [`Turn::channel`](crate::Turn::channel).
    pub channel: String,
    /// The message.
    pub message: Message,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Absent when the turn failed or was cancelled.
    pub reply: Option<Message>,
}

/// A text that replaces the oldest turns of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The newest turn that it covers.
    pub turn_id: TurnId,
    /// The text.
    pub content: String,
}

/// The part of a conversation that is read for one turn.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Replaces the oldest turns, once there are too many.
    pub summary: Option<Summary>,
    /// The newest turns that the summary does not cover, oldest first.
    pub turns: Vec<PastTurn>,
    /// Whether turns are missing between the summary and `turns`.
    pub has_more: bool,
}

/// Most turns at once, whatever a caller asks for.
const MOST_TURNS: usize = 1000;

/// Most steps of one turn.
const MOST_STEPS: i64 = 10_000;

impl Store {
    /// The history of a conversation before the turn `before`: the summary, and of
    /// the finished turns after it the newest `most_turns` (at most 1,000), oldest
    /// first.
    ///
    /// Reading stops at the turn whose text exceeds `most_bytes` in total: it and
    /// all before it are missing. If that is the newest turn, only its steps are.
    /// The cost does not depend on the length of the conversation.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn past(
        &self,
        id: ConversationId,
        before: TurnId,
        most_turns: usize,
        most_bytes: usize,
    ) -> Result<Past> {
        self.read(|connection| {
            let summary = row(connection, SUMMARY, params![id], summary_from_row)?;
            let covered = summary
                .as_ref()
                .map_or(0, |summary| summary.turn_id.as_i64());
            let most_turns = most_turns.min(MOST_TURNS);
            let mut heads = rows(
                connection,
                PAST_TURNS,
                params![id, covered, before, most_turns as i64 + 1],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )?;
            let mut has_more = heads.len() > most_turns;
            heads.truncate(most_turns);
            let mut statement = connection.prepare_cached(PAST_STEPS)?;
            let mut left = most_bytes;
            let mut turns: Vec<PastTurn> = Vec::new();
            for (turn, message, reply, channel) in heads {
                // Missing only if the conversation is being deleted.
                let Some(message) = find_message(connection, message)? else {
                    continue;
                };
                let reply = match reply {
                    Some(reply) => find_message(connection, reply)?,
                    None => None,
                };
                let text =
                    message.content.len() + reply.as_ref().map_or(0, |reply| reply.content.len());
                let steps = match left.checked_sub(text) {
                    Some(for_steps) => steps_within(&mut statement, turn, for_steps)?,
                    None => None,
                };
                let (steps, rest) = match steps {
                    Some(read) => read,
                    None if turns.is_empty() => (Vec::new(), 0),
                    None => {
                        has_more = true;
                        break;
                    }
                };
                left = rest;
                turns.push(PastTurn {
                    id: turn,
                    channel,
                    message,
                    steps,
                    reply,
                });
            }
            turns.reverse();
            Ok(Past {
                summary,
                turns,
                has_more,
            })
        })
    }

    /// Stores the summary that replaces the turns up to `turn_id`, durably.
    ///
    /// # Errors
    /// `not_found`.
    pub fn save_summary(&self, id: ConversationId, turn_id: TurnId, content: &str) -> Result<()> {
        let content = content.to_owned();
        self.write(move |write| {
            conversations::find(write.connection, id)?;
            write.execute(
                "INSERT INTO conversation_summaries
                     (conversation_id, turn_id, content, created_at)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (conversation_id) DO UPDATE
                 SET turn_id = ?2, content = ?3, created_at = ?4",
                params![id, turn_id, content, write.now],
            )?;
            Ok(())
        })
    }
}

pub(crate) const SUMMARY: &str =
    "SELECT turn_id, content FROM conversation_summaries WHERE conversation_id = ?";

pub(crate) const PAST_TURNS: &str = "SELECT id, message_id, reply_id, channel FROM turns \
     WHERE conversation_id = ?1 AND id > ?2 AND id < ?3 AND state = 'done' \
     ORDER BY id DESC LIMIT ?4";

pub(crate) const PAST_STEPS: &str =
    "SELECT body FROM steps WHERE turn_id = ?1 ORDER BY id LIMIT ?2";

/// The steps of a turn, and what they leave of `bytes`; none if they are longer.
fn steps_within(
    statement: &mut Statement<'_>,
    turn: TurnId,
    bytes: usize,
) -> Outcome<Option<(Vec<Step>, usize)>> {
    let mut left = bytes;
    let mut steps = Vec::new();
    let mut rows = statement.query(params![turn, MOST_STEPS])?;
    while let Some(row) = rows.next()? {
        match left.checked_sub(length(row, "body")?) {
            Some(rest) => left = rest,
            None => return Ok(None),
        }
        steps.push(step_from_row(row)?);
    }
    Ok(Some((steps, left)))
}

fn find_message(connection: &Connection, id: MessageId) -> Outcome<Option<Message>> {
    row(
        connection,
        "SELECT * FROM messages WHERE id = ?",
        params![id],
        message_from_row,
    )
}

fn summary_from_row(row: &Row<'_>) -> rusqlite::Result<Summary> {
    Ok(Summary {
        turn_id: row.get("turn_id")?,
        content: row.get("content")?,
    })
}

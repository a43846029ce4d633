//! What the model is shown of a conversation's past.

use rusqlite::{Connection, Row, Statement, params};

use crate::conversations;
use crate::database::Store;
use crate::failure::Outcome;
use crate::messages::{Message, message_from_row};
use crate::query::{length, row, rows};
use crate::steps::{Step, step_from_row};
use base::error::Result;
use base::ids::{ConversationId, MessageId, TurnId};

/// An earlier turn as the model sees it again.
#[derive(Clone, Debug)]
pub struct PastTurn {
    /// Which turn it was.
    pub id: TurnId,
    /// Where its message came from, as [`Turn::channel`].
    pub channel: String,
    /// What the person said.
    pub message: Message,
    /// In the order in which they happened.
    pub steps: Vec<Step>,
    /// Absent when the turn failed or was stopped.
    pub reply: Option<Message>,
}

/// What the model is told in place of a conversation's oldest turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The newest turn that it covers.
    pub turn_id: TurnId,
    /// The text.
    pub content: String,
}

/// What is read of a conversation for one turn.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// In place of the oldest turns, once there were too many of them.
    pub summary: Option<Summary>,
    /// The newest turns that the summary does not cover, oldest first.
    pub turns: Vec<PastTurn>,
    /// Whether turns were left out between the summary and `turns`.
    pub has_more: bool,
}

/// Most turns at once, whatever a caller asks for.
const MOST_TURNS: usize = 1000;

/// Most steps of one turn.
const MOST_STEPS: i64 = 10_000;

impl Store {
    /// What the model is shown of a conversation before the turn `before`: the
    /// summary of its oldest turns, and of those that it does not cover the
    /// newest `most_turns` (at most 1,000), oldest first. Failed and cancelled
    /// turns are left out.
    ///
    /// Reading ends with the turn whose text goes beyond `most_bytes`: it is
    /// left out like all before it, or, as the newest, given without its steps.
    /// What this costs does not depend on the length of the conversation.
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
                // A conversation that is deleted meanwhile has no past.
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

    /// Stores what the model is told in place of all turns of a conversation up
    /// to `turn_id`, durably.
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

/// The steps of a turn, and how much is left of `bytes` after them; none when
/// they are longer.
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

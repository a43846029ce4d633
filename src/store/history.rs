//! What the model is shown of a conversation's past.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::conversations::message_from_row;
use super::failure::Outcome;
use super::turns::step_from_row;
use super::*;
use crate::ids::{ConversationId, MessageId, TurnId};

/// Most turns at once, whatever a caller asks for.
const MOST_TURNS: usize = 1000;

impl Store {
    /// The last `most` finished turns (at most 1,000) of a conversation before
    /// `before`, oldest first: what the model is shown of the past. Failed and
    /// cancelled turns are left out.
    pub fn past_turns(
        &self,
        id: ConversationId,
        before: TurnId,
        most: usize,
    ) -> Result<Vec<PastTurn>> {
        self.read(|connection| {
            let turns = rows(
                connection,
                PAST_TURNS,
                params![id, before, most.min(MOST_TURNS) as i64],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )?;
            let Some(&(oldest, ..)) = turns.last() else {
                return Ok(Vec::new());
            };
            let mut steps = steps_since(connection, id, oldest, before)?;
            let mut past = Vec::with_capacity(turns.len());
            for (turn, message, reply, channel) in turns.into_iter().rev() {
                // A conversation that is deleted meanwhile has no past.
                let Some(message) = find_message(connection, message)? else {
                    continue;
                };
                past.push(PastTurn {
                    channel,
                    message,
                    steps: steps.remove(&turn).unwrap_or_default(),
                    reply: match reply {
                        Some(reply) => find_message(connection, reply)?,
                        None => None,
                    },
                });
            }
            Ok(past)
        })
    }
}

pub(super) const PAST_TURNS: &str = "SELECT id, message_id, reply_id, channel FROM turns \
     WHERE conversation_id = ?1 AND id < ?2 AND state = 'done' ORDER BY id DESC LIMIT ?3";

pub(super) const PAST_STEPS: &str = "SELECT s.turn_id, s.body FROM turns t \
     CROSS JOIN steps s ON s.turn_id = t.id \
     WHERE t.conversation_id = ?1 AND t.id >= ?2 AND t.id < ?3 AND t.state = 'done' \
     ORDER BY t.id, s.id";

fn steps_since(
    connection: &Connection,
    id: ConversationId,
    oldest: TurnId,
    before: TurnId,
) -> Outcome<HashMap<TurnId, Vec<Step>>> {
    let mut steps: HashMap<TurnId, Vec<Step>> = HashMap::new();
    let found = rows(connection, PAST_STEPS, params![id, oldest, before], |row| {
        Ok((row.get(0)?, step_from_row(row)?))
    })?;
    for (turn, step) in found {
        steps.entry(turn).or_default().push(step);
    }
    Ok(steps)
}

fn find_message(connection: &Connection, id: MessageId) -> Outcome<Option<Message>> {
    row(
        connection,
        "SELECT * FROM messages WHERE id = ?",
        [id],
        message_from_row,
    )
}

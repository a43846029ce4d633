//! What the model was shown of the memories and of the past, so that it is shown the same
//! again: providers cache the unchanged beginning of a request.

use rusqlite::params;

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::home::memories::{self, Memory, ShownAs};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Sight, select_seen};
use base::error::Result;
use base::ids::{ConversationId, MemoryId, TurnId};

/// Most memories of one turn: more than are ever shown with it.
const MOST: usize = 1000;

impl Snapshot<'_> {
    /// The memories that the model was shown with a turn and that the viewer sees, in
    /// their order.
    pub fn shown_memories(&self, turn: TurnId) -> Result<Vec<Memory>> {
        Ok(of_turn(&self.sight, turn)?)
    }
}

impl Store {
    /// Notes the memories that the model is shown with a turn. Does not wait; a write that
    /// follows is not on disk before it. One that is forgotten is no longer among them.
    pub fn note_shown(&self, turn: TurnId, memories: Vec<(MemoryId, ShownAs)>) {
        self.post(move |write| {
            for (place, (memory, shown_as)) in memories.into_iter().enumerate() {
                let position = shown_as.position(place);
                write.execute(
                    "INSERT OR REPLACE INTO shown_memories (turn_id, position, memory_id)
                     SELECT ?1, ?2, id FROM memories WHERE id = ?3",
                    params![turn, position, memory],
                )?;
            }
            Ok(())
        });
    }

    /// From now on the model is not shown the turns up to `hidden`, and the results of
    /// tools in short up to `shortened`, because they do not fit into requests of `tokens`.
    /// Neither is taken back but by a wider audience and by [`Store::unfold`]. Does not wait.
    pub fn fold(
        &self,
        id: ConversationId,
        hidden: Option<TurnId>,
        shortened: Option<TurnId>,
        tokens: usize,
    ) {
        self.post(move |write| {
            write.run(
                "UPDATE conversations
                 SET hidden_until = max(hidden_until, ifnull((
                         SELECT ifnull(reply_id, ended) FROM turns WHERE id = ?2), 0)),
                     shortened_until = max(shortened_until, ifnull((
                         SELECT ifnull(reply_id, ended) FROM turns WHERE id = ?3), 0)),
                     folded_for = ?4
                 WHERE id = ?1",
                params![id, hidden, shortened, tokens as i64],
            )
        });
    }

    /// Shows the model the whole conversation again: it has room for more than when the
    /// conversation was folded.
    pub fn unfold(&self, id: ConversationId) -> Result<()> {
        self.write(move |write| {
            write.execute(
                "DELETE FROM conversation_summaries WHERE conversation_id = ?",
                params![id],
            )?;
            write.run(
                "UPDATE conversations SET hidden_until = 0, shortened_until = 0, folded_for = 0
                 WHERE id = ?",
                params![id],
            )
        })
    }
}

/// The memories that were shown with a turn and are seen.
pub(crate) fn of_turn(sight: &Sight<'_>, turn: TurnId) -> Outcome<Vec<Memory>> {
    sight.seen_rows(SHOWN, params![turn], MOST, |row| {
        Ok(Memory {
            shown_as: ShownAs::at(row.get("position")?),
            ..memories::from_row(&sight.directory, row)?
        })
    })
}

pub(crate) const SHOWN: &str = select_seen!(
    "m",
    "m.*, s.position FROM shown_memories s CROSS JOIN memories m ON m.id = s.memory_id \
     WHERE s.turn_id = ?1 ORDER BY s.position"
);

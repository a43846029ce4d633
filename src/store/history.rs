//! The history of a conversation, as the model sees it.

use rusqlite::{Row, Statement, params};

use crate::audience::{self, Directory};
use crate::conversations;
use crate::database::Store;
use crate::failure::Outcome;
use crate::memories::Memory;
use crate::messages::{MESSAGE_COLUMNS, Message, message_columns, message_from_row};
use crate::query::{length, row};
use crate::shown;
use crate::steps::{Step, step_from_row};
use crate::turns::TurnState;
use crate::viewer::Viewer;
use base::error::Result;
use base::ids::{AudienceId, ConversationId, MessageId, TurnId};

/// An earlier turn of a conversation.
#[derive(Clone, Debug)]
pub struct PastTurn {
    /// Its id.
    pub id: TurnId,
    /// Where its message came from, as [`Turn::channel`](crate::Turn::channel).
    pub channel: String,
    /// The message.
    pub message: Message,
    /// The memories that were shown with it, as far as they exist and are seen.
    pub memories: Vec<Memory>,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// The reply; of a turn that failed or was cancelled, what was said until then, if
    /// anything was.
    pub reply: Option<Message>,
    /// Done, failed or cancelled.
    pub state: TurnState,
    /// Why it failed.
    pub error: Option<String>,
    /// Whether the results of its tools are shown in short.
    pub is_shortened: bool,
}

/// A text that replaces the oldest turns of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The turn that it covers and was answered last.
    pub turn_id: TurnId,
    /// The text.
    pub content: String,
}

/// The part of a conversation that is read for one turn.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Replaces the oldest turns, once there are too many.
    pub summary: Option<Summary>,
    /// The newest turns that the summary does not cover, in the order in which they
    /// ended. One that waited for a person stands behind those that did not
    /// wait for it, so that what a model has been shown stays as it was.
    pub turns: Vec<PastTurn>,
    /// Whether turns between the summary and `turns` were not read, because there are too
    /// many.
    pub has_more: bool,
    /// Whether turns between them are no longer shown, and wait for a summary.
    pub has_hidden: bool,
    /// Turns that wait for a person's decision and are answered later.
    pub suspended: usize,
    /// Whether text from outside was ever shown to the model in this conversation.
    pub has_outside_text: bool,
}

/// What is read of the past.
#[derive(Clone, Copy, Debug)]
pub struct WantedPast<'a> {
    /// Who sees the memories that were shown; none are read without one.
    pub viewer: Option<&'a Viewer>,
    /// Most turns.
    pub most_turns: usize,
    /// Most bytes of text.
    pub most_bytes: usize,
    /// Whether the turns are read, too, that the model is no longer shown.
    pub with_hidden: bool,
}

/// Most turns at once, whatever a caller asks for.
const MOST_TURNS: usize = 1000;

/// Most steps of one turn.
const MOST_STEPS: i64 = 10_000;

impl Store {
    /// The history of a conversation: the summary, and of the turns that have ended since
    /// the newest `most_turns` (at most 1,000), those that are hidden only if asked for.
    /// The memories that were shown with them are those that `viewer` sees; without one,
    /// there are none.
    ///
    /// Reading stops at the turn whose text exceeds `most_bytes` in total: it and
    /// all before it are missing. If that is the newest turn, only its steps are.
    /// The cost does not depend on the length of the conversation.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn past(&self, id: ConversationId, wanted: &WantedPast<'_>) -> Result<Past> {
        let WantedPast {
            viewer,
            most_turns,
            most_bytes,
            with_hidden,
        } = *wanted;
        self.read(|connection| {
            let view = row(connection, VIEW, params![id], |row| {
                Ok((
                    row.get("hidden_until")?,
                    row.get("shortened_until")?,
                    row.get("has_outside_text")?,
                ))
            })?;
            let (hidden, shortened, has_outside_text) = view.unwrap_or((0_i64, 0_i64, false));
            let sight = viewer.map(|viewer| viewer.sight(connection)).transpose()?;
            let mut directory = Directory::default();
            let (summary, covered) = row(connection, SUMMARY, params![id], |row| {
                Ok((Some(summary_from_row(row)?), row.get("covered")?))
            })?
            .unwrap_or((None, 0_i64));
            let suspended = row(connection, SUSPENDED, params![id], |row| row.get(0))?;
            let most_turns = most_turns.min(MOST_TURNS);
            let (mut left, mut has_more) = (most_bytes, false);
            let mut turns: Vec<PastTurn> = Vec::new();
            let mut steps_of = connection.prepare_cached(PAST_STEPS)?;
            let mut statement = connection.prepare_cached(PAST_TURNS)?;
            let from = match with_hidden {
                true => covered,
                false => covered.max(hidden),
            };
            let mut found = statement.query(params![id, from, most_turns as i64 + 1])?;
            while let Some(row) = found.next()? {
                if turns.len() == most_turns {
                    has_more = true;
                    break;
                }
                let turn = row.get(turn_column::ID)?;
                let message = message_from_row(connection, row, MESSAGE_COLUMNS)?;
                let last: MessageId = row.get(0)?;
                let reply = (last != message.id)
                    .then(|| message_from_row(connection, row, 0))
                    .transpose()?;
                let text =
                    message.content.len() + reply.as_ref().map_or(0, |reply| reply.content.len());
                let steps = match left.checked_sub(text) {
                    Some(for_steps) if !row.get::<_, bool>(turn_column::HAS_STEPS)? => {
                        Some((Vec::new(), for_steps))
                    }
                    Some(for_steps) => steps_within(&mut steps_of, turn, for_steps)?,
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
                let memories = match &sight {
                    Some(sight) if row.get(turn_column::HAS_MEMORIES)? => {
                        shown::of_turn(connection, sight, &mut directory, turn)?
                    }
                    _ => Vec::new(),
                };
                turns.push(PastTurn {
                    id: turn,
                    channel: row.get(turn_column::CHANNEL)?,
                    message,
                    memories,
                    steps,
                    reply,
                    state: row.get(turn_column::STATE)?,
                    error: row.get(turn_column::ERROR)?,
                    is_shortened: last.as_i64() <= shortened,
                });
            }
            turns.reverse();
            Ok(Past {
                summary,
                turns,
                has_more,
                has_hidden: hidden > covered,
                suspended: suspended.map_or(0, |count: i64| count as usize),
                has_outside_text,
            })
        })
    }

    /// Whether text from outside was ever shown to the model in one of these
    /// conversations.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn have_outside_text(
        &self,
        conversations: impl IntoIterator<Item = ConversationId>,
    ) -> Result<bool> {
        self.read(|connection| {
            for id in conversations {
                let has = row(connection, HAS_OUTSIDE_TEXT, params![id], |row| row.get(0))?;
                if has.unwrap_or(false) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Notes that text from outside is shown to the model in this conversation: what
    /// it says from now on may come of that, and so may every summary. Does not wait;
    /// a write that follows is not on disk before it.
    pub fn note_outside_text(&self, id: ConversationId) {
        self.post(move |write| {
            write.execute(
                "UPDATE conversations SET has_outside_text = 1 WHERE id = ?",
                params![id],
            )?;
            Ok(())
        });
    }

    /// Stores the summary that replaces the turns up to `turn_id`, durably; unless the
    /// conversation has been shared with more people than the audience `made_for`,
    /// since it may hold what only these may see.
    ///
    /// # Errors
    /// `not_found`.
    pub fn save_summary(
        &self,
        id: ConversationId,
        turn_id: TurnId,
        content: &str,
        made_for: AudienceId,
    ) -> Result<()> {
        let content = content.to_owned();
        self.write(move |write| {
            let sight = Viewer::server().sight(write.connection)?;
            let now = conversations::check_seen(write.connection, &sight, id)?.audience_id;
            if audience::is_wider(write.connection, made_for, now)? {
                return Ok(());
            }
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

pub(crate) const SUMMARY: &str = "SELECT s.turn_id, s.content, \
         ifnull(ifnull(t.reply_id, t.message_id), 0) AS covered \
     FROM conversation_summaries s LEFT JOIN turns t ON t.id = s.turn_id \
     WHERE s.conversation_id = ?";

/// Each turn is found by its last message: an imported one may have no reply. (One whose
/// question is missing belongs to a conversation that is being deleted.)
pub(crate) const PAST_TURNS: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", ",
    message_columns!("q"),
    ", t.id, t.channel, t.state, t.error_message, \
       EXISTS (SELECT 1 FROM shown_memories s WHERE s.turn_id = t.id), \
       EXISTS (SELECT 1 FROM steps s WHERE s.turn_id = t.id) \
     FROM messages m INDEXED BY messages_by_conversation \
         CROSS JOIN turns t ON t.id = m.turn_id \
         CROSS JOIN messages q ON q.id = t.message_id \
     WHERE m.conversation_id = ?1 AND m.id > ?2 AND m.hidden_with IS NULL \
         AND t.state IN ('done', 'failed', 'cancelled') AND ifnull(t.reply_id, t.message_id) = m.id \
     ORDER BY m.id DESC LIMIT ?3"
);

/// The columns of [`PAST_TURNS`] behind those of the two messages.
mod turn_column {
    use super::MESSAGE_COLUMNS;

    pub const ID: usize = 2 * MESSAGE_COLUMNS;
    pub const CHANNEL: usize = ID + 1;
    pub const STATE: usize = ID + 2;
    pub const ERROR: usize = ID + 3;
    pub const HAS_MEMORIES: usize = ID + 4;
    pub const HAS_STEPS: usize = ID + 5;
}

pub(crate) const SUSPENDED: &str = "SELECT count(*) FROM turns INDEXED BY turns_unfinished \
     WHERE conversation_id = ? AND finished_at IS NULL AND state = 'waiting_approval'";

pub(crate) const VIEW: &str =
    "SELECT hidden_until, shortened_until, has_outside_text FROM conversations WHERE id = ?";

const HAS_OUTSIDE_TEXT: &str = "SELECT has_outside_text FROM conversations WHERE id = ?";

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

fn summary_from_row(row: &Row<'_>) -> rusqlite::Result<Summary> {
    Ok(Summary {
        turn_id: row.get("turn_id")?,
        content: row.get("content")?,
    })
}

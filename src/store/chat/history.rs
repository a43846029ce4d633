//! The history of a conversation, as the model sees it.

use std::sync::Arc;

use rusqlite::{Connection, Row, Statement, params};

use crate::chat::conversations;
use crate::chat::messages::{MESSAGE_COLUMNS, Message, message_columns, message_from_row};
use crate::chat::shown;
use crate::chat::steps::{Step, step_from_row};
use crate::chat::turns::TurnState;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::query::{Statements, length};
use crate::home::forgetting;
use crate::home::memories::Memory;
use crate::people::users::{DisplayNames, display_names, show_name};
use crate::sight::audience;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Seen, Sight, Viewer};
use base::error::Result;
use base::ids::{AudienceId, ConversationId, MessageId, TurnId};
use base::language::Said;
use base::sync::lock;

/// An earlier turn of a conversation.
#[derive(Clone, Debug)]
pub struct PastTurn {
    /// Its id.
    pub id: TurnId,
    /// Where its message came from, as [`Turn::channel`](crate::Turn::channel).
    pub channel: String,
    /// As [`Turn::is_composed`](crate::Turn::is_composed).
    pub is_composed: bool,
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
    pub turns: Arc<Vec<PastTurn>>,
    /// Whether turns between the summary and `turns` were not read, because there are too
    /// many.
    pub has_more: bool,
    /// Whether turns between them are no longer shown, and wait for a summary.
    pub has_hidden: bool,
    /// Turns that wait for a person's decision and are answered later.
    pub suspended: usize,
    /// Whether text from outside was ever shown to the model in this conversation.
    pub has_outside_text: bool,
    /// The tokens of a request for which the conversation was folded last; 0 if it was not.
    pub folded_for: usize,
    /// What people are called who have a display name, by their names: the speakers of the
    /// turns bear them.
    pub names: DisplayNames,
}

/// What is read of the past.
#[derive(Clone, Copy, Debug)]
pub struct WantedPast {
    /// Whether the memories that were shown are read, too.
    pub with_memories: bool,
    /// Most turns.
    pub most_turns: usize,
    /// Most bytes of text.
    pub most_bytes: usize,
    /// Whether the turns are read, too, that the model is no longer shown.
    pub with_hidden: bool,
}

/// Most conversations whose past is kept, and most bytes of the text of each.
const MOST_KEPT: usize = 4;
const MOST_KEPT_BYTES: usize = 256 * 1024;

/// Most turns at once, whatever a caller asks for.
const MOST_TURNS: usize = 1000;

/// Most steps of one turn.
const MOST_STEPS: i64 = 10_000;

impl Snapshot<'_> {
    /// The history of a conversation: the summary, and of the turns that have ended since
    /// the newest `most_turns` (at most 1,000), those that are hidden only if asked for.
    /// Their speakers bear their display names.
    /// The memories that were shown with them are those that are seen.
    ///
    /// Reading stops at the turn whose text exceeds `most_bytes` in total: it and
    /// all before it are missing. If that is the newest turn, only its steps are.
    /// What the turn before has read is kept, so that only what is new is read.
    pub fn past(&self, id: ConversationId, wanted: &WantedPast) -> Result<Past> {
        let mut kept = lock(&self.store.pasts);
        let place = kept
            .iter()
            .position(|(conversation, _)| *conversation == id);
        let known = place.map(|place| kept.remove(place).1);
        drop(kept);
        let known = known.and_then(|known| known.downcast::<KeptPast>().ok());
        let is_known = known.is_some();
        let names = display_names(self.connection())?;
        let read = |known| read_past(&self.sight, id, wanted, &names, known);
        let (past, next) = read(known.map(|known| *known))?;
        if cfg!(debug_assertions) && is_known {
            let (anew, _) = read(None)?;
            assert_eq!(format!("{anew:?}"), format!("{past:?}"), "{id}: stale");
        }
        if let Some(next) = next.filter(|next| next.bytes <= MOST_KEPT_BYTES) {
            let mut kept = lock(&self.store.pasts);
            kept.truncate(MOST_KEPT - 1);
            kept.insert(0, (id, Box::new(next)));
        }
        Ok(past)
    }

    /// Whether text from outside was ever shown to the model in one of these
    /// conversations.
    pub fn have_outside_text(
        &self,
        conversations: impl IntoIterator<Item = ConversationId>,
    ) -> Result<bool> {
        for id in conversations {
            let has = self.value(HAS_OUTSIDE_TEXT, params![id])?;
            if has.unwrap_or(false) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Store {
    /// Notes that text from outside is shown to the model in this conversation: what
    /// it says from now on may come of that, and so may every summary. Does not wait;
    /// a write that follows is not on disk before it.
    pub fn note_outside_text(&self, id: ConversationId) {
        self.post(move |write| conversations::note_outside_text(write, id));
    }

    /// Stores the summary that replaces the turns up to `turn_id`, durably; unless the
    /// conversation has been shared with more people than the audience `made_for`,
    /// since it may hold what only these may see, or more memories have been forgotten
    /// than there were [`forgotten`](crate::Snapshot::forgotten_memories) when it was begun.
    ///
    /// # Errors
    /// `not_found`.
    pub fn save_summary(
        &self,
        id: ConversationId,
        turn_id: TurnId,
        content: &str,
        made_for: AudienceId,
        forgotten: i64,
    ) -> Result<()> {
        let content = content.to_owned();
        self.write(move |write| {
            let sight = Viewer::server().sight(write.connection)?;
            let now = conversations::check_seen(&sight, id)?.audience_id;
            let is_told_less = forgetting::count(write.connection)? != forgotten;
            if is_told_less || audience::is_wider(write.connection, made_for, now)? {
                return Ok(());
            }
            write.run(
                "INSERT INTO conversation_summaries
                     (conversation_id, turn_id, content, created_at)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (conversation_id) DO UPDATE
                 SET turn_id = ?2, content = ?3, created_at = ?4",
                params![id, turn_id, content, write.now],
            )
        })
    }
}

/// What is kept of a past: its turns up to one, unless anything but the ends of conversations
/// was rewritten since. In a long conversation, reading hundreds of turns anew would take most
/// of a request's time.
pub(crate) struct KeptPast {
    read_for: ReadFor,
    turns: Arc<Vec<PastTurn>>,
    /// Where the newest stands.
    until: i64,
    /// Of its text.
    bytes: usize,
}

/// What a past was read for: for anything else it is read again.
#[derive(PartialEq)]
struct ReadFor {
    /// How often something else than the end of a conversation had changed.
    rewrites: i64,
    /// The turns ended after this.
    from: i64,
    /// Those up to this are shortened.
    shortened: i64,
    /// What is seen of the memories, if they are read.
    seen: Option<(Seen, Option<String>)>,
    names: DisplayNames,
}

/// Reads a past; of the turns, only what is new since `kept`, if that is still right. Returns
/// what may be kept of it, too.
fn read_past(
    sight: &Sight<'_>,
    id: ConversationId,
    wanted: &WantedPast,
    names: &DisplayNames,
    kept: Option<KeptPast>,
) -> Outcome<(Past, Option<KeptPast>)> {
    let view = sight
        .row(VIEW, params![id], view_from_row)?
        .unwrap_or_default();
    let (hidden, covered) = (view.hidden, view.covered);
    let from = match wanted.with_hidden {
        true => covered,
        false => covered.max(hidden),
    };
    let read_for = ReadFor {
        from,
        shortened: view.shortened,
        rewrites: view.rewrites,
        seen: wanted.with_memories.then(|| sight.scope()),
        names: names.clone(),
    };
    let most_turns = wanted.most_turns.min(MOST_TURNS);
    let known = kept.filter(|kept| {
        let fits = kept.bytes <= wanted.most_bytes && kept.turns.len() <= most_turns;
        fits && kept.read_for == read_for
    });
    let is_kept = known.is_some();
    let (mut turns, mut until, known) = match known {
        Some(known) => (known.turns, known.until, known.bytes),
        None => (Arc::default(), from, 0),
    };
    let (mut left, mut has_more) = (wanted.most_bytes - known, false);
    let most_new = most_turns - turns.len();
    let mut new: Vec<PastTurn> = Vec::new();
    let mut steps_of = sight.connection().prepare_cached(PAST_STEPS)?;
    let parameters = params![id, until, most_new + 1];
    let mut answered = sight.connection().prepare_cached(PAST_TURNS)?;
    let mut wordless = sight.connection().prepare_cached(WORDLESS_TURNS)?;
    let found = |row: &Row<'_>| found_from_row(sight.connection(), row);
    let mut answered = answered.query_and_then(parameters, found)?.peekable();
    let mut wordless = wordless.query_and_then(parameters, found)?.peekable();
    // The newest of both, one after the other.
    while let Some(found) = match (answered.peek(), wordless.peek()) {
        (Some(Ok(one)), Some(Ok(other))) if other.ended > one.ended => wordless.next(),
        (None, Some(_)) => wordless.next(),
        _ => answered.next(),
    } {
        if new.len() == most_new {
            has_more = true;
            break;
        }
        let Found {
            ended,
            mut turn,
            has_memories,
            has_steps,
        } = found?;
        let reply = turn.reply.as_ref().map_or(0, |reply| reply.content.len());
        let steps = match left.checked_sub(turn.message.content.len() + reply) {
            Some(for_steps) if !has_steps => Some((Vec::new(), for_steps)),
            Some(for_steps) => steps_within(&mut steps_of, turn.id, for_steps)?,
            None => None,
        };
        (turn.steps, left) = match steps {
            Some(read) => read,
            None if new.is_empty() => (Vec::new(), 0),
            None => {
                has_more = true;
                break;
            }
        };
        if has_memories && wanted.with_memories {
            turn.memories = shown::of_turn(sight, turn.id)?;
        }
        show_name(&mut turn.message.speaker, names);
        for memory in &mut turn.memories {
            show_name(&mut memory.speaker, names);
        }
        turn.is_shortened = ended <= view.shortened;
        until = until.max(ended);
        new.push(turn);
    }
    if is_kept && (has_more || left == 0) {
        // The oldest have to go.
        return read_past(sight, id, wanted, names, None);
    }
    new.reverse();
    // Nobody else has it, unless a turn of this conversation still runs.
    Arc::make_mut(&mut turns).append(&mut new);
    let is_all = !has_more && left > 0 && !wanted.with_hidden;
    let kept = is_all.then(|| KeptPast {
        bytes: wanted.most_bytes - left,
        read_for,
        turns: Arc::clone(&turns),
        until,
    });
    let past = Past {
        summary: view.summary,
        turns,
        has_more,
        has_hidden: hidden > covered,
        suspended: view.suspended as usize,
        has_outside_text: view.has_outside_text,
        folded_for: view.folded_for,
        names: names.clone(),
    };
    Ok((past, kept))
}

/// The columns of [`Found`]; the last but one is the turn's place in its conversation.
macro_rules! found_columns {
    ($reply:literal, $ended:literal) => {
        concat!(
            "SELECT ",
            message_columns!($reply),
            ", ",
            message_columns!("q"),
            ", t.id, t.channel, t.state, t.error_message, \
               EXISTS (SELECT 1 FROM shown_memories s WHERE s.turn_id = t.id), \
               EXISTS (SELECT 1 FROM steps s WHERE s.turn_id = t.id), ",
            $ended,
            ", t.is_composed"
        )
    };
}

/// The turns that ended with a reply, or with what was said until then, the newest first.
/// (One whose question is missing belongs to a conversation that is being deleted.)
pub(crate) const PAST_TURNS: &str = concat!(
    found_columns!("m", "m.id"),
    " FROM messages m INDEXED BY messages_by_conversation \
         CROSS JOIN turns t ON t.id = m.turn_id \
         CROSS JOIN messages q ON q.id = t.message_id \
     WHERE m.conversation_id = ?1 AND m.id > ?2 AND m.hidden_with IS NULL \
         AND m.role = 'assistant' AND t.reply_id = m.id \
         AND t.state IN ('done', 'failed', 'cancelled') \
     ORDER BY m.id DESC LIMIT ?3"
);

/// The turns that ended without a word.
pub(crate) const WORDLESS_TURNS: &str = concat!(
    found_columns!("q", "t.ended"),
    " FROM turns t INDEXED BY turns_without_reply \
         CROSS JOIN messages q ON q.id = t.message_id \
     WHERE t.conversation_id = ?1 AND t.ended > ?2 AND q.hidden_with IS NULL \
     ORDER BY t.ended DESC LIMIT ?3"
);

/// A turn as a row has it, without its steps and memories.
struct Found {
    /// The message with which it ended, or where that would be.
    ended: i64,
    turn: PastTurn,
    has_memories: bool,
    has_steps: bool,
}

fn found_from_row(connection: &Connection, row: &Row<'_>) -> Outcome<Found> {
    let first = 2 * MESSAGE_COLUMNS;
    let message = message_from_row(connection, row, MESSAGE_COLUMNS)?;
    let last: MessageId = row.get(0)?;
    let reply = (last != message.id)
        .then(|| message_from_row(connection, row, 0))
        .transpose()?;
    Ok(Found {
        ended: row.get(first + 6)?,
        turn: PastTurn {
            id: row.get(first)?,
            channel: row.get(first + 1)?,
            is_composed: row.get(first + 7)?,
            message,
            memories: Vec::new(),
            steps: Vec::new(),
            reply,
            state: row.get(first + 2)?,
            error: (row.get::<_, Option<Said>>(first + 3)?).map(|said| said.to_string()),
            is_shortened: false,
        },
        has_memories: row.get(first + 4)?,
        has_steps: row.get(first + 5)?,
    })
}

/// How a conversation is shown to the model.
#[derive(Default)]
struct View {
    hidden: i64,
    shortened: i64,
    has_outside_text: bool,
    folded_for: usize,
    rewrites: i64,
    suspended: i64,
    summary: Option<Summary>,
    /// Where the newest turn stands that the summary covers.
    covered: i64,
}

pub(crate) const VIEW: &str = "SELECT c.hidden_until, c.shortened_until, c.has_outside_text, \
         c.folded_for, ifnull((SELECT value FROM meta WHERE key = 'rewrites'), 0), \
         (SELECT count(*) FROM turns INDEXED BY turns_unfinished WHERE conversation_id = c.id \
             AND finished_at IS NULL AND state = 'waiting_approval'), \
         s.turn_id, s.content, ifnull(ifnull(t.reply_id, t.ended), 0) \
     FROM conversations c LEFT JOIN conversation_summaries s ON s.conversation_id = c.id \
         LEFT JOIN turns t ON t.id = s.turn_id WHERE c.id = ?";

fn view_from_row(row: &Row<'_>) -> Outcome<View> {
    Ok(View {
        hidden: row.get(0)?,
        shortened: row.get(1)?,
        has_outside_text: row.get(2)?,
        folded_for: row.get(3)?,
        rewrites: row.get(4)?,
        suspended: row.get(5)?,
        summary: match row.get(6)? {
            Some(turn_id) => Some(Summary {
                turn_id,
                content: row.get(7)?,
            }),
            None => None,
        },
        covered: row.get(8)?,
    })
}

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

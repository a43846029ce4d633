//! The steps of a turn: the model's tool calls and their results.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rusqlite::types::FromSqlError;
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::conversations::check_seen;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::files;
use crate::sight::snapshot::Snapshot;
use base::error::{Error, Result};
use base::ids::{ConversationId, MemoryId, TurnId};
use protocol::record::Attachment;

/// Most steps that are read of one turn.
const MOST_STEPS: i64 = 10_000;
/// Most steps of which the calls are counted.
const MOST_COUNTED: i64 = 1_000;

/// One tool call of a model's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The server's own id of the call; unique within the turn. (In turns of older
    /// versions it is the model's.)
    pub id: String,
    /// The model's id of the call, for the model alone: it may be anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The tool's name as the model wrote it; the tool may not exist.
    pub tool: String,
    /// The arguments as the model wrote them: JSON text, possibly invalid.
    pub arguments: String,
    /// Members that the provider wants back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

impl ToolCall {
    /// Whether its arguments were removed, because the conversation was shared with more
    /// people since.
    pub fn is_withdrawn(&self) -> bool {
        self.arguments == WITHDRAWN_ARGUMENTS
    }

    /// The call as its model knows it.
    pub fn for_provider(&self) -> ToolCall {
        let mut call = self.clone();
        if let Some(id) = call.provider_id.take() {
            call.id = id;
        }
        call
    }
}

/// One step of a turn. It is stored before anything with an effect depends on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", try_from = "StepMembers")]
pub enum Step {
    /// The model replied with tool calls, or the server stopped in the middle of a reply. (A
    /// whole reply without calls ends the turn.)
    Reply {
        /// The text before the calls; may be empty.
        text: String,
        /// None if the reply was cut off, else at least one.
        calls: Vec<ToolCall>,
        /// Most characters that are shown of each of their results, now and in later turns, if
        /// the model had not room for the usual ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_chars: Option<usize>,
        /// Members that the provider wants back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<Value>,
    },
    /// The server told the model something, behind what comes before.
    Note {
        /// The text.
        text: String,
    },
    /// The model gave its last reply, and the provider wants these members of it back.
    FinalExtra {
        /// The members.
        extra: Value,
    },
    /// A call is about to run. If a crash leaves it without a result, it is run
    /// again only if the tool is read-only.
    Started {
        /// The [`ToolCall::id`].
        call_id: String,
    },
    /// A call has its result, or was refused.
    Result {
        /// The [`ToolCall::id`].
        call_id: String,
        /// False when the tool failed or was refused.
        ok: bool,
        /// The text for the model.
        content: String,
        /// Whether the text comes from outside the household, such as a web page.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        outside: bool,
        /// Whether the text holds what only the readers of the conversation may see,
        /// as they were then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        private: bool,
        /// The memories that the text has.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "told")]
        memories: Vec<MemoryId>,
        /// What the tool brought beside the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "brought")]
        files: Vec<Attachment>,
        /// The part of a longer text that it shows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<PageRange>,
    },
}

/// The characters of a longer text that a result shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// The first of them, counted from 0.
    pub first: usize,
    /// The first that follows.
    pub last: usize,
    /// How many the text has.
    pub count: usize,
}

/// Memories in the body of a step.
mod told {
    use base::ids::MemoryId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(ids: &[MemoryId], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ids.iter().map(|id| id.as_i64()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<MemoryId>, D::Error> {
        let ids = Vec::<i64>::deserialize(from)?;
        Ok(ids.into_iter().map(MemoryId::from).collect())
    }
}

/// Files in the body of a step.
mod brought {
    use base::ids::AttachmentId;
    use protocol::record::Attachment;
    use serde::{Deserialize, Deserializer, Serializer};

    type Row = (i64, String, String, u64);

    pub fn serialize<S: Serializer>(files: &[Attachment], to: S) -> Result<S::Ok, S::Error> {
        let row = |file: &Attachment| {
            let (name, media_type) = (file.name.clone(), file.media_type.clone());
            (file.attachment_id.as_i64(), name, media_type, file.bytes)
        };
        to.collect_seq(files.iter().map(row))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Attachment>, D::Error> {
        let file = |(id, name, media_type, bytes): Row| Attachment {
            attachment_id: AttachmentId::from(id),
            name,
            media_type,
            bytes,
        };
        let rows = Vec::<Row>::deserialize(from)?;
        Ok(rows.into_iter().map(file).collect())
    }
}

/// The members of all variants of [`Step`]. Deserializing the enum directly would
/// be several times the code.
#[derive(Deserialize)]
struct StepMembers {
    kind: String,
    text: Option<String>,
    calls: Option<Vec<ToolCall>>,
    result_chars: Option<usize>,
    extra: Option<Value>,
    call_id: Option<String>,
    ok: Option<bool>,
    content: Option<String>,
    #[serde(default)]
    outside: bool,
    #[serde(default)]
    private: bool,
    #[serde(default, with = "told")]
    memories: Vec<MemoryId>,
    #[serde(default, with = "brought")]
    files: Vec<Attachment>,
    page: Option<PageRange>,
}

impl TryFrom<StepMembers> for Step {
    type Error = &'static str;

    fn try_from(members: StepMembers) -> Result<Step, &'static str> {
        let missing = "a step lacks a member";
        Ok(match members.kind.as_str() {
            "reply" => Step::Reply {
                text: members.text.ok_or(missing)?,
                calls: members.calls.ok_or(missing)?,
                result_chars: members.result_chars,
                extra: members.extra,
            },
            "note" => Step::Note {
                text: members.text.ok_or(missing)?,
            },
            "final_extra" => Step::FinalExtra {
                extra: members.extra.ok_or(missing)?,
            },
            "started" => Step::Started {
                call_id: members.call_id.ok_or(missing)?,
            },
            "result" => Step::Result {
                call_id: members.call_id.ok_or(missing)?,
                ok: members.ok.ok_or(missing)?,
                content: members.content.ok_or(missing)?,
                outside: members.outside,
                private: members.private,
                memories: members.memories,
                files: members.files,
                page: members.page,
            },
            _ => return Err("a step has an unknown kind"),
        })
    }
}

impl Step {
    /// The calls of a reply.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Step::Reply { calls, .. } => calls,
            _ => &[],
        }
    }

    /// Whether it holds what only the readers of the conversation may see, or did.
    fn is_private(&self) -> bool {
        match self {
            Step::Result {
                content, private, ..
            } => *private || content == WITHDRAWN,
            _ => false,
        }
    }

    /// Removes what only the earlier readers of the conversation may see, from a private
    /// result or a step after one.
    fn withdraw(&mut self, write: &Write<'_>) -> Outcome<()> {
        match self {
            Step::Reply {
                text, calls, extra, ..
            } => {
                text.clear();
                *extra = None;
                for call in calls {
                    WITHDRAWN_ARGUMENTS.clone_into(&mut call.arguments);
                    call.extra = None;
                }
            }
            Step::FinalExtra { extra } => *extra = Value::Null,
            Step::Result {
                content,
                private,
                memories,
                files,
                ..
            } => {
                WITHDRAWN.clone_into(content);
                *private = false;
                memories.clear();
                for file in files.drain(..) {
                    files::delete_brought(write, file.attachment_id)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Snapshot<'_> {
    /// The turn's steps, in order.
    pub fn steps(&self, id: TurnId) -> Result<Vec<Step>> {
        let sql = "SELECT body FROM steps WHERE turn_id = ?1 ORDER BY id LIMIT ?2";
        Ok(self.rows(sql, params![id, MOST_STEPS], step_from_row)?)
    }
}

impl Snapshot<'_> {
    /// The tools that the household's models called most before this conversation began, of
    /// the newest calls: the same for all of its turns. The most used ones come first.
    pub fn most_called(&self, before: ConversationId) -> Result<Vec<String>> {
        let parameters = params![before, MOST_COUNTED];
        let steps = self.rows(STEPS_BEFORE, parameters, step_from_row)?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for call in steps.into_iter().flat_map(calls) {
            *counts.entry(call.tool).or_default() += 1;
        }
        let mut by_count: Vec<(String, usize)> = counts.into_iter().collect();
        by_count.sort_by_key(|(_, count)| Reverse(*count));
        Ok(by_count.into_iter().map(|(tool, _)| tool).collect())
    }

    /// The arguments of all calls of this tool in a conversation that is seen, oldest first.
    /// One that is not written yet has none.
    pub fn arguments_of(&self, conversation: ConversationId, tool: &str) -> Result<Vec<String>> {
        if check_seen(&self.sight, conversation).is_err() {
            return Ok(Vec::new());
        }
        let parameters = params![conversation, tool];
        let steps = self.rows(STEPS_WITH, parameters, step_from_row)?;
        let calls = steps.into_iter().flat_map(calls);
        let of_tool = calls.filter(|call| call.tool == tool);
        Ok(of_tool.map(|call| call.arguments).collect())
    }
}

fn calls(step: Step) -> Vec<ToolCall> {
    match step {
        Step::Reply { calls, .. } => calls,
        _ => Vec::new(),
    }
}

/// Of the newest steps before a conversation, those that may have calls.
pub(crate) const STEPS_BEFORE: &str = "SELECT body FROM \
     (SELECT body FROM steps WHERE turn_id < ?1 ORDER BY turn_id DESC LIMIT ?2) \
     WHERE instr(body, '\"calls\"') > 0";

/// The steps of a conversation that may have calls of a tool.
pub(crate) const STEPS_WITH: &str = "SELECT s.body \
     FROM turns t CROSS JOIN steps s ON s.turn_id = t.id \
     WHERE t.conversation_id = ?1 AND instr(s.body, ?2) > 0 ORDER BY s.id";

/// Appends steps. `is_shared` says whether more people see the conversation than those
/// for whom tools found something; that is then left out, with all that the model made
/// of it.
pub(crate) fn insert_steps(
    write: &Write<'_>,
    id: TurnId,
    steps: Vec<Step>,
    is_shared: bool,
) -> Outcome<()> {
    let mut is_private = is_shared && has_private(write, id)?;
    for mut step in steps {
        is_private |= is_shared && step.is_private();
        if is_private {
            step.withdraw(write)?;
        }
        if let Step::Result {
            content, memories, ..
        } = &mut step
            && !note_all_told(write, id, memories)?
        {
            FORGOTTEN.clone_into(content);
            memories.clear();
        }
        write.execute(
            "INSERT INTO steps (turn_id, body) VALUES (?1, ?2)",
            params![id, body_of(&step)?],
        )?;
    }
    Ok(())
}

/// The last calls among the steps of a turn, and what followed them.
pub fn last_round(steps: &[Step]) -> (&[ToolCall], &[Step]) {
    let is_reply = |step: &Step| matches!(step, Step::Reply { .. });
    let last = steps.iter().rposition(is_reply);
    match &steps[last.unwrap_or(steps.len())..] {
        [Step::Reply { calls, .. }, following @ ..] => (calls, following),
        _ => (&[], &[]),
    }
}

/// The calls of the last reply that have no result yet.
pub fn open_calls(steps: &[Step]) -> Vec<ToolCall> {
    let (calls, following) = last_round(steps);
    let is_open = |call: &&ToolCall| {
        !following
            .iter()
            .any(|step| matches!(step, Step::Result { call_id, .. } if *call_id == call.id))
    };
    calls.iter().filter(is_open).cloned().collect()
}

/// Notes that the steps of a turn have these memories; false if one of them was forgotten
/// meanwhile.
fn note_all_told(write: &Write<'_>, turn: TurnId, memories: &[MemoryId]) -> Outcome<bool> {
    for memory in memories {
        if !note_told(write, turn, *memory)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Notes that the steps of a turn have this memory; false if there is none.
pub(crate) fn note_told(write: &Write<'_>, turn: TurnId, memory: MemoryId) -> Outcome<bool> {
    let noted = write.execute(
        "INSERT OR REPLACE INTO told_memories (memory_id, turn_id)
         SELECT m.id, t.id FROM memories m, turns t WHERE m.id = ?1 AND t.id = ?2",
        params![memory, turn],
    )?;
    Ok(noted > 0)
}

/// The steps of a turn, with what [`replace`] takes.
pub(crate) fn of_turn(write: &Write<'_>, id: TurnId) -> Outcome<Vec<(i64, Step)>> {
    write.rows(
        "SELECT id, body FROM steps WHERE turn_id = ?1 ORDER BY id LIMIT ?2",
        params![id, MOST_STEPS],
        |row| Ok((row.get("id")?, step_from_row(row)?)),
    )
}

/// Puts a step in place of one.
pub(crate) fn replace(write: &Write<'_>, step_id: i64, step: &Step) -> Outcome<()> {
    write.run(
        "UPDATE steps SET body = ?2 WHERE id = ?1",
        params![step_id, body_of(step)?],
    )
}

fn body_of(step: &Step) -> Result<String> {
    serde_json::to_string(step)
        .map_err(|error| Error::server("the turn's steps could not be stored", error))
}

/// Whether a tool found something in a turn that is for its readers alone, or was.
fn has_private(write: &Write<'_>, id: TurnId) -> Outcome<bool> {
    let steps = of_turn(write, id)?;
    Ok(steps.iter().any(|(_, step)| step.is_private()))
}

/// Removes what tools found for the readers of a conversation, because it gets more of
/// them: these must not learn it from the model. What the model said and called after it
/// in the same turn goes, too, but for the reply. So do the summary, which the next turn that
/// needs one makes anew, the results that are kept whole, and what routines wait to tell.
pub(crate) fn withdraw_private(write: &Write<'_>, id: ConversationId) -> Outcome<()> {
    let found = write.rows(PRIVATE_STEPS, params![id], |row| {
        Ok((row.get::<_, i64>("id")?, step_from_row(row)?))
    })?;
    for (step_id, mut step) in found {
        step.withdraw(write)?;
        replace(write, step_id, &step)?;
    }
    for sql in [
        "DELETE FROM conversation_summaries WHERE conversation_id = ?",
        "DELETE FROM kept_results WHERE conversation_id = ?",
        "UPDATE schedules SET trigger_text = NULL WHERE conversation_id = ?",
        "UPDATE conversations SET hidden_until = 0, shortened_until = 0 WHERE id = ?",
    ] {
        write.execute(sql, params![id])?;
    }
    Ok(())
}

/// What the model reads in place of a private result.
const WITHDRAWN: &str = "[removed: the conversation was shared with more people since]";

/// What the model reads in place of a memory that was forgotten.
pub(crate) const FORGOTTEN: &str = "[removed: forgotten since]";

/// The arguments of a call after one, for the model; a tool is not run with them.
const WITHDRAWN_ARGUMENTS: &str =
    r#"{"removed":"the conversation was shared with more people since"}"#;

/// The private results of a conversation's turns, and the steps after each.
pub(crate) const PRIVATE_STEPS: &str = "SELECT s.id, s.body \
     FROM turns t INDEXED BY turns_by_conversation \
     CROSS JOIN steps s INDEXED BY steps_by_turn ON s.turn_id = t.id \
     WHERE t.conversation_id = ? AND s.id >= (
         SELECT min(id) FROM steps INDEXED BY steps_by_turn
         WHERE turn_id = t.id AND body LIKE '%\"private\":true%')";

/// The step in the column `body`.
pub(crate) fn step_from_row(row: &Row<'_>) -> Outcome<Step> {
    let body = row.get_ref("body")?.as_str()?;
    Ok(serde_json::from_str(body).map_err(FromSqlError::other)?)
}

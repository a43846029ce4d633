//! Forgetting a memory: it goes from what the model is shown of the past, too.

use rusqlite::{Connection, params};
use serde_json::Value;

use crate::chat::steps::{FORGOTTEN, Step, ToolCall, of_turn, replace};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::meta;
use crate::engine::query::Statements;
use crate::sight::snapshot::Snapshot;
use base::error::Result;
use base::ids::{ConversationId, MemoryId, TurnId, UserId};

/// The key of the `meta` table with how many memories were forgotten.
const COUNT_KEY: &str = "forgotten_memories";

/// The argument of a call that stores a memory with other words by which it is found.
const SEARCH_WORDS: &str = "search_words";

/// The turns whose steps have a memory.
pub(crate) const TOLD: &str = "SELECT t.id, t.conversation_id, ifnull(ifnull(t.reply_id, t.ended), 0) \
     FROM told_memories m CROSS JOIN turns t ON t.id = m.turn_id WHERE m.memory_id = ?";

impl Snapshot<'_> {
    /// How many memories were forgotten so far: a summary that is made while that changes may
    /// hold one of them.
    pub fn forgotten_memories(&self) -> Result<i64> {
        Ok(count(self.connection())?)
    }
}

/// How many memories were forgotten so far.
pub(crate) fn count(connection: &Connection) -> Outcome<i64> {
    Ok(meta::get(connection, COUNT_KEY)?.unwrap_or_default())
}

/// Deletes a memory, and removes it from what tools were told of it and told the model. A
/// summary of that goes; the next turn that needs one makes it anew.
pub(crate) fn forget(write: &Write<'_>, id: MemoryId) -> Outcome<()> {
    let content: Option<String> =
        write.value("SELECT content FROM memories WHERE id = ?", params![id])?;
    let Some(content) = content else {
        return Ok(());
    };
    let told: Vec<(TurnId, ConversationId, i64)> =
        write.rows(TOLD, params![id], |row| Ok(row.try_into()?))?;
    for (turn, conversation, ended) in told {
        remove_from_turn(write, turn, id, &content)?;
        remove_summary(write, conversation, ended)?;
    }
    write.execute("DELETE FROM memories WHERE id = ?", params![id])?;
    meta::set(write, COUNT_KEY, &(count(write.connection)? + 1))
}

/// Deletes the memories whose ids this selects for a person.
pub(crate) fn forget_all(write: &Write<'_>, sql: &str, person: UserId) -> Outcome<()> {
    let ids = write.values(sql, params![person])?;
    ids.into_iter().try_for_each(|id| forget(write, id))
}

/// Removes a summary that covers a turn which ended there.
fn remove_summary(write: &Write<'_>, id: ConversationId, ended: i64) -> Outcome<()> {
    let removed = write.execute(
        "DELETE FROM conversation_summaries WHERE conversation_id = ?1
         AND ?2 <= (SELECT ifnull(reply_id, ended) FROM turns WHERE id = turn_id)",
        params![id, ended],
    )?;
    if removed > 0 {
        // Until there is another one, as much of the past as there is room for.
        write.execute(
            "UPDATE conversations SET hidden_until = 0, shortened_until = 0 WHERE id = ?",
            params![id],
        )?;
    }
    Ok(())
}

fn remove_from_turn(write: &Write<'_>, turn: TurnId, id: MemoryId, content: &str) -> Outcome<()> {
    let mut found = of_turn(write, turn)?;
    let settled = found.iter().filter_map(|(_, step)| match step {
        Step::Started { call_id } | Step::Result { call_id, .. } => Some(call_id.clone()),
        _ => None,
    });
    // A call that still waits is decided about as it was asked for.
    let settled: Vec<String> = settled.collect();
    let mut was_told = false;
    for (step_id, step) in &mut found {
        let before = step.clone();
        match step {
            Step::Reply { calls, extra, .. } => {
                for call in calls.iter_mut().filter(|call| settled.contains(&call.id)) {
                    was_told |= remove_from_arguments(call, content);
                }
                if was_told {
                    // What the model thought, and its calls once more.
                    *extra = None;
                    calls.iter_mut().for_each(|call| call.extra = None);
                }
            }
            Step::Result {
                content: text,
                memories,
                ..
            } if memories.contains(&id) => {
                was_told = true;
                memories.retain(|memory| *memory != id);
                remove_from_result(text, id, content);
            }
            Step::FinalExtra { extra } if was_told => *extra = Value::Null,
            _ => {}
        }
        if *step != before {
            replace(write, *step_id, step)?;
        }
    }
    Ok(())
}

/// Removes a memory from the arguments of a call that is it, and nothing else, with the words
/// that the call gave to find it by; returns whether there is such a one.
fn remove_from_arguments(call: &mut ToolCall, content: &str) -> bool {
    let Ok(Value::Object(mut arguments)) = serde_json::from_str(&call.arguments) else {
        return false;
    };
    let same = plain(content);
    let mut is_removed = false;
    for argument in arguments.values_mut() {
        if argument.as_str().is_some_and(|text| plain(text) == same) {
            *argument = FORGOTTEN.into();
            is_removed = true;
        }
    }
    if is_removed {
        arguments.remove(SEARCH_WORDS);
        call.arguments = Value::Object(arguments).to_string();
    }
    is_removed
}

/// Removes a memory from a result, in which each follows its id and where it is from; all of
/// the result where it does not stand there whole.
fn remove_from_result(text: &mut String, id: MemoryId, content: &str) {
    let begin = text.find(&format!("{id} ("));
    let begin = begin.and_then(|begin| Some(begin + text[begin..].find("): ")? + "): ".len()));
    match begin.filter(|begin| text[*begin..].starts_with(content)) {
        Some(begin) => text.replace_range(begin..begin + content.len(), FORGOTTEN),
        None => FORGOTTEN.clone_into(text),
    }
}

/// A text without what makes no difference: case, white space and last punctuation.
pub(crate) fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ").to_lowercase();
    let is_last = |character: char| ".!?;,…。！？；，".contains(character) || character == ' ';
    words.trim_end_matches(is_last).to_owned()
}

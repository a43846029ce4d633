//! Memories: what the assistant was asked to remember.

use serde_json::json;

use super::function::{FunctionTool, public};
use crate::tool::definition::{Arguments, Definition, ToolContext, required_text, text};
use crate::tool::output::{minute, shorten};
use base::ids::MemoryId;
use store::{NewMemory, Store, Viewer};

/// Most characters of one memory: a fact, not a document.
const MAX_MEMORY_CHARS: usize = 4_000;
/// Most memories that one answer lists.
const MAX_RECALLED: usize = 10;
/// Characters of a memory in the question whether to delete it.
const SHOWN_CHARS: usize = 200;

pub(super) fn remember() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "remember",
            "Keep a fact for later conversations.",
            json!({"content": {"type": "string", "description": "One self-contained sentence"}}),
            &["content"],
        ),
        intent: |arguments, _, _| Some(format!("remember: {}", text(arguments, "content")?)),
        run: run_remember,
    }
}

pub(super) fn recall() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "recall",
            "Find remembered facts, with their ids.",
            json!({"query": {"type": "string", "description": "A few key words"}}),
            &["query"],
        )
        .read_only(),
        intent: |arguments, _, _| {
            let query = text(arguments, "query")?;
            Some(format!("look up what it remembers about: {query}"))
        },
        run: run_recall,
    }
}

pub(super) fn forget() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "forget",
            "Delete a remembered fact.",
            json!({"memory_id": {"type": "string", "description": "From recall"}}),
            &["memory_id"],
        ),
        intent: forget_intent,
        run: run_forget,
    }
}

fn run_remember(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let content = required_text(arguments, "content")?;
    let length = content.chars().count();
    if length > MAX_MEMORY_CHARS {
        return Err(format!(
            "a memory has at most {MAX_MEMORY_CHARS} characters, not {length}: keep what matters"
        ));
    }
    let memory = context
        .store
        .remember(NewMemory {
            content: content.to_owned(),
            speaker: context.speaker.map(str::to_owned),
            owner_id: context.user_id,
            seen_as: Some(context.conversation_id),
            channel: Some(context.channel.to_owned()),
            account: context.account.map(str::to_owned),
        })
        .map_err(public)?;
    Ok(format!("Remembered as {}.", memory.id))
}

fn run_recall(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let query = required_text(arguments, "query")?;
    let memories = context
        .store
        .recall(&context.viewer, query, MAX_RECALLED)
        .map_err(public)?;
    if memories.is_empty() {
        return Ok(format!("Nothing remembered fits {query:?}."));
    }
    let lines: Vec<String> = memories
        .iter()
        .map(|memory| {
            let speaker = match &memory.speaker {
                Some(name) => format!(", from {name}"),
                None => String::new(),
            };
            let time = minute(memory.created_at);
            format!("{} ({time}{speaker}): {}", memory.id, memory.content)
        })
        .collect();
    Ok(lines.join("\n"))
}

/// A person cannot judge an id alone.
fn forget_intent(arguments: &Arguments, store: &Store, viewer: &Viewer) -> Option<String> {
    let id = text(arguments, "memory_id")?;
    let known = store.memories(viewer).unwrap_or_default();
    Some(
        match known.iter().find(|memory| memory.id.to_string() == id) {
            Some(memory) => {
                let content = shorten(&memory.content, SHOWN_CHARS);
                format!("forget the memory \"{content}\" ({id})")
            }
            None => format!("forget the memory {id}"),
        },
    )
}

fn run_forget(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let id: MemoryId = required_text(arguments, "memory_id")?
        .parse()
        .map_err(public)?;
    context.store.forget(&context.viewer, id).map_err(public)?;
    Ok(format!("Forgot {id}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::testing::Household;

    #[test]
    fn a_fact_is_remembered_recalled_and_forgotten() {
        let household = Household::new();
        let nothing = household.run("recall", json!({"query": "tea"})).unwrap();
        assert_eq!(nothing, "Nothing remembered fits \"tea\".");

        let kept = household
            .run("remember", json!({"content": " Ann drinks green tea. "}))
            .unwrap();
        let id = kept
            .strip_prefix("Remembered as ")
            .and_then(|rest| rest.strip_suffix('.'))
            .unwrap();
        let found = household.run("recall", json!({"query": "tea"})).unwrap();
        assert!(found.starts_with(&format!("{id} (")), "{found}");
        assert!(
            found.ends_with("UTC, from Ann): Ann drinks green tea."),
            "{found}"
        );

        let intent = |memory_id: &str| {
            let arguments = json!({ "memory_id": memory_id });
            forget_intent(
                arguments.as_object().unwrap(),
                household.store(),
                &Viewer::server(),
            )
            .unwrap()
        };
        assert_eq!(
            intent(id),
            format!("forget the memory \"Ann drinks green tea.\" ({id})")
        );
        assert_eq!(intent("tea"), "forget the memory tea");
        household.run("forget", json!({"memory_id": id})).unwrap();
        assert!(household.run("forget", json!({"memory_id": id})).is_err());
        assert_eq!(
            household.run("recall", json!({"query": "tea"})).unwrap(),
            nothing
        );
    }

    #[test]
    fn what_cannot_be_meant_is_explained() {
        let household = Household::new();
        for (tool, arguments, problem) in [
            ("remember", json!({"content": " "}), "must not be empty"),
            (
                "remember",
                json!({"content": "x".repeat(MAX_MEMORY_CHARS + 1)}),
                "at most 4000 characters",
            ),
            ("recall", json!({"query": ""}), "must not be empty"),
            ("forget", json!({"memory_id": "tea"}), "there is no memory"),
        ] {
            let error = household.run(tool, arguments).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}

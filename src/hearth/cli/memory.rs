//! `hearth memory`: what the assistant was asked to remember. Works on the
//! database itself, beside a running server, which reads it anew for each turn.

use serde_json::Value;

use super::arguments::Arguments;
use super::data_directory::DataDirectory;
use super::{Context, Failure, Outcome, table};
use base::clock::Clock;
use base::ids::MemoryId;
use protocol::command::{LIST_DEFAULT, LIST_LIMIT};
use serde_json::json;
use store::{Memory, Store};

/// Longest text in the table; `--json` shows all of it.
const CONTENT_CHARACTERS: usize = 100;

/// `hearth memory list`
pub fn list(arguments: &Arguments, context: &mut Context) -> Outcome {
    let store = open(arguments, context)?;
    let memories = store.memories()?;
    store.close();
    let nothing = "Nothing is remembered yet; tell the assistant: remember that ...";
    print(arguments, context, memories, nothing)
}

/// `hearth memory search WORD...`
pub fn search(arguments: &Arguments, context: &mut Context) -> Outcome {
    let query = arguments.joined().unwrap_or_default();
    let limit = arguments
        .number("limit", 1..=LIST_LIMIT)?
        .unwrap_or(LIST_DEFAULT);
    let store = open(arguments, context)?;
    let memories = store.recall(&query, limit as usize)?;
    store.close();
    print(
        arguments,
        context,
        memories,
        "Nothing remembered fits that.",
    )
}

/// `hearth memory delete ID`
pub fn delete(arguments: &Arguments, context: &mut Context) -> Outcome {
    let id: MemoryId = arguments.required(0).parse()?;
    let store = open(arguments, context)?;
    store.forget(id)?;
    store.close();
    writeln!(context.errors, "Deleted {id}.")?;
    Ok(())
}

fn open(arguments: &Arguments, context: &Context) -> Result<Store, Failure> {
    DataDirectory::of(arguments, context)?.open_store(&Clock::system())
}

fn print(
    arguments: &Arguments,
    context: &mut Context,
    memories: Vec<Memory>,
    nothing: &str,
) -> Outcome {
    if arguments.has("json") {
        let memories: Vec<Value> = memories.iter().map(to_json).collect();
        return table::print_json(context, &Value::from(memories));
    }
    let rows: Vec<Vec<String>> = memories
        .into_iter()
        .map(|memory| {
            vec![
                memory.id.to_string(),
                memory.created_at.to_string(),
                memory.speaker.unwrap_or_else(|| "-".to_owned()),
                table::cut(&memory.content, CONTENT_CHARACTERS),
            ]
        })
        .collect();
    table::print(context, &["id", "since", "said by", "what"], &rows, nothing)
}

fn to_json(memory: &Memory) -> Value {
    json!({
        "id": memory.id,
        "content": memory.content,
        "speaker": memory.speaker,
        "created_at": memory.created_at,
    })
}

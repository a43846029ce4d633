//! `hearth memory`: what the assistant was asked to remember. Works on the
//! database directly; a running server reads it again for each turn.

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::data_directory::open_store;
use super::table::{self, ListView, truncated};
use crate::service::views;
use agent::message_text::provenance;
use base::ids::MemoryId;
use base::people::Audience;
use protocol::command::{LIST_DEFAULT, LIST_LIMIT};
use serde_json::json;
use store::{Memory, Viewer};

pub const COMMAND: Command = Command::new(
    "\
memory: See and delete what the assistant remembers
Works whether or not the server runs, and shows what is private to people, too.",
)
.members(&[
    Command::new("list: List everything that is remembered, newest first\n--json\n--data-dir")
        .run(list),
    Command::new(
        "\
search WORD [WORD...]: Search what is remembered, best match first
Any of the words may match, also as the start of a longer word.
--limit N  Show at most N (default: 50)
--json
--data-dir",
    )
    .run(search),
    Command::new(
        "\
remove ID: Remove a memory
`hearth memory list` shows the ID.
--data-dir",
    )
    .run(remove),
]);

/// Longest text in the table; `--json` shows all of it.
const CONTENT_CHARACTERS: usize = 100;

/// `hearth memory list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let memories = open_store(arguments, context)?.memories(&Viewer::server())?;
    let empty = "Nothing is remembered yet. Tell the assistant: remember that ...";
    print(arguments, context, &memories, empty)
}

/// `hearth memory search WORD...`
fn search(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let query = arguments.joined().unwrap_or_default();
    let limit = arguments
        .number("limit", 1..=LIST_LIMIT)?
        .unwrap_or(LIST_DEFAULT);
    let memories =
        open_store(arguments, context)?.recall(&Viewer::server(), &query, None, limit as usize)?;
    print(arguments, context, &memories, "No memory matches.")
}

/// `hearth memory remove ID`
fn remove(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id: MemoryId = arguments.required(0).parse()?;
    open_store(arguments, context)?.forget(&Viewer::server(), id)?;
    context.note(format_args!("Removed {id}."))
}

fn print(
    arguments: &Arguments,
    context: &mut CliContext,
    memories: &[Memory],
    empty: &str,
) -> CliResult {
    let list = ListView {
        columns: &["id", "since", "said by", "seen by", "what"],
        row: &|memory: &Memory| {
            vec![
                memory.id.to_string(),
                table::time(memory.created_at),
                provenance(memory).unwrap_or_else(|| "-".to_owned()),
                match &memory.audience {
                    Audience::Private => "private".to_owned(),
                    Audience::Household => "household".to_owned(),
                    Audience::People(names) => names.join(", "),
                },
                truncated(&memory.content, CONTENT_CHARACTERS),
            ]
        },
        json: &|memory| json!(views::memory(memory)),
        empty,
    };
    list.print(memories, arguments, context)
}

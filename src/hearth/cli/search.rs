//! `hearth search`: the messages of all conversations.

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::data_directory::open_store;
use super::table::{self, ListView};
use protocol::command::LIST_LIMIT;
use serde_json::json;
use store::{Message, Role, Viewer, excerpt};

pub const COMMAND: Command = Command::new(
    "\
search WORD [WORD...]: Search the messages of all conversations
Shows the newest messages that contain all the words, ignoring accents and case; also those of
private conversations, because whoever owns the data directory can read it.
--limit N  Show at most N (default: 20)
--json
--data-dir",
)
.run(run);

/// Default of `--limit`.
const LIMIT: u64 = 20;
/// Longest text in the table; `--json` shows all of it.
const EXCERPT_CHARACTERS: usize = 100;

/// `hearth search WORD...`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let query = arguments.joined().unwrap_or_default();
    let limit = arguments.number("limit", 1..=LIST_LIMIT)?.unwrap_or(LIMIT);
    let found = open_store(arguments, context)?.search_messages(
        &Viewer::server(),
        &query,
        limit as usize,
    )?;
    let list = ListView {
        columns: &["conversation", "when", "who", "what"],
        row: &|message: &Message| {
            vec![
                message.conversation_id.to_string(),
                table::time(message.created_at),
                match message.role {
                    Role::Assistant => "assistant".to_owned(),
                    Role::User => message.speaker.clone().unwrap_or_else(|| "-".to_owned()),
                },
                excerpt(&message.content, &query, EXCERPT_CHARACTERS),
            ]
        },
        json: &to_json,
        empty: "No message contains all these words.",
    };
    list.print(&found, arguments, context)
}

fn to_json(message: &Message) -> Value {
    json!({
        "id": message.id,
        "conversation_id": message.conversation_id,
        "role": message.role.as_str(),
        "speaker": message.speaker,
        "timestamp": message.created_at,
        "content": message.content,
    })
}

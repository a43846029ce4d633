//! `hearth approvals`: the tool calls that wait for an answer, here or at another server.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::chat::approval::Approval;
use super::chat::approvals::decision;
use super::chat::connection::ask_once;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::{Configuration, Door};
use super::table::{ListView, print_json, truncated};
use super::terminal::visible;

pub const COMMAND: Command = Command::new(
    "\
approvals: See and answer what waits for approval
On the server's machine it needs no password: anyone who can read the data directory has full
access. Elsewhere, give --url with a token in HEARTH_TOKEN or --user.",
)
.members(&[
    Command::new(
        "\
list: List the tool calls that wait for an answer
The column ANSWER says whether you may give it, or others.
--json
--url
--relay-token
--ca-file
--token
--user
--data-dir",
    )
    .run(list),
    Command::new(
        "\
show ID: Show all of one tool call
What is invisible or changes the direction of writing is shown by its code, and empty lines in a
row by their number.
--json
--url
--relay-token
--ca-file
--token
--user
--data-dir",
    )
    .run(show),
    Command::new(
        "\
allow ID: Let a tool call run
Without an option it covers this call alone. The options cover the person or webhook account that
asked, and nobody else.
--conversation  Also later calls of the tool in this conversation
--always        Also later calls of the tool anywhere
--url
--relay-token
--ca-file
--token
--user
--data-dir",
    )
    .run(allow),
    Command::new(
        "\
deny ID: Refuse a tool call
The assistant learns of it and answers without it.
--url
--relay-token
--ca-file
--token
--user
--data-dir",
    )
    .run(deny),
]);

/// Longest text in the table; `show` shows all of it.
const REASON_CHARACTERS: usize = 80;

/// `hearth approvals list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let waiting = waiting(arguments, context)?;
    let text = |approval: &Value, name: &str| {
        let text = approval[name].as_str().filter(|text| !text.is_empty());
        truncated(text.unwrap_or("-"), REASON_CHARACTERS)
    };
    let list = ListView {
        columns: &["id", "tool", "asked by", "channel", "answer", "what"],
        row: &|approval: &Value| {
            let names = ["approval_id", "tool", "requested_by", "channel"];
            let mut row = names.map(|name| text(approval, name)).to_vec();
            row.push(if approval["may_answer"] == false {
                "others".to_owned()
            } else {
                "you".to_owned()
            });
            row.push(text(approval, "reason"));
            row
        },
        json: &Value::clone,
        empty: "Nothing waits for approval.",
    };
    list.print(&waiting, arguments, context)
}

/// `hearth approvals show ID`
fn show(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id = arguments.required(0);
    let waiting = waiting(arguments, context)?;
    let found = waiting
        .iter()
        .find(|approval| approval["approval_id"] == id);
    let found = found.ok_or_else(|| {
        CliError::failed(format!(
            "no approval {id} waits for your answer; `hearth approvals list` shows those that do"
        ))
    })?;
    if arguments.has("json") {
        return print_json(context, found);
    }
    let text = Approval::read(found).map(|approval| approval.text());
    context.print(visible(&text.unwrap_or_default()))
}

/// `hearth approvals allow ID`
fn allow(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    arguments.exclude("conversation", "always")?;
    let remember = match (arguments.has("conversation"), arguments.has("always")) {
        (true, _) => "conversation",
        (_, true) => "always",
        _ => "once",
    };
    decide(Some(remember), arguments, context)
}

/// `hearth approvals deny ID`
fn deny(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    decide(None, arguments, context)
}

fn decide(remember: Option<&str>, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let request = decision(arguments.required(0), remember, "decide");
    let decided = ask(&request, arguments, context)?;
    let tool = decided["tool"].as_str().unwrap_or("the tool");
    let covers = decided["covers"].as_str().unwrap_or("who asked");
    context.note(match remember {
        None => format!("Denied: {tool} does not run."),
        Some("conversation" | "always") if decided["outside"] == true => format!(
            "Allowed: {tool} runs, and may later for {covers}. In this conversation it asks each \
             time, because text from outside is in it."
        ),
        Some("conversation") => {
            format!("Allowed: {tool} runs, also later in this conversation for {covers}.")
        }
        Some("always") => format!("Allowed: {tool} runs, from now on always for {covers}."),
        Some(_) => format!("Allowed: {tool} runs this once."),
    })
}

fn waiting(arguments: &Arguments, context: &mut CliContext) -> Result<Vec<Value>, CliError> {
    let mut data = ask(&json!({"type": "list_approvals"}), arguments, context)?;
    match data["approvals"].take() {
        Value::Array(waiting) => Ok(waiting),
        _ => Ok(Vec::new()),
    }
}

/// Asks through the door, unless the command line or the environment names a server or a
/// person.
fn ask(
    request: &Value,
    arguments: &Arguments,
    context: &mut CliContext,
) -> Result<Value, CliError> {
    let is_elsewhere = ["url", "token", "user"]
        .iter()
        .any(|name| arguments.has(name));
    let has_token = !arguments.has("data-dir") && context.variable("HEARTH_TOKEN").is_some();
    if is_elsewhere || has_token {
        ask_once(request, arguments, context)
    } else {
        Door::of(Configuration::Needed, arguments, context).ask(request)
    }
}

//! `hearth approvals`: the tool calls that wait for an answer, here or at another server.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::chat::approval::Approval;
use super::chat::approvals::decision;
use super::chat::connection::SignedIn;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::{Configuration, Door};
use super::row::{Shown, text};
use super::table::{print_json, truncated};
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
--SERVER",
    )
    .run(list),
    Command::new(
        "\
show ID: Show all of one tool call
Characters that are invisible or change the direction of writing are shown as codes, and empty
lines in a row as their number.
--json
--SERVER",
    )
    .run(show),
    Command::new(
        "\
allow ID: Let a tool call run
Without an option it covers this call alone. The options cover the person or webhook account that
asked, and nobody else.
--conversation  Also later calls of the tool in this conversation
--always        Also later calls of the tool anywhere
--SERVER",
    )
    .run(allow),
    Command::new(
        "\
deny ID: Refuse a tool call
The assistant learns of it and answers without it.
--SERVER",
    )
    .run(deny),
]);

/// Longest text in the table; `show` shows all of it.
const REASON_CHARACTERS: usize = 80;

/// `hearth approvals list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let waiting = waiting(arguments, context)?;
    WAITING.print(&json!({ "approvals": waiting }), arguments, context)
}

const WAITING: Shown = Shown::List {
    member: "approvals",
    columns: &[
        ("id", |approval| short(&approval["approval_id"])),
        ("asked", |approval| short(&approval["origin"])),
        ("answer", |approval| {
            let is_others = approval["may_answer"] == false;
            if is_others { "others" } else { "you" }.to_owned()
        }),
        ("what", |approval| short(&approval["reason"])),
    ],
    empty: "Nothing waits for approval.",
};

fn short(value: &Value) -> String {
    truncated(&text(value), REASON_CHARACTERS)
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
    let tool = decided["label"].as_str().unwrap_or("The tool");
    let offers = |answer: &str| {
        let mut answers = decided["answers"].as_array().into_iter().flatten();
        answers.any(|one| one["answer"] == answer)
    };
    let covers = decided["covers"].as_str().unwrap_or("who asked");
    context.note(match remember {
        None => format!("Denied: \"{tool}\" does not run."),
        Some(answer) if !offers(answer) => format!(
            "Allowed: \"{tool}\" runs, and may later for {covers}. A call such as this one asks \
             each time."
        ),
        Some("conversation") => {
            format!("Allowed: \"{tool}\" runs, also later in this conversation for {covers}.")
        }
        Some("always") => format!("Allowed: \"{tool}\" runs, from now on always for {covers}."),
        Some(_) => format!("Allowed: \"{tool}\" runs this once."),
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
        SignedIn::open(arguments, context)?.ask(request)
    } else {
        Door::of(Configuration::Needed, arguments, context).ask(request)
    }
}

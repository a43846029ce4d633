//! `hearth tool`: tools from the catalogue, written to the configuration file.

use std::env;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::config::{report, texts};
use super::context::{CliContext, CliError, CliResult};
use super::door::{Configuration, Door};
use super::password;
use super::prompter::numbered;
use super::row::{Shown, text};
use super::terminal::visible;
use crate::catalogue::{Answers, Entry, Field};
use agent::tools::output::shorten;
use base::error::without_numbers;
use base::language::Words;
use config::variable;

pub const COMMAND: Command = Command::new(
    "\
tool: Add weather, web search, Home Assistant and other tools
Tools of your own and MCP servers are set up in the configuration; `hearth help tools` says how.",
)
.members(&[
    Command::new(
        "\
list: List your tools and MCP servers, or those that can be added
--all        Every tool, also each of a running MCP server, and what it does to things
--available  Those of the catalogue
--json",
    )
    .ask_with(Configuration::Alone, list),
    Command::new(
        "\
add NAME [FIELD=VALUE...]: Add a tool of the catalogue, after a trial
Asks in a terminal for what it needs; a script gives it as FIELD=VALUE. A secret is read from
standard input (key=-), or named as a variable of the server's environment (key='${NAME}').
--as NAME  Its name, or the beginning of its tools' names
--no-test  Add it without a trial",
    )
    .ask_with(Configuration::Alone, add),
    Command::new("remove NAME: Remove a tool, an MCP server, or all that was added under a name")
        .ask_with(Configuration::Alone, remove),
]);

/// Most characters of a trial's result that are shown.
const SHOWN: usize = 400;

const AVAILABLE: Shown = Shown::List {
    member: "tools",
    columns: &[
        ("name", |entry| text(&entry["name"])),
        ("what it does", |entry| text(&entry["about"])),
    ],
    empty: "",
};

const ALL: Shown = Shown::List {
    member: "tools",
    columns: &[
        ("name", |tool| text(&tool["name"])),
        ("of", |tool| text(&tool["source"])),
        ("right", |tool| text(&tool["permission"])),
        ("what it does to things", |tool| text(&tool["effect"])),
    ],
    empty: "",
};

/// `hearth tool list`
fn list(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    if arguments.has("available") {
        let entries = Entry::all();
        let entries = entries.iter().map(|entry| {
            let fields: Vec<&str> = entry.fields().map(|field| field.name).collect();
            json!({ "name": entry.name, "about": entry.about(Words::ENGLISH), "fields": fields })
        });
        let data = json!({ "tools": entries.collect::<Vec<_>>() });
        return AVAILABLE.print(&data, arguments, context);
    }
    if arguments.has("all") {
        let data = door.ask(&json!({ "type": "list_tools" }))?;
        return ALL.print(&data, arguments, context);
    }
    let tools = Shown::List {
        member: "tools",
        columns: &[
            ("name", |tool| text(&tool["name"])),
            ("kind", |tool| text(&tool["kind"])),
            ("right", |tool| text(&tool["right"])),
        ],
        empty: "There are no tools beside the built-in ones. `hearth tool list --available` shows \
                those that `hearth tool add` adds.",
    };
    let data = door.ask(&json!({ "type": "list_own_tools" }))?;
    tools.print(&data, arguments, context)
}

/// `hearth tool add NAME`
fn add(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let entry = Entry::named(arguments.required(0))?;
    let mut answers = given(arguments, context, &entry)?;
    context.say(&entry.about(Words::ENGLISH))?;
    if let Some(steps) = entry.steps(Words::ENGLISH) {
        context.say(steps)?;
    }
    for field in entry.fields() {
        if let Some(question) = field.question(Words::ENGLISH)
            && !answers.contains_key(field.name)
            && let Some(answer) = ask(context, &field, &format!("{question}:"))?
        {
            answers.insert(field.name.to_owned(), answer.into());
        }
    }
    let mut request = json!({
        "type": "add_tool",
        "name": entry.name,
        "alias": arguments.text("as")?,
        "answers": answers,
    });
    if !arguments.has("no-test") {
        check_variables(door, &answers)?;
        try_out(door, &mut request, context)?;
    }
    let added = door.ask(&request)?;
    if let Some(choice) = added["choices"][0]["label"].as_str() {
        context.note(format_args!("This is {}.", visible(choice)))?;
    }
    let (name, file) = (text(&added["name"]), door.directory()?.config());
    let done = format!("Added {name} to {}", file.display());
    report(door, &done, &added, arguments, context)?;
    print_rights(door, &added, context)
}

/// A trial in this process uses what the variables hold here.
fn check_variables(door: &mut Door, answers: &Answers) -> CliResult {
    let names = answers
        .values()
        .filter_map(Value::as_str)
        .filter_map(variable);
    let unset = names.into_iter().find(|name| env::var_os(name).is_none());
    match unset {
        Some(name) if door.server()?.is_none() => Err(CliError::failed(format!(
            "nothing was written: {name} is not set here, and the trial needs it. Set it for \
             this: {name}=... hearth tool add ..., or add the tool with --no-test"
        ))),
        _ => Ok(()),
    }
}

/// The answers on the command line.
fn given(
    arguments: &Arguments,
    context: &mut CliContext,
    entry: &Entry,
) -> Result<Answers, CliError> {
    let mut answers = Answers::new();
    for word in arguments.operands_after(1) {
        let Some((name, value)) = word.split_once('=') else {
            return Err(arguments.usage(format!("{word:?} is not FIELD=VALUE")));
        };
        let field = entry.fields().find(|field| field.name == name);
        let value = match field {
            Some(field) if field.is_secret && value == "-" => {
                let question = field.question(Words::ENGLISH);
                let question = format!("{}: ", question.as_deref().unwrap_or(name));
                let secret = password::read_secret(context, &question)?;
                Value::from(secret.expose())
            }
            Some(field) if field.is_secret && !(value.starts_with("${") || value.is_empty()) => {
                return Err(arguments.usage(format!(
                    "{name} is a secret: {name}=- reads it from standard input, and \
                     {name}='${{NAME}}' names a variable of the server's environment"
                )));
            }
            Some(_) => value.into(),
            // What is looked up are numbers.
            None => serde_json::from_str(value).unwrap_or_else(|_| value.into()),
        };
        answers.insert(name.to_owned(), value);
    }
    Ok(answers)
}

/// The answer of the person at the terminal, if there is one.
fn ask(
    context: &mut CliContext,
    field: &Field<'_>,
    question: &str,
) -> Result<Option<String>, CliError> {
    match field.is_secret {
        true => {
            let secret = context.ask_secret(question)?;
            Ok(secret.map(|secret| secret.expose().to_owned()))
        }
        false => context.ask(question, field.default.unwrap_or("")),
    }
}

/// Has the service make a small call, and the person choose what an answer means. Where the
/// call fails, only a person can go on.
fn try_out(door: &mut Door, request: &mut Value, context: &mut CliContext) -> CliResult {
    let name = request["alias"].as_str().or(request["name"].as_str());
    context.note(format_args!("Trying {} …", name.unwrap_or_default()))?;
    let mut trial = request.clone();
    trial["test"] = json!(true);
    let mut tried = door.ask(&trial)?;
    let choices = tried["choices"].as_array().map_or(&[][..], Vec::as_slice);
    let labels = choices.iter().filter_map(|one| one["label"].as_str());
    let labels: Vec<String> = labels.map(visible).collect();
    let words: Vec<&str> = labels.iter().map(String::as_str).collect();
    if words.len() > 1 {
        context.say(&numbered(&words))?;
        let answer = context.choose("Which one?", &words, "1")?;
        let place = words
            .iter()
            .position(|word| Some(*word) == answer.as_deref());
        if let Some(Value::Object(chosen)) =
            choices.get(place.unwrap_or(0)).map(|one| &one["answers"])
            && let Some(answers) = request["answers"].as_object_mut()
        {
            answers.extend(chosen.clone());
        }
        if place.is_some_and(|place| place > 0) {
            trial["answers"] = request["answers"].clone();
            tried = door.ask(&trial)?;
        }
        if let Some(label) = labels.get(place.unwrap_or(0)) {
            context.note(format_args!("This is {label}."))?;
        }
    }
    let said = tried["message"].as_str().unwrap_or_default();
    if tried["works"] == true {
        for line in shorten(said.trim(), SHOWN).lines() {
            context.note(format_args!("  {}", visible(line)))?;
        }
        return Ok(());
    }
    let problem = without_numbers(&visible(said));
    let is_refused = ["401", "403"].iter().any(|status| problem.contains(status));
    let advice = match is_refused {
        true => ". Is the key right, and may it do that?",
        false => "",
    };
    context.note(format_args!("It does not work: {problem}{advice}"))?;
    let answer = context.ask("Add it anyway? (yes or no)", "no")?;
    match answer.as_deref() {
        Some("yes" | "y") => Ok(()),
        Some(_) => Err(CliError::failed("nothing was written")),
        None => Err(CliError::failed(
            "nothing was written; --no-test adds it without a trial",
        )),
    }
}

/// Says what the tools may do.
fn print_rights(door: &mut Door, added: &Value, context: &mut CliContext) -> CliResult {
    let config = door.ask(&json!({ "type": "get_config" }))?;
    let rights = added["tool_permissions"].as_object().into_iter().flatten();
    for (name, right) in rights {
        let asks = *right != "allow";
        let may = if asks {
            "asks first"
        } else {
            "runs without asking"
        };
        let people = config["people"].as_object().into_iter().flatten();
        let people =
            people.filter(|(_, person)| asks && person["tool_permissions"][name] == "allow");
        let people: Vec<&str> = people.map(|(name, _)| name.as_str()).collect();
        let except = match people.is_empty() {
            true => String::new(),
            false => format!(", except {}", people.join(", ")),
        };
        context.print(format_args!("{name}: {may}{except}"))?;
    }
    if added["has_servers"] == true {
        let other = text(&config["permission_mode"]);
        context.print(format_args!("Its other tools: {other} (permission_mode)"))?;
    }
    if let Some(server) = added["outside"].as_str() {
        context.note(format_args!(
            "What it answers counts as text from outside: after it was read, every tool with an \
             effect asks, even where it is allowed. If only your household writes there: \
             `hearth config set mcp_servers.{server}.trusted true`"
        ))?;
    }
    let accounts: Vec<&str> = texts(&added["accounts"]).collect();
    let mut channels = config["channels"].as_array().into_iter().flatten();
    if !accounts.is_empty() {
        let accounts = accounts.join(", ");
        context.print(format_args!("Webhook accounts that may use it: {accounts}"))?;
    } else if channels.any(|channel| {
        channel["accounts"]
            .as_object()
            .is_some_and(|all| !all.is_empty())
    }) {
        context.print("No webhook account may use it (`tools` of an account names what it may)")?;
    }
    let first = added["tool_permissions"].as_object();
    let first = first.and_then(|rights| rights.keys().next());
    let first = first.map_or("NAME", String::as_str);
    context.note(format_args!(
        "`hearth config set tool_permissions.{first} ask` (or allow, deny) changes that, and \
         `hearth tool remove {}` removes it.",
        text(&added["name"])
    ))
}

/// `hearth tool remove NAME`
fn remove(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let request = json!({ "type": "remove_tool", "name": arguments.required(0) });
    let removed = door.ask(&request)?;
    let names: Vec<&str> = texts(&removed["tools"])
        .chain(texts(&removed["servers"]))
        .collect();
    let holders: Vec<&str> = texts(&removed["holders"]).collect();
    let done = format!("Removed {}", names.join(", "));
    report(door, &done, &removed, arguments, context)?;
    match holders.is_empty() {
        true => Ok(()),
        false => context.note(format_args!(
            "The rights to it of {} are gone, too.",
            holders.join(", ")
        )),
    }
}

//! `hearth tool`: tools from the catalogue, written to the configuration file.

use std::env;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::password;
use super::prompter::{Prompter, numbered};
use super::running_server::RunningServer;
use super::table::ListView;
use super::terminal::visible;
use crate::catalogue::{self, Addition, Answers, Entry, Field};
use agent::tool::output::shorten;
use base::error::without_numbers;
use config::{Config, CustomRun, Permission, Settings, server_of, variable};
use net::tls::Trust;

pub const COMMAND: Command = Command::new(
    "\
tool: Add weather, web search, Home Assistant and other tools
Tools of your own and MCP servers are set up in the configuration; `hearth help tools` says how.",
)
.members(&[
    Command::new(
        "\
list: List your tools and MCP servers, or those that can be added
--available  Those of the catalogue
--json
--data-dir",
    )
    .run(list),
    Command::new(
        "\
add NAME [FIELD=VALUE...]: Add a tool of the catalogue, after a trial
Asks in a terminal for what it needs; a script gives it as FIELD=VALUE. A secret is read from
standard input (key=-), or named as a variable of the server's environment (key='${NAME}').
--as NAME  The name for it, or for the beginning of its tools' names
--no-test  Add it without a trial
--data-dir",
    )
    .run(add),
    Command::new(
        "\
remove NAME: Remove a tool, an MCP server, or all that was added under a name
--data-dir",
    )
    .run(remove),
]);

/// Most characters of a trial's result that are shown.
const SHOWN: usize = 400;
/// What stands for a variable that only the server has.
const UNSET: &str = "unset";

/// `hearth tool list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    if arguments.has("available") {
        let view = ListView {
            columns: &["name", "what it does"],
            row: &|entry: &Entry| vec![entry.name.clone(), entry.about().to_owned()],
            json: &|entry| {
                let fields = entry.fields().map(|field| field.name.to_owned());
                let fields: Vec<String> = fields.collect();
                json!({"name": entry.name, "about": entry.about(), "fields": fields})
            },
            empty: "",
        };
        return view.print(&Entry::all(), arguments, context);
    }
    let config = settings(&DataDirectory::of(arguments, context)?)?.current();
    let kind = |run: &CustomRun| match run {
        CustomRun::Command(_) => "program",
        CustomRun::Http(_) => "request",
    };
    let custom = config.tools.custom.iter();
    let mut rows: Vec<[String; 3]> = custom
        .map(|tool| {
            let right = right(&config, &tool.name);
            [tool.name.clone(), kind(&tool.run).to_owned(), word(right)]
        })
        .collect();
    rows.extend(config.mcp_servers.iter().map(|server| {
        let kind = match server.disabled {
            true => "MCP server, disabled",
            false => "MCP server",
        };
        let servers = || config.mcp_servers.iter().map(|server| server.name.as_str());
        let own = config.tool_permissions.keys();
        let own = own.filter(|name| server_of(name, servers()) == Some(&server.name));
        let own = own.count();
        let mut rights = word(config.permission_mode);
        if own > 0 {
            let tools = if own == 1 { "tool" } else { "tools" };
            rights.push_str(&format!(" (otherwise for {own} {tools})"));
        }
        [server.name.clone(), kind.to_owned(), rights]
    }));
    let view = ListView {
        columns: &["name", "kind", "right"],
        row: &|row: &[String; 3]| row.to_vec(),
        json: &|[name, kind, right]| json!({"name": name, "kind": kind, "right": right}),
        empty: "There are no tools beside the built-in ones. `hearth tool list --available` shows \
                those that `hearth tool add` adds.",
    };
    view.print(&rows, arguments, context)
}

fn right(config: &Config, tool: &str) -> Permission {
    let own = config.tool_permissions.get(tool);
    own.copied().unwrap_or(config.permission_mode)
}

fn word(right: Permission) -> String {
    match right {
        Permission::Ask => "ask",
        Permission::Allow => "allow",
        Permission::Deny => "deny",
    }
    .to_owned()
}

/// `hearth tool add NAME`
fn add(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let entry = Entry::named(arguments.required(0))?;
    let directory = DataDirectory::of(arguments, context)?;
    let settings = settings(&directory)?;
    let before = settings.current();
    let mut answers = given(arguments, context, &entry)?;
    let mut prompter = Prompter::new(context);
    prompter.say(entry.about())?;
    if let Some(steps) = entry.steps() {
        prompter.say(steps)?;
    }
    for field in entry.fields() {
        if let Some(question) = field.question
            && !answers.contains_key(field.name)
            && let Some(answer) = ask(&mut prompter, &field, question)?
        {
            answers.insert(field.name.to_owned(), answer.into());
        }
    }
    entry.complete(&mut answers)?;
    choose(&entry, &mut answers, &before, context)?;
    let texts = answers.values().filter_map(Value::as_str);
    let unset = texts
        .filter_map(variable)
        .find(|name| env::var_os(name).is_none())
        .map(str::to_owned);
    if let Some(name) = unset {
        return Err(CliError::failed(format!(
            "nothing was written: {name} is not set here, and the server does not start without \
             it. Set it for both: {name}=... hearth tool add ..."
        )));
    }
    let addition = entry.filled(arguments.text("as")?, answers)?;
    let (_, planned) = settings.rewrite(false, |members| addition.add_to(members))?;
    if !arguments.has("no-test") {
        try_out(&addition, &planned, &directory, context)?;
    }
    let (_, config) = settings.rewrite(true, |members| addition.add_to(members))?;
    let applies = RunningServer::apply(&directory, &before, &config);
    let file = directory.config();
    context.note(format_args!(
        "Added {} to {}; {applies}.",
        addition.alias,
        file.display()
    ))?;
    print_rights(&addition, &config, context)?;
    applies.end()
}

/// The settings. Those that a variable of the server's environment holds need not be set here.
fn settings(directory: &DataDirectory) -> Result<Settings, CliError> {
    directory.check_is_configured()?;
    let environment = |name: &str| Some(env::var(name).unwrap_or_else(|_| UNSET.to_owned()));
    Settings::load_with(&directory.config(), environment).or_else(|_| directory.settings())
}

/// The answers on the command line.
fn given(
    arguments: &Arguments,
    context: &mut CliContext,
    entry: &Entry,
) -> Result<Answers, CliError> {
    let mut answers = Answers::new();
    for word in (1..).map_while(|place| arguments.operand(place)) {
        let Some((name, value)) = word.split_once('=') else {
            return Err(arguments.usage(format!("{word:?} is not FIELD=VALUE")));
        };
        let field = entry.fields().find(|field| field.name == name);
        let value = match field {
            Some(field) if field.is_secret && value == "-" => {
                let question = format!("{} ", field.question.unwrap_or(name));
                let ask = context.input_is_terminal;
                let secret = password::read_secret(context, &question, ask)?;
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
    prompter: &mut Prompter<'_, '_>,
    field: &Field<'_>,
    question: &str,
) -> Result<Option<String>, CliError> {
    match field.is_secret {
        true => {
            let secret = prompter.ask_secret(question)?;
            Ok(secret.map(|secret| secret.expose().to_owned()))
        }
        false => prompter.ask(question, field.default.unwrap_or("")),
    }
}

/// Has the person choose what an answer means, or takes what is likeliest.
fn choose(
    entry: &Entry,
    answers: &mut Answers,
    config: &Config,
    context: &mut CliContext,
) -> CliResult {
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let mut choices = entry.choices(answers, trust)?;
    if choices.is_empty() {
        return Ok(());
    }
    let labels: Vec<String> = choices.iter().map(|one| visible(&one.label)).collect();
    let words: Vec<&str> = labels.iter().map(String::as_str).collect();
    let mut place = 0;
    if words.len() > 1 {
        let mut prompter = Prompter::new(context);
        prompter.say(&numbered(&words))?;
        let answer = prompter.choose("Which one?", &words, "1")?;
        place = words
            .iter()
            .position(|word| Some(*word) == answer.as_deref())
            .unwrap_or(0);
    }
    context.note(format_args!("This is {}.", labels[place]))?;
    answers.extend(choices.swap_remove(place).values);
    Ok(())
}

/// Shows what a small call comes to. Where it fails, only a person can go on.
fn try_out(
    addition: &Addition,
    config: &Config,
    directory: &DataDirectory,
    context: &mut CliContext,
) -> CliResult {
    context.note(format_args!("Trying {} …", addition.alias))?;
    let problem = match addition.try_out(config, directory.path()) {
        Ok(said) => {
            for line in shorten(said.trim(), SHOWN).lines() {
                context.note(format_args!("  {}", visible(line)))?;
            }
            return Ok(());
        }
        Err(problem) => without_numbers(&visible(&problem)),
    };
    let is_refused = ["401", "403"].iter().any(|status| problem.contains(status));
    let advice = match is_refused {
        true => ". Is the key right, and may it do that?",
        false => "",
    };
    context.note(format_args!("It does not work: {problem}{advice}"))?;
    let answer = Prompter::new(context).ask("Add it all the same? (yes or no)", "no")?;
    match answer.as_deref() {
        Some("yes" | "y") => Ok(()),
        Some(_) => Err(CliError::failed("nothing was written")),
        None => Err(CliError::failed(
            "nothing was written; --no-test adds it without a trial",
        )),
    }
}

/// Says what the tools may do.
fn print_rights(addition: &Addition, config: &Config, context: &mut CliContext) -> CliResult {
    for name in addition.rights.keys() {
        let may = match right(config, name) {
            Permission::Allow if addition.outside().is_some() => "asks first",
            Permission::Allow => "runs without asking",
            Permission::Ask => "asks first",
            Permission::Deny => "does not run",
        };
        let people = config.people.iter().filter(|(_, person)| {
            may == "asks first" && person.tool_permissions.get(name) == Some(&Permission::Allow)
        });
        let people: Vec<&str> = people.map(|(name, _)| name.as_str()).collect();
        let except = match people.is_empty() {
            true => String::new(),
            false => format!(", except {}", people.join(", ")),
        };
        context.print(format_args!("{name}: {may}{except}"))?;
    }
    if addition.has_servers() {
        let other = word(config.permission_mode);
        context.print(format_args!("Its other tools: {other} (permission_mode)"))?;
    }
    if let Some(server) = addition.outside() {
        context.note(format_args!(
            "What it says counts as text from outside: while it is there, every tool with an \
             effect asks, even where it is allowed. If only your household writes there: \
             `hearth config set mcp_servers.{server}.trusted true`"
        ))?;
    }
    let accounts = config.webhook_accounts();
    let of_accounts: Vec<&str> = accounts
        .filter(|account| account.permission_mode != Some(Permission::Deny))
        .filter(|account| {
            addition
                .rights
                .keys()
                .any(|tool| config.offers(account, tool))
        })
        .map(|account| account.name.as_str())
        .collect();
    if !of_accounts.is_empty() {
        let accounts = of_accounts.join(", ");
        context.print(format_args!("Webhook accounts that may use it: {accounts}"))?;
    } else if config.webhook_accounts().next().is_some() {
        context.print("No webhook account may use it (`tools` of an account names what it may)")?;
    }
    let first = addition.rights.keys().next();
    let first = first.map_or("NAME", String::as_str);
    context.note(format_args!(
        "`hearth config set tool_permissions.{first} ask` (or allow, deny) changes that, and \
         `hearth tool remove {}` removes it.",
        addition.alias
    ))
}

/// `hearth tool remove NAME`
fn remove(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let directory = DataDirectory::of(arguments, context)?;
    let settings = settings(&directory)?;
    let before = settings.current();
    let (removed, config) = settings.rewrite(true, |members| catalogue::remove(members, name))?;
    let applies = RunningServer::apply(&directory, &before, &config);
    let names = [removed.tools, removed.servers].concat().join(", ");
    let rights = match removed.holders.is_empty() {
        true => String::new(),
        false => format!(
            " The rights to it of {} are gone, too.",
            removed.holders.join(", ")
        ),
    };
    context.note(format_args!("Removed {names}; {applies}.{rights}"))?;
    applies.end()
}

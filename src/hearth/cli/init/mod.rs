//! `hearth init`: a short guided setup. Every answer can also be given as an option,
//! and nothing is asked if standard input is not a terminal.
//!
//! All answers are collected and the model is tested before anything is written.

mod model;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use std::io;

use super::arguments::Arguments;
use super::command::Command;
use super::config::{applies, channel_path, set_value};
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::door::{Configuration, Door};
use super::first_run;
use super::password;
use base::clock::Clock;
use base::secret::Secret;
use config::{Config, RelayChannel};
use model::{ApiKey, ModelSetup};

pub const COMMAND: Command = Command::new(
    "\
init: Set up a model, who may connect and a password, step by step
Asks in a terminal for whatever no option sets. Without a terminal nothing is asked: missing
values stay as they are configured, else take their defaults, or cause an error. The model is
tested before anything is written.
`hearth serve` also works without this, and starts with the offline assistant.
--provider PROVIDER     The model provider (default: offline)
--model MODEL           The model's name at the provider
--base-url URL          The provider's address, if not the usual one
--api-key-env NAME      The environment variable that holds the API key,
                        here and where the server runs
--api-key-stdin         Read the API key as one line of standard input
--lan                   Devices on the local network may connect (the default)
--local-only            Only this machine may connect
--relay URL             Also link to a relay; its token is taken from
                        HEARTH_RELAY_TOKEN
--admin-password-stdin  Read the password of admin as one line of standard
                        input, after the API key
--generate              Generate the password of admin and print it once
--no-test               Do not test whether the provider answers
--data-dir",
)
.run(run);

/// The environment variable with the relay's token.
const RELAY_TOKEN: &str = "HEARTH_RELAY_TOKEN";
/// The name of the relay's channel.
const RELAY: &str = "relay";

/// The address of a server to which this machine alone may connect.
const THIS_MACHINE: &str = "127.0.0.1";

/// `hearth init`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    for (one, other) in [
        ("api-key-stdin", "api-key-env"),
        ("lan", "local-only"),
        ("generate", "admin-password-stdin"),
    ] {
        arguments.exclude(one, other)?;
    }
    let directory = DataDirectory::of(arguments, context)?;
    directory.create()?;
    // An invalid configuration is reported before anything is asked.
    let current = match directory.config().exists() {
        true => Some(directory.settings()?.current()),
        false => None,
    };
    context.say(&format!(
        "This sets up Hearth in {}. Press Enter for the default in brackets.\n",
        directory.path().display()
    ))?;
    let chosen = model::choose(arguments, context, current.as_deref())?;
    let bind = bind(arguments, context, current.as_deref())?;
    let relay = relay(arguments, context)?;
    let password = first_password(arguments, &directory, context)?;

    first_run::prepare(&directory, &Clock::system(), password, &mut |generated| {
        show(generated, context)
    })?;
    if chosen.is_none() && bind.is_none() && relay.is_none() {
        return context.note(format_args!(
            "Nothing is changed in {}: give options, or run `hearth init` in a terminal.",
            directory.config().display()
        ));
    }
    let mut door = Door::of(Configuration::Needed, arguments, context);
    let before = directory.settings()?.current();
    if let Some(chosen) = &chosen {
        model::write(&mut door, &before, chosen)?;
    }
    let changes = write_channels(&mut door, &before, bind, relay.as_ref())?;
    let needs_restart = changes.iter().any(|change| change["needs_restart"] == true);
    report(
        &mut door,
        chosen.as_ref(),
        needs_restart,
        arguments,
        context,
    )
}

/// Shows a generated password. It is the only output, for scripts.
fn show(generated: Option<&Secret>, context: &mut CliContext) -> io::Result<()> {
    let Some(password) = generated else {
        return Ok(());
    };
    let admin = first_run::ADMIN;
    writeln!(context.errors, "The password of {admin}, shown only once:")?;
    context.errors.flush()?;
    writeln!(context.output, "{}", password.expose())?;
    context.output.flush()
}

/// Where the server listens, if that changes: null for the local network.
fn bind(
    arguments: &Arguments,
    context: &mut CliContext,
    current: Option<&Config>,
) -> Result<Option<Value>, CliError> {
    if arguments.has("lan") {
        return Ok(Some(Value::Null));
    }
    if arguments.has("local-only") {
        return Ok(Some(json!(THIS_MACHINE)));
    }
    let bind = current.and_then(|config| config.tcp_channels().next()?.bind);
    let usual = match bind.is_some_and(|address| address.is_loopback()) {
        true => "local",
        false => "lan",
    };
    let question = "Who may connect: the local network (lan), or only this machine (local)?";
    let answer = context.choose(question, &["lan", "local"], usual)?;
    let chosen = answer.as_deref().unwrap_or(usual);
    // What stays as it is may be an address that is neither of the two.
    Ok(match (current, chosen) {
        (Some(_), chosen) if chosen == usual => None,
        (_, "local") => Some(json!(THIS_MACHINE)),
        _ => Some(Value::Null),
    })
}

/// A relay and its token.
struct RelaySetup {
    url: String,
    token: Secret,
}

fn relay(arguments: &Arguments, context: &mut CliContext) -> Result<Option<RelaySetup>, CliError> {
    const NONE: &str = "none";
    let is_address = |url: &str| url.starts_with("wss://") || url.starts_with("ws://");
    let url = match arguments.text("relay")? {
        Some(url) => Some(url.to_owned()),
        None => loop {
            let question = "Connect via a relay, to be reachable from anywhere (wss://...)?";
            match context.ask(question, NONE)? {
                Some(url) if url != NONE && !is_address(&url) => {
                    context.say("Please enter a URL with wss:// or ws://, or none.")?;
                }
                answer => break answer,
            }
        },
    };
    let Some(url) = url.filter(|url| url != NONE) else {
        return Ok(None);
    };
    if !is_address(&url) {
        let message = format!("--relay must be a URL with wss:// or ws://, not {url:?}");
        return Err(arguments.usage(message));
    }
    let token = match context.variable(RELAY_TOKEN) {
        Some(token) => Some(Secret::new(token)),
        None => context.ask_secret("The relay's AUTH_TOKEN:")?,
    };
    match token.filter(|token| !token.is_empty()) {
        Some(token) => Ok(Some(RelaySetup { url, token })),
        None => Err(CliError::failed(format!(
            "the relay's token is missing: set {RELAY_TOKEN} for this command"
        ))),
    }
}

/// The password of the first user, unless it is to be generated, or there are users already.
fn first_password(
    arguments: &Arguments,
    directory: &DataDirectory,
    context: &mut CliContext,
) -> Result<Option<Secret>, CliError> {
    let has_users = directory.database().exists() && !directory.open_store()?.users()?.is_empty();
    let is_given = arguments.has("admin-password-stdin");
    if has_users {
        if is_given || arguments.has("generate") {
            return Err(CliError::failed(format!(
                "{} has users already; set a password with `hearth user passwd {}`",
                directory.path().display(),
                first_run::ADMIN
            )));
        }
        return Ok(None);
    }
    if arguments.has("generate") {
        return Ok(None);
    }
    let given = match is_given {
        true => Some(password::read_plain(context)?),
        false => context.variable("HEARTH_ADMIN_PASSWORD").map(Secret::new),
    };
    if let Some(password) = given {
        password::check(&password)?;
        return Ok(Some(password));
    }
    if !context.input_is_terminal {
        return Ok(None);
    }
    let prompt = format!("A password for {} [generate one]: ", first_run::ADMIN);
    loop {
        let typed = password::read_secret(context, &prompt)?;
        if typed.is_empty() {
            return Ok(None);
        }
        let problem = match password::check(&typed) {
            Err(error) => error.message().to_owned(),
            Ok(()) => match password::read_secret(context, "Repeat: ")? == typed {
                true => return Ok(Some(typed)),
                false => "the passwords do not match".to_owned(),
            },
        };
        // What was answered before is not lost.
        context.note(format_args!("Once more: {problem}."))?;
    }
}

/// Writes the chosen channels.
fn write_channels(
    door: &mut Door,
    before: &Config,
    bind: Option<Value>,
    relay: Option<&RelaySetup>,
) -> Result<Vec<Value>, CliError> {
    let mut changes = Vec::new();
    let mut set = |path: String, value: Value| -> CliResult {
        changes.push(set_value(door, &path, value)?);
        Ok(())
    };
    if let Some(bind) = bind {
        let tcp = before.tcp_channels().next();
        let tcp = tcp.ok_or_else(|| CliError::failed("the configuration has no tcp channel"))?;
        set(format!("{}.bind", channel_path(&tcp.name)), bind)?;
    }
    if let Some(RelaySetup { url, token }) = relay {
        if let Some(same) = before.relays().find(|channel| channel.url == *url) {
            set(channel_path(&same.name), Value::Null)?;
        }
        let is_taken = |channel: &&RelayChannel| channel.name == RELAY && channel.url != *url;
        if before.relays().any(|channel| is_taken(&channel)) {
            return Err(CliError::failed(format!(
                "a relay channel {RELAY:?} exists already; give the new one another name with \
                 `hearth relay join {url} --name NAME`"
            )));
        }
        let channel = json!({ "type": "websocket", "url": url, "auth_token": token.expose() });
        set(channel_path(RELAY), channel)?;
    }
    Ok(changes)
}

/// Reports what was written and what to do next.
fn report(
    door: &mut Door,
    chosen: Option<&ModelSetup>,
    needs_restart: bool,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    let applies = applies(door, &json!({ "needs_restart": needs_restart }))?;
    let is_running = door.server()?.is_some();
    let directory = door.directory()?;
    let option = directory.option(arguments.has("data-dir"));
    let errors = &mut context.errors;
    writeln!(errors, "Saved in {}.", directory.config().display())?;
    if let Some(ApiKey::Variable(name)) = chosen.map(|chosen| &chosen.key) {
        writeln!(errors, "The server will read {name} from its environment.")?;
    }
    match is_running {
        true => context.note(format_args!("A server is running: {applies}.")),
        false => context.note(format_args!("Start the server: hearth serve{option}")),
    }
}

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
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::first_run;
use super::password;
use super::prompter::Prompter;
use super::running_server::RunningServer;
use base::clock::Clock;
use base::secret::Secret;
use config::Settings;
use model::{ApiKey, ModelSetup};

pub const COMMAND: Command = Command::new(
    "\
init: Set up a model, who may connect and a password, step by step
Asks in a terminal for whatever no option sets. Without a terminal nothing is asked: missing
values take their defaults, or cause an error. The model is tested before anything is written.
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

/// Who may connect directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    LocalNetwork,
    ThisMachine,
}

/// The first user's password.
enum AdminPassword {
    Given(Secret),
    Generated(Secret),
    /// There are users already.
    Kept,
}

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
    let is_new = !directory.config().exists();
    if !is_new {
        // Reports an invalid configuration before anything is asked.
        directory.settings()?;
    }
    let mut prompter = Prompter::new(context);
    prompter.say(&format!(
        "This sets up Hearth in {}. Press Enter for the default in brackets.\n",
        directory.path().display()
    ))?;
    let chosen = model::choose(arguments, &mut prompter)?;
    let reach = reach(arguments, &mut prompter, is_new)?;
    let relay = relay(arguments, &mut prompter)?;
    let password = first_password(arguments, &directory, context)?;

    let given = match &password {
        AdminPassword::Given(secret) | AdminPassword::Generated(secret) => Some(secret.clone()),
        AdminPassword::Kept => None,
    };
    first_run::prepare(&directory, &Clock::system(), given, &mut |_| {
        show(&password, context)
    })?;
    let settings = directory.settings()?;
    model::write(&settings, &chosen)?;
    write_channels(&settings, reach, relay.as_ref())?;
    report(&directory, &chosen, arguments, context)
}

/// Shows a generated password. It is the only output, for scripts.
fn show(password: &AdminPassword, context: &mut CliContext) -> io::Result<()> {
    let AdminPassword::Generated(secret) = password else {
        return Ok(());
    };
    let admin = first_run::ADMIN;
    writeln!(context.errors, "The password of {admin}, shown only once:")?;
    context.errors.flush()?;
    writeln!(context.output, "{}", secret.expose())?;
    context.output.flush()
}

fn reach(
    arguments: &Arguments,
    prompter: &mut Prompter<'_, '_>,
    is_new: bool,
) -> Result<Option<Reach>, CliError> {
    if arguments.has("lan") {
        return Ok(Some(Reach::LocalNetwork));
    }
    if arguments.has("local-only") {
        return Ok(Some(Reach::ThisMachine));
    }
    let question = "Who may connect: the local network (lan), or only this machine (local)?";
    let answer = prompter.choose(question, &["lan", "local"], "lan")?;
    Ok(match answer.as_deref() {
        Some("local") => Some(Reach::ThisMachine),
        Some(_) => Some(Reach::LocalNetwork),
        // Without an answer an existing file keeps its channels.
        None => is_new.then_some(Reach::LocalNetwork),
    })
}

/// A relay and its token.
struct RelaySetup {
    url: String,
    token: Secret,
}

fn relay(
    arguments: &Arguments,
    prompter: &mut Prompter<'_, '_>,
) -> Result<Option<RelaySetup>, CliError> {
    const NONE: &str = "none";
    let url = match arguments.text("relay")? {
        Some(url) => Some(url.to_owned()),
        None => {
            let question = "Connect via a relay, to be reachable from anywhere (wss://...)?";
            prompter.ask(question, NONE)?
        }
    };
    let Some(url) = url.filter(|url| url != NONE) else {
        return Ok(None);
    };
    if !url.starts_with("wss://") && !url.starts_with("ws://") {
        let message = format!("--relay must be a URL with wss:// or ws://, not {url:?}");
        return Err(arguments.usage(message));
    }
    let token = match prompter.variable(RELAY_TOKEN) {
        Some(token) => Some(Secret::new(token)),
        None => prompter.ask_secret("The relay's AUTH_TOKEN:")?,
    };
    match token.filter(|token| !token.is_empty()) {
        Some(token) => Ok(Some(RelaySetup { url, token })),
        None => Err(CliError::failed(format!(
            "the relay's token is missing: set {RELAY_TOKEN} for this command"
        ))),
    }
}

/// The password of the first user, if there is no user yet.
fn first_password(
    arguments: &Arguments,
    directory: &DataDirectory,
    context: &mut CliContext,
) -> Result<AdminPassword, CliError> {
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
        return Ok(AdminPassword::Kept);
    }
    if arguments.has("generate") {
        return Ok(AdminPassword::Generated(Secret::random_password()));
    }
    let asks = context.input_is_terminal && !is_given;
    if !is_given && let Some(password) = context.variable("HEARTH_ADMIN_PASSWORD") {
        let password = Secret::new(password);
        password::check(&password)?;
        return Ok(AdminPassword::Given(password));
    }
    if !is_given && !asks {
        return Ok(AdminPassword::Generated(Secret::random_password()));
    }
    let prompt = format!("A password for {} [generate one]: ", first_run::ADMIN);
    let typed = password::read_secret(context, &prompt, asks)?;
    if asks && typed.is_empty() {
        return Ok(AdminPassword::Generated(Secret::random_password()));
    }
    password::check(&typed)?;
    if asks && password::read_secret(context, "Repeat: ", true)? != typed {
        return Err(CliError::failed(
            "the passwords do not match; nothing was written",
        ));
    }
    Ok(AdminPassword::Given(typed))
}

/// Writes the chosen channels to the existing list.
fn write_channels(
    settings: &Settings,
    reach: Option<Reach>,
    relay: Option<&RelaySetup>,
) -> CliResult {
    if reach.is_none() && relay.is_none() {
        return Ok(());
    }
    let mut channels = settings.get("channels", true)?;
    let Some(list) = channels.as_array_mut() else {
        return Err(CliError::failed(format!(
            "\"channels\" in {} is an object; `hearth init` changes only lists: edit it by hand",
            settings.path().display()
        )));
    };
    let of_type = |channel: &Value, kind: &str| channel["type"] == kind;
    if let Some(reach) = reach {
        let tcp = list.iter_mut().find(|channel| of_type(channel, "tcp"));
        let tcp = tcp.and_then(Value::as_object_mut).ok_or_else(|| {
            CliError::failed(format!("{} has no tcp channel", settings.path().display()))
        })?;
        match reach {
            Reach::ThisMachine => {
                tcp.insert("bind".to_owned(), json!("127.0.0.1"));
            }
            Reach::LocalNetwork => {
                tcp.remove("bind");
            }
        }
    }
    if let Some(RelaySetup { url, token }) = relay {
        list.retain(|channel| !(of_type(channel, "websocket") && channel["url"] == *url));
        list.push(json!({
            "name": "relay",
            "type": "websocket",
            "url": url,
            "auth_token": token.expose(),
        }));
    }
    settings.set("channels", &channels.to_string())?;
    Ok(())
}

/// Reports what was written and what to do next.
fn report(
    directory: &DataDirectory,
    chosen: &ModelSetup,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    let option = directory.option(arguments.has("data-dir"));
    let errors = &mut context.errors;
    writeln!(errors, "Saved in {}.", directory.config().display())?;
    if let ApiKey::Variable(name) = &chosen.key {
        writeln!(errors, "The server will read {name} from its environment.")?;
    }
    match RunningServer::find(directory) {
        Some(_) => {
            let reloaded = RunningServer::reload_if_running(directory);
            writeln!(errors, "A server is running: {reloaded}.")?;
            writeln!(errors, "Restart it to apply changed channels.")?;
        }
        None => writeln!(errors, "Start the server: hearth serve{option}")?,
    }
    Ok(())
}

//! `hearth init`: a short guided set-up. Every answer is also an option, and
//! nothing is asked where standard input is no terminal.
//!
//! All answers are gathered and the model is tried before anything is written.

mod dialogue;
mod model;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use super::arguments::{Arguments, DATA_DIR, flag, option};
use super::command::Command;
use super::context::{Context, Failure, Outcome};
use super::data_directory::DataDirectory;
use super::first_run;
use super::password;
use super::running_server::RunningServer;
use base::clock::Clock;
use base::secret::Secret;
use config::Settings;
use dialogue::Dialogue;
use model::{Chosen, Key};

pub const COMMAND: Command = Command::new(
    "init",
    "Set up a model, who may connect and a password, step by step",
)
.details(
    "\
Asks in a terminal for whatever no option sets. Without a terminal nothing is asked: missing
values take their defaults, or cause an error. The model is tested before anything is written.
`hearth serve` also works without this, and starts with the offline assistant.",
)
.options(&[
    option(
        "provider",
        "PROVIDER",
        "The model provider (default: offline)",
    ),
    option("model", "MODEL", "The model's name at the provider"),
    option(
        "base-url",
        "URL",
        "The provider's address, if not the usual one",
    ),
    option(
        "api-key-env",
        "NAME",
        "The environment variable that holds the API key,\nhere and where the server runs",
    ),
    flag(
        "api-key-stdin",
        "Read the API key as one line of standard input",
    ),
    flag(
        "lan",
        "Devices on the local network may connect (the default)",
    ),
    flag("local-only", "Only this machine may connect"),
    option(
        "relay",
        "URL",
        "Also link to a relay; its token is taken from\nHEARTH_RELAY_TOKEN",
    ),
    flag(
        "admin-password-stdin",
        "Read the password of admin as one line of standard\ninput, after the API key",
    ),
    flag(
        "generate",
        "Generate the password of admin and print it once",
    ),
    flag("no-test", "Do not test whether the provider answers"),
    DATA_DIR,
])
.run(run);

/// Where the relay's token is taken from.
const RELAY_TOKEN: &str = "HEARTH_RELAY_TOKEN";

/// Who may connect directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Devices in the house.
    House,
    /// This machine alone.
    Machine,
}

/// The first user's password.
enum Password {
    Given(Secret),
    Generated(Secret),
    /// There are users already.
    Kept,
}

/// `hearth init`
fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
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
        // What is wrong with it is said before anything is asked.
        super::config::load(&directory)?;
    }
    let mut dialogue = Dialogue::new(context);
    dialogue.say(&format!(
        "This sets Hearth up in {}. Enter takes what stands in brackets.\n",
        directory.path().display()
    ))?;
    let chosen = model::choose(arguments, &mut dialogue)?;
    let reach = reach(arguments, &mut dialogue, is_new)?;
    let relay = relay(arguments, &mut dialogue)?;
    let password = first_password(arguments, &directory, context)?;

    let given = match &password {
        Password::Given(secret) | Password::Generated(secret) => Some(secret.clone()),
        Password::Kept => None,
    };
    first_run::prepare(&directory, &Clock::system(), given)?;
    let settings = super::config::load(&directory)?;
    model::write(&settings, &chosen)?;
    write_channels(&settings, reach, relay.as_ref())?;
    tell(&directory, &chosen, &password, arguments, context)
}

fn reach(
    arguments: &Arguments,
    dialogue: &mut Dialogue<'_, '_>,
    is_new: bool,
) -> Result<Option<Reach>, Failure> {
    if arguments.has("lan") {
        return Ok(Some(Reach::House));
    }
    if arguments.has("local-only") {
        return Ok(Some(Reach::Machine));
    }
    let question = "Who may connect: the house (lan), or this machine alone (local)?";
    let answer = dialogue.choose(question, &["lan", "local"], "lan")?;
    Ok(match answer.as_deref() {
        Some("local") => Some(Reach::Machine),
        Some(_) => Some(Reach::House),
        // Somebody else's file keeps its channels.
        None => is_new.then_some(Reach::House),
    })
}

/// A relay and the token that admits this machine to it.
struct Relay {
    url: String,
    token: Secret,
}

fn relay(arguments: &Arguments, dialogue: &mut Dialogue<'_, '_>) -> Result<Option<Relay>, Failure> {
    const NONE: &str = "none";
    let url = match arguments.text("relay")? {
        Some(url) => Some(url.to_owned()),
        None => {
            let question = "A relay through which to be reached from outside (wss://...)?";
            dialogue.ask(question, NONE)?
        }
    };
    let Some(url) = url.filter(|url| url != NONE) else {
        return Ok(None);
    };
    if !url.starts_with("wss://") && !url.starts_with("ws://") {
        let message = format!("--relay must be a URL with wss:// or ws://, not {url:?}");
        return Err(arguments.usage(message));
    }
    let token = match dialogue.variable(RELAY_TOKEN) {
        Some(token) => Some(Secret::new(token)),
        None => dialogue.ask_secret("The relay's AUTH_TOKEN:")?,
    };
    match token.filter(|token| !token.is_empty()) {
        Some(token) => Ok(Some(Relay { url, token })),
        None => Err(Failure::failed(format!(
            "a relay needs its token: put it into {RELAY_TOKEN} for this command"
        ))),
    }
}

/// The password of the first user, where there is none yet.
fn first_password(
    arguments: &Arguments,
    directory: &DataDirectory,
    context: &mut Context,
) -> Result<Password, Failure> {
    let has_users = directory.database().exists()
        && !directory.open_store(&Clock::system())?.users()?.is_empty();
    let is_given = arguments.has("admin-password-stdin");
    if has_users {
        if is_given || arguments.has("generate") {
            return Err(Failure::failed(format!(
                "{} has users already; `hearth user passwd {}` sets a password",
                directory.path().display(),
                first_run::ADMIN
            )));
        }
        return Ok(Password::Kept);
    }
    if arguments.has("generate") {
        return Ok(Password::Generated(Secret::random_password()));
    }
    let asks = context.input_is_terminal && !is_given;
    if !is_given && let Some(password) = context.variable("HEARTH_ADMIN_PASSWORD") {
        let password = Secret::new(password);
        password::check(&password)?;
        return Ok(Password::Given(password));
    }
    if !is_given && !asks {
        return Ok(Password::Generated(Secret::random_password()));
    }
    let prompt = format!("A password for {} [make one]: ", first_run::ADMIN);
    let typed = password::read_secret(context, &prompt, asks)?;
    if asks && typed.is_empty() {
        return Ok(Password::Generated(Secret::random_password()));
    }
    password::check(&typed)?;
    if asks && password::read_secret(context, "Once more: ", true)? != typed {
        return Err(Failure::failed(
            "the two passwords differ; nothing was written",
        ));
    }
    Ok(Password::Given(typed))
}

/// Writes the channels that were asked for into the list that is there.
fn write_channels(settings: &Settings, reach: Option<Reach>, relay: Option<&Relay>) -> Outcome {
    if reach.is_none() && relay.is_none() {
        return Ok(());
    }
    let mut channels = settings.get("channels", true)?;
    let Some(list) = channels.as_array_mut() else {
        return Err(Failure::failed(format!(
            "\"channels\" in {} is an object; `hearth init` changes lists alone: add to it by hand",
            settings.path().display()
        )));
    };
    let of_type = |channel: &Value, kind: &str| channel["type"] == kind;
    if let Some(reach) = reach {
        let tcp = list.iter_mut().find(|channel| of_type(channel, "tcp"));
        let tcp = tcp.and_then(Value::as_object_mut).ok_or_else(|| {
            Failure::failed(format!("{} has no tcp channel", settings.path().display()))
        })?;
        match reach {
            Reach::Machine => {
                tcp.insert("bind".to_owned(), json!("127.0.0.1"));
            }
            Reach::House => {
                tcp.remove("bind");
            }
        }
    }
    if let Some(Relay { url, token }) = relay {
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

/// What was made, and how to go on. A generated password stands alone on the
/// output, for scripts.
fn tell(
    directory: &DataDirectory,
    chosen: &Chosen,
    password: &Password,
    arguments: &Arguments,
    context: &mut Context,
) -> Outcome {
    let option = match arguments.has("data-dir") {
        true => format!(" --data-dir {}", directory.path().display()),
        false => String::new(),
    };
    let errors = &mut context.errors;
    writeln!(errors, "Wrote {}.", directory.config().display())?;
    if let Key::Variable(name) = &chosen.key {
        writeln!(errors, "The server reads {name} from its environment.")?;
    }
    match RunningServer::find(directory) {
        Some(server) => {
            let told = RunningServer::notify(directory);
            writeln!(errors, "Process {} runs here: {told}.", server.process())?;
            writeln!(
                errors,
                "Changed channels need `hearth serve` to be started anew."
            )?;
        }
        None => writeln!(errors, "Start it: hearth serve{option}")?,
    }
    if let Password::Generated(secret) = password {
        writeln!(
            errors,
            "The password of {}, shown only now:",
            first_run::ADMIN
        )?;
        writeln!(context.output, "{}", secret.expose())?;
    }
    Ok(())
}

//! `hearth webhook add`.

use serde_json::{Map, Value, json};

use super::sample::SampleRequest;
use super::senders::Sender;
use super::{base_url, test_of};
use crate::cli::arguments::Arguments;
use crate::cli::config::report;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::door::Door;
use crate::cli::password;
use crate::cli::running_server::reachable_here;
use crate::cli::serve::reachable;
use crate::cli::token::names;
use crate::cli::user::existing;
use base::secret::Secret;
use base::url::MASK;

/// The audience of everybody with the role user or admin.
const HOUSEHOLD: &str = "household";

/// `hearth webhook add NAME --url URL`
pub fn add(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let Some(url) = arguments.text("url")? else {
        return Err(arguments.usage("--url is missing: it is where the replies are posted"));
    };
    let path = match arguments.text("path")? {
        Some(path) => path.to_owned(),
        None if is_plain(name) => format!("/webhook/{name}"),
        None => {
            return Err(arguments.usage(format!(
                "{name:?} cannot be used in a path; give one with --path"
            )));
        }
    };
    let file = door.directory()?.config();
    // Said before anything is asked.
    if test_of(door, name, None).is_ok() {
        return Err(CliError::failed(format!(
            "account {name:?} exists already; change it in {}, or remove it first",
            file.display()
        )));
    }
    let sender = arguments
        .text("from")?
        .map(Sender::named)
        .transpose()
        .map_err(|problem| arguments.usage(problem))?;
    let gives_secret = sender.as_ref().is_some_and(Sender::makes_the_secret);
    if gives_secret && !arguments.has("secret-stdin") {
        return Err(arguments.usage(
            "this system makes the secret: make the endpoint there first, and give its secret \
             with --secret-stdin",
        ));
    }
    let narrowing = narrowing(door, arguments, context)?;
    let secret = secret_for(arguments, context)?;
    let mut account = sender.as_ref().map(Sender::settings).unwrap_or_default();
    account.extend([
        ("incoming_path".to_owned(), json!(path)),
        ("outgoing_url".to_owned(), json!(url)),
    ]);
    for (key, value) in [
        ("secret", secret.as_ref().map(Secret::expose)),
        ("model", arguments.text("model")?),
        ("permission_mode", arguments.text("permission-mode")?),
    ] {
        if let Some(value) = value {
            account.insert(key.to_owned(), json!(value));
        }
    }
    if let Some(formats) = arguments.text("accept")? {
        account.insert("accept".to_owned(), json!(names(formats)));
    }
    account.extend(narrowing);
    let request = json!({ "type": "add_webhook_account", "name": name, "account": account });
    let added = door.ask(&request)?;
    let done = format!("Added the webhook account {name}");
    report(door, &done, &added, arguments, context)?;
    let is_given = arguments.has("secret-stdin");
    if secret.is_some() {
        let shown = if is_given {
            "not shown"
        } else {
            "shown only once"
        };
        context.note(format_args!(
            "The secret is {shown}; it is saved in {}.\nTry the account, or follow a message, \
             with `hearth webhook test {name}`.\n",
            file.display()
        ))?;
    }
    let written = match sender.is_some() {
        // The other system may run on another machine.
        true => reachable,
        false => reachable_here,
    };
    let mut account = test_of(door, name, None)?;
    let base = base_url(door, &account, written)?;
    // One that was given is known; it should not get into a terminal or a log.
    let shown = secret
        .as_ref()
        .map(|secret| if is_given { MASK } else { secret.expose() });
    if let Some(sender) = &sender {
        let address = format!("{base}{path}");
        context.print(format_args!("{}\n", sender.steps(&address, url)))?;
        context.print(format_args!("URL     {address}"))?;
        if base.contains("//127.0.0.1:") || base.contains("//[::1]:") {
            context.note(
                "On another machine, use this machine's address in the network in the URL.",
            )?;
        }
        if let Some(shown) = shown {
            context.print(format_args!("Secret  {shown}"))?;
        }
        return Ok(());
    }
    account["body"] = json!({ "message": "Hello!" });
    let request = SampleRequest::of(&account, &base);
    context.print(format_args!("{}", request.curl(shown, None)))
}

/// What the messages of a new account reach, and who sees them: as the options say, or
/// the person at the terminal.
///
/// `audience` is always among it: an account without it and `tools` is taken for one
/// of an older version.
fn narrowing(
    door: &mut Door,
    arguments: &Arguments,
    context: &mut CliContext,
) -> Result<Map<String, Value>, CliError> {
    let tools = match arguments.text("tools")? {
        Some(tools) => tools.to_owned(),
        None => {
            context.say(
                "Its messages come from outside. Which tools may they use? Names with commas \
                 between them, or * for all.\nWithout an answer: all but those of the household \
                 (memories, search, schedules, files).",
            )?;
            context.ask("Tools:", "")?.unwrap_or_default()
        }
    };
    let audience = match arguments.text("audience")? {
        Some(audience) => Some(audience.to_owned()),
        None => context.ask(
            "Who sees its conversations (household, or names)?",
            HOUSEHOLD,
        )?,
    };
    let audience = audience.as_deref().unwrap_or(HOUSEHOLD);
    let mut narrowing = Map::new();
    if !tools.trim().is_empty() {
        narrowing.insert("tools".to_owned(), json!(names(&tools)));
    }
    let audience = match audience {
        HOUSEHOLD => json!(HOUSEHOLD),
        list => {
            if names(list).is_empty() {
                return Err(arguments.usage("--audience names nobody: who sees its conversations?"));
            }
            let users = door.ask(&json!({ "type": "list_users" }))?;
            // Before the first start there are none.
            if users["users"].as_array().is_some_and(|all| !all.is_empty()) {
                for name in names(list) {
                    existing(door, name)?;
                }
            }
            json!(names(list))
        }
    };
    narrowing.insert("audience".to_owned(), audience);
    if arguments.has("trusted") {
        narrowing.insert("trusted".to_owned(), json!(true));
    }
    Ok(narrowing)
}

/// The secret of a new account, if it gets one.
fn secret_for(arguments: &Arguments, context: &mut CliContext) -> Result<Option<Secret>, CliError> {
    arguments.exclude("secret-stdin", "no-secret")?;
    if arguments.has("secret-stdin") {
        return password::read_secret(context, "Secret: ").map(Some);
    }
    Ok((!arguments.has("no-secret")).then(Secret::random_webhook))
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.bytes().all(plain)
}

//! `hearth account`: what people do with their own account, through the server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arguments::Arguments;
use super::chat::access::ServerAccess;
use super::chat::connection::ChatConnection;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::export::{Parts, UNPAUSED, to_file, unwritten, write_all};
use super::password;
use super::progress::count;
use super::prompter::confirm;
use super::table::{self, truncated};
use base::secret::Secret;
use serde_json::json;

/// The options of a member of the group: how to sign in, and then its own.
macro_rules! member {
    ($text:literal) => {
        Command::new(concat!(
            $text,
            "\n--user NAME          Whose account; the password is asked for\n",
            "--token TOKEN        Sign in with this token; better given as HEARTH_TOKEN\n",
            "--url URL            The server: ws://HOST:PORT/ws, or wss:// (default: on this machine)\n",
            "--relay-token TOKEN  A relay's AUTH_TOKEN; better given as HEARTH_RELAY_TOKEN\n",
            "--ca-file\n",
            "--data-dir"
        ))
    };
}

pub const COMMAND: Command = Command::new(
    "\
account: Look after your own account
Needs a server that runs, and --user NAME or a token in HEARTH_TOKEN.",
)
.members(&[
    member!("passwd: Change your password and end your other sessions").run(passwd),
    member!("sessions: List your sessions and tokens\n--json").run(sessions),
    member!("revoke ID: End one of your sessions, or revoke a token of yours").run(revoke),
    member!("sign-out: End all your sessions\n--tokens  Revoke your tokens, too").run(sign_out),
    member!("memories: List what is remembered about you\n--json").run(memories),
    member!("forget ID: Remove a memory of yours\n`hearth account memories` shows the ID.")
        .run(forget),
    member!(
        "\
export: Write what is yours to a file that `hearth import` reads
--output FILE        Write to this file (default: standard output)
--force              Replace FILE if it exists
--shared             Also write what others share with you"
    )
    .run(export),
    member!("delete: Delete your account with everything that is yours\n--yes").run(delete),
]);

/// Time limit of an answer, in which a password may be hashed.
const ANSWER: Duration = Duration::from_secs(30);

/// A signed-in connection.
struct Account {
    access: ServerAccess,
    connection: ChatConnection,
    user: String,
}

impl Account {
    fn open(arguments: &Arguments, context: &mut CliContext) -> Result<Account, CliError> {
        let is_named = arguments.has("user") || arguments.has("token");
        // With a data directory alone, whoever may write to it would be an admin.
        let is_local = arguments.has("data-dir") && !arguments.has("url");
        if !is_named && (is_local || context.variable("HEARTH_TOKEN").is_none()) {
            return Err(
                arguments.usage("say whose account: --user NAME, or a token in HEARTH_TOKEN")
            );
        }
        let access = ServerAccess::gain(arguments, context)?;
        let mut connection = match ChatConnection::open(&access) {
            Ok(connection) => connection,
            Err(error) => {
                access.end();
                return Err(error);
            }
        };
        let signed_in = connection.ask(&access.credential.message(), Instant::now() + ANSWER);
        let user = match signed_in {
            Ok(answer) => answer["user"].as_str().unwrap_or_default().to_owned(),
            Err(error) => {
                access.end();
                return Err(CliError::failed(error));
            }
        };
        Ok(Account {
            access,
            connection,
            user,
        })
    }

    fn ask(&mut self, request: &Value) -> Result<Value, CliError> {
        let asked = self.connection.ask(request, Instant::now() + ANSWER);
        asked.map_err(CliError::failed)
    }

    fn end(self) {
        self.connection.close();
        self.access.end();
    }
}

/// Signs in, does something, and signs out.
fn with<T>(
    arguments: &Arguments,
    context: &mut CliContext,
    work: impl FnOnce(&mut Account, &mut CliContext) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut account = Account::open(arguments, context)?;
    let done = work(&mut account, context);
    account.end();
    done
}

/// The password that proves that it is the person: the one of the sign-in, if there was one.
fn present(account: &Account, context: &mut CliContext) -> Result<Secret, CliError> {
    match &account.access.password {
        Some(password) => Ok(password.clone()),
        None => password::read_secret(context, "Present password: ", context.input_is_terminal),
    }
}

/// `hearth account passwd`
fn passwd(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    with(arguments, context, |account, context| {
        let old = present(account, context)?;
        let new = password::new_password(context, &account.user, context.input_is_terminal)?;
        account.ask(&json!({
            "type": "change_password",
            "old_password": old.expose(),
            "new_password": new.expose(),
        }))?;
        context.note("Changed your password and ended your other sessions.")
    })
}

/// `hearth account sessions`
fn sessions(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let columns = ["id", "name", "role", "created", "expires"];
    list(
        arguments,
        context,
        &json!({ "type": "list_own_tokens" }),
        "tokens",
        &columns,
        |one| {
            let is_current = one["is_current"] == true;
            vec![
                text(&one["token_id"]),
                format!(
                    "{}{}",
                    text(&one["name"]),
                    if is_current { " (this one)" } else { "" }
                ),
                text(&one["role"]),
                text(&one["created_at"]),
                text(&one["expires_at"]),
            ]
        },
    )
}

/// `hearth account memories`
fn memories(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let request = json!({ "type": "list_memories", "own": true });
    let columns = ["id", "since", "what"];
    list(arguments, context, &request, "memories", &columns, |one| {
        let content = truncated(&text(&one["content"]), 100);
        vec![text(&one["id"]), text(&one["created_at"]), content]
    })
}

fn list(
    arguments: &Arguments,
    context: &mut CliContext,
    request: &Value,
    member: &str,
    columns: &[&str],
    row: impl Fn(&Value) -> Vec<String>,
) -> CliResult {
    let answer = with(arguments, context, |account, _| account.ask(request))?;
    if arguments.has("json") {
        return table::print_json(context, &answer[member]);
    }
    let rows: Vec<Vec<String>> = answer[member]
        .as_array()
        .into_iter()
        .flatten()
        .map(row)
        .collect();
    table::print(context, columns, &rows, "There is nothing.")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}

/// `hearth account revoke ID`
fn revoke(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id = arguments.required(0);
    let request = json!({ "type": "revoke_own_token", "token_id": id });
    with(arguments, context, |account, _| account.ask(&request))?;
    context.note(format_args!("Revoked {id}."))
}

/// `hearth account forget ID`
fn forget(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id = arguments.required(0);
    let request = json!({ "type": "delete_memory", "memory_id": id });
    with(arguments, context, |account, _| account.ask(&request))?;
    context.note(format_args!("Removed {id}."))
}

/// `hearth account sign-out`
fn sign_out(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let request = json!({ "type": "sign_out_everywhere", "tokens": arguments.has("tokens") });
    with(arguments, context, |account, _| account.ask(&request))?;
    context.note("All your sessions have ended.")
}

/// `hearth account delete`
fn delete(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    with(arguments, context, |account, context| {
        let password = present(account, context)?;
        let question = format!(
            "Everything that is yours is deleted for good, also what you shared.\n\
             Type your name, {}, to go on:",
            account.user
        );
        confirm(arguments, context, &question, &account.user)?;
        account.ask(&json!({ "type": "delete_account", "password": password.expose() }))?;
        context.note("Your account is deleted.")
    })
}

/// `hearth account export`
fn export(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let output = arguments.raw("output").filter(|path| *path != "-");
    let output = output.map(PathBuf::from);
    let with_shared = arguments.has("shared");
    let force = arguments.has("force");
    let written = with(arguments, context, |account, context| {
        let request = json!({ "type": "export", "shared": with_shared });
        let mut ask = |request: &Value| account.ask(request);
        let mut parts = Parts::new(request, UNPAUSED, &mut ask);
        let mut next = || parts.next();
        match &output {
            Some(path) => to_file(path, force, |writer| {
                write_all(writer, &mut next, |error| unwritten(path, &error))
            }),
            None => write_all(context.output, &mut next, CliError::from),
        }
    })?;
    match output {
        None => Ok(()),
        Some(path) => context.print(format_args!(
            "Exported {} in {} to {}.",
            count(written.messages, "message"),
            count(written.conversations, "conversation"),
            path.display()
        )),
    }
}

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
use super::row::{Shown, text};
use super::table::truncated;
use base::secret::Secret;
use serde_json::json;

pub const COMMAND: Command = Command::new(
    "\
account: Look after your own account
Needs a server that runs, and --user NAME or a token in HEARTH_TOKEN.",
)
.members(&[
    Command::new("passwd: Change your password and end your other sessions\n--SERVER").run(passwd),
    Command::new("sessions: List your sessions and tokens\n--json\n--SERVER").run(sessions),
    Command::new("revoke ID: End one of your sessions, or revoke a token of yours\n--SERVER")
        .run(revoke),
    Command::new("sign-out: End all your sessions\n--tokens  Revoke your tokens, too\n--SERVER")
        .run(sign_out),
    Command::new("memories: List what is remembered about you\n--json\n--SERVER").run(memories),
    Command::new(
        "forget ID: Remove a memory of yours\n`hearth account memories` shows the ID.\n--SERVER",
    )
    .run(forget),
    Command::new(
        "\
export: Write what is yours to a file that `hearth import` reads
--output FILE        Write to this file (default: standard output)
--force              Replace FILE if it exists
--shared             Also write what others share with you
--SERVER",
    )
    .run(export),
    Command::new("delete: Delete your account with everything that is yours\n--yes\n--SERVER")
        .run(delete),
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
    list(
        &json!({ "type": "list_own_tokens" }),
        Shown::List {
            member: "tokens",
            columns: &[
                ("id", |one| text(&one["token_id"])),
                ("name", |one| {
                    let is_current = one["is_current"] == true;
                    let mark = if is_current { " (this one)" } else { "" };
                    text(&one["name"]) + mark
                }),
                ("role", |one| text(&one["role"])),
                ("created", |one| text(&one["created_at"])),
                ("expires", |one| text(&one["expires_at"])),
            ],
            empty: "There is nothing.",
        },
        arguments,
        context,
    )
}

/// `hearth account memories`
fn memories(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    list(
        &json!({ "type": "list_memories", "own": true }),
        Shown::List {
            member: "memories",
            columns: &[
                ("id", |one| text(&one["id"])),
                ("since", |one| text(&one["created_at"])),
                ("what", |one| truncated(&text(&one["content"]), 100)),
            ],
            empty: "There is nothing.",
        },
        arguments,
        context,
    )
}

fn list(
    request: &Value,
    shown: Shown,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    let answer = with(arguments, context, |account, _| account.ask(request))?;
    shown.print(&answer, arguments, context)
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

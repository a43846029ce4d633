//! `hearth account`: what people do with their own account, through the server.

use super::arguments::Arguments;
use super::chat::connection::SignedIn;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::export::{Parts, UNPAUSED};
use super::password;
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
    Command::new(
        "\
rename DISPLAY-NAME: Change what people call you
You sign in with the same name as before. An empty DISPLAY-NAME restores that name.",
    )
    .own_row(
        |arguments| {
            Ok(json!({ "type": "set_display_name", "display_name": arguments.required(0) }))
        },
        Shown::Sentence(|named| format!("You are called {} now.", text(&named["display_name"]))),
    ),
    Command::new(
        "\
quiet [HOURS]: Show or set when your phones and browsers are quiet
HOURS are two times of day, such as 22:00-07:00; - goes back to what the household has set.",
    )
    .own_row(
        |arguments| {
            Ok(match arguments.operand(0) {
                None => json!({ "type": "get_quiet_hours" }),
                Some("-") => json!({ "type": "set_quiet_hours", "quiet_hours": null }),
                Some(hours) => json!({ "type": "set_quiet_hours", "quiet_hours": hours }),
            })
        },
        Shown::Line(|held| {
            let hours = held["quiet_hours"].as_str();
            hours.unwrap_or("There are no quiet hours.").to_owned()
        }),
    ),
    Command::new(
        "\
language LANGUAGE: Choose the language of what is written to you
The page, questions, notifications and reminders are in it. LANGUAGE is en, de, fr, es, it or nl;
an empty one follows your browser again.",
    )
    .own_row(
        |arguments| {
            let wanted = Some(arguments.required(0)).filter(|language| !language.is_empty());
            Ok(json!({ "type": "set_language", "language": wanted }))
        },
        Shown::Sentence(|chosen| {
            let language = chosen["language"].as_str();
            format!(
                "Your language is {} now.",
                language.unwrap_or("that of your browser")
            )
        }),
    ),
    Command::new("passwd: Change your password and end your other sessions\n--SERVER").run(passwd),
    Command::new("sessions: List your sessions and tokens").own_row(
        |_| Ok(json!({ "type": "list_own_tokens" })),
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
    ),
    Command::new("revoke ID: End one of your sessions, or revoke a token of yours").own_row(
        |arguments| Ok(json!({ "type": "revoke_own_token", "token_id": arguments.required(0) })),
        Shown::Sentence(|data| format!("Revoked {}.", text(&data["token_id"]))),
    ),
    Command::new("sign-out: End all your sessions\n--tokens  Revoke your tokens, too").own_row(
        |arguments| Ok(json!({ "type": "sign_out_everywhere", "tokens": arguments.has("tokens") })),
        Shown::Sentence(|_| "All your sessions have ended.".to_owned()),
    ),
    Command::new(
        "\
link ACCOUNT: Say that a sender of a webhook account, or of Telegram, is you
Prints a code. Send `/link CODE` from there within 10 minutes; what comes from there is answered
as yours from then on. ACCOUNT is a webhook account with a secret, or telegram.",
    )
    .own_row(
        |arguments| Ok(json!({ "type": "link_sender", "account": arguments.required(0) })),
        Shown::Result(
            |made| format!("/link {}", text(&made["code"])),
            |_| "Send this from there within 10 minutes. It works once.".to_owned(),
        ),
    ),
    Command::new("senders: List the senders that are you").own_row(
        |_| Ok(json!({ "type": "list_senders" })),
        Shown::List {
            member: "senders",
            columns: &[
                ("account", |one| text(&one["account"])),
                ("sender", |one| text(&one["sender"])),
                ("since", |one| text(&one["created_at"])),
            ],
            empty: "None is; `hearth account link ACCOUNT` links one.",
        },
    ),
    Command::new(
        "unlink ACCOUNT SENDER: Say that a sender is not you any more\n\
         `hearth account senders` shows both.",
    )
    .own_row(
        |arguments| {
            let (account, sender) = (arguments.required(0), arguments.required(1));
            Ok(json!({ "type": "unlink_sender", "account": account, "sender": sender }))
        },
        Shown::Sentence(|data| {
            let (account, sender) = (text(&data["account"]), text(&data["sender"]));
            format!("{sender} of {account} is a stranger now.")
        }),
    ),
    Command::new("memories: List what is remembered about you").own_row(
        |_| Ok(json!({ "type": "list_memories", "own": true })),
        Shown::List {
            member: "memories",
            columns: &[
                ("id", |one| text(&one["id"])),
                ("since", |one| text(&one["created_at"])),
                ("what", |one| truncated(&text(&one["content"]), 100)),
            ],
            empty: "There is nothing.",
        },
    ),
    Command::new("forget ID: Remove a memory of yours\n`hearth account memories` shows the ID.")
        .own_row(
            |arguments| Ok(json!({ "type": "delete_memory", "memory_id": arguments.required(0) })),
            Shown::Sentence(|data| format!("Removed {}.", text(&data["memory_id"]))),
        ),
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

/// The password that proves that it is the person: the one of the sign-in, if there was one.
fn present(account: &SignedIn, context: &mut CliContext) -> Result<Secret, CliError> {
    match &account.access.password {
        Some(password) => Ok(password.clone()),
        None => password::read_secret(context, "Present password: "),
    }
}

/// `hearth account passwd`
fn passwd(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let mut account = SignedIn::named(arguments, context)?;
    let old = present(&account, context)?;
    let new = password::new_password(context, &account.user)?;
    account.ask(&json!({
        "type": "change_password",
        "old_password": old.expose(),
        "new_password": new.expose(),
    }))?;
    context.note("Changed your password and ended your other sessions.")
}

/// `hearth account delete`
fn delete(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let mut account = SignedIn::named(arguments, context)?;
    let password = present(&account, context)?;
    let question = format!(
        "Everything that is yours is deleted for good, also what you shared.\n\
         Type your name, {}, to go on:",
        account.user
    );
    confirm(arguments, context, &question, &account.user)?;
    account.ask(&json!({ "type": "delete_account", "password": password.expose() }))?;
    context.note("Your account is deleted.")
}

/// `hearth account export`
fn export(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let mut account = SignedIn::named(arguments, context)?;
    let request = json!({ "type": "export", "shared": arguments.has("shared") });
    let parts = Parts {
        request,
        unpaused: UNPAUSED,
        ask: &mut |request| account.ask(request),
    };
    parts.write(arguments, context)
}

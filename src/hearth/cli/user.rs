//! `hearth user`: the people who may sign in.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::{Configuration, Door};
use super::password;
use super::prompter::confirm;
use super::row::{Shown, text, time};
use super::serve::reachable;
use super::table;
use crate::qr;
use crate::service::people::check_user_name;
use base::measure::count;
use base::people::{UserRole, folded};
use base::secret::Secret;

pub const COMMAND: Command = Command::new(
    "\
user: Manage the people who may sign in
Works whether or not the server runs.",
)
.members(&[
    Command::new(
        "\
add NAME: Add a user
Asks for the password in a terminal; otherwise reads it as a line of standard input.
--role ROLE  viewer (read-only), user (may chat; the default) or
             admin (may also configure, approve, manage tokens)
--display-name NAME  What people call them, in any script
--child      Limit what a child may do: writes people.NAME to the configuration
--program    A program: it has no password, and admins make its tokens
--password-stdin
--generate",
    )
    .ask(add),
    Command::new(
        "\
invite NAME: Add a user who chooses a password by a link
The link works once and for a day. It leads to the web page, at home or wherever the page can be
reached. In a terminal it is also shown as a QR code, for the camera of a phone.
--role ROLE  viewer, user (the default) or admin
--display-name NAME  What people call them, in any script
--child      Limit what a child may do: writes people.NAME to the configuration
--url URL    The address of the page (default: that of the server that runs)
--qr         Print the QR code also where the output is no terminal
--json",
    )
    .ask(|door, arguments, context| {
        let request = json!({
            "type": "invite_user",
            "name": arguments.required(0),
            "role": role(arguments)?,
            "display_name": arguments.text("display-name")?,
            "child": arguments.has("child"),
            "url": page(door, arguments)?,
        });
        show_link(&door.ask(&request)?, arguments, context)
    }),
    Command::new(
        "\
reset NAME: Make a link by which a user chooses a new password
The link works once and for a day. The password stays until then; using the link ends all sessions.
--url URL  The address of the page (default: that of the server that runs)
--qr       Print the QR code also where the output is no terminal
--json",
    )
    .ask(|door, arguments, context| {
        let (name, url) = (arguments.required(0), page(door, arguments)?);
        let request = json!({ "type": "reset_password", "name": name, "url": url });
        show_link(&door.ask(&request)?, arguments, context)
    }),
    Command::new("invitations: List the links that still work").row(
        |_| Ok(json!({ "type": "list_invitations" })),
        Shown::List {
            member: "invitations",
            columns: &[
                ("name", |one| text(&one["name"])),
                ("role", |one| text(&one["role"])),
                ("for", |one| {
                    if one["is_reset"] == true {
                        "a new password".to_owned()
                    } else {
                        "the first sign-in".to_owned()
                    }
                }),
                ("made by", |one| text(&one["created_by"])),
                ("works until", |one| time(&one["expires_at"])),
            ],
            empty: "No link is open; make one with `hearth user invite NAME`.",
        },
    ),
    Command::new(
        "\
revoke NAME: Revoke a user's link
A user who was invited and has not chosen a password yet is removed.",
    )
    .row(
        |arguments| Ok(json!({ "type": "revoke_invitation", "name": arguments.required(0) })),
        Shown::Sentence(|data| {
            if data["is_removed"] == true {
                format!("Revoked the invitation of {}.", text(&data["name"]))
            } else {
                format!(
                    "Revoked the link for a new password of {}.",
                    text(&data["name"])
                )
            }
        }),
    ),
    Command::new(
        "\
passwd NAME: Set a user's password and end their sessions
Asks for the password in a terminal; otherwise reads it as a line of standard input.
--password-stdin
--generate",
    )
    .ask_with(Configuration::Unneeded, passwd),
    Command::new(
        "\
role NAME ROLE: Change a user's role and end their sessions
ROLE is viewer (read-only), user (may chat) or admin (may also configure, approve, manage
tokens). Tokens with a higher role are lowered to it. The last admin cannot be demoted.",
    )
    .row(
        |arguments| {
            let (name, role) = (arguments.required(0), arguments.required(1));
            if UserRole::parse(role).is_none() {
                let wrong = format!("ROLE must be viewer, user or admin, not {role:?}");
                return Err(arguments.usage(wrong));
            }
            Ok(json!({ "type": "set_role", "name": name, "role": role }))
        },
        Shown::Sentence(|data| {
            let (name, role) = (text(&data["name"]), with_article(&data["role"]));
            match data["was"] == data["role"] {
                true => format!("{name} is already {role}."),
                false => format!(
                    "{name} is now {role}. Their sessions have ended, and no token has a higher \
                     role."
                ),
            }
        }),
    ),
    Command::new(
        "\
rename NAME DISPLAY-NAME: Change what people call a user
They still sign in with NAME. An empty DISPLAY-NAME restores NAME.",
    )
    .row(
        |arguments| {
            Ok(json!({
                "type": "set_display_name",
                "name": arguments.required(0),
                "display_name": arguments.required(1),
            }))
        },
        Shown::Sentence(|data| {
            let (name, called) = (text(&data["name"]), text(&data["display_name"]));
            format!("{name} is called {called} now.")
        }),
    ),
    Command::new("list: List the users and their limits").row(
        |_| Ok(json!({ "type": "list_users" })),
        Shown::List {
            member: "users",
            columns: &[
                ("name", |user| text(&user["name"])),
                ("called", |user| text(&user["display_name"])),
                ("role", |user| {
                    let role = text(&user["role"]);
                    match (&user["is_invited"], &user["is_program"]) {
                        (Value::Bool(true), _) => format!("{role}, invited"),
                        (_, Value::Bool(true)) => format!("{role}, a program"),
                        _ => role,
                    }
                }),
                ("created", |user| time(&user["created_at"])),
                ("limits", |user| limits(&user["limits"])),
            ],
            empty: "There are no users; add one with `hearth user add NAME --role admin`.",
        },
    ),
    Command::new(
        "\
remove NAME: Remove a user
First says what will be deleted and what stays, and asks: what nobody else sees is deleted, what
is shared stays.
--hand-over-to NAME  Give it all to another user instead; tokens end, and reminders are paused
--yes",
    )
    .ask(remove),
]);

/// `hearth user add NAME`
fn add(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    check_user_name(name)?;
    let role = role(arguments)?;
    // Said before the password is asked for.
    if let Some(taken) = find(door, name)? {
        return Err(CliError::failed(format!(
            "there is already a user {taken:?}"
        )));
    }
    door.release();
    let is_program = arguments.has("program");
    let password = match is_program {
        true => None,
        false => Some(password::of_new_user(arguments, context, name)?),
    };
    let added = door.ask(&json!({
        "type": "add_user",
        "name": name,
        "role": role,
        "display_name": arguments.text("display-name")?,
        "password": password.as_ref().map(Secret::expose),
        "child": arguments.has("child"),
        "program": is_program,
    }))?;
    context.note(format_args!(
        "Added user {name}, {}.",
        with_article(&added["role"])
    ))
}

/// `hearth user passwd NAME`
fn passwd(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = existing(door, arguments.required(0))?;
    door.release();
    let password = password::of_new_user(arguments, context, &name)?;
    let request = json!({ "type": "set_password", "name": name, "password": password.expose() });
    door.ask(&request)?;
    context.note(format_args!(
        "Changed the password of {name} and ended their sessions."
    ))
}

/// `hearth user remove NAME`
fn remove(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = existing(door, arguments.required(0))?;
    let heir = arguments.text("hand-over-to")?;
    let heir = heir.map(|heir| existing(door, heir)).transpose()?;
    if heir.as_ref() == Some(&name) {
        return Err(CliError::failed(format!(
            "{name} is removed, so somebody else must get what is theirs"
        )));
    }
    let counts = door.ask(&json!({ "type": "get_belongings", "name": name }))?;
    context.note(consequences(&name, &counts, heir.as_deref()))?;
    door.release();
    confirm(arguments, context, &format!("Remove {name}? [y/N]"), "y")?;
    let request = json!({ "type": "remove_user", "name": name, "hand_over_to": heir });
    let removed = door.ask(&request)?;
    if removed["had"] != counts {
        context.note(consequences(&name, &removed["had"], heir.as_deref()))?;
    }
    context.note(format_args!("Removed {name}."))
}

/// What happens to what belongs to a person who is removed.
fn consequences(name: &str, counts: &Value, heir: Option<&str>) -> String {
    let list = |kinds: &[(&str, &str)]| {
        let parts = kinds.iter().filter_map(|(member, what)| {
            let number = counts[member].as_u64().filter(|number| *number > 0)?;
            Some(count(number, what))
        });
        parts.collect::<Vec<String>>().join(", ")
    };
    let private = [
        ("private_conversations", "private conversation"),
        ("files", "file"),
        ("private_memories", "private memory"),
        ("schedules", "reminder"),
    ];
    let shared = [
        ("shared_conversations", "shared conversation"),
        ("shared_memories", "shared memory"),
    ];
    let tokens = [("tokens", "token"), ("calendars", "calendar")];
    if let Some(heir) = heir {
        let all = list(&[&private[..], &shared].concat());
        let mut text = match all.is_empty() {
            true => format!("{name} has nothing for {heir}."),
            false => format!("{heir} gets these: {all}. Reminders are paused."),
        };
        let ended = list(&tokens);
        if !ended.is_empty() {
            text.push_str(&format!(" These end: {ended}."));
        }
        return text;
    }
    let gone = list(&[&private[..], &tokens].concat());
    let kept = list(&shared);
    let mut text = if gone.is_empty() {
        format!("{name} has nothing that nobody else sees.")
    } else {
        format!("With {name}, these are deleted for good: {gone}.")
    };
    if counts["schedules"] != 0 {
        text.push_str(&format!(
            " Reminders and routines act as {name}, so they go even where others see them."
        ));
    }
    if !kept.is_empty() {
        text.push_str(&format!(" These stay, without an owner: {kept}."));
    }
    text
}

/// The limits of a person, on one line.
fn limits(limits: &Value) -> String {
    let mode = limits["permission_mode"].as_str().map(|mode| match mode {
        "allow" => "tools run unasked".to_owned(),
        "deny" => "no tools".to_owned(),
        _ => "asks for all tools".to_owned(),
    });
    let tools = limits["tools"].as_array();
    let permissions = limits["tool_permissions"].as_object();
    let permissions = permissions.filter(|permissions| !permissions.is_empty());
    let tokens = limits["monthly_tokens"].as_u64();
    let parts: Vec<String> = [
        mode,
        tools.map(|tools| count(tools.len() as u64, "tool")),
        permissions.map(|permissions| count(permissions.len() as u64, "permission")),
        tokens.map(|most| format!("{most} tokens a month")),
        limits["instructions"]
            .as_str()
            .map(|_| "instructions".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        "-".to_owned()
    } else {
        parts.join(", ")
    }
}

/// The page to which a link leads: that of the server that runs, or `--url`.
fn page(door: &mut Door, arguments: &Arguments) -> Result<String, CliError> {
    if let Some(url) = arguments.text("url")? {
        return Ok(url.to_owned());
    }
    let server = door.server()?.and_then(|server| {
        let address = reachable(*server.addresses.first()?);
        Some(format!("{}://{address}/", server.scheme()))
    });
    server.ok_or_else(|| {
        CliError::failed(
            "the server does not run, so the address of its page is not known: start it, or give \
             the address with --url",
        )
    })
}

fn show_link(made: &Value, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    if arguments.has("json") {
        return table::print_json(context, made);
    }
    let (link, name) = (text(&made["link"]), text(&made["name"]));
    context.print(&link)?;
    if arguments.has("qr") || context.output_is_terminal {
        write!(context.output, "\n{}\n", qr::code(&link)?)?;
    }
    let new = if made["is_reset"] == true { "new " } else { "" };
    context.note(format_args!(
        "With this link {name} chooses a {new}password and is signed in. It works once, until {}. \
         Whoever has it can use it: hand it to {name} alone.",
        time(&made["expires_at"]),
    ))
}

/// The name of a user as it is written, if there is one.
fn find(door: &mut Door, name: &str) -> Result<Option<String>, CliError> {
    let data = door.ask(&json!({ "type": "list_users" }))?;
    let names = data["users"].as_array().into_iter().flatten();
    let mut names = names.filter_map(|user| user["name"].as_str());
    Ok(names
        .find(|known| folded(known) == folded(name))
        .map(str::to_owned))
}

/// The same.
///
/// # Errors
///
/// There is none.
pub fn existing(door: &mut Door, name: &str) -> Result<String, CliError> {
    find(door, name)?.ok_or_else(|| {
        CliError::failed(format!(
            "there is no user {name:?}; `hearth user list` shows all users"
        ))
    })
}

/// The role in `--role`.
///
/// # Errors
///
/// A usage failure when it is not a role.
pub fn role(arguments: &Arguments) -> Result<Option<&str>, CliError> {
    arguments.choice("role", &["viewer", "user", "admin"])
}

fn with_article(role: &Value) -> String {
    match text(role).as_str() {
        "admin" => "an admin".to_owned(),
        role => format!("a {role}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::DataDirectoryUnderTest;
    use base::clock::Clock;
    use serde_json::Value;
    use store::Store;

    #[test]
    fn users_are_added_changed_and_removed() {
        let root = DataDirectoryUnderTest::default();
        let path = root.data_directory().database();
        Store::open(&path, Clock::system()).unwrap().close();
        root.check(
            r#"
                0 | user list                                    | There are no users
                0 | user add ada --role admin < correct horse    | Added user ada, an admin.
                0 | user add bob < correct horse                 | Added user bob, a user.
                1 | user add ADA < correct horse                 | there is already a user "ada"
                1 | user add eve < short                         | at least 8 characters
                1 | user add eve                                 | standard input ended
                0 | user passwd bob --password-stdin < another horse | Changed the password of bob
                1 | user passwd eve < another horse              | there is no user "eve"
                2 | user role bob king                           | ROLE must be viewer, user or admin, not "king"
                2 | user role bob                                | ROLE is missing
                1 | user role ada user                           | last admin
                1 | user role eve user                           | there is no user "eve"
                0 | user role bob user                           | bob is already a user.
                0 | user role bob admin                          | bob is now an admin.
                0 | user role Bob viewer                         | bob is now a viewer.
                1 | user remove eve                              | there is no user "eve"
                1 | user remove ada --yes                        | last admin
                1 | user remove bob                              | without a terminal, --yes
                1 | user remove bob < y                          | without a terminal, --yes
                0 | user remove bob --yes                        | Removed bob.
            "#,
        );
        let listed: Value = serde_json::from_str(&root.run("user list --json", "").output).unwrap();
        assert_eq!(listed[0]["name"], "ada");
        assert_eq!(listed[0]["role"], "admin");
        assert!(listed[0].get("password_hash").is_none());
        let table = root.run("user list", "").output;
        assert!(
            table.starts_with(
                "NAME  CALLED  ROLE   CREATED            LIMITS\nada   ada     admin  "
            ) && table.ends_with("  -\n"),
            "{table}"
        );
    }

    #[test]
    fn a_generated_password_is_the_only_output() {
        let root = DataDirectoryUnderTest::default();
        let path = root.data_directory().database();
        Store::open(&path, Clock::system()).unwrap().close();
        let ran = root.run("user add ada --generate", "");
        assert_eq!(ran.code, 0, "{}", ran.errors);
        assert_eq!(ran.output.trim_end().len(), 23);
        let both = root.run("user add bob --generate --password-stdin", "x\n");
        assert_eq!(both.code, 2);
    }
}

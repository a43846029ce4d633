//! `hearth user`: works on the database directly. A running server notices by
//! SQLite's data version.

mod invitations;

use crate::cli::arguments::Arguments;
use crate::cli::command::Command;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::data_directory::DataDirectory;
use crate::cli::password;
use crate::cli::prompter::confirm;
use crate::cli::running_server::RunningServer;
use crate::cli::table::{self, ListView};
use crate::service::people::{self, check_user_name};
use crate::service::views;
use config::{Permission, Person, Settings};
use serde_json::json;
use store::{Belongings, Store, User, UserRole};

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
--child      Limit what a child may do: writes people.NAME to the configuration
--password-stdin
--generate
--data-dir",
    )
    .run(add),
    Command::new(
        "\
invite NAME: Add a user who chooses a password by a link
The link works once and for a day. It leads to the web page, at home or wherever the page can be
reached. In a terminal it is also shown as a QR code, for the camera of a phone.
--role ROLE  viewer, user (the default) or admin
--child      Limit what a child may do: writes people.NAME to the configuration
--url URL    The address of the page (default: that of the server that runs)
--qr         Print the QR code also where the output is no terminal
--json
--data-dir",
    )
    .run(invitations::invite),
    Command::new(
        "\
reset NAME: Make a link by which a user chooses a new password
The link works once and for a day. The password stays until then; using the link ends all sessions.
--url URL  The address of the page (default: that of the server that runs)
--qr       Print the QR code also where the output is no terminal
--json
--data-dir",
    )
    .run(invitations::reset),
    Command::new(
        "\
invitations: List the links that still work
--json
--data-dir",
    )
    .run(invitations::list),
    Command::new(
        "\
revoke NAME: Make the link of a user useless
Who was invited by it and has no password yet is removed.
--data-dir",
    )
    .run(invitations::revoke),
    Command::new(
        "\
passwd NAME: Set a user's password and end their sessions
Asks for the password in a terminal; otherwise reads it as a line of standard input.
--password-stdin
--generate
--data-dir",
    )
    .run(passwd),
    Command::new(
        "\
role NAME ROLE: Change a user's role and end their sessions
ROLE is viewer (read-only), user (may chat) or admin (may also configure, approve, manage
tokens). Tokens with a higher role are lowered to it. The last admin cannot be demoted.
--data-dir",
    )
    .run(set_role),
    Command::new("list: List the users and their limits\n--json\n--data-dir").run(list),
    Command::new(
        "\
remove NAME: Remove a user
Says first what happens to what belongs to the user, and asks: what nobody else sees is deleted,
what is shared stays.
--yes
--data-dir",
    )
    .run(remove),
]);

/// `hearth user add NAME`
fn add(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    check_user_name(name)?;
    let role = role(arguments)?.unwrap_or(UserRole::User);
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store()?;
    // Checked before the password is asked for.
    if let Some(taken) = store.user(name)? {
        return Err(CliError::failed(format!(
            "there is already a user {:?}",
            taken.name
        )));
    }
    let hash = password::new_hash(arguments, context, name)?;
    finish_removals(&directory, &store)?;
    if arguments.has("child") {
        narrow_child(&directory, &store, name)?;
    }
    store.add_user(name, role, &hash)?;
    store.close();
    context.note(format_args!("Added user {name}, {}.", with_article(role)))
}

/// `hearth user passwd NAME`
fn passwd(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let store = open(arguments, context)?;
    let user = find(&store, arguments.required(0))?;
    let hash = password::new_hash(arguments, context, &user.name)?;
    store.set_password(user.id, &hash, None)?;
    store.close();
    context.note(format_args!(
        "Changed the password of {} and ended their sessions.",
        user.name
    ))
}

/// `hearth user role NAME ROLE`
fn set_role(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let role = parse_role(arguments, "ROLE", arguments.required(1))?;
    let store = open(arguments, context)?;
    let user = find(&store, arguments.required(0))?;
    let (name, shown) = (&user.name, with_article(role));
    if user.role == role {
        writeln!(context.errors, "{name} is already {shown}.")?;
    } else {
        store.set_role(user.id, role)?;
        context.note(format_args!(
            "{name} is now {shown}. Their sessions have ended, and no token has a higher role."
        ))?;
    }
    store.close();
    Ok(())
}

/// `hearth user list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store()?;
    let users = store.users()?;
    store.close();
    let settings = settings(&directory)?;
    let config = settings.map(|settings| settings.current());
    let limits = |user: &User| config.as_ref()?.person(&user.name);
    let list = ListView {
        columns: &["name", "role", "created", "limits"],
        row: &|user: &User| {
            vec![
                user.name.clone(),
                match user.is_invited() {
                    true => format!("{}, invited", user.role.as_str()),
                    false => user.role.as_str().to_owned(),
                },
                table::time(user.created_at),
                limits(user).map_or_else(|| "-".to_owned(), summary),
            ]
        },
        json: &|user| json!(views::person(user, limits(user))),
        empty: "There are no users; add one with `hearth user add NAME --role admin`.",
    };
    list.print(&users, arguments, context)
}

/// The limits of a person, on one line.
fn summary(limits: &Person) -> String {
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let mode = limits.permission_mode.map(|mode| match mode {
        Permission::Ask => "asks for all tools".to_owned(),
        Permission::Allow => "tools run unasked".to_owned(),
        Permission::Deny => "no tools".to_owned(),
    });
    let tools = limits
        .tools
        .as_ref()
        .map(|tools| counted(tools.len(), "tool"));
    let permissions = Some(limits.tool_permissions.len()).filter(|&count| count > 0);
    let parts: Vec<String> = [
        mode,
        tools,
        permissions.map(|count| counted(count, "permission")),
        limits
            .monthly_tokens
            .map(|most| format!("{most} tokens a month")),
        limits
            .instructions
            .as_ref()
            .map(|_| "instructions".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    match parts.is_empty() {
        true => "-".to_owned(),
        false => parts.join(", "),
    }
}

/// `hearth user remove NAME`
fn remove(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store()?;
    let user = find(&store, arguments.required(0))?;
    writeln!(
        context.errors,
        "{}",
        consequences(&user.name, store.belongings(user.id)?)
    )?;
    let question = format!("Remove {}? [y/N]", user.name);
    confirm(arguments, context, &question, "y")?;
    store.remove_user(user.id)?;
    let finished = finish_removals(&directory, &store);
    store.close();
    context.note(format_args!("Removed {}.", user.name))?;
    finished
}

/// What happens to what belongs to a person who is removed.
fn consequences(name: &str, belongings: Belongings) -> String {
    let list = |counts: &[(u64, &str)]| {
        let parts: Vec<String> = counts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| match (number, what.strip_suffix('y')) {
                (1, _) => format!("1 {what}"),
                (number, Some(stem)) => format!("{number} {stem}ies"),
                (number, None) => format!("{number} {what}s"),
            })
            .collect();
        parts.join(", ")
    };
    let gone = list(&[
        (belongings.private_conversations, "private conversation"),
        (belongings.private_memories, "private memory"),
        (belongings.schedules, "reminder"),
        (belongings.tokens, "token"),
    ]);
    let kept = list(&[
        (belongings.shared_conversations, "shared conversation"),
        (belongings.shared_memories, "shared memory"),
    ]);
    let mut text = match gone.is_empty() {
        true => format!("{name} has nothing that nobody else sees."),
        false => format!("With {name}, these are deleted for good: {gone}."),
    };
    if belongings.schedules > 0 {
        text.push_str(&format!(
            " Reminders and routines act as {name}, so they go even where others see them."
        ));
    }
    if !kept.is_empty() {
        text.push_str(&format!(" These stay, without an owner: {kept}."));
    }
    text
}

/// The configuration, if there is one.
fn settings(directory: &DataDirectory) -> Result<Option<Settings>, CliError> {
    let exists = directory.config().exists();
    exists.then(|| directory.settings()).transpose()
}

/// Writes the limits of a child who is about to be added, so that the child is never
/// without them.
///
/// # Errors
///
/// The name is taken, or the configuration cannot be written.
pub fn narrow_child(directory: &DataDirectory, store: &Store, name: &str) -> CliResult {
    if let Some(taken) = store.user(name)? {
        let taken = format!("there is already a user {:?}", taken.name);
        return Err(CliError::failed(taken));
    }
    directory
        .settings()?
        .narrow_person(name, people::child_limits())?;
    RunningServer::reload_if_running(directory).end()
}

/// Removes from the configuration the names of people who were removed: whoever gets one
/// next is somebody else.
///
/// # Errors
///
/// The configuration cannot be written.
pub fn finish_removals(directory: &DataDirectory, store: &Store) -> CliResult {
    for name in store.removed_names()?.uncommitted() {
        if let Some(settings) = settings(directory)?
            && !settings.forget_person(&name)?.is_empty()
        {
            RunningServer::reload_if_running(directory).end()?;
        }
        store.name_forgotten(&name)?;
    }
    Ok(())
}

/// The user of this name.
///
/// # Errors
///
/// There is none.
pub fn find(store: &Store, name: &str) -> Result<User, CliError> {
    store.user(name)?.ok_or_else(|| {
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
pub fn role(arguments: &Arguments) -> Result<Option<UserRole>, CliError> {
    arguments
        .text("role")?
        .map(|word| parse_role(arguments, "--role", word))
        .transpose()
}

fn parse_role(arguments: &Arguments, what: &str, word: &str) -> Result<UserRole, CliError> {
    UserRole::parse(word).ok_or_else(|| {
        arguments.usage(format!(
            "{what} must be viewer, user or admin, not {word:?}"
        ))
    })
}

fn open(arguments: &Arguments, context: &CliContext) -> Result<Store, CliError> {
    DataDirectory::of(arguments, context)?.open_store()
}

fn with_article(role: UserRole) -> &'static str {
    match role {
        UserRole::Viewer => "a viewer",
        UserRole::User => "a user",
        UserRole::Admin => "an admin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;
    use base::clock::Clock;
    use serde_json::Value;

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
            table.starts_with("NAME  ROLE   CREATED            LIMITS\nada   admin  ")
                && table.ends_with("  -\n"),
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

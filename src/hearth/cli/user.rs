//! `hearth user`: works on the database directly. A running server notices by
//! SQLite's data version.

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::password;
use super::table::{self, ListView};
use crate::service::people::{self, check_user_name};
use store::{Store, User, UserRole};

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
--password-stdin
--generate
--data-dir",
    )
    .run(add),
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
    Command::new("list: List the users\n--json\n--data-dir").run(list),
    Command::new("remove NAME: Remove a user and all their tokens\n--data-dir").run(remove),
]);

/// `hearth user add NAME`
fn add(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    check_user_name(name)?;
    let role = role(arguments)?.unwrap_or(UserRole::User);
    let store = open(arguments, context)?;
    // Checked before the password is asked for.
    if let Some(taken) = store.user(name)? {
        return Err(CliError::failed(format!(
            "there is already a user {:?}",
            taken.name
        )));
    }
    let hash = password::new_hash(arguments, context, name)?;
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
    let store = open(arguments, context)?;
    let users = store.users()?;
    store.close();
    let list = ListView {
        columns: &["name", "role", "created"],
        row: &|user: &User| {
            vec![
                user.name.clone(),
                user.role.as_str().to_owned(),
                table::time(user.created_at),
            ]
        },
        json: &people::user,
        empty: "There are no users; add one with `hearth user add NAME --role admin`.",
    };
    list.print(&users, arguments, context)
}

/// `hearth user remove NAME`
fn remove(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let store = open(arguments, context)?;
    let user = find(&store, arguments.required(0))?;
    store.remove_user(user.id)?;
    store.close();
    context.note(format_args!("Removed {}.", user.name))
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
                1 | user remove ada                              | last admin
                0 | user remove bob                              | Removed bob.
            "#,
        );
        let listed: Value = serde_json::from_str(&root.run("user list --json", "").output).unwrap();
        assert_eq!(listed[0]["name"], "ada");
        assert_eq!(listed[0]["role"], "admin");
        assert!(listed[0].get("password_hash").is_none());
        let table = root.run("user list", "").output;
        assert!(
            table.starts_with("NAME  ROLE   CREATED\nada   admin  "),
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

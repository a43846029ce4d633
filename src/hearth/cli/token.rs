//! `hearth token`: API tokens, shown once and stored as fingerprints.

use std::time::Duration;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::{DataDirectory, open_store};
use super::first_run::ADMIN;
use super::table::{self, ListView};
use super::user;
use crate::service::people::{NAME_CHARACTERS, TokenRequest, new_token, token_scope};
use crate::service::views::{self, HOUSEHOLD};
use base::clock::Clock;
use base::ids::TokenId;
use serde_json::json;
use store::Token;

pub const COMMAND: Command = Command::new(
    "\
token: Create, list and revoke API tokens
With a token a program signs in as a user. Works whether or not the server runs.",
)
.members(&[
    Command::new(
        "\
create: Create a token and print it once
A token that is narrowed by --tools, --only or --speaks-for has at most the role user.
--name NAME       What the token is for (required)
--user NAME       The user it signs in as (default: admin)
--role ROLE       viewer, user or admin; at most the user's own role,
                  which is the default
--expires-days N  Expire after N days (default: never)
--tools NAMES     Only these tools, with commas between them
--only household  See and make only what is the household's
--speaks-for NAMES  Also ask in the name of these people, with commas between
                  them: for a program that several people use
--json
--data-dir",
    )
    .run(create),
    Command::new(
        "\
list: List the API tokens
--sessions  Also list the sessions of people who signed in
--json
--data-dir",
    )
    .run(list),
    Command::new(
        "\
revoke ID: Revoke a token and close its connections
`hearth token list` shows the ID.
--data-dir",
    )
    .run(revoke),
]);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// `hearth token create --name NAME`
fn create(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let Some(name) = arguments.text("name")? else {
        return Err(arguments.usage("--name is missing: it says what the token is for"));
    };
    if !(1..=NAME_CHARACTERS).contains(&name.chars().count()) || name.contains(char::is_control) {
        return Err(arguments.usage(format!(
            "--name must have 1 to {NAME_CHARACTERS} characters"
        )));
    }
    let days = arguments.number("expires-days", 1..=3650)?;
    let role = user::role(arguments)?;
    let tools = arguments.text("tools")?.map(names);
    let only = arguments.choice("only", &[HOUSEHOLD])?;
    let speaks_for = arguments.text("speaks-for")?.map(names).unwrap_or_default();

    let clock = Clock::system();
    let store = open_store(arguments, context)?;
    let owner = user::find(&store, arguments.text("user")?.unwrap_or(ADMIN))?;
    let expires_at = days.map(|days| {
        clock
            .now()
            .plus(DAY * u32::try_from(days).unwrap_or(u32::MAX))
    });
    let speaks_for = speaks_for
        .iter()
        .map(|name| Ok(user::find(&store, name)?.id))
        .collect::<Result<_, CliError>>()?;
    let request = TokenRequest {
        name: name.to_owned(),
        role,
        expires_at,
        scope: token_scope(tools, only)?,
        speaks_for,
    };
    let tools = request.scope.tools.clone();
    let (secret, new) = new_token(&owner, request)?;
    let token = store.add_token(new)?;
    store.close();
    let directory = DataDirectory::of(arguments, context)?;
    if let Ok(settings) = directory.settings() {
        let config = settings.current();
        for tool in tools.iter().flat_map(|tools| tools.iter()) {
            if let Some(problem) = config.unknown_tool(tool) {
                context.note(format_args!("--tools: {problem}"))?;
            }
        }
    }

    if arguments.has("json") {
        let mut shown = views::token(&token);
        shown.token = Some(secret.expose().to_owned());
        return table::print_json(context, &json!(shown));
    }
    writeln!(context.output, "{}", secret.expose())?;
    context.note(format_args!(
        "The token is shown only once. It signs in as {} with role {}{}, {}. Its ID is {}.",
        token.user,
        token.role.as_str(),
        match narrowing(&token) {
            Some(narrowing) => format!(" ({narrowing})"),
            None => String::new(),
        },
        match token.expires_at {
            Some(time) => format!("until {}", table::time(time)),
            None => "until it is revoked".to_owned(),
        },
        token.id
    ))
}

/// `hearth token list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let tokens = open_store(arguments, context)?.tokens(arguments.has("sessions"))?;
    let list = ListView {
        columns: &["id", "name", "user", "role", "created", "expires", "limits"],
        row: &|token: &Token| {
            let expires = token.expires_at.map(table::time);
            vec![
                token.id.to_string(),
                token.name.clone(),
                token.user.clone(),
                token.role.as_str().to_owned(),
                table::time(token.created_at),
                expires.unwrap_or_else(|| "never".to_owned()),
                narrowing(token).unwrap_or_else(|| "-".to_owned()),
            ]
        },
        json: &|token| json!(views::token(token)),
        empty: "There are no tokens; create one with `hearth token create --name NAME`.",
    };
    list.print(&tokens, arguments, context)
}

/// `hearth token revoke ID`
fn revoke(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id: TokenId = arguments.required(0).parse()?;
    open_store(arguments, context)?.revoke_token(id)?;
    context.note(format_args!("Revoked {id}."))
}

/// How a token is narrowed, on one line.
pub fn narrowing(token: &Token) -> Option<String> {
    let tools = token
        .scope
        .tools
        .as_ref()
        .map(|tools| match tools.is_empty() {
            true => "no tools".to_owned(),
            false => format!("tools {}", tools.join(",")),
        });
    let household = token
        .scope
        .household_only
        .then(|| "only household".to_owned());
    let speaks = token
        .speaks_for
        .as_ref()
        .map(|names| match names.is_empty() {
            true => "speaks for people who are removed".to_owned(),
            false => format!("speaks for {}", names.join(",")),
        });
    let parts: Vec<String> = [tools, household, speaks].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The names in a list with commas.
fn names(text: &str) -> Vec<String> {
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;
    use base::secret::fingerprint;
    use serde_json::Value;
    use store::{Store, UserRole};

    #[test]
    fn what_goes_with_a_person_and_the_tokens_that_spoke_for_them_is_said() {
        let root = DataDirectoryUnderTest::default();
        let path = root.data_directory().database();
        let store = Store::open(&path, Clock::system()).unwrap();
        store.add_user("admin", UserRole::Admin, "-").unwrap();
        let zoe = store.add_user("zoe", UserRole::User, "-").unwrap();
        root.run("token create --name bot --speaks-for zoe", "");
        let plan = store::NewSchedule {
            is_outside: false,
            prompt: "bins".to_owned(),
            owner: Some("zoe".to_owned()),
            owner_id: Some(zoe.id),
            conversation_id: None,
            audience: base::people::Audience::Household,
            channel: store::SCHEDULE_CHANNEL.to_owned(),
            account: None,
            timing: base::calendar::Timing {
                cron: None,
                next_at: Clock::system().now(),
                is_wait: false,
            },
        };
        store.add_schedule(&store::Viewer::server(), plan).unwrap();
        let asked = root.run("user remove zoe --yes", "").errors;
        let says = "1 reminder. Reminders and routines act as zoe, so they go even where others";
        assert!(asked.contains(says), "{asked}");
        let listed = root.run("token list", "").output;
        assert!(
            listed.contains("speaks for people who are removed"),
            "{listed}"
        );
        store.close();
    }

    #[test]
    fn a_token_is_valid_until_it_is_revoked() {
        let root = DataDirectoryUnderTest::default();
        let path = root.data_directory().database();
        let store = Store::open(&path, Clock::system()).unwrap();
        store.add_user("admin", UserRole::Admin, "-").unwrap();
        store.add_user("bob", UserRole::Viewer, "-").unwrap();

        let made = root.run(
            "token create --name phone --role user --expires-days 30",
            "",
        );
        assert_eq!(made.code, 0, "{}", made.errors);
        let secret = made.output.trim_end();
        assert!(!made.errors.contains(secret), "it is shown once");
        let identity = store.identity(&fingerprint(secret)).unwrap().unwrap();
        assert_eq!(
            (identity.user.as_str(), identity.role),
            ("admin", UserRole::User)
        );
        assert!(identity.expires_at.is_some());

        let listed = root.run("token list --json", "");
        assert!(!listed.output.contains(secret));
        let listed: Value = serde_json::from_str(&listed.output).unwrap();
        assert_eq!(listed[0]["name"], "phone");
        let id = listed[0]["id"].as_str().unwrap();
        assert_eq!(root.run(&format!("token revoke {id}"), "").code, 0);
        // Another open store, as a server that runs, finds out within a second.
        support::eventually("the revoked token is refused", || {
            let identity = store.identity(&fingerprint(secret)).unwrap();
            identity.is_none().then_some(())
        });
        let again = root.run(&format!("token revoke {id}"), "");
        assert_eq!(again.code, 1, "{}", again.errors);

        let more = root.run("token create --name x --user bob --role admin", "");
        assert_eq!(
            more.errors,
            "hearth: bob is viewer and cannot have a token that is admin\n"
        );
        std::fs::write(root.data_directory().config(), "{}").unwrap();
        let misspelt = root.run("token create --name x --tools recall,recal", "");
        assert_eq!(misspelt.code, 0, "{}", misspelt.errors);
        let warning = "--tools: there is no tool \"recal\" (did you mean \"recall\"?)\n";
        assert!(misspelt.errors.starts_with(warning), "{}", misspelt.errors);
        let own = root.run("token create --name x --user bob --json", "");
        let own: Value = serde_json::from_str(&own.output).unwrap();
        assert_eq!(own["role"], "viewer");
        assert!(own["token"].as_str().unwrap().starts_with("hearth_"));
        store.close();
    }
}

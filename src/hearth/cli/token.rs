//! `hearth token`: API tokens, shown once and stored as fingerprints.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::door::Door;
use super::first_run::ADMIN;
use super::row::{Shown, text, time};
use super::table;
use super::user::role;
use crate::service::views::HOUSEHOLD;

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
--json",
    )
    .ask(create),
    Command::new(
        "\
list: List the API tokens
--sessions  Also list the sessions of people who signed in",
    )
    .row(
        |arguments| {
            let sessions = arguments.has("sessions");
            Ok(json!({ "type": "list_tokens", "sessions": sessions }))
        },
        Shown::List {
            member: "tokens",
            columns: &[
                ("id", |token| text(&token["token_id"])),
                ("name", |token| text(&token["name"])),
                ("user", |token| text(&token["user"])),
                ("role", |token| text(&token["role"])),
                ("created", |token| time(&token["created_at"])),
                ("expires", |token| {
                    if token["expires_at"].is_null() {
                        "never".to_owned()
                    } else {
                        time(&token["expires_at"])
                    }
                }),
                ("limits", |token| {
                    narrowing(token).unwrap_or_else(|| "-".to_owned())
                }),
            ],
            empty: "There are no tokens; create one with `hearth token create --name NAME`.",
        },
    ),
    Command::new(
        "\
revoke ID: Revoke a token and close its connections
`hearth token list` shows the ID.",
    )
    .row(
        |arguments| Ok(json!({ "type": "revoke_token", "token_id": arguments.required(0) })),
        Shown::Sentence(|data| format!("Revoked {}.", text(&data["token_id"]))),
    ),
]);

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// `hearth token create --name NAME`
fn create(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let Some(name) = arguments.text("name")? else {
        return Err(arguments.usage("--name is missing: it says what the token is for"));
    };
    let days = arguments.number("expires-days", 1..=3650)?;
    let token = door.ask(&json!({
        "type": "create_token",
        "name": name,
        "user": arguments.text("user")?.unwrap_or(ADMIN),
        "role": role(arguments)?,
        "expires_in": days.map(|days| days * DAY_SECONDS),
        "tools": arguments.text("tools")?.map(names),
        "only": arguments.choice("only", &[HOUSEHOLD])?,
        "speaks_for": arguments.text("speaks-for")?.map(names),
    }))?;
    for warning in token["warnings"].as_array().into_iter().flatten() {
        context.note(format_args!("--tools: {}", text(warning)))?;
    }
    if arguments.has("json") {
        return table::print_json(context, &token);
    }
    context.print(text(&token["token"]))?;
    context.note(format_args!(
        "The token is shown only once. It signs in as {} with role {}{}, {}. Its ID is {}.",
        text(&token["user"]),
        text(&token["role"]),
        narrowing(&token).map_or_else(String::new, |narrowing| format!(" ({narrowing})")),
        if token["expires_at"].is_null() {
            "until it is revoked".to_owned()
        } else {
            format!("until {}", time(&token["expires_at"]))
        },
        text(&token["token_id"])
    ))
}

/// How a token is narrowed, on one line.
pub fn narrowing(token: &Value) -> Option<String> {
    let list = |value: &Value| {
        let names = value.as_array()?.iter().filter_map(Value::as_str);
        Some(names.collect::<Vec<_>>().join(","))
    };
    let tools = list(&token["tools"]).map(|tools| {
        if tools.is_empty() {
            "no tools".to_owned()
        } else {
            format!("tools {tools}")
        }
    });
    let only = token["only"].as_str().map(|only| format!("only {only}"));
    let speaks = list(&token["speaks_for"]).map(|names| {
        if names.is_empty() {
            "speaks for people who are removed".to_owned()
        } else {
            format!("speaks for {names}")
        }
    });
    let parts: Vec<String> = [tools, only, speaks].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The names in a list with commas.
pub fn names(text: &str) -> Vec<&str> {
    let names = text.split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;
    use base::clock::Clock;
    use base::secret::fingerprint;
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
            owner: Some("zoe".to_owned()),
            owner_id: Some(zoe.id),
            ..store::NewSchedule::new(
                "bins",
                Some(base::calendar::Timing::once(Clock::system().now())),
            )
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
        let id = listed[0]["token_id"].as_str().unwrap();
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

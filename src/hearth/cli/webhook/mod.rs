//! `hearth webhook`: the accounts through which other systems send messages.

mod add;
mod run_test;
mod sample;
mod senders;

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::config::{get_value, report};
use super::context::{CliContext, CliError, CliResult};
use super::door::{Configuration, Door};
use super::row::{Shown, name_people, text};
use add::add;
use config::DEFAULT_PORT;

pub const COMMAND: Command = Command::new(
    "\
webhook: Let other systems send messages and receive the replies
An account has a path to which a system posts its messages, and a URL to which the replies are
posted. `hearth config keys` explains its other settings.",
)
.members(&[
    Command::new(
        "\
add NAME: Add an account and print how to call it
Generates a secret, which is printed once, unless you give one. Every message must carry it;
every reply carries it and is signed with it (Standard Webhooks). A running server takes messages
at once.

Its messages come from outside. They reach memories, conversations, schedules and files only
if --tools names the tools for that. In a terminal you are asked.
--url URL               Where the replies are posted (required)
--from SYSTEM           The other system: takes messages in its form, and
                        prints what to enter there: alertmanager, forgejo, frigate, gitea,
                        github, gitlab, grafana, ios-shortcuts, n8n, node-red,
                        stripe, uptime-kuma
--path PATH             Where the messages are posted
                        (default: /webhook/NAME)
--accept FORMAT,...     How messages may be sent: json, form, text, get
                        (default: json)
--model MODEL           The model for this account's turns
--permission-mode MODE  ask, allow or deny: restricts what tools may do
--tools NAME,...        The only tools that its messages may use; '*' for all
                        (default: all but those of the household)
--audience NAME,...     Who sees its conversations (default: household)
--trusted               Its messages count as your own, not as text from
                        outside, after which tools ask again
--secret-stdin          Read the secret as one line of standard input
--no-secret             Accept messages from anyone who can connect",
    )
    .ask_with(Configuration::Alone, add),
    Command::new("list: List the accounts\n--json").ask_with(
        Configuration::Alone,
        |door, arguments, context| {
            let mut data = door.ask(&json!({ "type": "list_webhook_accounts" }))?;
            if !arguments.has("json") {
                // Beside a configuration alone, nobody is called anything.
                let _ = name_people(&mut data, door);
            }
            ACCOUNTS.print(&data, arguments, context)
        },
    ),
    Command::new(
        "\
test NAME: Post a message through an account and follow it to the callback
Posts to the running server as the other system would, shows the request for curl and each step,
and says what is wrong if the reply does not arrive. This calls the model and the receiver.
--message TEXT  The message to send
--body FILE     Post this file instead, or standard input (-): for an
                account with a `map`
--show-secret   Show the request with the secret, ready to be sent
--wait SECONDS  How long to wait for the reply (default: 60)",
    )
    .ask_with(Configuration::Alone, run_test::run),
    Command::new(
        "\
remove NAME: Remove an account
Its undelivered callbacks are dropped.",
    )
    .ask_with(Configuration::Alone, remove),
]);

const ACCOUNTS: Shown = Shown::List {
    member: "accounts",
    columns: &[
        ("name", |account| text(&account["name"])),
        ("path", |account| text(&account["incoming_path"])),
        ("replies to", |account| text(&account["outgoing_url"])),
        ("accepts", |account| {
            words(&account["accept"]).unwrap_or_default()
        }),
        ("secret", |account| flag(&account["secret_set"])),
        ("enabled", |account| flag(&account["enabled"])),
        ("tools", |account| {
            words(&account["tools"]).unwrap_or("not the household's".to_owned())
        }),
        ("seen by", |account| {
            words(&account["audience"]).unwrap_or_default()
        }),
        ("trusted", |account| flag(&account["trusted"])),
    ],
    empty: "There are no webhook accounts; add one with `hearth webhook add NAME --url URL`.",
};

fn flag(value: &Value) -> String {
    if *value == true { "yes" } else { "no" }.to_owned()
}

/// A text, or the texts of a list.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some(texts.join(", "))
        }
        _ => None,
    }
}

/// `hearth webhook remove NAME`
fn remove(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let removed = door.ask(&json!({ "type": "remove_webhook_account", "name": name }))?;
    let done = format!("Removed the webhook account {name}");
    report(door, &done, &removed, arguments, context)?;
    if removed["undelivered"] != 0 {
        context.note(format_args!(
            "Its undelivered callbacks are dropped: {}.",
            removed["undelivered"]
        ))?;
    }
    Ok(())
}

/// What a test of an account posts, and where.
fn test_of(door: &mut Door, name: &str, message: Option<&str>) -> Result<Value, CliError> {
    door.ask(&json!({ "type": "test_webhook_account", "name": name, "message": message }))
}

/// The base of an account's URL, `http://HOST:PORT`: from the running server, else from the
/// configuration. `written` says how the address of the server is written.
fn base_url(
    door: &mut Door,
    account: &Value,
    written: fn(SocketAddr) -> SocketAddr,
) -> Result<String, CliError> {
    if let Some(server) = door.server()? {
        let place = account["listener"]
            .as_u64()
            .and_then(|place| usize::try_from(place).ok());
        let address = place.and_then(|place| server.addresses.get(place));
        let address = address.ok_or_else(|| {
            CliError::failed(format!(
                "the server (process {}) does not listen there; restart it",
                server.process()
            ))
        })?;
        return Ok(format!("{}://{}", server.scheme(), written(*address)));
    }
    let scheme = match get_value(door, "tls.cert")?.is_null() {
        true => "http",
        false => "https",
    };
    let port = account["port"].as_u64().unwrap_or(DEFAULT_PORT.into());
    Ok(format!("{scheme}://127.0.0.1:{port}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;
    use base::testing::rows;

    fn file(root: &DataDirectoryUnderTest) -> Value {
        let text = fs::read_to_string(root.data_directory().config()).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn accounts_are_added_listed_and_removed_in_every_form_of_the_file() {
        let table = r#"
            {} | /channels/webhook/accounts/ci
            {"channels": [{"name": "lan", "type": "tcp"}]} | /channels/1/accounts/ci
            {"channels": [{"name": "hooks", "type": "webhook", "accounts": {}}, {"name": "lan", "type": "tcp"}]} | /channels/0/accounts/ci
            {"channels": {"hooks": {"type": "webhook", "accounts": {"other": {"incoming_path": "/o", "outgoing_url": "http://127.0.0.1:1/"}}}}} | /channels/hooks/accounts/ci
        "#;
        for [before, place] in rows(table) {
            let root = DataDirectoryUnderTest::default();
            fs::write(root.data_directory().config(), before).unwrap();
            let made = root.run("webhook add ci --url http://127.0.0.1:9/r --model m", "");
            assert_eq!(made.code, 0, "{before}: {}", made.errors);
            let account = file(&root).pointer(place).cloned().expect(place);
            let secret = account["secret"].as_str().unwrap();
            assert!(secret.starts_with("whsec_") && secret.len() > 40);
            assert!(made.output.contains(secret) && !made.errors.contains(secret));
            assert!(
                made.output
                    .starts_with("curl http://127.0.0.1:5000/webhook/ci ")
            );
            assert_eq!(account["model"], "m");

            let again = root.run("webhook add ci --url http://127.0.0.1:9/r", "");
            assert!(again.errors.contains("already"), "{}", again.errors);
            let listed = root.run("webhook list", "");
            assert!(listed.output.contains("/webhook/ci"), "{}", listed.output);
            assert!(!root.run("webhook list --json", "").output.contains(secret));
            for line in ["webhook list", "webhook list --json"] {
                let listed = root.run(line, "").output;
                assert!(listed.contains("http://127.0.0.1:9/***"), "{listed}");
            }

            assert_eq!(root.run("webhook remove ci", "").code, 0);
            assert_eq!(file(&root).pointer(place), None);
            let gone = root.run("webhook remove ci", "");
            assert!(gone.errors.contains("no webhook account \"ci\""));
        }
    }

    #[test]
    fn an_account_for_a_known_system_is_mapped_and_says_what_to_enter_there() {
        for system in senders::NAMES {
            let root = DataDirectoryUnderTest::default();
            fs::write(root.data_directory().config(), "{}").unwrap();
            let help = root.run("webhook add --help", "").output;
            assert!(help.contains(system), "{system}: {help}");
            let line = format!("webhook add x --url http://h/ --from {system} --secret-stdin");
            let made = root.run(&line, "a secret of the other system, or for it\n");
            assert_eq!(made.code, 0, "{system}: {}", made.errors);
            let account = &file(&root)["channels"]["webhook"]["accounts"]["x"];
            // Whoever writes the shortcut chooses the form.
            let is_mapped = account["map"]["message"].is_string();
            assert_eq!(is_mapped, system != &"ios-shortcuts", "{system}: {account}");
            assert_eq!(account["outgoing_url"], "http://h/");
            assert_eq!(account["incoming_path"], "/webhook/x");
            assert_eq!(account["audience"], "household");
            let url = "http://127.0.0.1:5000/webhook/x";
            assert!(made.output.contains(url), "{system}: {}", made.output);
            for example in ["hearth.local", "HOST/", "hearth-reply", "/webhook/{system}"] {
                let example = example.replace("{system}", system);
                assert!(!made.output.contains(&example), "{system}: {}", made.output);
            }
            assert!(!made.output.contains("curl"), "{system}: {}", made.output);
            assert!(!format!("{made:?}").contains("of the other system, or"));
            assert!(
                root.run("webhook list --json", "")
                    .output
                    .contains("\"when\"")
            );
        }
        let root = DataDirectoryUnderTest::default();
        fs::write(root.data_directory().config(), "{}").unwrap();
        let made = root.run("webhook add gh --url http://h/ --from github", "");
        let account = &file(&root)["channels"]["webhook"]["accounts"]["gh"];
        assert_eq!(account["permission_mode"], "deny");
        assert_eq!(account["when"]["/action"], json!(["opened", "reopened"]));
        let secret = account["secret"].as_str().unwrap();
        assert!(
            made.output.contains(secret) && made.output.contains("Issues"),
            "{}",
            made.output
        );
        let made = root.run(
            "webhook add f --url http://h/ --path /in --from forgejo",
            "",
        );
        assert!(
            made.output.contains("http://127.0.0.1:5000/in, POST"),
            "{}",
            made.output
        );
        let asks = "webhook add two --url http://h/ --from github --permission-mode ask";
        assert_eq!(root.run(asks, "").code, 0);
        let two = &file(&root)["channels"]["webhook"]["accounts"]["two"];
        assert_eq!(two["permission_mode"], "ask");
    }

    #[test]
    fn what_is_wrong_with_an_account_is_said_and_nothing_written() {
        let root = DataDirectoryUnderTest::default();
        fs::write(root.data_directory().config(), "{}").unwrap();
        let table = r#"
            webhook add ci                                        | --url is missing
            webhook add ci --url nonsense                         | must be a URL
            webhook add a/b --url http://h/                       | --path
            webhook add ci --url http://h/ --path /ws             | incoming_path
            webhook add ci --url http://h/ --permission-mode all  | "ask"
            webhook add ci --url http://h/ --tools a!b            | must be a tool name
            webhook add ci --url http://h/ --audience ,           | --audience names nobody
            webhook add ci --url http://h/ --from jira            | alertmanager, frigate, gitea, github
            webhook add ci --url http://h/ --from stripe          | --secret-stdin
            webhook test ci                                       | no server is running
        "#;
        for [line, says] in rows(table) {
            let ran = root.run(line, "");
            assert_ne!(ran.code, 0, "{line}");
            assert!(ran.errors.contains(says), "{line}: {}", ran.errors);
        }
        assert_eq!(file(&root), json!({}));
        let open = root.run("webhook add ci --url http://h/ --no-secret", "");
        assert!(!open.output.contains("X-Service-Secret"), "{}", open.output);
        let listed = root.run("webhook list", "").output;
        assert!(
            listed.contains("not the household's  household  no"),
            "{listed}"
        );
        let narrow =
            "webhook add n --url http://h/ --tools recall,light --audience ada,bob --trusted";
        assert_eq!(root.run(narrow, "").code, 0);
        let listed = root.run("webhook list", "").output;
        assert!(
            listed.contains("recall, light        ada, bob   yes"),
            "{listed}"
        );
        let all = root.run("webhook add all --url http://h/ --tools *", "");
        assert!(!all.errors.contains("no longer offered"), "{}", all.errors);
        let accounts = &file(&root)["channels"]["webhook"]["accounts"];
        assert_eq!(accounts["ci"]["audience"], "household");
        assert_eq!(accounts["all"]["tools"], json!(["*"]));
        assert_eq!(accounts["n"]["tools"], json!(["recall", "light"]));
        assert_eq!(accounts["n"]["audience"], json!(["ada", "bob"]));
        assert_eq!(accounts["n"]["trusted"], true);
        let given = root.run("webhook add two --url http://h/ --secret-stdin", "my own\n");
        assert!(given.output.contains("X-Service-Secret: ***"));
        assert!(!format!("{given:?}").contains("my own"), "{given:?}");
        let two = &file(&root)["channels"]["webhook"]["accounts"]["two"];
        assert_eq!(two["secret"], "my own");
    }
}

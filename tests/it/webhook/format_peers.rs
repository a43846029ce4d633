//! Apprise as a sender, and the libraries of Standard Webhooks as receivers.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory, write_config};
use support::http::post;
use support::model::Model;
use support::peers::{self, script};
use support::programs::worked;
use support::receiver::Receiver;
use support::recorded::Recorder;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PREVIOUS: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
pub const PLAIN: &str = "a-secret-of-at-least-32-characters";

/// The channels of a home with these accounts, each at /hooks/NAME.
pub fn channels(outgoing_url: &str, mut accounts: Value) -> Value {
    for (name, account) in accounts.as_object_mut().unwrap() {
        account["incoming_path"] = json!(format!("/hooks/{name}"));
        account["outgoing_url"] = json!(outgoing_url);
    }
    json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": accounts },
    ])
}

/// The accounts to which Apprise sends.
pub fn accounts() -> Value {
    let map = json!({ "message": "{/title}: {/message}" });
    json!({
        "mapped": { "secret": SECRET, "accept": ["json", "form", "get"], "map": map },
        "usual": { "secret": SECRET },
    })
}

#[test]
#[ignore = "installs apprise from PyPI: make test-peers"]
fn apprise_sends_messages_and_files() {
    let Some(programs) = peers::WEBHOOKS.installed() else {
        return;
    };
    let folder = TemporaryDirectory::new();
    let note = folder.path().join("note.txt");
    fs::write(&note, "The parcel is behind the house.").unwrap();
    let (model, receiver) = (Model::saying("I see."), Receiver::start());
    let channels = channels(&receiver.url(), accounts());
    let home = Home::start(model.config_with(json!({ "channels": channels })));
    let recorder = Recorder::before("apprise", home.address());
    let host = format!("{}/hooks", recorder.address());
    let header = format!("+X-Service-Secret={SECRET}");
    for (number, (url, has_title, has_file)) in [
        (format!("form://{host}/mapped?{header}"), true, true),
        (format!("form://{host}/mapped?{header}"), true, false),
        (
            format!("form://{host}/mapped?-secret={SECRET}&method=GET"),
            true,
            false,
        ),
        (
            format!("json://{host}/mapped?-secret={SECRET}"),
            true,
            false,
        ),
        (format!("json://{host}/usual?{header}"), false, true),
    ]
    .into_iter()
    .enumerate()
    {
        let mut apprise = Command::new(programs.join("apprise"));
        apprise.args(["--title", "Door", "--body", "Somebody rang & left", &url]);
        if has_file {
            apprise.arg("--attach").arg(&note);
        }
        script(apprise.env("HOME", folder.path()));
        receiver.wait_for(number + 1);
        let asked = model.requests().pop().unwrap().to_string();
        for (words, is_there) in [
            ("Somebody rang & left", true),
            ("Door: Somebody rang & left", has_title),
            ("behind the house", has_file),
        ] {
            assert_eq!(asked.contains(words), is_there, "{url}, {words}: {asked}");
        }
    }
    recorder.check();
}

/// Verifies callbacks with each of their secrets, and that none verifies when the body, the id,
/// the time or the secret is another.
const PYTHON: &str = r#"
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
def webhook(secret):
    return Webhook(secret if secret.startswith("whsec_") else secret.encode())
for case in json.loads(sys.argv[-1]):
    body, headers, secrets = case["body"], case["headers"], case["secrets"]
    for secret in secrets:
        assert webhook(secret).verify(body, headers) == json.loads(body)
    later = str(int(headers["webhook-timestamp"]) + 1)
    for text, head, secret in [
        (body + " ", headers, secrets[0]),
        (body, {**headers, "webhook-id": "dlv_0"}, secrets[0]),
        (body, {**headers, "webhook-timestamp": later}, secrets[0]),
        (body, headers, "another"),
    ]:
        try:
            webhook(secret).verify(text, head)
        except WebhookVerificationError:
            print("refused")
"#;
const JAVASCRIPT: &str = r#"
const assert = require("node:assert");
const { Webhook, WebhookVerificationError } = require("standardwebhooks");
const webhook = (secret) => new Webhook(secret, secret.startsWith("whsec_") ? {} : { format: "raw" });
for (const { body, headers, secrets } of JSON.parse(process.argv.pop())) {
  for (const secret of secrets) assert.deepEqual(webhook(secret).verify(body, headers), JSON.parse(body));
  const later = String(Number(headers["webhook-timestamp"]) + 1);
  for (const [text, head, secret] of [
    [body + " ", headers, secrets[0]],
    [body, { ...headers, "webhook-id": "dlv_0" }, secrets[0]],
    [body, { ...headers, "webhook-timestamp": later }, secrets[0]],
    [body, headers, "another"],
  ]) {
    assert.throws(() => webhook(secret).verify(text, head), WebhookVerificationError);
    console.log("refused");
  }
}
"#;

#[test]
#[ignore = "installs standardwebhooks from PyPI and npm: make test-peers"]
fn the_libraries_of_standard_webhooks_verify_callbacks() {
    let (Some(python), Some(node)) = (
        peers::WEBHOOKS.installed(),
        peers::STANDARD_WEBHOOKS.installed(),
    ) else {
        return;
    };
    let (model, receiver) = (Model::saying("All is well."), Receiver::start());
    let accounts = json!({ "hook": { "secret": SECRET }, "plain": { "secret": PLAIN } });
    let channels = channels(&receiver.url(), accounts);
    let mut config = model.config_with(json!({ "channels": channels }));
    let home = Home::start(config.clone());
    let mut cases = Vec::new();
    let mut call_back = |account: &str, secrets: &[&str]| {
        let body = json!({ "message": "hello", "conversation_id": "Grüße \"1\"" });
        let headers = [("x-service-secret", secrets[0])];
        let answer = post(
            home.address(),
            &format!("/hooks/{account}"),
            &headers,
            &body,
        );
        assert_eq!(answer.status, 202, "{answer:?}");
        let callback = receiver.wait_for(cases.len() + 1).pop().unwrap();
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: Value = names
            .map(|name| (name.to_owned(), json!(callback.header(name))))
            .into_iter()
            .collect();
        let body = String::from_utf8(callback.raw).unwrap();
        cases.push(json!({ "body": body, "headers": headers, "secrets": secrets }));
    };
    call_back("hook", &[SECRET]);
    call_back("plain", &[PLAIN]);
    config["channels"][1]["accounts"]["hook"]["secret_previous"] = json!(PREVIOUS);
    write_config(home.folder.path(), config);
    home.server().reload().unwrap();
    call_back("hook", &[SECRET, PREVIOUS]);
    let mut checks = Command::new(python.join("python"));
    checks.args(["-c", PYTHON]);
    let mut node_checks = Command::new("node");
    node_checks.args(["-e", JAVASCRIPT]).current_dir(&node);
    for mut command in [checks, node_checks] {
        let said = script(command.arg(json!(cases).to_string()));
        assert_eq!(said, "refused\n".repeat(3 * 4));
    }
    worked();
}

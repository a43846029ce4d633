//! Apprise as a sender, and the libraries of Standard Webhooks as receivers.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory};
use support::http::post;
use support::model::Model;
use support::peers::{self, script};
use support::receiver::Receiver;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn home(model: &Model, receiver: &Receiver, more: Value) -> Home {
    let mut account = json!({
        "incoming_path": "/hook", "outgoing_url": receiver.url(), "secret": SECRET,
    });
    for (key, value) in more.as_object().unwrap() {
        account[key] = value.clone();
    }
    Home::start(model.config_with(json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "hook": account } },
    ] })))
}

#[test]
#[ignore = "installs apprise from PyPI: make test-peers"]
fn apprise_sends_a_message_with_a_file() {
    let Some(programs) = peers::WEBHOOKS.installed() else {
        return;
    };
    let folder = TemporaryDirectory::new();
    let note = folder.path().join("note.txt");
    fs::write(&note, "The parcel is behind the house.").unwrap();
    let (model, receiver) = (Model::saying("I see."), Receiver::start());
    let map = json!({ "message": "{/title}: {/message}" });
    let home = home(
        &model,
        &receiver,
        json!({ "accept": ["json", "form", "get"], "map": map }),
    );
    let host = format!("{}/hook", home.address());
    for (number, (url, has_file)) in [
        (format!("form://{host}?+X-Service-Secret={SECRET}"), true),
        (format!("form://{host}?+X-Service-Secret={SECRET}"), false),
        (format!("form://{host}?-secret={SECRET}&method=GET"), false),
        (format!("json://{host}?-secret={SECRET}"), false),
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
        assert!(
            asked.contains("Door: Somebody rang & left"),
            "{url}: {asked}"
        );
        assert_eq!(
            asked.contains("behind the house"),
            has_file,
            "{url}: {asked}"
        );
    }
}

#[test]
#[ignore = "installs apprise from PyPI: make test-peers"]
fn apprise_sends_a_file_in_json() {
    let Some(programs) = peers::WEBHOOKS.installed() else {
        return;
    };
    let folder = TemporaryDirectory::new();
    let note = folder.path().join("note.txt");
    fs::write(&note, "The parcel is behind the house.").unwrap();
    let (model, receiver) = (Model::saying("I see."), Receiver::start());
    let home = home(&model, &receiver, json!({}));
    let url = format!("json://{}/hook?+X-Service-Secret={SECRET}", home.address());
    let mut apprise = Command::new(programs.join("apprise"));
    apprise.args(["--body", "Somebody rang", &url, "--attach"]);
    script(apprise.arg(&note).env("HOME", folder.path()));
    receiver.wait_for(1);
    let asked = model.requests().pop().unwrap().to_string();
    assert!(
        asked.contains("Somebody rang") && asked.contains("behind the house"),
        "{asked}"
    );
}

/// A callback, and what checks it: its body, headers and secret are the arguments.
const PYTHON: &str = r#"
import json, sys
from standardwebhooks import Webhook
body, headers, secret = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
print(Webhook(secret).verify(body, headers)["message"])
try:
    Webhook(b"another").verify(body, headers)
except Exception as error:
    print(error)
"#;
const JAVASCRIPT: &str = r#"
const { Webhook } = require("standardwebhooks");
const [body, headers, secret] = process.argv.slice(-3);
const webhook = new Webhook(secret);
console.log(webhook.verify(body, JSON.parse(headers)).message);
try { webhook.verify(body + " ", JSON.parse(headers)); } catch (error) { console.log(error.message); }
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
    let home = home(&model, &receiver, json!({}));
    let headers = [("x-service-secret", SECRET)];
    post(
        home.address(),
        "/hook",
        &headers,
        &json!({ "message": "hello" }),
    );
    let callback = receiver.wait_for(1).remove(0);
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: Value = names
        .map(|name| (name.to_owned(), json!(callback.header(name))))
        .into_iter()
        .collect();
    let body = String::from_utf8(callback.raw).unwrap();
    let mut checks = Command::new(python.join("python"));
    checks.args(["-c", PYTHON]);
    let mut node_checks = Command::new("node");
    node_checks.args(["-e", JAVASCRIPT]).current_dir(&node);
    for mut command in [checks, node_checks] {
        let said = script(command.arg(&body).arg(headers.to_string()).arg(SECRET));
        assert_eq!(said, "All is well.\nNo matching signature found\n");
    }
}

//! The signature of callbacks, checked by the Standard Webhooks library of
//! another language: `standardwebhooks` for Python, installed for the test.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::scenarios::{echoing, with_account};
use support::home::{Home, TemporaryDirectory};
use support::http::post;
use support::receiver::Receiver;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PREVIOUS: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Verifies each line of standard input, and that it does not verify when the
/// body, the id, the time or the secret is another.
const VERIFY: &str = r#"
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
count = 0
for line in sys.stdin:
    case = json.loads(line)
    headers, body = case["headers"], case["body"]
    for secret in case["secrets"]:
        assert Webhook(secret).verify(body, headers) == json.loads(body)
    other = "whsec_" + "A" * 32
    forged = [
        (case["secrets"][0], body + " ", headers),
        (case["secrets"][0], body, {**headers, "webhook-id": "dlv_0"}),
        (case["secrets"][0], body, {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}),
        (other, body, headers),
    ]
    for secret, text, head in forged:
        try:
            Webhook(secret).verify(text, head)
        except WebhookVerificationError:
            continue
        raise SystemExit("a forgery was verified")
    count += 1
print(count)
"#;

#[test]
#[ignore = "installs a Python package"]
fn callbacks_are_verified_by_a_public_library() {
    let library = TemporaryDirectory::new();
    if !install(library.path()) {
        return;
    }
    let (model, receiver) = (echoing(), Receiver::start());
    let mut config = with_account(&model, receiver.url());
    config["channels"][1]["accounts"]["ci"]["secret"] = json!(SECRET);
    let home = Home::start(config.clone());
    let secret = [("x-service-secret", SECRET)];
    let send = |text: &str| {
        let body = json!({ "message": text, "conversation_id": "Grüße \"1\"" });
        let answer = post(home.address(), "/webhook/ci", &secret, &body);
        assert_eq!(answer.status, 202, "{answer:?}");
    };
    send("tok-1");
    receiver.wait_for(1);
    config["channels"][1]["accounts"]["ci"]["secret_previous"] = json!(PREVIOUS);
    support::home::write_config(home.folder.path(), config);
    home.server().reload().unwrap();
    send("tok-2");

    let mut cases = String::new();
    for (number, callback) in receiver.wait_for(2).iter().enumerate() {
        let header = |name| callback.header(name).unwrap();
        let secrets = &[SECRET, PREVIOUS][..=number];
        let case: Value = json!({
            "body": String::from_utf8(callback.raw.clone()).unwrap(),
            "secrets": secrets,
            "headers": {
                "webhook-id": header("webhook-id"),
                "webhook-timestamp": header("webhook-timestamp"),
                "webhook-signature": header("webhook-signature"),
            },
        });
        cases.push_str(&format!("{case}\n"));
    }
    let mut python = Command::new("python3")
        .args(["-c", VERIFY])
        .env("PYTHONPATH", library.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = python.stdin.take().unwrap();
    input.write_all(cases.as_bytes()).unwrap();
    drop(input);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "2");
    println!(
        "signatures: 2 callbacks verified by standardwebhooks for Python, 8 forgeries refused"
    );
}

fn install(folder: &Path) -> bool {
    let installed = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--target"])
        .arg(folder)
        .arg("standardwebhooks")
        .output();
    match installed {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().last().unwrap_or_default();
            println!("signatures: SKIPPED, standardwebhooks cannot be installed: {last}");
            false
        }
        Err(error) => {
            println!("signatures: SKIPPED, there is no python3: {error}");
            false
        }
    }
}

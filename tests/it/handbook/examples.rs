//! What stands in examples/, run against a real server, so that it cannot rot.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use support::eventually;
use support::home::{Home, PASSWORD, TemporaryDirectory};
use support::http::post;
use support::program::{example, free_port, hearth, is_there, printed};

#[test]
fn every_sample_configuration_passes_the_check() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/config");
    let mut checked = 0;
    for sample in fs::read_dir(samples).unwrap() {
        let sample = sample.unwrap().path();
        let folder = TemporaryDirectory::new();
        fs::copy(&sample, folder.path().join("config.json")).unwrap();
        let output = hearth(folder.path())
            .args(["config", "check"])
            .env("OPENAI_API_KEY", "sk-test")
            .env("HOOK_SECRET", "a secret of more than 32 characters")
            .env("DOORBELL_SECRET", "a secret of more than 32 characters")
            .env("HOME_ASSISTANT_AUTHORIZATION", "Bearer a long-lived token")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            sample.display(),
            printed(&output)
        );
        checked += 1;
    }
    assert!(checked >= 3, "only {checked} samples were found");
}

#[test]
fn the_rust_client_signs_in_and_streams_an_answer() {
    let home = Home::offline();
    let server = format!("localhost:{}", home.address().port());
    let client = |password: &str| {
        Command::new(example("chat_client"))
            .args([&server, "admin", "what did I say"])
            .env("HEARTH_PASSWORD", password)
            .output()
            .unwrap()
    };
    let output = client(PASSWORD);
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.starts_with("This is the first message of our conversation.\n")
            && text.contains("conv_"),
        "{text}"
    );
    let refused = client("wrong");
    assert!(!refused.status.success());
    assert!(printed(&refused).contains("wrong user name or password"));
}

#[test]
fn the_python_client_asks_and_says_why_it_was_refused() {
    if !is_there("python3") {
        return;
    }
    let home = Home::offline();
    let client = |token: &str| {
        Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/chat_client.py"))
            .args(["what did I say", "127.0.0.1"])
            .arg(home.address().port().to_string())
            .env("HEARTH_TOKEN", token)
            .output()
            .unwrap()
    };
    let output = client(&home.tokens.user);
    assert_eq!(
        printed(&output),
        "This is the first message of our conversation.\n"
    );
    let refused = client("nonsense");
    assert_eq!(refused.status.code(), Some(1));
    assert!(printed(&refused).contains("token"), "{}", printed(&refused));
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_webhook_receiver_takes_what_is_signed() {
    const SECRET: &str = "a secret of more than 32 characters";
    let folder = TemporaryDirectory::new();
    let said = folder.path().join("receiver.txt");
    let address = format!("127.0.0.1:{}", free_port());
    let _receiver = Running(
        Command::new(example("webhook_receiver"))
            .arg(&address)
            .env("DOORBELL_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(File::create(&said).unwrap())
            .spawn()
            .unwrap(),
    );
    let said = || fs::read_to_string(&said).unwrap();
    eventually("the receiver listens", || {
        said().contains("waiting for replies").then_some(())
    });

    let account = |path: &str, secret: &str| {
        json!({
            "incoming_path": path, "outgoing_url": format!("http://{address}/replies"),
            "secret": secret,
        })
    };
    let home = Home::start(json!({
        "channels": {
            "lan": { "type": "tcp", "port": 0 },
            "webhook": { "accounts": {
                "doorbell": account("/webhook/doorbell", SECRET),
                "stranger": account("/webhook/stranger", "another secret of 32 characters!"),
            }},
        },
    }));
    let ring = |path: &str, secret: &str| {
        let body = json!({ "message": "what did I say", "conversation_id": "front-door" });
        let headers = [("X-Service-Secret", secret)];
        let answer = post(home.address(), path, &headers, &body);
        assert_eq!(answer.status, 202, "{answer:?}");
    };
    ring("/webhook/doorbell", SECRET);
    eventually("the reply is printed", || {
        said()
            .contains("[front-door] This is the first message of our conversation.")
            .then_some(())
    });

    ring("/webhook/stranger", "another secret of 32 characters!");
    let mut admin = home.admin();
    let error = eventually("the foreign signature is refused", || {
        let data = admin.ask(json!({ "type": "list_deliveries", "state": "pending" }));
        data["deliveries"][0]["last_error"]
            .as_str()
            .map(str::to_owned)
    });
    assert!(error.contains("401"), "{error}");
    assert_eq!(said().lines().count(), 2, "{}", said());
}

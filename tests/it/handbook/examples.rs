//! What stands in examples/, run against a real server, so that it cannot rot.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::handbook::texts::text_of;
use support::eventually;
use support::home::{Home, PASSWORD, TemporaryDirectory};
use support::http::post;
use support::program::{example, finish, free_port, hearth, is_there, printed};
use support::receiver::Receiver;

#[test]
fn every_sample_configuration_passes_the_check() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/config");
    let mut checked = 0;
    for sample in fs::read_dir(samples).unwrap() {
        let sample = sample.unwrap().path();
        let folder = TemporaryDirectory::new();
        fs::copy(&sample, folder.path().join("config.json")).unwrap();
        let output = finish(
            hearth(folder.path())
                .args(["config", "check"])
                .env("OPENAI_API_KEY", "sk-test")
                .env("HOOK_SECRET", "a secret of more than 32 characters")
                .env("DOORBELL_SECRET", "a secret of more than 32 characters")
                .env("HOME_ASSISTANT_AUTHORIZATION", "Bearer a long-lived token"),
        );
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
        finish(
            Command::new(example("chat_client"))
                .args([&server, "admin", "what did I say"])
                .env("HEARTH_PASSWORD", password),
        )
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
        finish(
            Command::new("python3")
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/chat_client.py"))
                .args(["what did I say", "127.0.0.1"])
                .arg(home.address().port().to_string())
                .env("HEARTH_TOKEN", token),
        )
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
fn the_python_example_prints_events_until_its_token_is_revoked() {
    if !is_there("python3") {
        return;
    }
    let mut home = Home::start(json!({
        "limits": { "commands_per_second": 100_000, "commands_burst": 100_000 },
    }));
    let (port, token) = (home.address().port(), home.token("user", &json!({})));
    let folder = TemporaryDirectory::new();
    let (out, errors) = (folder.path().join("out"), folder.path().join("errors"));
    let mut example = Running(
        Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/events.py"))
            .arg(format!("http://127.0.0.1:{port}"))
            .env("HEARTH_TOKEN", &token)
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&errors).unwrap())
            .spawn()
            .unwrap(),
    );
    let prints = |home: &Home, text: &str| {
        let mut user = home.websocket(&token);
        eventually(text, || {
            // It may not be connected yet.
            user.chat(text);
            let printed = fs::read_to_string(&out).unwrap();
            printed.lines().any(|line| line == text).then_some(())
        });
    };
    prints(&home, "what did I say");
    home.stop();
    home.start_on(port);
    prints(&home, "and now");
    home.websocket(&token).ask(json!({ "type": "sign_out" }));
    let status = eventually("its end", || example.0.try_wait().unwrap());
    let errors = fs::read_to_string(&errors).unwrap();
    assert!(
        status.code() == Some(1) && errors.contains("401: "),
        "{errors}"
    );
}

/// The block of the handbook's chapter on integrations that has this text.
fn snippet(language: &str, text: &str) -> String {
    let page = text_of(Path::new("src/hearth/handbook/integrations.md"));
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    let mut blocks = blocks.filter_map(|rest| Some(rest.split_once("```")?.0));
    blocks
        .find(|block| block.contains(text))
        .expect(text)
        .to_owned()
}

/// Checks a signature as the handbook shows: of the callback, of another body, at another time.
/// The body, the headers and the secret are the arguments.
const PYTHON: &str = r#"
import json, sys
body, headers, secret = sys.argv[1].encode(), json.loads(sys.argv[2]), sys.argv[3]
old = {**headers, "webhook-timestamp": "1700000000"}
print(is_signed(body, headers, secret), is_signed(body + b" ", headers, secret),
      is_signed(body, headers, "another"), is_signed(body, old, secret))
"#;
const JAVASCRIPT: &str = r#"
const [body, headers, secret] = process.argv.slice(-3);
const parsed = JSON.parse(headers), old = { ...parsed, "webhook-timestamp": "1700000000" };
console.log(isSigned(body, parsed, secret), isSigned(body + " ", parsed, secret),
            isSigned(body, parsed, "another"), isSigned(body, old, secret));
"#;

#[test]
fn the_snippets_check_the_signature_of_a_callback() {
    const SECRET: &str = "a secret of more than 32 characters";
    let receiver = Receiver::start();
    let account =
        json!({ "incoming_path": "/in", "outgoing_url": receiver.url(), "secret": SECRET });
    let home = Home::start(json!({ "channels": {
        "lan": { "type": "tcp", "port": 0 },
        "webhook": { "accounts": { "in": account } },
    } }));
    let headers = [("X-Service-Secret", SECRET)];
    let accepted = post(
        home.address(),
        "/in",
        &headers,
        &json!({ "message": "hello" }),
    );
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let callback = receiver.wait_for(1).remove(0);
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| (name.to_owned(), json!(callback.header(name))));
    let headers = serde_json::Value::from_iter(headers).to_string();
    let body = String::from_utf8(callback.raw).unwrap();
    for (program, option, code, expected) in [
        (
            "python3",
            "-c",
            snippet("python", "is_signed") + PYTHON,
            "True False False False\n",
        ),
        (
            "node",
            "--eval",
            snippet("js", "isSigned") + JAVASCRIPT,
            "true false false false\n",
        ),
    ] {
        if !is_there(program) {
            continue;
        }
        let mut command = Command::new(program);
        if program == "node" {
            command.arg("--input-type=module");
        }
        let checked = finish(command.args([option, &code, &body, &headers, SECRET]));
        assert_eq!(printed(&checked), expected, "{program}");
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

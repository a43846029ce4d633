//! Whom Hearth trusts where it calls others, and the commands that talk to a
//! server with TLS.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use support::eventually;
use support::home::{Home, PASSWORD, TemporaryDirectory, make_people, write_config};
use support::program::{Program, free_port, hearth, output_of, printed, run};
use support::tls::{Identity, serve};

#[test]
fn callbacks_go_only_to_receivers_that_are_trusted() {
    let receiver = Identity::new();
    let address = serve(&receiver, "application/json", "{}".to_owned());
    for (ca_file, state) in [
        (None, "pending"),
        (Some(&receiver.certificate), "delivered"),
    ] {
        let home = Home::start(json!({
            "tls": { "ca_file": ca_file },
            "channels": [
                { "type": "tcp", "port": 0 },
                { "type": "webhook", "accounts": { "ci": {
                    "incoming_path": "/hook",
                    "outgoing_url": format!("https://localhost:{}/", address.port()),
                } } },
            ],
        }));
        let posted =
            support::http::post(home.address(), "/hook", &[], &json!({ "message": "hello" }));
        assert_eq!(posted.status, 202, "{posted:?}");
        let mut admin = home.admin();
        let delivery = eventually("an attempt", || {
            let listed = admin.ask(json!({ "type": "list_deliveries" }));
            let first = listed["deliveries"][0].clone();
            (first["attempts"].as_u64() > Some(0)).then_some(first)
        });
        assert_eq!(delivery["state"], state, "{delivery}");
        if state == "pending" {
            let error = delivery["last_error"].as_str().unwrap();
            assert!(error.contains("certificate"), "{error}");
        }
    }
}

#[test]
fn models_are_asked_only_where_they_are_trusted() {
    let server = Identity::new();
    let reply = json!({
        "choices": [{ "message": { "content": "secret answer" }, "finish_reason": "stop" }]
    });
    let address = serve(&server, "application/json", reply.to_string());
    for (ca_file, says) in [
        (None, "no trusted TLS certificate"),
        (Some(&server.certificate), "secret answer"),
    ] {
        let home = Home::start(json!({
            "provider": "openai-compatible",
            "base_url": format!("https://localhost:{}/v1", address.port()),
            "model": "m",
            "tls": { "ca_file": ca_file },
        }));
        let mut client = home.admin();
        client.send(&json!({ "type": "chat", "message": "hello" }));
        let answer = client.response().to_string();
        assert!(answer.contains(says), "{answer}");
    }
}

#[test]
fn a_server_of_this_machine_is_known_by_its_file() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let made = run(folder.path(), &["tls", "self-signed"]);
    assert!(made.status.success(), "{}", printed(&made));
    let program = Program::serve(folder.path());
    assert!(
        program.said.contains("listening on https://"),
        "{}",
        program.said
    );

    let chat = run(folder.path(), &["chat", "hello"]);
    assert!(printed(&chat).contains("Hello!"), "{}", printed(&chat));
    let doctor = run(folder.path(), &["doctor"]);
    assert!(printed(&doctor).contains("SHA-256"), "{}", printed(&doctor));
    let url = format!("http://127.0.0.1:{}/", free_port());
    let added = run(folder.path(), &["webhook", "add", "ci", "--url", &url]);
    assert!(
        printed(&added).contains("curl https://"),
        "{}",
        printed(&added)
    );
    let tried = run(folder.path(), &["webhook", "test", "ci", "--wait", "5"]);
    let text = printed(&tried);
    assert!(text.contains("ok    POST https://127.0.0.1"), "{text}");

    // Another server in its place is not talked to.
    let certificate = folder.path().join("cert.pem");
    let real = fs::read(&certificate).unwrap();
    let other = Identity::new();
    fs::copy(&other.certificate, &certificate).unwrap();
    let refused = run(folder.path(), &["chat", "hello"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = printed(&refused);
    assert!(text.contains("cannot be trusted"), "{text}");
    fs::write(&certificate, real).unwrap();

    // It is renewed while it runs.
    let renewed = run(folder.path(), &["tls", "self-signed", "--force"]);
    assert!(
        printed(&renewed).contains("from the next connection"),
        "{}",
        printed(&renewed)
    );
    let chat = run(folder.path(), &["chat", "hello"]);
    assert!(printed(&chat).contains("Hello!"), "{}", printed(&chat));
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn a_server_elsewhere_is_trusted_by_its_authority() {
    let identity = Identity::new();
    let home = Home::start(identity.config());
    let folder = TemporaryDirectory::new();
    let url = format!("wss://localhost:{}/ws", home.address().port());
    let chat = |options: &[&str]| {
        let mut child = hearth(folder.path())
            .args(["chat", "--url", &url, "--user", "admin"])
            .args(options)
            .arg("hello")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // It may have given up before it reads.
        let _ = writeln!(input, "{PASSWORD}");
        drop(input);
        printed(&output_of(child))
    };
    let refused = chat(&[]);
    assert!(
        refused.contains("cannot be trusted") && refused.contains("--ca-file"),
        "{refused}"
    );
    let file = identity.certificate.to_str().unwrap();
    let answered = chat(&["--ca-file", file]);
    assert!(answered.contains("Hello!"), "{answered}");
    let unread = chat(&["--ca-file", "/nowhere/ca.pem"]);
    assert!(
        unread.contains("--ca-file: /nowhere/ca.pem cannot be read") && !unread.contains("config"),
        "{unread}"
    );
    let url = format!("https://localhost:{}", home.address().port());
    let health = |options: &[&str]| {
        let words = [&["health", "--url", &url], options].concat();
        printed(&run(folder.path(), &words))
    };
    let refused = health(&[]);
    assert!(refused.contains("trusted"), "{refused}");
    let well = health(&["--ca-file", file]);
    assert!(well.contains("\"status\":\"ok\""), "{well}");
    let unread = health(&["--ca-file", "/nowhere/ca.pem"]);
    assert!(unread.contains("--ca-file: /nowhere"), "{unread}");
    // The configuration of this machine may name the authority, too.
    write_config(folder.path(), json!({ "tls": { "ca_file": file } }));
    let answered = chat(&[]);
    assert!(answered.contains("Hello!"), "{answered}");
}

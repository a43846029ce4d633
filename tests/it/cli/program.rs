//! The real binary, as a person uses it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use base::clock::Clock;
use serde_json::{Value, json};
use store::{Store, Viewer};

use support::client::Client;
use support::eventually;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::{get, post};
use support::program::{Program, binary, finish, hearth, printed, run, send_signal};

fn password_in(said: &str) -> String {
    let line = said
        .lines()
        .find(|line| line.contains("Password"))
        .expect(said);
    line.split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn an_import_that_fails_is_no_success_in_the_log() {
    let folder = TemporaryDirectory::new();
    make_people(folder.path());
    write_config(folder.path(), json!({}));
    let program = Program::serve(folder.path());
    let file = folder.path().join("notes.json");
    fs::write(&file, "{\"nothing\": \"known\"}").unwrap();
    let imported = run(folder.path(), &["import", file.to_str().unwrap()]);
    assert_eq!(imported.status.code(), Some(1));
    program.signal("TERM");
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("import")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("WARN"), "{log}");
    assert!(lines[0].contains("ended after 0 messages"), "{log}");
}

#[test]
fn the_first_start_sets_everything_up_and_says_where_to_go() {
    let folder = TemporaryDirectory::new();
    let program = Program::serve(folder.path());
    let said = eventually("it has said everything", || {
        let said = fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
        said.contains("hearth chat").then_some(said)
    });
    let password = password_in(&said);
    let body = json!({ "username": "admin", "password": password });
    let answer = post(program.address, "/auth", &[], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    for name in ["config.json", "hearth.db", "hearth.log"] {
        let mode = fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name} is for its owner alone: {mode:o}");
    }
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    assert!(!log.contains(&password), "the password is not in the log");
    assert_eq!(program.signal("TERM"), Some(0));

    let again = Program::serve(folder.path());
    assert!(!again.said.contains("Password"), "{}", again.said);
    assert_eq!(get(again.address, "/health").status, 200);
    assert_eq!(again.signal("INT"), Some(0));
}

#[test]
fn a_refused_first_start_leaves_nothing() {
    let folder = TemporaryDirectory::new();
    let data = folder.join("data");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port().to_string();
    let cases = [
        (taken.as_str(), None, "is in use by another program"),
        ("0", Some(("HEARTH_LOG", "loud")), "HEARTH_LOG must be"),
        (
            "0",
            Some(("HEARTH_ADMIN_PASSWORD", "short")),
            "HEARTH_ADMIN_PASSWORD: ",
        ),
    ];
    for (port, variable, says) in cases {
        let mut command = hearth(&data);
        command
            .args(["serve", "--bind", "127.0.0.1", "--port", port])
            .envs(variable);
        let output = finish(&mut command);
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(!data.exists(), "{says}");
    }
}

#[test]
fn a_first_chat_from_another_terminal() {
    let folder = TemporaryDirectory::new();
    let _program = Program::serve(folder.path());
    let output = run(folder.path(), &["chat", "hello"]);
    assert!(output.status.success(), "{}", printed(&output));
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.to_lowercase().contains("hearth"), "{answer}");
}

#[test]
fn what_is_wrong_at_the_start_is_said_with_the_remedy() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let program = Program::serve(folder.path());
    let port = program.address.port().to_string();

    let output = run(folder.path(), &["serve", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed(&output).contains("another hearth"),
        "{}",
        printed(&output)
    );

    let other = TemporaryDirectory::new();
    let output = run(
        other.path(),
        &["serve", "--bind", "127.0.0.1", "--port", &port],
    );
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains(&port) && text.contains("--port"), "{text}");
    assert!(!text.contains("Password"), "nothing was made: {text}");
    assert!(!other.path().join("config.json").exists() && !other.path().join("hearth.db").exists());

    let (lan, webhooks) = (r#""port" of that tcp"#, r#""port" of the webhook channel"#);
    for (kind, says) in [("tcp", lan), ("webhook", webhooks)] {
        let taken = program.address.port();
        let channels = json!([
            { "type": "tcp", "name": "lan", "port": 0 },
            { "type": kind, "name": "taken", "port": taken },
        ]);
        let mut config = json!({ "channels": channels });
        if kind == "webhook" {
            config["channels"][1]["accounts"] = json!({});
        }
        write_config(other.path(), config);
        let text = printed(&run(other.path(), &["serve", "--bind", "127.0.0.1"]));
        assert!(text.contains(&port) && text.contains(says), "{text}");
    }

    fs::write(
        other.path().join("config.json"),
        "{\n  \"permision_mode\": \"ask\"\n}",
    )
    .unwrap();
    let output = run(other.path(), &["serve", "--port", "0"]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("permission_mode") && text.contains("line 2"),
        "{text}"
    );
    let checked = run(other.path(), &["config", "check"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(printed(&checked).contains("permission_mode"));

    let output = run(other.path(), &["serve", "--prot", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
}

#[test]
fn the_check_refuses_what_the_start_refuses() {
    for (config, says) in [
        (
            json!({ "tls": { "ca_file": "house.pem" } }),
            &["house.pem cannot be read", "\"tls\" in config.json"][..],
        ),
        (
            json!({ "tls": { "cert": "cert.pem", "key": "key.pem" } }),
            &["cert.pem"],
        ),
        (
            json!({ "relay": { "enabled": true, "auth_token": "short" } }),
            &["config.json line", "\"relay.auth_token\"", "--show-token"],
        ),
        (json!({ "relay": { "enabled": true } }), &["relay"]),
        (
            json!({ "channels": [] }),
            &["config.json line", "\"channels\" is empty"],
        ),
        (
            json!({ "openai_api": { "enabled": true }, "channels": { "webhook": { "accounts": {
                "ci": { "incoming_path": "/api/ci", "outgoing_url": "http://a/" } } } } }),
            &["incoming_path\" is \"/api/ci\"", "choose another path"],
        ),
    ] {
        let folder = TemporaryDirectory::new();
        write_config(folder.path(), config);
        let serve = ["serve", "--bind", "127.0.0.1", "--port", "0"];
        for arguments in [&["config", "check"][..], &serve] {
            let output = run(folder.path(), arguments);
            let text = printed(&output);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
            for part in says {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}

#[test]
fn a_setting_that_could_not_be_started_with_is_not_saved() {
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        json!({ "tls": { "ca_file": "gone.pem" }, "channels": { "webhook": { "accounts": {
            "ci": { "incoming_path": "/v1/ci", "outgoing_url": "http://a/" } } } } }),
    );
    let before = fs::read(folder.path().join("config.json")).unwrap();
    for (key, value, says) in [
        ("tls.ca_file", "house.pem", "there is no such file"),
        ("relay.auth_token", "short", "must have 32 or more"),
        ("channels", "[]", "\"channels\" is empty"),
        ("openai_api.enabled", "true", "\"/v1/ci\""),
    ] {
        let output = run(folder.path(), &["config", "set", key, value]);
        assert_eq!(output.status.code(), Some(1));
        assert!(printed(&output).contains(says), "{}", printed(&output));
        let now = fs::read(folder.path().join("config.json")).unwrap();
        assert_eq!(now, before, "{key}");
    }
    // What is amiss already stops neither its own remedy nor other changes.
    for (key, value) in [("model", "tiny"), ("tls.ca_file", "null")] {
        let output = run(folder.path(), &["config", "set", key, value]);
        assert!(output.status.success(), "{}", printed(&output));
    }
}

#[test]
fn a_database_of_another_kind_or_time_is_refused() {
    for (what, sql, says) in [
        ("newer", "PRAGMA user_version = 999", "newer"),
        ("foreign", "PRAGMA application_id = 7", "not"),
    ] {
        let folder = TemporaryDirectory::new();
        write_config(folder.path(), json!({}));
        make_people(folder.path());
        let path = folder.path().join("hearth.db");
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let output = run(folder.path(), &["serve", "--port", "0"]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(
            text.contains("hearth.db") && text.contains(says),
            "{what}: {text}"
        );
    }
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    fs::write(
        folder.path().join("hearth.db"),
        "this is a letter to my aunt, not a database",
    )
    .unwrap();
    let output = run(folder.path(), &["serve", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains("hearth.db"));
}

#[test]
fn users_tokens_and_settings_from_the_command_line() {
    let folder = TemporaryDirectory::new();
    let program = Program::serve(folder.path());
    let command = |arguments: &[&str]| {
        let output = run(folder.path(), arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            printed(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    command(&["user", "add", "grace", "--role", "user", "--generate"]);
    assert!(command(&["user", "list"]).contains("grace"));
    let token = command(&["token", "create", "--user", "grace", "--name", "phone"]);
    let token = token
        .split_whitespace()
        .find(|word| word.starts_with("hearth_"))
        .unwrap()
        .to_owned();
    let mut client = Client::websocket(program.address);
    assert_eq!(client.authenticate(&token)["user"], "grace");

    // For people, times are those of their clocks; for scripts, ISO 8601.
    let listed = command(&["token", "list"]);
    let year = &Clock::system().now().to_string()[..4];
    assert!(
        listed.contains(&format!(" {year} ")) && !listed.contains("00Z"),
        "{listed}"
    );
    let tokens: Value = serde_json::from_str(&command(&["token", "list", "--json"])).expect("JSON");
    assert!(tokens[0]["created_at"].as_str().unwrap().ends_with('Z'));
    let listed = tokens
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "phone")
        .unwrap();
    command(&["token", "revoke", listed["id"].as_str().unwrap()]);
    assert!(client.next().is_err(), "revoking closes the connection");

    let output = run(folder.path(), &["config", "set", "provider", "openai"]);
    let text = printed(&output);
    for advice in [
        "\"model\" is not set",
        " config set api_key -",
        " config set model NAME",
    ] {
        assert!(
            output.status.success() && text.contains(advice),
            "{advice}: {text}"
        );
    }
    command(&["config", "set", "provider", "offline"]);
    command(&["config", "set", "model", "tiny"]);
    assert!(command(&["config", "get", "model"]).contains("tiny"));
    let admin = command(&["token", "create", "--name", "test", "--json"]);
    let admin: Value = serde_json::from_str(&admin).unwrap();
    let mut client = Client::websocket(program.address);
    client.authenticate(admin["token"].as_str().unwrap());
    eventually("the running server has reread its settings", || {
        (client.ask(json!({ "type": "get_config" }))["model"] == "tiny").then_some(())
    });
    command(&["user", "remove", "grace", "--yes"]);
    assert!(!command(&["user", "list"]).contains("grace"));
    assert!(command(&["config", "keys"]).contains("permission_mode"));
}

#[test]
fn a_hang_up_rereads_the_configuration_and_keeps_the_old_one_when_it_is_wrong() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({ "model": "one" }));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    let mut model = || client.ask(json!({ "type": "get_config" }))["model"].clone();
    write_config(folder.path(), json!({ "model": "two" }));
    send_signal(program.id(), "HUP");
    eventually("the new model is in force", || {
        (model() == "two").then_some(())
    });
    fs::write(folder.path().join("config.json"), "{ nonsense").unwrap();
    send_signal(program.id(), "HUP");
    eventually("the problem is in the log", || {
        let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
        log.contains("not reloaded").then_some(())
    });
    assert_eq!(model(), "two");
}

#[test]
fn help_is_there_for_everyone() {
    let folder = TemporaryDirectory::new();
    let output = run(folder.path(), &["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for name in [
        "serve",
        "chat",
        "user",
        "token",
        "config",
        "webhook",
        "deliveries",
    ] {
        assert!(text.contains(name), "{name}");
        let output = run(folder.path(), &[name, "--help"]);
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{name}"
        );
    }
    assert!(printed(&run(folder.path(), &["--version"])).contains(env!("CARGO_PKG_VERSION")));
    let output = run(folder.path(), &["serv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("serve"), "{}", printed(&output));
}

#[test]
fn commands_are_printed_as_the_program_was_called() {
    let folder = TemporaryDirectory::new();
    let called = binary();
    let text = printed(&run(folder.path(), &["chat", "hello"]));
    assert!(
        text.contains(&format!("`{} serve`", called.display())),
        "{text}"
    );
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(&called, bin.join("hearth")).unwrap();
    for program in ["hearth", called.to_str().unwrap()] {
        let output = finish(
            Command::new(program)
                .args(["chat", "hello"])
                .env("PATH", &bin)
                .env("HEARTH_DATA_DIR", folder.path()),
        );
        let text = printed(&output);
        assert!(text.contains("`hearth serve`"), "{text}");
    }
}

#[test]
fn an_unwritable_data_directory_is_named() {
    let folder = TemporaryDirectory::new();
    fs::write(folder.path().join("file"), "").unwrap();
    let path = folder.path().join("file/below");
    let output = finish(
        hearth(folder.path())
            .args(["serve", "--port", "0", "--data-dir"])
            .arg(&path),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed(&output).contains("file/below"),
        "{}",
        printed(&output)
    );
}

#[test]
fn the_database_the_server_leaves_is_whole() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    client.chat("hello");
    assert_eq!(program.signal("TERM"), Some(0));
    let store = Store::open(&folder.path().join("hearth.db"), Clock::system()).unwrap();
    assert_eq!(
        store
            .seen(&Viewer::server())
            .conversations(10, None, true)
            .unwrap()
            .conversations
            .len(),
        1
    );
    store.close();
}

#[test]
fn help_names_the_program_as_it_was_called() {
    let folder = TemporaryDirectory::new();
    for words in [["chat", "--help"], ["memory", "-h"]] {
        let said = printed(&run(folder.path(), &words));
        let usage = format!("Usage: {} {}", binary().display(), words[0]);
        assert!(said.contains(&usage), "{said}");
    }
}

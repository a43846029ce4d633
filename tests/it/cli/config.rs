//! `hearth config` on files and directories that are not as they should be.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::program::{Program, finish, hearth, printed, run};

const NOBODY: u32 = 65534;

/// Runs as another user than root, whose rights no file system checks.
fn run_unprivileged(folder: &Path, words: &[&str]) -> Output {
    let mut command = hearth(folder);
    command.args(words).env("EDITOR", "true");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    finish(&mut command)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn file(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("config.json")).unwrap()).unwrap()
}

#[test]
fn a_directory_that_cannot_be_written_is_read() {
    let folder = TemporaryDirectory::new();
    let path = folder.path();
    write_config(path, json!({ "max_tokens": 700 }));
    make_people(path);
    let is_root = rustix::process::geteuid().is_root();
    for (is_running, is_owner) in [(false, false), (true, false), (false, true)] {
        if is_owner && is_root {
            for entry in fs::read_dir(path).unwrap() {
                chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let _program = is_running.then(|| Program::serve(path));
        set_mode(&path.join("config.json"), 0o644);
        set_mode(path, 0o555);
        let config = |words: &[&str]| run_unprivileged(path, &[&["config"], words].concat());
        let got = config(&["get", "max_tokens"]);
        let checked = config(&["check"]);
        let refused = [
            &["set", "max_tokens", "800"][..],
            &["unset", "max_tokens"],
            &["edit"],
        ]
        .map(|words| (words, config(words)));
        // A server of the same user, whom nothing else keeps out, saves nothing either.
        set_mode(path, 0o755);
        let case = format!("running: {is_running}, owner: {is_owner}");
        assert_eq!(printed(&got), "700\n", "{case}");
        assert!(checked.status.success(), "{case}: {}", printed(&checked));
        for (words, output) in refused {
            let said = printed(&output);
            assert_eq!(output.status.code(), Some(1), "{case}, {words:?}: {said}");
            assert!(said.contains("Permission denied"), "{words:?}: {said}");
            assert!(said.contains("right to write"), "{words:?}: {said}");
            assert!(said.contains(path.to_str().unwrap()), "{words:?}: {said}");
        }
        assert_eq!(file(path)["max_tokens"], 700, "{case}");
    }
}

#[test]
fn a_variable_that_is_unset_is_an_error_only_to_whoever_writes_it_beside_a_server() {
    let folder = TemporaryDirectory::new();
    let path = folder.path();
    write_config(path, json!({}));
    let tokens = make_people(path);
    // Nobody uses it here.
    let account = ["webhook", "add", "ci", "--url", "http://127.0.0.1:9/"];
    let added = run(path, &account);
    assert!(added.status.success(), "{}", printed(&added));
    let secret = ["config", "set", "metrics.token", "${NOT_SET_HERE}"];
    let set = run(path, &secret);
    assert!(set.status.success(), "{}", printed(&set));
    assert_eq!(file(path)["metrics"]["token"], "${NOT_SET_HERE}");
    // But a server would not start here.
    let checked = run(path, &["config", "check"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        printed(&checked).contains("variable NOT_SET_HERE"),
        "{}",
        printed(&checked)
    );

    fs::write(path.join("config.json"), "{}").unwrap();
    let program = Program::serve(path);
    let refused = run(path, &secret);
    assert!(
        printed(&refused).contains("NOT_SET_HERE"),
        "{}",
        printed(&refused)
    );
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(file(path), json!({}));
    let mut admin = Client::websocket(program.address);
    admin.authenticate(&tokens.admin);
    let mut in_force = || admin.ask(json!({ "type": "get_config" }));
    let before = in_force();
    // An older one, written by hand, stands in the way of no other setting, and the server
    // goes on with what it has.
    let text = r#"{"metrics": {"token": "${NOT_SET_HERE}"}}"#;
    fs::write(path.join("config.json"), text).unwrap();
    let set = run(path, &["config", "set", "max_tokens", "500"]);
    let said = printed(&set);
    assert!(set.status.success() && said.contains("still"), "{said}");
    assert_eq!(file(path)["max_tokens"], 500);
    assert_eq!(file(path)["metrics"]["token"], "${NOT_SET_HERE}");
    assert_eq!(in_force(), before);
}

#[test]
fn beside_a_server_a_file_with_mistakes_is_mended_and_gets_no_account() {
    let folder = TemporaryDirectory::new();
    let path = folder.path();
    write_config(path, json!({}));
    make_people(path);
    let _program = Program::serve(path);
    let text = r#"{"modle": "x", "max_tokens": "many"}"#;
    fs::write(path.join("config.json"), text).unwrap();
    let account = ["webhook", "add", "ci", "--url", "http://127.0.0.1:9/"];
    for (words, succeeds, says) in [
        (&account[..], false, "modle"),
        (
            &["config", "unset", "modell"],
            false,
            "no setting \"modell\"",
        ),
        (&["config", "unset", "modle"], true, "wrong with it still"),
        (
            &["config", "unset", "max_tokens"],
            true,
            "max_tokens removed",
        ),
        (&account, true, "curl "),
    ] {
        let output = run(path, words);
        let said = printed(&output);
        assert_eq!(output.status.success(), succeeds, "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

#[test]
fn what_only_the_server_s_environment_has_is_missed_where_it_is_used() {
    let folder = TemporaryDirectory::new();
    let path = folder.path();
    let config = json!({
        "provider": "ollama", "model": "m", "base_url": "${OLLAMA}", "workers": "${WORKERS}",
        "backup": { "directory": "${BACKUPS}" },
        "relay": { "enabled": true, "auth_token": "${RELAY}" },
        "people": { "admin": { "notifications": { "ntfy": {
            "url": "http://127.0.0.1:1", "topic": "home", "token": "${NTFY}",
        } } } },
        "channels": {
            "lan": { "type": "tcp", "port": "${PORT}" },
            "webhook": { "accounts": { "ci": {
                "incoming_path": "/ci", "outgoing_url": "${RECEIVER}", "secret": "${SECRET}",
            } } },
        },
    });
    write_config(path, config.clone());
    make_people(path);
    let copy = path.join("all.db");
    for words in [
        &["user", "list"][..],
        &["list", "add", "shopping", "milk"],
        &["backup", copy.to_str().unwrap()],
        &["tool", "list"],
        &["webhook", "add", "door", "--url", "http://127.0.0.1:9/"],
        &["config", "set", "api_key", "${KEY}"],
        &["config", "unset", "api_key"],
        &["webhook", "remove", "door"],
    ] {
        let output = run(path, words);
        let said = printed(&output);
        assert!(output.status.success(), "{words:?}: {said}");
        assert!(!said.contains("unset"), "{words:?}: {said}");
    }
    assert_eq!(file(path)["channels"], config["channels"]);
    for (words, variables) in [
        (&["notify", "test", "admin"][..], &["NTFY"][..]),
        (&["backup", "--list"], &["BACKUPS"]),
        (&["webhook", "list"], &["RECEIVER", "SECRET"]),
        (
            &["config", "check"],
            &[
                "OLLAMA", "WORKERS", "BACKUPS", "RELAY", "NTFY", "PORT", "RECEIVER", "SECRET",
            ],
        ),
    ] {
        let output = run(path, words);
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        let named = said.matches("environment variable").count();
        assert_eq!(named, variables.len(), "{words:?}: {said}");
        for name in variables {
            assert!(
                said.contains(&format!("variable {name}, ")),
                "{words:?}: {said}"
            );
        }
    }
    let environment = [
        ("OLLAMA", "http://127.0.0.1:1"),
        ("WORKERS", "3"),
        ("BACKUPS", path.to_str().unwrap()),
        ("RELAY", "a-token-of-the-relay-that-is-long-enough"),
        ("NTFY", "a-token-of-ntfy"),
        ("PORT", "0"),
        ("RECEIVER", "http://127.0.0.1:9/"),
        ("SECRET", "a-secret-of-the-account"),
    ];
    let serve = ["serve", "--bind", "127.0.0.1", "--port", "0"];
    let _program = Program::start_in(path, &serve, &environment);
    for words in [
        &["config", "check"][..],
        &["webhook", "list"],
        &["backup", "--list"],
    ] {
        let output = run(path, words);
        assert!(output.status.success(), "{words:?}: {}", printed(&output));
    }
}

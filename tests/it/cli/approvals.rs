//! Approvals that are seen and answered from the command line, beside a running server.

use serde_json::{Value, json};

use support::eventually;
use support::home::TemporaryDirectory;
use support::home::{Home, make_people, write_config};
use support::model::{Act, Model};
use support::program::{Program, finish, hearth, output_of, printed, run};

/// What hides the end of a command: a thousand empty lines, and a mark that turns
/// the direction of writing.
fn hiding() -> String {
    format!("ls{}echo \u{202E}fr- mr", "\n".repeat(1_300))
}

fn listed(folder: &TemporaryDirectory) -> Vec<Value> {
    let output = run(folder.path(), &["approvals", "list", "--json"]);
    assert!(output.status.success(), "{}", printed(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn approvals_are_listed_shown_allowed_and_denied_beside_a_running_server() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::Say(format!("so {}", last["content"].as_str().unwrap())),
            false => Act::call("run_command", json!({ "command": hiding() })),
        }
    });
    let folder = TemporaryDirectory::new();
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["tools"] = json!({ "run_command": { "enabled": true } });
    write_config(folder.path(), config);
    make_people(folder.path());
    let program = Program::start(folder.path(), &["serve"]);
    assert!(printed(&run(folder.path(), &["approvals", "list"])).contains("Nothing waits"));
    for (answer, said, result) in [
        (&["allow"][..], "runs this once", "fr- mr"),
        (&["deny"], "does not run", "did not allow this"),
        (
            &["allow", "--conversation"],
            "also later in this conversation",
            "fr- mr",
        ),
    ] {
        let asking = hearth(folder.path())
            .args(["chat", "go"])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let waiting = eventually("it waits", || listed(&folder).pop());
        let id = waiting["approval_id"].as_str().unwrap();
        let table = printed(&run(folder.path(), &["approvals", "list"]));
        assert!(
            table.contains(id) && table.contains("run the command"),
            "{table}"
        );
        let shown = printed(&run(folder.path(), &["approvals", "show", id]));
        for line in ["  | ls\n", "  | ‹↵ ×1299›\n", "  | echo ‹U+202E›fr- mr\n"] {
            assert!(shown.contains(line), "{shown}");
        }
        let words = [&["approvals", answer[0], id], &answer[1..]].concat();
        let decided = run(folder.path(), &words);
        assert!(printed(&decided).contains(said), "{}", printed(&decided));
        let again = run(folder.path(), &words);
        assert_eq!(again.status.code(), Some(1), "{}", printed(&again));
        let asked = output_of(asking);
        let asked = printed(&asked);
        assert!(asked.contains(result), "{asked}");
        assert!(asked.contains(&format!("approvals show {id}")), "{asked}");
        assert!(listed(&folder).is_empty());
    }
    drop(program);
}

#[test]
fn a_token_of_the_environment_is_named_when_it_is_refused() {
    let home = Home::offline();
    let run_in = |token: &str, words: &[&str]| {
        let mut command = hearth(home.folder.path());
        command.args(words).env("HEARTH_TOKEN", token);
        finish(&mut command)
    };
    for words in [&["approvals", "list"][..], &["chat", "hello"]] {
        let refused = run_in("hearth_wrong", words);
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            printed(&refused).contains("(signed in with HEARTH_TOKEN)"),
            "{}",
            printed(&refused)
        );
        let path = home.folder.path().to_str().unwrap();
        let local = run_in("hearth_wrong", &[words, &["--data-dir", path]].concat());
        assert!(local.status.success(), "{}", printed(&local));
    }
}

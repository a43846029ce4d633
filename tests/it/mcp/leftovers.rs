//! What programs of tools leave running when the server that started them is killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use support::client::Client;
use support::eventually;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::mcp_http::shell_server;
use support::program::Program;

/// Notes in `$FOLDER/NAME.*` its own id, and those of a child in its group, of one in a
/// session of its own, and of one that has lost its parent, too.
const LEAVE: &str = r#"
trap '' TERM
echo $$ >"$FOLDER/$NAME.own"
sleep 600 & echo $! >"$FOLDER/$NAME.child"
setsid sh -c 'trap "" TERM; echo $$ >"$FOLDER/$NAME.session"; while :; do sleep 600; done' &
(setsid sh -c 'echo $$ >"$FOLDER/$NAME.daemon"; exec sleep 600' &)
"#;
/// One that has lost its parent and its environment, and is still in the group.
const BARE: &str = r#"
(env -i sh -c 'echo $$ >"$1"; exec sleep 600' - "$FOLDER/$NAME.bare" &)
"#;

/// A process that no tool has started.
struct Bystander(Child);

impl Bystander {
    fn start() -> Bystander {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Bystander(command.spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_running(process: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", process.trim()));
    status.is_ok_and(|status| !status.contains(") Z "))
}

/// The ids of the processes that are noted in the folder.
fn noted(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    let ids = paths.filter_map(|path| fs::read_to_string(path).ok());
    ids.filter(|id| id.ends_with('\n')).collect()
}

#[test]
fn nothing_outlives_a_server_that_is_killed() {
    let (folder, notes) = (TemporaryDirectory::new(), TemporaryDirectory::new());
    let environment = |name: &str| json!({"FOLDER": notes.path(), "NAME": name});
    let tool = |name: &str, script: String| {
        json!({
            "name": name,
            "description": "Leaves something running.",
            "parameters": {},
            "command": ["sh", "-c", script],
            "env": environment(name),
            "sandbox": false,
            "read_only": true,
        })
    };
    // It hears nothing any more once its tools were listed.
    let deaf = shell_server("deaf", &json!([]), "while :; do sleep 600; done", ":");
    let mut config = json!({
        "permission_mode": "allow",
        "tools": {
            "custom": [
                tool("radio", format!("{{ {LEAVE} }} >/dev/null 2>&1; rm \"$FOLDER/radio.own\"")),
                tool("stuck", format!("{LEAVE} {BARE} while :; do sleep 600; done")),
            ],
            "run_command": {"enabled": true},
        },
        "mcp_servers": {"deaf": {
            "command": "sh",
            "args": ["-c", format!("{{ {LEAVE} {BARE} }} >&2\n{deaf}")],
            "env": environment("deaf"),
        }},
    });
    config["limits"] = json!({"commands_per_second": 100_000, "commands_burst": 100_000});
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let mut bystander = Bystander::start();
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    eventually("the MCP server is ready", || {
        let info = client.ask(json!({"type": "server_info"}));
        (info["mcp_servers"][0]["state"] == "ready").then_some(())
    });
    let reply = client.chat("run radio");
    let said = reply["response"].as_str().unwrap();
    assert!(said.contains("answered"), "{said}");
    client.send(&json!({"type": "chat", "message": "run stuck"}));
    let mut other = Client::websocket(program.address);
    other.authenticate(&tokens.admin);
    // In the sandbox it writes to the folder of its person alone.
    let files = folder.path().join("people");
    let command = "echo $$ >id.new; mv id.new id; setsid sh -c 'echo $$ >session.new; mv \
                   session.new session; exec sleep 600' & sleep 600";
    let call = json!({ "command": command });
    other.send(&json!({"type": "chat", "message": format!("run run_command {call}")}));
    // Three of the radio, whose own program has ended, five of the others, two of the command.
    let ids = eventually("all have started", || {
        let mut ids = noted(notes.path());
        let own = fs::read_dir(&files).into_iter().flatten().flatten();
        for place in own.map(|entry| entry.path()) {
            for name in ["id", "session"] {
                ids.extend(fs::read_to_string(place.join(name)));
            }
        }
        (ids.len() == 15).then_some(ids)
    });
    for id in &ids {
        assert!(is_running(id), "{id} has ended before: {ids:?}");
    }
    program.kill();
    eventually("all have ended", || {
        (!ids.iter().any(|id| is_running(id))).then_some(())
    });
    assert!(matches!(bystander.0.try_wait(), Ok(None)));
}

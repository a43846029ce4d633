//! Calls of MCP servers' tools that the end of the server interrupts.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::program::Program;

/// The MCP server of tests, which takes its time to start.
fn slow_server(notes: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_stub.sh");
    json!({"stub": {
        "command": "sh",
        "args": ["-c", "sleep 1; exec sh \"$0\"", script],
        "env": {"STUB_NOTES": notes},
    }})
}

#[test]
fn an_interrupted_call_is_told_as_such_whatever_has_become_of_its_tool() {
    for is_removed in [false, true] {
        let model = Model::start(|request, _| {
            let messages = request["messages"].as_array().unwrap();
            match messages.iter().any(|one| one["role"] == "tool") {
                false => Act::call("mcp_stub_hang", json!({})),
                true => Act::say("fine"),
            }
        });
        let (notes, folder) = (TemporaryDirectory::new(), TemporaryDirectory::new());
        let notes = notes.path().join("notes");
        let mut config = model.config();
        config["permission_mode"] = json!("allow");
        config["mcp_servers"] = slow_server(&notes);
        write_config(folder.path(), config.clone());
        let tokens = make_people(folder.path());
        let program = Program::serve(folder.path());
        let mut client = Client::websocket(program.address);
        client.authenticate(&tokens.admin);
        eventually("the server's tools are there", || {
            let info = client.ask(json!({"type": "server_info"}));
            (info["mcp_servers"][0]["state"] == "ready").then_some(())
        });
        client.send(&json!({"type": "chat", "message": "do it"}));
        let calls = || {
            let noted = fs::read_to_string(&notes).unwrap_or_default();
            noted.matches("\"tools/call\"").count()
        };
        eventually("the tool runs", || (calls() == 1).then_some(()));
        program.kill();

        if is_removed {
            config["mcp_servers"] = json!({});
            write_config(folder.path(), config);
        }
        let _program = Program::serve(folder.path());
        let request = eventually("the turn goes on", || model.requests().get(1).cloned());
        let messages = request["messages"].as_array().unwrap();
        let result = messages.iter().find(|one| one["role"] == "tool").unwrap();
        let result = result["content"].as_str().unwrap();
        assert!(
            result.contains("may or may not have taken effect"),
            "{result}"
        );
        // It waited for the server, and what goes on has its tools.
        let is_offered = request["tools"].to_string().contains("mcp_stub_hang");
        assert_eq!(is_offered, !is_removed);
        assert_eq!(calls(), 1, "nothing runs twice");
    }
}

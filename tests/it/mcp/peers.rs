//! Real MCP servers and clients from the public registries. They are installed by these tests,
//! so they run only when asked for: `make test-peers`.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::client::Client;
use support::home::{Home, TemporaryDirectory};
use support::peers::{self, Running, free_address};
use support::program::finish;
use support::programs::worked;

/// Programs of this kind take seconds to start, on a small machine many.
const START: Duration = Duration::from_secs(90);

/// A server with one MCP server that asks before each call.
pub fn home(entry: Value) -> (Home, Client) {
    let home = Home::start(json!({
        "mcp_servers": {"peer": entry},
        "limits": {"commands_per_second": 100_000, "commands_burst": 100_000},
    }));
    let mut client = home.admin();
    client.ask(json!({"type": "subscribe", "events": ["approval.requested"]}));
    let deadline = Instant::now() + START;
    loop {
        let info = client.ask(json!({"type": "server_info"}));
        let peer = &info["mcp_servers"][0];
        if peer["state"] == "ready" {
            return (home, client);
        }
        assert!(Instant::now() < deadline, "{peer}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

/// Calls a tool, allows it, and returns what the offline provider says of it.
pub fn run(client: &mut Client, call: &str) -> String {
    let message = format!("run mcp_peer_{call}");
    client.send(&json!({"type": "chat", "message": message, "id": "chat"}));
    let asked = client.event("approval.requested");
    client.send(&json!({"type": "approve", "approval_id": asked["approval_id"], "id": "yes"}));
    loop {
        let response = client.response();
        if response["id"] == "chat" {
            return response["data"]["response"].as_str().unwrap().to_owned();
        }
        assert_eq!(response["status"], "ok", "{response}");
    }
}

fn check(entry: Value, calls: &[(&str, &str)]) {
    let (mut home, mut client) = home(entry);
    for (call, says) in calls {
        let answer = run(&mut client, call);
        assert!(answer.contains(says), "{call}: {answer}");
        println!("{call}\n    {answer}");
    }
    home.stop();
    worked();
}

#[test]
#[ignore = "installs mcp-server-time and mcp-server-git from PyPI: make test-peers"]
fn python_servers_answer() {
    let Some(programs) = peers::MCP_PYTHON.installed() else {
        return;
    };
    check(
        json!({"command": programs.join("mcp-server-time"), "args": ["--local-timezone", "UTC"]}),
        &[
            (
                "get_current_time {\"timezone\": \"Europe/Oslo\"}",
                "Europe/Oslo",
            ),
            (
                "get_current_time {\"timezone\": \"Nowhere/Land\"}",
                "failed",
            ),
        ],
    );
    let repository = TemporaryDirectory::new();
    assert!(
        Command::new("git")
            .args(["init", "--quiet"])
            .arg(repository.path())
            .status()
            .unwrap()
            .success()
    );
    let path = repository.path().display().to_string();
    check(
        json!({"command": programs.join("mcp-server-git"), "args": ["--repository", path]}),
        &[(
            &format!("git_status {{\"repo_path\": {path:?}}}"),
            "Repository status",
        )],
    );
}

#[test]
#[ignore = "installs mcp-server-sqlite from PyPI: make test-peers"]
fn an_old_python_server_answers() {
    let Some(programs) = peers::MCP_OLD_PYTHON.installed() else {
        return;
    };
    let folder = TemporaryDirectory::new();
    check(
        json!({
            "command": programs.join("mcp-server-sqlite"),
            "args": ["--db-path", folder.path().join("test.db")],
        }),
        &[
            (
                "create_table {\"query\": \"create table t (a)\"}",
                "successfully",
            ),
            (
                "write_query {\"query\": \"insert into t values (42)\"}",
                "affected_rows",
            ),
            ("read_query {\"query\": \"select a from t\"}", "42"),
        ],
    );
}

#[test]
#[ignore = "installs @modelcontextprotocol/server-* from npm: make test-peers"]
fn node_servers_answer() {
    let Some(programs) = peers::MCP_NODE.programs() else {
        return;
    };
    let folder = TemporaryDirectory::new();
    let note = folder.path().join("note.txt");
    std::fs::write(&note, "the bins go out on Monday").unwrap();
    check(
        json!({
            "command": programs.join("mcp-server-filesystem"),
            "args": [folder.path()],
        }),
        &[
            (
                &format!("read_text_file {{\"path\": {note:?}}}"),
                "bins go out on Monday",
            ),
            (
                "read_text_file {\"path\": \"/etc/passwd\"}",
                "Access denied",
            ),
        ],
    );
    check(
        json!({
            "command": programs.join("mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": folder.path().join("memory.json")},
        }),
        &[
            (
                "create_entities {\"entities\": [{\"name\": \"Mia\", \"entityType\": \"person\", \"observations\": [\"is 7\"]}]}",
                "Mia",
            ),
            ("search_nodes {\"query\": \"Mia\"}", "is 7"),
        ],
    );
    check(
        json!({"command": programs.join("mcp-server-everything"), "timeout_seconds": 2}),
        EVERYTHING,
    );
}

/// Calls of the server that has one of everything. The long one takes longer
/// than a call may be silent.
const EVERYTHING: &[(&str, &str)] = &[
    ("get-sum {\"a\": 1, \"b\": 2}", "The sum of 1 and 2 is 3."),
    ("get-tiny-image", "image/png, 4033 bytes]"),
    (
        "get-structured-content {\"location\": \"Chicago\"}",
        "\"temperature\"",
    ),
    ("get-resource-links {\"count\": 2}", "[link "),
    (
        "trigger-long-running-operation {\"duration\": 3, \"steps\": 6}",
        "Long running operation completed",
    ),
];

#[test]
#[ignore = "installs @modelcontextprotocol/server-everything from npm: make test-peers"]
fn a_node_server_answers_over_http() {
    let Some(programs) = peers::MCP_NODE.programs() else {
        return;
    };
    let address = free_address();
    let _server = Running::start(
        "mcp-server-everything",
        Command::new(programs.join("mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", address.port().to_string()),
        address,
        "/mcp",
    );
    check(
        json!({"url": format!("http://{address}/mcp"), "timeout_seconds": 2}),
        EVERYTHING,
    );
}

/// A server on the Python SDK.
const ADDER: &str = r#"
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("adder", version="1.0")
@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers"
    return a + b
server.run(transport="streamable-http", port=int(sys.argv[1]), host="127.0.0.1")
"#;

#[test]
#[ignore = "installs mcp from PyPI: make test-peers"]
fn a_python_server_answers_over_http() {
    let Some(programs) = peers::MCP_PYTHON.installed() else {
        return;
    };
    let address = free_address();
    let _server = Running::start(
        "mcp-adder",
        Command::new(programs.join("python"))
            .args(["-c", ADDER])
            .arg(address.port().to_string()),
        address,
        "/mcp",
    );
    check(
        json!({"url": format!("http://{address}/mcp")}),
        &[("add {\"a\": 40, \"b\": 2}", "answered: 42")],
    );
}

/// Goes through Hearth's own tools with a client: its address and a token are the arguments.
const FASTMCP: &str = r#"
import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
async def main():
    headers = {"Authorization": "Bearer " + sys.argv[2]}
    async def progress(done, total, message):
        print("progress", message)
    transport = StreamableHttpTransport(sys.argv[1], headers=headers)
    async with Client(transport, progress_handler=progress) as client:
        print(sorted(tool.name for tool in await client.list_tools()))
        for tool, arguments in [
            ("remember", {"content": "Rosalind is 7."}),
            ("recall", {"query": "Rosalind"}),
            ("lists", {"action": "add", "list": "toys", "items": ["ball"]}),
            ("ask", {"message": "what do you remember about Rosalind"}),
            ("forget", {"memory_id": "mem_x"}),
        ]:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            print(tool, result.is_error, result.content[0].text)
asyncio.run(main())
"#;

/// The same with those of the official SDK, in the newest revision and with a handshake, and
/// with its older version.
const TYPESCRIPT: &str = r#"
import {Client, StreamableHTTPClientTransport} from "@modelcontextprotocol/client";
import {Client as OldClient} from "@modelcontextprotocol/sdk/client/index.js";
import {StreamableHTTPClientTransport as OldTransport} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const [url, token] = process.argv.slice(-2);
const requestInit = {headers: {Authorization: "Bearer " + token}};
const options = {onprogress: report => console.log("progress", report.message)};
const call = {name: "ask", arguments: {message: "what do you remember about Rosalind"}};
for (const negotiation of [{versionNegotiation: {mode: "auto"}}, {}]) {
  const client = new Client({name: "peer", version: "1"}, negotiation);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), {requestInit}));
  console.log(client.getNegotiatedProtocolVersion(), (await client.listTools()).tools.length);
  console.log((await client.callTool(call, options)).content[0].text);
  await client.close();
}
const client = new OldClient({name: "peer", version: "1"});
await client.connect(new OldTransport(new URL(url), {requestInit}));
console.log("old", (await client.listTools()).tools.length);
console.log((await client.callTool(call, undefined, options)).content[0].text);
await client.close();
"#;

/// Runs a client against Hearth; what it prints must have these lines in this order.
fn check_client(command: &mut Command, expected: &[&str]) {
    let home = Home::start(json!({"mcp_api": {"enabled": true}, "permission_mode": "allow"}));
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({"type": "chat", "message": "remember that Rosalind likes trains"}));
    command.arg(format!("http://{}/mcp", home.address()));
    let output = finish(command.arg(&home.tokens.user));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let problems = String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    let mut lines = text.lines();
    for line in expected {
        let found = lines.any(|printed| printed.contains(line));
        assert!(found, "no {line:?} where it must come:\n{text}{problems}");
    }
    worked();
}

#[test]
#[ignore = "installs fastmcp from PyPI: make test-peers"]
fn fastmcp_uses_hearth() {
    let Some(programs) = peers::FASTMCP.installed() else {
        return;
    };
    check_client(
        Command::new(programs.join("python")).args(["-c", FASTMCP]),
        &[
            "['ask', 'forget', 'lists', 'recall', 'remember', 'schedule', 'search_conversations']",
            "remember False Remembered as mem_",
            "recall False mem_",
            "lists False toys: 1 open of 1",
            "progress The assistant has begun.",
            "ask False ",
            "Rosalind is 7.",
            "forget True there is no memory",
        ],
    );
}

#[test]
#[ignore = "installs @modelcontextprotocol/client from npm: make test-peers"]
fn the_official_sdk_uses_hearth() {
    let Some(folder) = peers::MCP_NODE.installed() else {
        return;
    };
    let script = folder.join("client.mjs");
    std::fs::write(&script, TYPESCRIPT).unwrap();
    check_client(
        Command::new("node").arg(&script),
        &[
            "2026-07-28 7",
            "progress The assistant has begun.",
            "Rosalind likes trains",
            "2025-11-25 7",
            "progress The assistant has begun.",
            "Rosalind likes trains",
            "old 7",
            "Rosalind likes trains",
        ],
    );
}

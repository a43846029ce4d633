//! The conformance suite of the Model Context Protocol, against Hearth as a client and as a
//! server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;

use super::peers::{home, run};
use support::home::Home;
use support::peers::{CONFORMANCE, script};
use support::program::{finish, printed};
use support::programs::worked;
use support::served::Served;

/// What a client does in each scenario: the call of a tool of the suite, or nothing but the
/// handshake and the list of tools.
const CLIENT: [(&str, &str); 3] = [
    ("initialize", ""),
    ("sse-retry", "test_reconnection {}"),
    ("tools_call", r#"add_numbers {"a": 1, "b": 2}"#),
];

/// What a server must do whatever its tools are.
const SERVER: [&str; 5] = [
    "dns-rebinding-protection",
    "ping",
    "server-initialize",
    "server-sse-multiple-streams",
    "tools-list",
];

/// The beginnings of the other scenarios' names, and why they are left out.
const LEFT_OUT: [(&str, &str); 9] = [
    (
        "auth/",
        "a server's key is in the configuration: there is no OAuth",
    ),
    ("completion-", "there is nothing to complete"),
    ("elicitation-", "an MCP server puts no questions to people"),
    ("json-schema-", "is about a tool of the suite's own server"),
    ("logging-", "the server sends no logs"),
    ("prompts-", "the server has no prompts"),
    ("resources-", "the server has no resources"),
    (
        "server-sse-polling",
        "is about a tool of the suite's own server",
    ),
    ("tools-call-", "are about tools of the suite's own server"),
];

/// Runs a scenario, which must pass without a warning.
fn pass(scenario: &str, command: &mut Command) {
    let output = finish(command.args(["--scenario", scenario]));
    let said = printed(&output);
    println!("{said}");
    let is_clean = said.contains(" 0 failed, 0 warnings");
    assert!(output.status.success() && is_clean, "{scenario}: {said}");
}

/// A command of the suite; none where it cannot be installed.
fn suite(command: &str) -> Option<Command> {
    let folder = CONFORMANCE.installed()?.join("node_modules");
    // It needs a newer Node.js than many systems have, which comes with it.
    let mut suite = Command::new(folder.join(".bin/node"));
    suite
        .arg(folder.join("@modelcontextprotocol/conformance/dist/index.js"))
        .arg(command)
        .current_dir(&folder);
    Some(suite)
}

#[test]
#[ignore = "installs @modelcontextprotocol/conformance from npm: make test-peers"]
fn every_scenario_of_the_suite_has_its_place() {
    let Some(mut list) = suite("list") else {
        return;
    };
    let listed = script(&mut list);
    let names = listed.lines().filter_map(|line| line.strip_prefix("  - "));
    let mut passing = 0;
    for name in names.filter_map(|line| line.split(' ').next()) {
        let is_driven = SERVER.contains(&name) || CLIENT.iter().any(|(known, _)| *known == name);
        let why = LEFT_OUT.iter().find(|(begin, _)| name.starts_with(begin));
        match (is_driven, why) {
            (true, None) => println!("passes    {name}"),
            (false, Some((_, why))) => println!("left out  {name}: {why}"),
            _ => panic!("{name} must be either driven or left out"),
        }
        passing += usize::from(is_driven);
    }
    assert_eq!(passing, CLIENT.len() + SERVER.len());
}

#[test]
#[ignore = "installs @modelcontextprotocol/conformance from npm: make test-peers"]
fn hearth_is_a_client_as_the_suite_has_it() {
    for (scenario, call) in CLIENT {
        let Some(mut client) = suite("client") else {
            return;
        };
        // The suite posts the address of its server here, and waits for the answer.
        let drive = Served::answering(move |_, address| {
            let url = String::from_utf8(address.to_vec()).unwrap();
            let (mut home, mut admin) = home(json!({ "url": url }));
            let said = match call {
                "" => String::new(),
                call => run(&mut admin, call),
            };
            home.stop();
            println!("{scenario}: {said}");
            Some(Arc::from(&b"HTTP/1.1 204 Done\r\n\r\n"[..]))
        });
        let command = format!("curl -sf --max-time 80 http://{} -d", drive.address);
        client.args(["--timeout", "90000", "--command", &command]);
        pass(scenario, &mut client);
    }
}

#[test]
#[ignore = "installs @modelcontextprotocol/conformance from npm: make test-peers"]
fn hearth_is_a_server_as_the_suite_has_it() {
    let home = Home::start(json!({ "mcp_api": { "enabled": true } }));
    let (address, token) = (home.address(), home.tokens.user.clone());
    // The suite has no token.
    let with_token = Served::answering(move |head, body| {
        let is_kept = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
        let lines: Vec<&str> = head.trim_end().lines().filter(is_kept).collect();
        let mut socket = TcpStream::connect(address).ok()?;
        let head = format!(
            "{}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
            lines.join("\r\n")
        );
        socket.write_all(&[head.as_bytes(), body].concat()).ok()?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).ok()?;
        Some(answer.into())
    });
    for scenario in SERVER {
        let Some(mut server) = suite("server") else {
            return;
        };
        let url = format!("http://{}/mcp", with_token.address);
        pass(scenario, server.args(["--url", &url]));
    }
    worked();
}

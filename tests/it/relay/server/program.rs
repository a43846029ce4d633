//! HTTP, the program itself, and a server that is a relay too.

use std::process::Command;

use config::AddressPatterns;
use protocol::relay::FrameKind;
use relay::noise::PrivateKey;
use serde_json::json;

use support::eventually;
use support::home::{Home, TemporaryDirectory, write_config};
use support::http::{get, post};
use support::program::{Program, finish, hearth, printed, run};
use support::relay_peers::{Line, Machine, TOKEN, ping, relay, request, with_token};

use super::text;

#[test]
fn a_relay_registers_machines_and_answers_in_envelopes() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let health = get(address, "/health").json();
    assert_eq!(health["status"], "ok");
    assert!(health["uptime_seconds"].is_u64());
    assert_eq!(health.as_object().unwrap().len(), 2);

    let key = PrivateKey::generate().public_key();
    let id = key.machine_id();
    let expected = json!({
        "machine_id": id.as_str(), "relay_url": format!("ws://{address}/ws?machine_id={id}"),
    });
    let bearer = format!("Bearer {TOKEN}");
    let by_id = json!({"machine_id": id.as_str()});
    let by_key = json!({"machine_name": "attic", "public_key": key.to_base64()});
    for (path, body) in [("/register", &by_id), ("/ws/register", &by_key)] {
        let answer = post(address, path, &[("Authorization", &bearer)], body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["data"], expected);
        for (header, status) in [(Some("Bearer nope"), 401), (None, 401)] {
            let headers: Vec<_> = header
                .map(|value| ("Authorization", value))
                .into_iter()
                .collect();
            let answer = post(address, path, &headers, body);
            assert_eq!(answer.status, status);
            assert_eq!(answer.json()["code"], "invalid_token");
        }
    }
    let wrong = json!({"machine_id": "nobody"});
    let answer = post(address, "/register", &[("Authorization", &bearer)], &wrong);
    assert_eq!(answer.status, 400, "{answer:?}");
    for (path, status) in [("/", 404), ("/auth", 404), ("/ws", 426), ("/register", 405)] {
        let answer = get(address, path);
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.json()["status"], "error");
    }
    relay.stop();

    // What a trusted proxy says of the way to it is the address to give out.
    let proxies = AddressPatterns::parse(&["127.0.0.1"]).unwrap();
    for (trusted, url) in [(true, "wss://relay.example/ws"), (false, "ws://127.0.0.1")] {
        let relay = support::relay_peers::relay(|options| {
            if trusted {
                options.trusted_proxies = proxies.clone();
            }
        });
        let headers = [
            ("Authorization", bearer.as_str()),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "relay.example"),
        ];
        let answer = post(relay.local_addr(), "/register", &headers, &by_id).json();
        let given = answer["data"]["relay_url"].as_str().unwrap();
        assert!(given.starts_with(url), "{given}");
        relay.stop();
    }
}

#[test]
fn a_server_can_be_a_relay_too() {
    let home = Home::start(json!({
        "relay": { "enabled": true, "auth_token": TOKEN },
        // Enough for a machine to link on a busy machine.
        "limits": { "auth_seconds": 5 },
    }));
    let address = home.address();
    // Its own clients notice nothing.
    home.admin();
    let mut machine = Machine::link(address);
    let mut client = Line::client(address, &machine.id);
    client.send(&ping());
    let number = machine.meet(&ping());
    machine.send(number, FrameKind::Text("through the server"));
    assert_eq!(client.next(), text("through the server"));
    // Any page may use the relay when it holds the token; not the server.
    let query = format!("?machine_id={}", machine.id);
    let foreign = || ("Origin", "https://page.example");
    let (name, value) = foreign();
    let relayed = with_token(address, &query).with_header(name, value);
    assert!(Line::open(address, relayed).is_ok());
    let own = request(address, "").with_header(name, value);
    assert_eq!(Line::open(address, own).err(), Some(403));

    // Both ways of registering, beside the server's own.
    let bearer = format!("Bearer {TOKEN}");
    let body = json!({"machine_id": machine.id.as_str()});
    let answer = post(address, "/register", &[("Authorization", &bearer)], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let key = PrivateKey::generate().public_key();
    let body = json!({"machine_name": "attic", "public_key": key.to_base64()});
    let token = format!("Bearer {}", home.tokens.user);
    for bearer in [&bearer, &token] {
        let answer = post(address, "/ws/register", &[("Authorization", bearer)], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    // Who says nothing, or proves nothing, is sent away.
    let mut silent = Line::client(address, &machine.id);
    let mut unproved = Machine::dial(address, &PrivateKey::generate());
    silent.refused("invalid_token");
    assert_eq!(silent.close_code(), 1008);
    unproved.line.refused("invalid_token");
    assert_eq!(unproved.line.close_code(), 1008);
}

#[test]
fn a_server_that_is_no_relay_says_so() {
    let home = Home::offline();
    let address = home.address();
    let id = PrivateKey::generate().public_key().machine_id();
    for query in [
        format!("?machine_id={id}"),
        format!("?machine_id={id}&role=machine"),
    ] {
        let refused = Line::open(address, with_token(address, &query));
        assert_eq!(refused.err(), Some(404));
    }
    let bearer = format!("Bearer {TOKEN}");
    let body = json!({"machine_id": id.as_str()});
    let answer = post(address, "/register", &[("Authorization", &bearer)], &body);
    assert_eq!(answer.status, 404);
}

#[test]
fn the_program_keeps_nothing_and_says_when_it_stops() {
    let folder = TemporaryDirectory::new();
    let arguments = ["relay", "--bind", "127.0.0.1", "--port", "0"];
    let program = Program::start_in(folder.path(), &arguments, &[("AUTH_TOKEN", TOKEN)]);
    let mut machine = Machine::link(program.address);
    let mut client = Line::client(program.address, &machine.id);
    client.send("a secret that nobody logs");
    let number = machine.meet("a secret that nobody logs");
    machine.send(number, FrameKind::Text("nor the answer to it"));
    assert_eq!(client.next(), text("nor the answer to it"));
    // Both are waited for: they have two seconds to close their ends.
    let ends = std::thread::spawn(move || (machine.line.close_code(), client.close_code()));
    assert_eq!(program.signal("TERM"), Some(0));
    let (machine_end, client_end) = ends.join().unwrap();
    assert_eq!(machine_end, 1001);
    assert!([1001, 1013].contains(&client_end), "{client_end}");

    let log = std::fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
    assert!(log.contains(" linked from 127.0.0.1"), "{log}");
    assert!(log.contains("client 1 of machine "), "{log}");
    for private in ["secret", "nor the answer", TOKEN] {
        assert!(!log.contains(private), "{log}");
    }
    let files: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(files, ["stderr.txt"], "only what the test itself keeps");
}

#[test]
fn the_program_says_what_its_open_files_have_room_for() {
    let folder = TemporaryDirectory::new();
    let program = hearth(folder.path());
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "ulimit -n 100 && exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(["relay", "--bind", "127.0.0.1", "--port", "0"])
        .env_clear()
        .env("AUTH_TOKEN", TOKEN);
    let program = Program::launch(command, folder.path());
    let said = "25 connections in all: the limit of open files (LimitNOFILE=, ulimit -n) leaves no \
                room for more";
    assert!(program.said.contains(said), "{}", program.said);

    // Beyond it, it refuses, and does not stall or end.
    let mut machines: Vec<Machine> = (0..25).map(|_| Machine::link(program.address)).collect();
    let dial = || {
        let id = PrivateKey::generate().public_key().machine_id();
        let query = format!("?machine_id={id}&role=machine");
        Line::open(program.address, with_token(program.address, &query))
    };
    assert_eq!(dial().err(), Some(503));
    machines.pop();
    eventually("room again", || dial().ok());
}

#[test]
fn the_program_wants_a_long_token_and_makes_one() {
    let folder = TemporaryDirectory::new();
    let output = run(folder.path(), &["relay"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(printed(&output).contains("AUTH_TOKEN is not set"));
    let output = finish(
        hearth(folder.path())
            .arg("relay")
            .env("AUTH_TOKEN", "x".repeat(31)),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(printed(&output).contains("31 characters"));
    let output = finish(
        hearth(folder.path())
            .args(["relay", "--cert", "/nowhere/cert.pem", "--key", "key.pem"])
            .env("AUTH_TOKEN", TOKEN),
    );
    assert_eq!(output.status.code(), Some(1));
    let text = printed(&output);
    assert!(
        text.contains("--cert and --key: /nowhere/cert.pem cannot be read")
            && !text.contains("config"),
        "{text}"
    );
    let output = run(folder.path(), &["relay", "--show-token"]);
    let token = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(token.trim().len() >= 32, "{token}");
    assert!(printed(&output).contains("hearth relay\n"));
    let output = run(folder.path(), &["relay", "--trusted-proxy", "nobody"]);
    assert!(!output.status.success());
}

#[test]
fn a_server_that_is_to_be_a_relay_needs_a_token() {
    let folder = TemporaryDirectory::new();
    for (config, says) in [
        (json!({ "enabled": true }), "--show-token"),
        (
            json!({ "enabled": true, "auth_token": "short" }),
            "5 characters",
        ),
    ] {
        write_config(folder.path(), json!({ "relay": config }));
        let output = run(
            folder.path(),
            &["serve", "--bind", "127.0.0.1", "--port", "0"],
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(printed(&output).contains(says), "{}", printed(&output));
    }
}

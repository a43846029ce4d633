//! The real binary where the system grants little: address space, descriptors,
//! threads, file size. It refuses, works on, and recovers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::net::{self, AddressFamily, SocketType};
use rustix::process::{Pid, Resource, Rlimit, geteuid, getrlimit, prlimit};
use serde_json::{Value, json};

use crate::scenarios::{Posted, Poster, echoing, wait_until_done, with_account};
use base::ids::ConversationId;
use support::MAX_WAIT;
use support::client::Client;
use support::eventually;
use support::home::{PASSWORD, TemporaryDirectory, make_people, write_config};
use support::http::{get, post};
use support::model::{Act, Model};
use support::program::{Program, hearth, is_there, printed, run, skipped};
use support::receiver::Receiver;
use support::socket::{Socket, connect};

const HANDSHAKE: &str = "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Limits that do not apply to strangers of one address.
fn unlimited() -> serde_json::Value {
    json!({ "limits": {
        "connections_per_address": 10_000,
        "unauthenticated_per_address": 10_000,
        "auth_seconds": 600,
        "login_failures": 10_000,
    } })
}

/// With the one arena of the C library that a small address space has room for.
const ONE_ARENA: &str = "export GLIBC_TUNABLES=glibc.malloc.arena_max=1 &&";

/// Serves in `folder` from a shell, behind these words of a command line.
fn serve_with(folder: &Path, words: &str) -> Program {
    let program = hearth(folder);
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(format!("{words} \"$0\" \"$@\""))
        .arg(program.get_program())
        .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HEARTH_DATA_DIR", folder);
    Program::launch(shell, folder)
}

/// Opens connections of somebody who signs in until one is refused; returns those that are
/// open. Those of strangers would make way for each other.
fn open_until_refused(program: &Program, token: &str) -> Vec<Socket> {
    let mut open = Vec::new();
    loop {
        let mut socket = connect(program.address);
        let request = json!({ "type": "auth", "token": token });
        let _ = socket.write_all(format!("{request}\n").as_bytes());
        let mut line = String::new();
        let read = BufReader::new(&mut socket).read_line(&mut line);
        match serde_json::from_str::<Value>(&line) {
            Ok(response) if response["status"] == "ok" => open.push(socket),
            Ok(response) => {
                assert_eq!(response["code"], "server_error", "{response}");
                return open;
            }
            Err(error) => panic!("{read:?} {line:?}: {error}"),
        }
        assert!(open.len() < 5_000, "nothing limits it");
    }
}

/// Sends a request and returns the status of its response.
fn status(socket: &mut Socket, request: &str) -> u16 {
    // Who is refused may be closed before it has sent everything.
    let _ = socket.write_all(request.as_bytes());
    let mut line = [0; 12];
    socket.read_exact(&mut line).unwrap();
    String::from_utf8_lossy(&line[9..]).parse().unwrap()
}

/// Holds as many connections as fit, sees that strangers get one of these statuses
/// and that the server works again once they are gone. Returns how many there were.
fn flood(program: &Program, token: &str, statuses: &[u16]) -> usize {
    let held = open_until_refused(program, token);
    assert!(held.len() >= 4, "only {}", held.len());
    thread::scope(|scope| {
        let log_in = || {
            let body = json!({ "username": "nobody", "password": "wrong" }).to_string();
            let request = format!(
                "POST /auth HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            status(&mut connect(program.address), &request)
        };
        let attempts: Vec<_> = (0..20).map(|_| scope.spawn(log_in)).collect();
        for attempt in attempts {
            let status = attempt.join().unwrap();
            assert!(statuses.contains(&status), "{status}");
        }
    });
    let count = held.len();
    for socket in held {
        socket.shutdown(Shutdown::Both).unwrap();
    }
    eventually("it works again", || {
        let credentials = json!({ "username": "admin", "password": PASSWORD });
        let signed_in = post(program.address, "/auth", &[], &credentials).status;
        (signed_in == 200 && get(program.address, "/health").status == 200).then_some(())
    });
    count
}

/// Sets a limit of the running program; returns the one before.
fn set_limit(program: &Program, resource: Resource, current: Option<u64>) -> Option<u64> {
    let process = Pid::from_raw(program.id() as i32);
    let limit = Rlimit {
        current,
        ..getrlimit(resource)
    };
    prlimit(process, resource, limit).unwrap().current
}

/// A limit of the file size under which the database's log, which gets longer than all else
/// that the server writes, takes little more. There is none before the first commit.
fn bytes_of_little_more(folder: &Path) -> u64 {
    let log = fs::metadata(folder.join("hearth.db-wal"));
    log.map_or(0, |log| log.len()) + 256 * 1024
}

#[test]
fn strangers_cannot_use_up_the_address_space() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), unlimited());
    let tokens = make_people(folder.path());
    let small = format!("{ONE_ARENA} ulimit -v 250000 && exec");
    for words in [&*small, "ulimit -v 1500000 && exec"] {
        let program = serve_with(folder.path(), words);
        assert!(program.said.contains("address space"), "{}", program.said);
        flood(&program, &tokens.user, &[503]);
        assert_eq!(program.signal("TERM"), Some(0));
    }
}

/// Where the C library's arenas take all of it, few are served, and nothing ends the server.
#[test]
fn strangers_do_not_end_a_server_whose_address_space_is_used_up() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), unlimited());
    let tokens = make_people(folder.path());
    for kilobytes in [150_000, 220_000, 250_000, 290_000, 400_000] {
        let words = format!("ulimit -v {kilobytes} && exec");
        let program = serve_with(folder.path(), &words);
        assert!(program.said.contains("arena_max=1"), "{}", program.said);
        let held = open_until_refused(&program, &tokens.user);
        assert!(held.len() <= 3, "{kilobytes}: {}", held.len());
        for _ in 0..20 {
            assert_eq!(status(&mut connect(program.address), HANDSHAKE), 503);
        }
        drop(held);
        let code = program.signal("TERM");
        let said = fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
        assert_eq!(code, Some(0), "{kilobytes}: {said}");
    }
}

#[test]
fn strangers_cannot_use_up_the_descriptors() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), unlimited());
    let tokens = make_people(folder.path());
    let program = serve_with(folder.path(), "ulimit -n 100 && exec");
    let said = "limits.connections is 1024, but the limit of open files (LimitNOFILE=, ulimit -n) \
                leaves room for 25";
    assert!(program.said.contains(said), "{}", program.said);
    assert_eq!(flood(&program, &tokens.user, &[503]), 25);
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn strangers_are_refused_where_others_hold_the_descriptors() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), unlimited());
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    // Lower than what connections were counted by at the start, and more than the
    // twenty or so that the server has open.
    set_limit(&program, Resource::Nofile, Some(40));
    // A request needs one descriptor less than a WebSocket.
    flood(&program, &tokens.user, &[401, 503]);
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn strangers_cannot_use_up_the_threads() {
    if !geteuid().is_root() {
        return skipped("only root can give the server a user of its own");
    }
    if !is_there("setpriv") || !is_there("prlimit") {
        return;
    }
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), unlimited());
    let tokens = make_people(folder.path());
    // The limit counts all processes of a user.
    let user = 100_000 + std::process::id() % 100_000;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    for file in fs::read_dir(folder.path()).unwrap() {
        chown(file.unwrap().path(), Some(user), Some(user)).unwrap();
    }
    chown(folder.path(), Some(user), Some(user)).unwrap();
    let program = serve_with(
        folder.path(),
        &format!("exec prlimit --nproc=40 setpriv --reuid={user} --regid={user} --clear-groups"),
    );
    let said = "the limit of threads (TasksMax=, LimitNPROC=, ulimit -u) leaves room for 20";
    assert!(program.said.contains(said), "{}", program.said);
    let count = flood(&program, &tokens.user, &[503]);
    assert!(count <= 20, "{count}");
    assert_eq!(program.signal("TERM"), Some(0));
}

/// A connection from this address of this machine.
fn connect_from(source: Ipv4Addr, server: SocketAddr) -> Socket {
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    net::bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    net::connect(&socket, &server).unwrap();
    Socket::new(TcpStream::from(socket))
}

/// Many addresses, each with as many requests as one may leave half-sent, take all places.
#[test]
fn strangers_with_half_a_request_keep_nobody_out() {
    const PLACES: usize = 64;
    let folder = TemporaryDirectory::new();
    let (model, receiver) = (
        Model::acting(vec![Act::Stall("waited for".to_owned())]),
        Receiver::start(),
    );
    let mut config = with_account(&model, receiver.url());
    config["limits"] = json!({ "connections": PLACES });
    config["openai_api"] = json!({ "enabled": true });
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut signed_in = Client::websocket(program.address);
    signed_in.authenticate(&tokens.user);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let body =
                json!({ "model": "scripted", "messages": [{ "role": "user", "content": "hi" }] });
            let token = format!("Bearer {}", tokens.user);
            let headers = [("authorization", token.as_str())];
            post(program.address, "/v1/chat/completions", &headers, &body)
        });
        model.wait_for_requests(1);
        let halves = [
            "GET /hea",
            "POST /webhook/ci HTTP/1.1\r\nHost: x\r\nContent-Le",
            "POST /webhook/ci HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Content-Length: 30\r\n\r\n{\"message\":",
            "{\"type\": \"auth\", ",
        ];
        let mut strangers = Vec::new();
        for number in 0..3 * PLACES {
            let source = Ipv4Addr::new(127, 0, 1, (number / 16 + 1) as u8);
            let mut stranger = connect_from(source, program.address);
            let _ = stranger.write_all(halves[number % halves.len()].as_bytes());
            strangers.push(stranger);
        }
        for _ in 0..10 {
            assert_eq!(get(program.address, "/health").status, 200);
            let posted = Poster::new(program.address).post(&[], &json!({ "message": "tok-x" }));
            assert!(matches!(posted, Posted::Answered(202, _)), "{posted:?}");
        }
        let credentials = json!({ "username": "admin", "password": PASSWORD });
        assert_eq!(
            post(program.address, "/auth", &[], &credentials).status,
            200
        );
        Client::websocket(program.address).authenticate(&tokens.admin);
        model.release();
        let answer = waiting.join().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        signed_in.chat("still there");
    });
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn without_descriptors_the_cause_is_named() {
    let folder = TemporaryDirectory::new();
    let model = echoing();
    write_config(folder.path(), model.config());
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    client.ask(json!({ "type": "list_conversations" }));
    // What is open, such as the database, stays open.
    let usual = set_limit(&program, Resource::Nofile, Some(3));
    for (request, why) in [
        (
            json!({ "type": "chat", "message": "tok-first" }),
            "no file descriptor left",
        ),
        (
            json!({ "type": "update_config", "config": { "model": "another" } }),
            "Too many open files",
        ),
    ] {
        client.send(&request);
        let response = client.response();
        assert_eq!(response["code"], "server_error", "{response}");
        let error = response["error"].as_str().unwrap();
        assert!(error.contains(why), "{error}");
    }
    set_limit(&program, Resource::Nofile, usual);
    client.chat("tok-second");
}

#[test]
fn a_limit_of_the_file_size_is_like_a_full_disk() {
    let folder = TemporaryDirectory::new();
    let (model, receiver) = (echoing(), Receiver::start());
    write_config(folder.path(), with_account(&model, receiver.url()));
    let program = Program::serve(folder.path());
    let most = bytes_of_little_more(folder.path());
    let usual = set_limit(&program, Resource::Fsize, Some(most));
    let poster = Poster::new(program.address);
    let mut accepted = 0;
    let refusal = loop {
        let text = format!("tok-{accepted} {}", "x".repeat(20_000));
        match poster.post(&[], &json!({ "message": text, "conversation_id": "c" })) {
            Posted::Answered(202, _) => accepted += 1,
            Posted::Answered(503, refusal) => break refusal,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal["code"], "server_error");
    assert!(refusal["retry_after"].is_number(), "{refusal}");
    eventually("/health tells", || {
        (get(program.address, "/health").status == 503).then_some(())
    });
    set_limit(&program, Resource::Fsize, usual);
    eventually("it works again", || {
        let works = get(program.address, "/health").status == 200;
        let posted = poster.post(&[], &json!({ "message": "tok-last" }));
        (works && matches!(posted, Posted::Answered(202, _))).then_some(())
    });
    wait_until_done(folder.path(), MAX_WAIT);
    assert!(receiver.callbacks().len() > accepted);
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn an_import_that_fills_the_disk_says_what_it_imported() {
    let time = "2026-01-02T03:04:05.000Z";
    let conversation = |number: i64| {
        json!({ "type": "conversation", "id": ConversationId::from(number).to_string(),
            "title": "long", "created_at": time })
    };
    let message = |letters: usize| {
        json!({ "type": "message", "role": "user", "timestamp": time,
            "content": "x".repeat(letters) })
    };
    // The disk is full before the last conversation, and at its end.
    for (is_last, says) in [
        (false, "imported until there: "),
        (true, "imported until there: 1 conversation, 1 message."),
    ] {
        let folder = TemporaryDirectory::new();
        write_config(folder.path(), json!({}));
        make_people(folder.path());
        let program = Program::serve(folder.path());
        let most = bytes_of_little_more(folder.path());
        let mut lines = vec![json!({ "type": "hearth_export", "version": 1 })];
        lines.extend([conversation(1), message(20)]);
        let long = most as i64 / 10_000;
        for number in 0..long {
            if number == 0 || !is_last {
                lines.push(conversation(number + 2));
            }
            lines.push(message(20_000));
        }
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let file = folder.path().join("all.jsonl");
        fs::write(&file, lines.join("\n")).unwrap();
        let usual = set_limit(&program, Resource::Fsize, Some(most));
        let import = || run(folder.path(), &["import", file.to_str().unwrap()]);
        let failed = import();
        let told = printed(&failed);
        assert_eq!(failed.status.code(), Some(1), "{told}");
        assert!(told.contains(says), "{told}");
        set_limit(&program, Resource::Fsize, usual);
        eventually("the rest is imported", || {
            import().status.success().then_some(())
        });
    }
}

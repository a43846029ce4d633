//! What a start and an idle server cost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use support::client::Client;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::program::{Program, finish, hearth, send_signal};
use support::{MAX_WAIT, eventually};

/// How long an idle server is watched.
const WATCHED: Duration = Duration::from_secs(5);

fn log_length(folder: &Path) -> u64 {
    fs::metadata(folder.join("hearth.db-wal")).map_or(0, |about| about.len())
}

/// The timekeeper has looked so often.
fn rounds(home: &Home, count: usize) {
    for _ in 0..count {
        let before = home.server().last_tick();
        eventually("a round", || {
            (home.server().last_tick() > before).then_some(())
        });
    }
}

#[test]
fn a_start_takes_one_transaction_and_writes_nothing() {
    let config = json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": { "incoming_path": "/door", "outgoing_url": "http://127.0.0.1:1/" },
            "gate": { "incoming_path": "/gate", "outgoing_url": "http://127.0.0.1:1/" },
        } },
    ] });
    let mut home = Home::start(config);
    home.admin().chat("hello");
    home.restart();
    let at_start = home.server().store().statements().transactions;
    assert_eq!(at_start, 1);
    rounds(&home, 2);
    let store = home.server().store();
    assert_eq!(store.statements().transactions, 1, "nothing was due");
    assert_eq!(store.reads(), 0, "no other connection was opened");
    assert_eq!(log_length(home.folder.path()), 0, "and nothing was synced");
}

#[test]
fn an_idle_server_runs_one_statement_a_second_and_no_transaction() {
    let home = Home::offline();
    home.admin().chat("hello");
    // What the chat has left is committed and looked at.
    rounds(&home, 3);
    let store = home.server().store();
    let (before, began) = (store.statements(), Instant::now());
    let reads = store.reads();
    while began.elapsed() < WATCHED {
        rounds(&home, 1);
    }
    let after = store.statements();
    let seconds = began.elapsed().as_secs_f64();
    let statements = after.all - before.all;
    assert!(
        statements >= 4,
        "{statements}: it looks for other processes"
    );
    assert!(
        statements as f64 <= seconds + 3.0,
        "{statements} in {seconds} s"
    );
    assert_eq!(after.transactions, before.transactions);
    assert_eq!(store.reads(), reads);
}

#[test]
fn the_database_is_checked_after_a_crash_and_not_after_a_good_end() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let checks = || {
        let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
        log.matches("its database was checked").count()
    };
    let good = Program::serve(folder.path());
    assert_eq!(good.signal("TERM"), Some(0));
    let crashing = Program::serve(folder.path());
    assert_eq!(checks(), 0);
    let mut client = Client::websocket(crashing.address);
    client.authenticate(&tokens.admin);
    client.chat("hello");
    crashing.kill();
    let again = Program::serve(folder.path());
    assert_eq!(checks(), 1);
    assert_eq!(again.signal("TERM"), Some(0));
    let _good = Program::serve(folder.path());
    assert_eq!(checks(), 1);
}

#[test]
fn what_is_no_file_is_named_and_nobody_waits_for_it() {
    let names = [
        "config.json",
        "hearth.db",
        "hearth.db-shm",
        "hearth.db-wal",
        "hearth.lock",
        "hearth.log",
        "hearth.sock.key",
        "identity.key",
        "push.key",
        "secrets.key",
    ];
    let serve = |folder: &TemporaryDirectory| finish(hearth(folder.path()).arg("serve"));
    let said = |folder: &TemporaryDirectory, name: &str, kind: &str| {
        let output = serve(folder);
        let errors = String::from_utf8(output.stderr).unwrap();
        let path = folder.path().join(name);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(path.to_str().unwrap()), "{errors}");
        assert!(errors.contains(kind), "{name}: {errors}");
        assert!(errors.ends_with("move it away and try again\n"), "{errors}");
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing was made: {left:?}");
    };
    for name in names {
        let folder = TemporaryDirectory::new();
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        said(&folder, name, "it is a directory");
        fs::remove_dir(&path).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        said(&folder, name, "it is a named pipe");
        fs::remove_file(&path).unwrap();
        symlink(name, &path).unwrap();
        said(&folder, name, "it is a symbolic link that leads to itself");
    }
    let folder = TemporaryDirectory::new();
    fs::create_dir(folder.path().join("hearth.sock")).unwrap();
    said(&folder, "hearth.sock", "it is a directory");
    // Other commands read them, too.
    let folder = TemporaryDirectory::new();
    for (name, command) in [
        ("config.json", "config check"),
        ("hearth.db", "config get model"),
        ("hearth.lock", "health"),
        ("hearth.log", "errors"),
        ("identity.key", "relay status"),
    ] {
        let path = folder.path().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let output = finish(hearth(folder.path()).args(command.split(' ')));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("it is a named pipe"), "{command}: {errors}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_terminal_that_nobody_reads_stops_nobody() {
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        json!({ "log_level": "debug", "limits": { "log_lines_per_address": 1_000_000 } }),
    );
    let tokens = make_people(folder.path());
    let mut child = hearth(folder.path())
        .args(["serve", "--port", "0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Read until the server says where it listens, and never again.
    let errors = BufReader::new(child.stderr.take().unwrap());
    let (sender, said) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = errors.lines().map_while(Result::ok);
        let place = |line: String| Some(line.split_once("listening on http://")?.1.to_owned());
        let address = lines.find_map(place);
        let _ = sender.send((address, lines));
    });
    let (address, _unread) = said.recv_timeout(MAX_WAIT).unwrap();
    let address = address.expect("it listens").trim().parse().unwrap();
    // Far more lines than the pipe and the queue hold.
    for _ in 0..4_000 {
        assert_eq!(support::http::get(address, "/health").status, 200);
    }
    // A bystander does not notice.
    let mut client = Client::websocket(address);
    client.authenticate(&tokens.user);
    let began = Instant::now();
    client.chat("hello");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    // A pipe holds 64 KiB, and the queue 1,024 lines.
    assert!(log.len() > 250_000, "too few lines to block: {}", log.len());
    assert!(log.contains("turn_"), "the file has every line");
    drop(client);
    send_signal(child.id(), "TERM");
    let ended = eventually("the end", || child.try_wait().unwrap());
    assert!(ended.success(), "{ended}");
}

#[test]
fn a_warm_turn_reads_its_view_in_few_statements() {
    let home = Home::offline();
    let mut admin = home.admin();
    let request = |conversation: Option<&str>| {
        let mut request = json!({ "type": "chat", "message": "hello" });
        if let Some(conversation) = conversation {
            request["conversation_id"] = json!(conversation);
        }
        request
    };
    let first = admin.ask(request(None));
    let conversation = first["conversation_id"].as_str().map(str::to_owned);
    admin.ask(request(conversation.as_deref()));
    let store = home.server().store();
    // On a busy machine the turn may outlast the time in which both its writes are one, and
    // the timekeeper looks at what is due beside it.
    eventually("a turn in one transaction with few statements", || {
        let before = store.statements();
        admin.ask(request(conversation.as_deref()));
        let after = store.statements();
        let read = after.read - before.read;
        (after.transactions - before.transactions == 1 && read <= 15).then_some(())
    });
}

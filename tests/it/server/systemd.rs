//! The server under a service manager: what it says over sd_notify's socket,
//! the unit file, the log, and the check that containers make.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::{get, post};
use support::program::{Program, finish, hearth, is_there, printed, run, send_signal};
use support::socket::{exchange, uninterrupted};
use support::{MAX_WAIT, eventually};

const SERVE: [&str; 5] = ["serve", "--bind", "127.0.0.1", "--port", "0"];

/// How often the watchdog wants to hear of the server.
const PERIOD: Duration = Duration::from_secs(2);

/// The service manager's end of the socket.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn listen(folder: &Path) -> Manager {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(MAX_WAIT)).unwrap();
        Manager { socket, path }
    }

    fn next(&self) -> String {
        let mut bytes = [0; 1024];
        let length =
            uninterrupted(MAX_WAIT, || self.socket.recv(&mut bytes)).expect("nothing came in time");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// The next message that begins so, past those of the watchdog.
    fn expect(&self, beginning: &str) -> String {
        loop {
            let message = self.next();
            if message.starts_with(beginning) {
                return message;
            }
            assert_eq!(message, "WATCHDOG=1\n", "instead of {beginning}");
        }
    }

    /// The next message that begins so, past any others.
    fn wait_for(&self, beginning: &str) -> String {
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let message = self.next();
            if message.starts_with(beginning) {
                return message;
            }
            assert!(Instant::now() < deadline, "no {beginning} came in time");
        }
    }

    fn start(&self, folder: &Path, more: &[(&str, &str)]) -> Program {
        let mut command = hearth(folder);
        command.args(SERVE).env("NOTIFY_SOCKET", &self.path);
        command.envs(more.iter().copied());
        Program::launch(command, folder)
    }
}

fn prepare() -> TemporaryDirectory {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    folder
}

#[test]
fn a_service_manager_is_told_of_every_step() {
    let folder = prepare();
    let manager = Manager::listen(folder.path());
    let program = manager.start(folder.path(), &[]);
    let ready = manager.expect("READY=1\n");
    let listening = format!("STATUS=Listening on {}\n", program.address);
    assert!(ready.contains(&listening), "{ready}");

    send_signal(program.id(), "HUP");
    let reloading = manager.expect("RELOADING=1\n");
    let time = reloading.lines().nth(1).unwrap();
    let time = time.strip_prefix("MONOTONIC_USEC=").expect(&reloading);
    assert!(time.parse::<u64>().unwrap() > 0);
    manager.expect("READY=1\n");

    assert_eq!(program.signal("TERM"), Some(0));
    manager.expect("STOPPING=1\n");
}

#[test]
fn the_watchdog_is_fed_only_while_the_server_is_alive() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let manager = Manager::listen(folder.path());
    let program = manager.start(
        folder.path(),
        &[("WATCHDOG_USEC", &PERIOD.as_micros().to_string())],
    );
    manager.wait_for("READY=1\n");
    manager.wait_for("WATCHDOG=1\n");
    manager.wait_for("WATCHDOG=1\n");

    // What another program does to the database, no restart mends.
    let other = rusqlite::Connection::open(folder.path().join("hearth.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // An idle server writes nothing, and so would not meet the lock.
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    client.send(&json!({ "type": "chat", "message": "hello" }));
    eventually("it is said", || {
        (get(program.address, "/health").status == 503).then_some(())
    });
    manager.expect("WATCHDOG=1\n");
    manager.expect("WATCHDOG=1\n");
    other.execute_batch("ROLLBACK").unwrap();

    // A server that stands still does not feed it.
    send_signal(program.id(), "STOP");
    let socket = &manager.socket;
    socket.set_read_timeout(Some(PERIOD * 2)).unwrap();
    // What it sent before it stood still.
    while socket.recv(&mut [0; 1024]).is_ok() {}
    send_signal(program.id(), "CONT");
    socket.set_read_timeout(Some(MAX_WAIT)).unwrap();
    manager.wait_for("WATCHDOG=1\n");
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn health_asks_the_server_that_runs() {
    let folder = prepare();
    let output = run(folder.path(), &["health"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(printed(&output).contains("no server is running"));

    let program = Program::serve(folder.path());
    let output = run(folder.path(), &["health"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(printed(&output).contains(r#"{"status":"ok""#));
    let url = format!("http://{}/", program.address);
    let output = run(folder.path(), &["health", "--url", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
}

#[test]
fn a_change_says_when_it_applies() {
    let folder = prepare();
    let channels = json!([{ "name": "lan", "type": "tcp", "port": 5000 }]);
    write_config(folder.path(), json!({ "channels": channels }));
    let _program = Program::start(folder.path(), &SERVE);
    for (words, applies) in [
        (
            &["set", "channels.lan.port", "5001"][..],
            "restart the server",
        ),
        (
            &["set", "channels.lan.bind", "127.0.0.1"],
            "restart the server",
        ),
        (&["set", "workers", "3"], "restart the server"),
        (&["set", "max_tokens", "100"], "reloaded it"),
        (&["unset", "max_tokens"], "reloaded it"),
        (&["unset", "workers"], "restart the server"),
    ] {
        let output = run(folder.path(), &[&["config"], words].concat());
        let told = printed(&output);
        assert!(
            output.status.success() && told.contains(applies),
            "{words:?}: {told}"
        );
    }
    let config = fs::read_to_string(folder.path().join("config.json")).unwrap();
    assert!(
        !config.contains("max_tokens") && !config.contains("workers"),
        "{config}"
    );
    let output = run(folder.path(), &["config", "unset", "max_tokns"]);
    assert!(!output.status.success(), "{}", printed(&output));
    assert!(
        printed(&output).contains("max_tokens"),
        "{}",
        printed(&output)
    );
}

#[test]
fn what_the_server_refuses_is_an_error_of_the_command() {
    let folder = prepare();
    write_config(folder.path(), json!({}));
    let _program = Program::serve(folder.path());
    let server =
        r#"{"a": {"url": "http://127.0.0.1:1/", "headers": {"Authorization": "${HERE}"}}}"#;
    for (words, is_taken) in [
        (&["set", "mcp_servers", server][..], false),
        (&["set", "max_tokens", "100"], true),
    ] {
        let mut command = hearth(folder.path());
        command.arg("config").args(words).env("HERE", "x");
        let output = finish(&mut command);
        let said = printed(&output);
        assert_eq!(output.status.success(), is_taken, "{words:?}: {said}");
        assert_eq!(
            said.contains("variable HERE, which"),
            !is_taken,
            "{words:?}: {said}"
        );
        let file = fs::read_to_string(folder.path().join("config.json")).unwrap();
        assert!(!file.contains("HERE"), "{file}");
        assert_eq!(said.contains("reloaded it"), is_taken, "{words:?}: {said}");
    }
}

#[test]
fn the_level_of_the_log_is_reread_unless_the_environment_sets_it() {
    for (environment, before, after, is_logged) in [
        (&[][..], "error", "info", true),
        (&[], "info", "error", false),
        (&[("HEARTH_LOG", "info")], "info", "error", true),
        (&[("HEARTH_LOG", "error")], "info", "info", false),
    ] {
        let folder = prepare();
        write_config(folder.path(), json!({ "log_level": before }));
        let program = Program::start_in(folder.path(), &SERVE, environment);
        let output = run(folder.path(), &["config", "set", "log_level", after]);
        let told = printed(&output);
        assert!(told.contains("reloaded it"), "{told}");
        assert_eq!(program.signal("TERM"), Some(0));
        let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
        assert_eq!(
            log.contains("stopped"),
            is_logged,
            "{environment:?}, {before}, then {after}: {log}"
        );
    }
}

#[test]
fn a_stranger_does_not_fill_the_log() {
    const TIMES: usize = 300;
    let folder = prepare();
    let channels = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "ci": {
            "incoming_path": "/hook", "outgoing_url": "http://127.0.0.1:9/",
            "secret": "a-secret-of-32-characters-or-more",
        } } },
    ]);
    write_config(folder.path(), json!({ "channels": channels }));
    let program = Program::serve(folder.path());
    let address = program.address;
    let log = folder.path().join("hearth.log");
    let bytes = || fs::metadata(&log).unwrap().len();
    let before = bytes();
    let long = "x".repeat(3_000);
    let wrong = json!({ "username": "admin", "password": "wrong" });
    for _ in 0..TIMES {
        exchange(address, format!("{{\"type\":\"{long}\"}}\n").as_bytes());
        let mut socket = Client::websocket(address);
        socket.refused(json!({ "type": "auth", "token": "wrong" }));
        post(address, "/auth", &[], &wrong);
        let message = json!({ "message": "x" });
        let guess = [("x-service-secret", "wrong")];
        assert_eq!(post(address, "/hook", &guess, &message).status, 401);
    }
    let written = bytes() - before;
    assert_eq!(program.signal("TERM"), Some(0));
    let log = fs::read_to_string(&log).unwrap();
    // Four kinds of attempts and the ends of two kinds of connections.
    assert!(written < 6 * 10 * 400, "{written} bytes: {log}");
    let more = TIMES - 10 - 1;
    let refused = format!("with a wrong secret (and {more} more)");
    assert!(log.contains(&refused), "{log}");
    assert!(log.contains(" more)\n"), "{log}");
    assert!(log.ends_with("stopped\n"), "{log}");
}

/// What `systemd-analyze` may find exposed, of 10.
const MOST_EXPOSED: f64 = 2.5;

#[test]
fn the_unit_file_is_right_and_leaves_little_exposed() {
    if !is_there("systemd-analyze") {
        return;
    }
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hearth.service");
    let output = finish(
        Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager"])
            .arg(&unit),
    );
    let text = printed(&output);
    let line = text.lines().find(|line| line.contains("Overall exposure"));
    let exposure: f64 = line
        .and_then(|line| line.split(": ").nth(1)?.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{text}"));
    assert!(exposure <= MOST_EXPOSED, "{exposure}: {text}");

    // Program and manual need not be installed here; the rest must be in order.
    let output = finish(Command::new("systemd-analyze").arg("verify").arg(&unit));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours = errors
        .lines()
        .filter(|line| line.contains("hearth.service:"));
    let wrong: Vec<&str> = ours
        .filter(|line| !line.contains("is not executable") && !line.contains("Command 'man"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

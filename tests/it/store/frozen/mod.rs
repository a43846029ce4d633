//! Data directories as earlier versions left them open in this one, and everybody finds in
//! them what they found before.
//!
//! Each was made by the program of its version, driven over its own interfaces with a
//! scripted model, and ended with kill -9 while tools ran and a message waited behind them.
//! Afterwards SQLite copied its log into the file, and what would run out (sessions, links,
//! open questions, callbacks, keys) was put off to the year 2100 or beyond. Every secret in
//! them is made up.
//!
//! The JSON beside a directory holds the credentials, and what the program of that version
//! answered when it was asked for everything. Neither is ever made anew: a later version gets
//! a directory of its own.

mod schema_32;
mod v0_1_0;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::TemporaryDirectory;
use support::http::{Answer, post};
use support::program::{Program, finish, hearth};
use support::receiver::Receiver;

const SERVE: [&str; 5] = ["serve", "--bind", "127.0.0.1", "--port", "0"];
const RELAY: [&str; 5] = ["relay", "--bind", "127.0.0.1", "--port", "0"];
const RELAY_TOKEN: (&str, &str) = ("AUTH_TOKEN", "the relay token of the frozen data");
const SECRET: (&str, &str) = ("X-Service-Secret", "the secret of the frozen doorbell");

/// A copy of a frozen directory, and what its configuration leads to.
struct Frozen {
    folder: TemporaryDirectory,
    receiver: Receiver,
    phones: Receiver,
    relay: Program,
    _relay_folder: TemporaryDirectory,
    /// What its own version said of it.
    known: Value,
}

impl Frozen {
    fn copy(version: &str) -> Frozen {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let known = fs::read_to_string(data.join(format!("{version}.json"))).unwrap();
        let (folder, relay_folder) = (TemporaryDirectory::new(), TemporaryDirectory::new());
        copy_private(&data.join(version), folder.path());
        Frozen {
            folder,
            receiver: Receiver::start(),
            phones: Receiver::start(),
            relay: Program::start_in(relay_folder.path(), &RELAY, &[RELAY_TOKEN]),
            _relay_folder: relay_folder,
            known: serde_json::from_str(&known).unwrap(),
        }
    }

    /// What stands for the addresses in the configuration.
    fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("HEARTH_TEST_RECEIVER", self.receiver.url()),
            ("HEARTH_TEST_PHONES", self.phones.url()),
            (
                "HEARTH_TEST_RELAY",
                format!("ws://{}/ws", self.relay.address),
            ),
        ]
    }

    fn serve(&self) -> Program {
        let mut command = hearth(self.folder.path());
        command.args(SERVE).envs(self.environment());
        Program::launch(command, self.folder.path())
    }

    /// Runs a command on it.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = hearth(self.folder.path());
        command.args(arguments).envs(self.environment());
        finish(&mut command)
    }

    fn token(&self, user: &str) -> &str {
        self.known["tokens"][user].as_str().unwrap()
    }
}

/// Copies a directory as its owner's alone, which is what Hearth had made.
fn copy_private(from: &Path, to: &Path) {
    fs::set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy: PathBuf = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&copy).unwrap();
            copy_private(&path, &copy);
        } else {
            fs::copy(&path, &copy).unwrap();
            fs::set_permissions(&copy, Permissions::from_mode(0o600)).unwrap();
        }
    }
}

/// Whether everything known is there: each member of an object, and the elements
/// of a list in their order. More may be there.
fn holds(found: &Value, known: &Value) -> bool {
    match (found, known) {
        (Value::Object(found), Value::Object(known)) => known
            .iter()
            .all(|(key, known)| found.get(key).is_some_and(|found| holds(found, known))),
        (Value::Array(found), Value::Array(known)) => {
            let mut found = found.iter();
            known
                .iter()
                .all(|known| found.any(|found| holds(found, known)))
        }
        _ => found == known,
    }
}

fn client(program: &Program, token: &str) -> Client {
    let mut client = Client::websocket(program.address);
    client.authenticate(token);
    client
}

fn sign_in(program: &Program, user: &str, password: &str) -> Answer {
    let body = json!({ "username": user, "password": password });
    post(program.address, "/auth", &[], &body)
}

fn states(client: &mut Client) -> Value {
    client.ask(json!({ "type": "server_info" }))["turns"].clone()
}

/// Waits until what was cut off has gone on.
fn settle(admin: &mut Client) {
    eventually("what was cut off has gone on", || {
        let states = states(admin);
        (states["running"] == 0 && states["queued"] == 0).then_some(())
    });
}

/// Waits for the link to the relay.
fn wait_for_link(admin: &mut Client) {
    eventually("the link to the relay", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        (info["relays"][0]["state"] == "linked").then_some(())
    });
}

//! The fault harness: what the webhook channel promises, under kill -9, power
//! cut, a full disk, receivers that fail and more load than can be borne. Each
//! scenario takes its size: `tests/it` runs the short versions with every test,
//! `tests/soak` the long ones with `make soak`. Each prints what it counted.

pub mod backups;
pub mod crash;
pub mod disk;
pub mod kill;
pub mod order;
pub mod power;
pub mod pressure;
pub mod receivers;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::MAX_WAIT;
use support::client::Client;
use support::model::{Act, Model};

/// How soon a bystander is served, who has nothing to do with what fails.
pub const SOON: Duration = Duration::from_secs(5);

/// What every message of a scenario begins with: the model repeats it, so that
/// a callback can be told to belong to its message.
const MARK: &str = "tok-";

/// A model that answers with the mark in the message, which is made unique by
/// the numbers behind it.
pub fn echoing() -> Model {
    Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        Act::Say(mark_in(last["content"].as_str().unwrap()))
    })
}

/// The mark in a text.
pub fn mark_in(text: &str) -> String {
    let begin = text
        .find(MARK)
        .unwrap_or_else(|| panic!("no mark in {text}"));
    let rest = &text[begin..];
    let is_mark = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let end = rest.find(|letter| !is_mark(letter));
    rest[..end.unwrap_or(rest.len())].to_owned()
}

/// A configuration with the webhook account `ci` and no rate limits.
pub fn with_account(model: &Model, outgoing_url: String) -> Value {
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "ci": { "incoming_path": "/webhook/ci", "outgoing_url": outgoing_url },
        } },
    ]);
    config["limits"] = json!({ "webhook_per_second": 100_000, "webhook_burst": 100_000 });
    config
}

/// What a POST to the account came to.
#[derive(Debug)]
pub enum Posted {
    /// The status and the body.
    Answered(u16, Value),
    /// No answer: it may have been accepted or not.
    Unknown,
}

/// Posts to the account `ci` over a kept connection.
pub struct Poster {
    agent: ureq::Agent,
    url: String,
}

impl Poster {
    pub fn new(address: SocketAddr) -> Poster {
        Poster {
            agent: ureq::Agent::config_builder()
                .http_status_as_error(false)
                .proxy(None)
                .timeout_global(Some(MAX_WAIT))
                .build()
                .into(),
            url: format!("http://{address}/webhook/ci"),
        }
    }

    /// Opens the connection that the next post goes over.
    pub fn warm_up(&self) -> Result<(), String> {
        let url = self.url.replace("/webhook/ci", "/health");
        let answer = self.agent.get(url).call();
        let mut answer = answer.map_err(|error| error.to_string())?;
        let read = answer.body_mut().read_to_string();
        read.map(drop).map_err(|error| error.to_string())
    }

    pub fn post(&self, headers: &[(&str, &str)], body: &Value) -> Posted {
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let Ok(mut answer) = request.send(body.to_string()) else {
            return Posted::Unknown;
        };
        match answer.body_mut().read_to_string() {
            Ok(text) => Posted::Answered(
                answer.status().as_u16(),
                serde_json::from_str(&text).unwrap(),
            ),
            Err(_) => Posted::Unknown,
        }
    }
}

/// Somebody who chats until the rest is done, and waits for no reply long. Returns how many
/// replies came.
pub fn chat_meanwhile(address: SocketAddr, token: &str, is_done: &AtomicBool) -> usize {
    let mut client = Client::websocket(address);
    client.authenticate(token);
    let mut replies = 0;
    while !is_done.load(Ordering::SeqCst) {
        let began = Instant::now();
        client.chat(&format!("{MARK}bystander"));
        let took = began.elapsed();
        assert!(took < SOON, "a bystander waited for {took:?}");
        replies += 1;
        std::thread::park_timeout(Duration::from_millis(50));
    }
    replies
}

/// Waits like [`support::eventually`], but longer.
pub fn within<T>(time: Duration, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + time;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {time:?}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// A connection that looks into the database of a server, running or not.
pub fn look_into(folder: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(folder.join("hearth.db")).unwrap();
    connection.busy_timeout(MAX_WAIT).unwrap();
    connection
}

/// One number from a query.
pub fn count(database: &rusqlite::Connection, sql: &str) -> i64 {
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// SQLite's own verdict on the whole file.
pub fn check_integrity(database: &rusqlite::Connection) {
    let verdict: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}

/// Waits until every turn is over and every callback delivered.
pub fn wait_until_done(folder: &Path, time: Duration) {
    let database = look_into(folder);
    within(time, "every turn is over and called back", || {
        let turns = count(
            &database,
            "SELECT count(*) FROM turns WHERE finished_at IS NULL",
        );
        let callbacks = count(
            &database,
            "SELECT count(*) FROM deliveries WHERE state <> 'delivered'",
        );
        (turns == 0 && callbacks == 0).then_some(())
    });
}

/// A number that differs from run to run, below `bound`.
pub fn random(bound: u64) -> u64 {
    (base::secret::random_fraction() * bound as f64) as u64
}

//! Broken input, by the thousand, to the real program: whatever it is sent, it
//! answers or closes, goes on serving others, and keeps its size. `tests/it`
//! runs a short version, `make fuzz` a long one.

mod corpus;
mod files;
mod mutation;
#[cfg(feature = "relay")]
mod relay;
#[cfg(feature = "tls")]
mod tls;

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use files::{backups, imports};
use mutation::mutate;
#[cfg(feature = "relay")]
pub use relay::relayed_frames;
use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::process::status;
use support::program::{Program, printed, run};
use support::random::Random;
use support::socket;
#[cfg(feature = "tls")]
pub use tls::tls_connections;

/// After so many inputs of each thread the server must show that it is well.
const ROUND: usize = 100;
/// How long a broken connection is listened to. What we send is over by then,
/// so that the server has read its end.
const LISTEN: Duration = Duration::from_millis(100);
/// How much the server may grow over what it takes when it is warm, in KiB.
const GROWTH: u64 = 48 * 1024;

/// How much to do.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Repeats the same inputs.
    pub seed: u64,
    /// When to stop.
    pub time: Duration,
}

/// Connections of every kind, broken in every way.
pub fn connections(effort: Effort) {
    let home = Home::start(Model::saying("Fine."), json!({}));
    let samples = corpus::connections(&home.token);
    let sent = home.attack(effort, 8, &samples, say);
    println!("{sent} broken connections");
}

/// Says all of it on a connection and listens for a while.
fn say(home: &Home, bytes: &[u8]) {
    let mut socket = socket::connect(home.address());
    socket.set_read_timeout(Some(LISTEN)).unwrap();
    // It may refuse and close before it has read everything.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(Shutdown::Write);
    let mut sink = [0; 4096];
    while matches!(socket.read(&mut sink), Ok(1..)) {}
}

/// Answers of the model provider, broken in every way. Every turn must end.
pub fn model_answers(effort: Effort) {
    /// As many turns wait at once for the next attempt.
    const CLIENTS: u64 = 16;
    let answers: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
    let script = Arc::clone(&answers);
    let model = Model::start(move |request, _| {
        let messages = request["messages"].as_array().unwrap();
        let asked = messages.iter().rfind(|message| message["role"] == "user");
        let asked = asked.unwrap()["content"].as_str().unwrap();
        let answers = script.lock().unwrap();
        let answer = answers.iter().find(|(input, _)| asked.contains(*input));
        Act::Raw(String::from_utf8_lossy(answer.unwrap().1).into_owned())
    });
    let home = Home::start(model, json!({}));
    let count = AtomicUsize::new(0);
    let sent = home.attack(effort, CLIENTS, &corpus::model_answers(), |home, bytes| {
        let input = format!("input {} ", count.fetch_add(1, Ordering::Relaxed));
        answers
            .lock()
            .unwrap()
            .insert(input.clone(), bytes.to_vec());
        let mut client = Client::websocket(home.address());
        client.authenticate(&home.token);
        client.send(&json!({ "type": "chat", "message": input + "ends.", "id": 1 }));
        let response = client.response();
        assert_eq!(response["id"], 1, "{response}");
    });
    println!("{sent} broken answers of the model");
}

/// Configuration files, broken in every way: each is refused with a sentence,
/// or taken.
pub fn configurations(effort: Effort) {
    let folder = TemporaryDirectory::new();
    let path = folder.path().join("config.json");
    let samples = corpus::configurations();
    let (mut random, deadline) = (Random::new(effort.seed), Instant::now() + effort.time);
    let mut count = 0;
    while Instant::now() < deadline {
        let sample = &samples[random.below(samples.len())];
        let bytes = mutate(&mut random, sample, &samples);
        fs::write(&path, &bytes).unwrap();
        let output = run(folder.path(), &["config", "check"]);
        let said = printed(&output);
        let good = matches!(output.status.code(), Some(0 | 1)) && !said.contains("panicked");
        assert!(good, "{said}\n{}", shown(&bytes));
        count += 1;
    }
    println!("{count} broken configurations");
}

/// The program, and what is needed to see whether it is well.
struct Home {
    folder: TemporaryDirectory,
    token: String,
    program: Program,
    _model: Model,
}

impl Home {
    /// With these settings beside those that let much in.
    fn start(model: Model, settings: Value) -> Home {
        let folder = TemporaryDirectory::new();
        let mut config = model.config();
        config["limits"] = json!({
            "connections_per_address": 512,
            "unauthenticated_per_address": 512,
            "auth_seconds": 1,
            "turn_seconds": 5,
            "waiting_turns": 10_000,
            "commands_per_second": 10_000,
            "commands_burst": 10_000,
        });
        config["channels"] = json!([
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": {
                "ci": { "incoming_path": "/webhook/ci", "outgoing_url": "http://127.0.0.1:9/" },
            } },
        ]);
        config["tool_permissions"] = json!({ "current_time": "allow" });
        config["openai_api"] = json!({ "enabled": true, "ollama_user": "user" });
        config["metrics"] = json!({ "enabled": true });
        for (key, value) in settings.as_object().unwrap() {
            config[key] = value.clone();
        }
        write_config(folder.path(), config);
        let token = make_people(folder.path()).admin;
        let program = Program::serve(folder.path());
        Home {
            folder,
            token,
            program,
            _model: model,
        }
    }

    fn address(&self) -> SocketAddr {
        self.program.address
    }

    /// Sends changed samples from so many threads until the time is over;
    /// returns how many.
    fn attack(
        &self,
        effort: Effort,
        threads: u64,
        samples: &[Vec<u8>],
        send: impl Fn(&Home, &[u8]) + Sync,
    ) -> usize {
        let deadline = Instant::now() + effort.time;
        let mut randoms: Vec<Random> = (0..threads)
            .map(|thread| Random::new(effort.seed + thread))
            .collect();
        let (mut count, mut warm) = (0, None);
        while Instant::now() < deadline {
            let one = |random: &mut Random| {
                let mut sent = 0;
                while sent < ROUND && Instant::now() < deadline {
                    let sample = &samples[random.below(samples.len())];
                    send(self, &mutate(random, sample, samples));
                    sent += 1;
                }
                sent
            };
            count += std::thread::scope(|scope| {
                let threads: Vec<_> = randoms
                    .iter_mut()
                    .map(|random| scope.spawn(|| one(random)))
                    .collect();
                let sent = threads.into_iter().map(|thread| thread.join().unwrap());
                sent.sum::<usize>()
            });
            let size = self.is_well(effort.seed, count);
            let warm = *warm.get_or_insert(size);
            assert!(
                size < warm + GROWTH,
                "it grew from {warm} to {size} KiB in {count} inputs"
            );
        }
        count
    }

    /// The server answers others and has not panicked; returns its size in KiB.
    fn is_well(&self, seed: u64, count: usize) -> u64 {
        let said = fs::read_to_string(self.folder.path().join("stderr.txt")).unwrap();
        assert!(
            !said.contains("panicked"),
            "after {count} inputs of seed {seed}: {said}"
        );
        let health = run(self.folder.path(), &["health"]);
        assert!(health.status.success(), "{count}: {}", printed(&health));
        status(self.program.id(), "VmRSS").unwrap()
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

//! What the lives share: a folder, a model that calls two tools with effects, a
//! receiver whose first answer is a refusal, and the counts of what they saw.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{check_integrity, count, look_into};
use super::lives::check_refusal;
use support::home::{TemporaryDirectory, Tokens, make_people, write_config};
use support::model::{Act, Model};
use support::receiver::Receiver;

/// What the model says in the end.
pub const REPLY: &str = "Both are done.";
/// A message that needs no tools, and its reply.
pub const ASIDE: &str = "Is it late?";
pub const ASIDE_REPLY: &str = "It is noon.";
/// The tools, by how they take effect.
pub const TOOLS: [&str; 2] = ["ring", "switch"];

/// A data directory with people in it, made once: hashing passwords takes long.
pub struct Template {
    folder: TemporaryDirectory,
    pub tokens: Tokens,
}

impl Template {
    pub fn new() -> Template {
        let folder = TemporaryDirectory::new();
        let tokens = make_people(folder.path());
        Template { folder, tokens }
    }

    /// A data directory of its own for one life.
    pub fn copy(&self) -> TemporaryDirectory {
        let copy = TemporaryDirectory::new();
        fs::copy(
            self.folder.path().join("hearth.db"),
            copy.path().join("hearth.db"),
        )
        .unwrap();
        copy
    }
}

pub struct Household {
    pub folder: TemporaryDirectory,
    pub model: Model,
    pub receiver: Receiver,
    switched: Receiver,
    is_patient: Arc<AtomicBool>,
    /// Whether the second tool's request gets no answer.
    is_stuck: Arc<AtomicBool>,
}

impl Household {
    /// `more` is added to the configuration; `refuses_first` makes the receiver
    /// answer the first callback with 503.
    pub fn new(template: &Template, more: Value, refuses_first: bool) -> Household {
        let folder = template.copy();
        let model = Model::start(|request, _| {
            let last = request["messages"].as_array().unwrap().last().unwrap();
            if last["content"].as_str().unwrap_or_default().contains(ASIDE) {
                return Act::say(ASIDE_REPLY);
            }
            match last["role"] == "tool" || request["tools"].as_array().is_none() {
                true => Act::say(REPLY),
                false => Act::Call(TOOLS.map(|tool| (tool.to_owned(), json!({}))).to_vec()),
            }
        });
        let is_patient = Arc::new(AtomicBool::new(!refuses_first));
        let receiver = {
            let is_patient = Arc::clone(&is_patient);
            Receiver::answering(move |_, number| {
                match number > 0 || is_patient.load(Ordering::SeqCst) {
                    true => "200 OK".to_owned(),
                    false => "503 Busy".to_owned(),
                }
            })
        };
        let is_stuck = Arc::new(AtomicBool::new(false));
        let switched = {
            let is_stuck = Arc::clone(&is_stuck);
            Receiver::answering(move |_, _| {
                while is_stuck.load(Ordering::SeqCst) {
                    std::thread::park_timeout(Duration::from_millis(5));
                }
                "200 OK".to_owned()
            })
        };
        let mut config = model.config_with(json!({
            // One, so that it is always the same thread that works.
            "workers": 1,
            "channels": [
                { "name": "lan", "type": "tcp", "port": 0 },
                { "name": "hooks", "type": "webhook", "accounts": {
                    "ci": { "incoming_path": "/webhook/ci", "outgoing_url": receiver.url() },
                } },
            ],
            "tools": { "custom": [
                {
                    "name": "ring", "description": "Rings the bell.",
                    // In its workspace, the directory `files`.
                    "command": ["/bin/sh", "-c", "read line && echo \"$line\" >> rung && echo rung"],
                },
                {
                    "name": "switch", "description": "Switches the light.",
                    "http": { "method": "POST", "url": switched.url() },
                },
            ] },
        }));
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        write_config(folder.path(), config);
        Household {
            folder,
            model,
            receiver,
            switched,
            is_patient,
            is_stuck,
        }
    }

    /// Whether the second tool's request is kept waiting.
    pub fn stick(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::SeqCst);
    }

    /// Whether the first tool has taken effect.
    pub fn has_rung(&self) -> bool {
        self.effects("ring") > 0
    }

    /// From now on the receiver takes the first callback, too: the wait for the
    /// second attempt is not what is looked at.
    pub fn relent(&self) {
        self.is_patient.store(true, Ordering::SeqCst);
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn effects(&self, tool: &str) -> usize {
        match tool {
            "ring" => {
                let rung = fs::read_to_string(self.folder.path().join("files/rung"));
                rung.unwrap_or_default().lines().count()
            }
            _ => self.switched.callbacks().len(),
        }
    }

    /// Each tool took effect once, or not at all or perhaps, and then the model
    /// was told that.
    pub fn check_effects(&self) {
        if self.has_failed() {
            for tool in TOOLS {
                assert!(self.effects(tool) <= 1, "{tool} took effect more than once");
            }
            return;
        }
        let requests = self.model.requests();
        let told = results(requests.last().expect("the model was asked"));
        for tool in TOOLS {
            let result = told.get(tool).unwrap_or_else(|| {
                panic!("the model has no result of {tool}: {told:?}");
            });
            match self.effects(tool) {
                0 => assert!(!is_good(result), "{tool} did nothing, and said {result}"),
                1 => {}
                more => panic!("{tool} took effect {more} times: {result}"),
            }
        }
    }

    /// The callbacks are one, however often it came.
    pub fn check_callbacks(&self) {
        let callbacks = self.receiver.callbacks();
        let first = callbacks.first().expect("there is a callback");
        for callback in &callbacks {
            assert_eq!(callback.header("webhook-id"), first.header("webhook-id"));
            assert_eq!(callback.raw, first.raw);
        }
        match self.has_failed() {
            true => check_refusal(&first.body),
            false => assert_eq!(first.body["message"], REPLY, "{}", first.body),
        }
    }

    /// Whether the turn has failed.
    pub fn has_failed(&self) -> bool {
        let failed = "SELECT count(*) FROM turns WHERE state = 'failed'";
        count(&look_into(self.folder.path()), failed) > 0
    }

    /// There is this one turn, with its message and its reply.
    pub fn check_one_turn(&self, turn: Option<&str>) {
        let database = look_into(self.folder.path());
        check_integrity(&database);
        assert_eq!(count(&database, "SELECT count(*) FROM turns"), 1, "turns");
        let messages = "SELECT group_concat(role || ':' || (content = ?1)) FROM
             (SELECT role, content FROM messages ORDER BY id)";
        let found: String = database
            .query_row(messages, [REPLY], |row| row.get(0))
            .unwrap();
        match self.has_failed() {
            true => assert_eq!(found, "user:0", "messages"),
            false => assert_eq!(found, "user:0,assistant:1", "messages"),
        }
        if let Some(turn) = turn {
            let id: i64 = turn.parse::<base::ids::TurnId>().unwrap().as_i64();
            let found = count(&database, "SELECT id FROM turns");
            assert_eq!(found, id, "the acknowledged turn is not the one there is");
        }
    }

    /// Whether every callback is delivered.
    pub fn is_delivered(&self) -> Result<(), String> {
        let database = look_into(self.folder.path());
        let undelivered = "SELECT count(*) FROM deliveries WHERE state <> 'delivered'";
        match (
            count(&database, undelivered),
            count(&database, "SELECT count(*) FROM deliveries"),
        ) {
            (0, 1) => Ok(()),
            (open, all) => Err(format!("{open} of {all} callbacks are not delivered")),
        }
    }
}

/// The results of the tools that a request shows to the model, by their names.
fn results(request: &Value) -> HashMap<String, String> {
    let mut names = HashMap::new();
    let mut results = HashMap::new();
    for message in request["messages"].as_array().unwrap() {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            names.insert(call["id"].clone(), call["function"]["name"].clone());
        }
        if message["role"] == "tool" {
            let name = names[&message["tool_call_id"]].as_str().unwrap();
            let earlier = results.insert(
                name.to_owned(),
                message["content"].as_str().unwrap().to_owned(),
            );
            assert!(earlier.is_none(), "{name} was called again: {request}");
        }
    }
    results
}

/// Whether a result says that the tool ran to its end.
fn is_good(result: &str) -> bool {
    ![
        "interrupted",
        "failed",
        "could not",
        "cannot",
        "error",
        "no answer",
        // The fault may hit the tool's own program.
        "ended by signal",
    ]
    .iter()
    .any(|word| result.contains(word))
}

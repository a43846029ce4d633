//! The systems whose form of messages Hearth knows: `hearth webhook add --from`.
//!
//! What is known of them are the examples: an account of each, and a sample that begins
//! with what to enter at the other side.

use serde_json::{Map, Value};

use base::url::Url;

/// The accounts of the systems, by name.
const ACCOUNTS: &str = include_str!("../../../../examples/config/other-systems.json");

/// What an example sets and a new account has of its own.
const OWN: [&str; 4] = ["incoming_path", "outgoing_url", "secret", "audience"];

macro_rules! samples {
    ($($name:literal),*) => {
        /// The names of the systems.
        pub const NAMES: &[&str] = &[$($name),*];
        /// The sample of each.
        const SAMPLES: &[&str] = &[
            $(include_str!(concat!("../../../../examples/webhooks/", $name, ".json"))),*
        ];
    };
}

samples!(
    "alertmanager",
    "frigate",
    "gitea",
    "github",
    "gitlab",
    "grafana",
    "ios-shortcuts",
    "n8n",
    "node-red",
    "stripe",
    "uptime-kuma"
);

/// A system that sends messages of its own form.
pub struct Sender {
    name: &'static str,
    sample: &'static str,
}

impl Sender {
    /// The system of this name.
    ///
    /// # Errors
    /// There is none; names those that exist.
    pub fn named(name: &str) -> Result<Sender, String> {
        let name = match name {
            "forgejo" => "gitea",
            name => name,
        };
        let mut known = NAMES.iter().zip(SAMPLES);
        known
            .find(|(known, _)| **known == name)
            .map(|(name, sample)| Sender { name, sample })
            .ok_or_else(|| format!("--from must be one of {}", NAMES.join(", ")))
    }

    /// Whether the secret is made there, and is none of ours.
    pub fn makes_the_secret(&self) -> bool {
        self.name == "stripe"
    }

    /// The settings of an account that takes its messages.
    pub fn settings(&self) -> Map<String, Value> {
        let mut examples = parsed(ACCOUNTS);
        let account = examples["channels"]["webhook"]["accounts"][self.name].take();
        let Value::Object(mut settings) = account else {
            return Map::new();
        };
        settings.retain(|key, _| !OWN.contains(&key.as_str()));
        settings
    }

    /// What to enter there, for an account at `url` whose replies go to `replies`: lines of
    /// text.
    pub fn steps(&self, url: &str, replies: &str) -> String {
        let sample = parsed(self.sample);
        let lines = sample["//"].as_array().into_iter().flatten();
        let lines: Vec<&str> = lines.filter_map(Value::as_str).collect();
        let mut text = lines.join("\n");
        for example in ["http://hearth.local:5000", "https://HOST"] {
            text = text.replace(&format!("{example}/webhook/{}", self.name), url);
        }
        let reply_path = Url::parse(replies).map(|url| url.path);
        text.replace("/hearth-reply", &reply_path.unwrap_or_default())
    }
}

/// An example.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the examples are JSON, as a test shows")
}

//! The one declaration of every setting, with its default and its sentence of
//! documentation.
//!
//! [`Config`] is what the house works with: typed, validated, with `${NAME}`
//! read from the environment. [`Settings`] is the shared handle on the file:
//! it loads, validates, saves atomically (keeping unknown keys and order) and
//! hands out the [`Config`] in force.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::secret::Secret;

/// Everything that can be set, as it is in force. Made only by loading and
/// validating; never changed in place.
#[derive(Clone, Debug)]
pub struct Config {
    /// Model provider: `offline`, `openai` or `openai-compatible`.
    pub provider: String,
    /// The provider's API key.
    pub api_key: Option<Secret>,
    /// The model's name at the provider.
    pub model: String,
    /// Sampling temperature, 0 to 2. Sent to the provider only when set.
    pub temperature: Option<f64>,
    /// Where the provider is, when not at its usual address.
    pub base_url: Option<String>,
    /// What the assistant is told about itself before every conversation.
    pub system_prompt: String,
    /// Most tokens of one reply; the provider's own default when absent.
    pub max_tokens: Option<u32>,
    /// Whether tools run: the contract's `permission_mode`.
    pub permission_mode: Permission,
    /// Overrides `permission_mode` for single tools, by name.
    pub tool_permissions: BTreeMap<String, Permission>,
    /// Ways in, in the order of the file.
    pub channels: Vec<Channel>,
    /// Limits of protocol section 7.
    pub limits: Limits,
    /// Tools from the configuration.
    pub custom_tools: Vec<CustomTool>,
    /// Origins of web pages that may use the server, beside its own.
    pub allowed_origins: Vec<String>,
    /// Host names under which browsers may reach the server.
    pub allowed_hosts: Vec<String>,
    /// Reverse proxies whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: AddressPatterns,
    /// Threads that run turns and deliveries.
    pub workers: usize,
    /// How long a session token is valid, in days.
    pub session_days: u32,
}

/// Whether a tool may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// The owner is asked each time.
    Ask,
    /// It runs by itself.
    Allow,
    /// It never runs and is not offered to the model.
    Deny,
}

/// One way in.
#[derive(Clone, Debug)]
pub enum Channel {
    /// A listening port for WebSocket, JSON lines and HTTP.
    Tcp(TcpChannel),
    /// A link to a relay.
    Relay(RelayChannel),
    /// Accounts of external systems.
    Webhook(WebhookChannel),
}

/// A listening port (channel type `tcp`).
#[derive(Clone, Debug)]
pub struct TcpChannel {
    /// Its name in logs.
    pub name: String,
    /// Address to bind; all addresses (IPv6 and IPv4) when absent.
    pub bind: Option<IpAddr>,
    /// Listening port; 0 lets the system choose (tests).
    pub port: u16,
    /// Peers that may connect.
    pub allow_from: AddressPatterns,
}

/// A link to a relay (channel type `websocket`).
#[derive(Clone, Debug)]
pub struct RelayChannel {
    /// Its name in logs.
    pub name: String,
    /// The relay's WebSocket address.
    pub url: String,
    /// Admits this machine to the relay.
    pub auth_token: Option<Secret>,
}

/// The webhook channel: its accounts, and its own port if it has one.
#[derive(Clone, Debug)]
pub struct WebhookChannel {
    /// A port that serves only webhooks and /health; without it, webhooks are
    /// served on every `tcp` channel.
    pub port: Option<u16>,
    /// Accounts in the order of the file.
    pub accounts: Vec<WebhookAccount>,
}

/// One external system (contract section 2, `channels.webhook.accounts`).
#[derive(Clone, Debug)]
pub struct WebhookAccount {
    /// Its name: the key under `accounts`.
    pub name: String,
    /// URL path on which its POSTs are accepted.
    pub incoming_path: String,
    /// URL that receives the replies.
    pub outgoing_url: String,
    /// Shared secret, required of incoming requests and sent with outgoing ones.
    pub secret: Option<Secret>,
    /// Overrides the default model.
    pub model: Option<String>,
    /// Narrows `permission_mode` for turns of this account; never widens it.
    pub permission_mode: Option<Permission>,
    /// The only tools offered in turns of this account; all when absent.
    pub tools: Option<Vec<String>>,
}

/// A tool from the configuration (`tools.custom`).
#[derive(Clone, Debug)]
pub struct CustomTool {
    /// Name for the model: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments (an object schema), made from the short
    /// form `name -> type name` where the file uses that.
    pub parameters: Value,
    /// How it runs.
    pub run: CustomRun,
    /// Whether running it twice does no harm.
    pub read_only: bool,
    /// Most seconds that one run may take.
    pub timeout_seconds: u64,
    /// Most bytes of output that are kept.
    pub output_bytes: usize,
}

/// How a custom tool runs.
#[derive(Clone, Debug)]
pub enum CustomRun {
    /// A program and its arguments; the tool's arguments arrive as JSON on its
    /// standard input.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// Variables it gets beside PATH, HOME, LANG and TZ.
        environment: BTreeMap<String, Secret>,
        /// Where it runs; the data directory when absent.
        directory: Option<PathBuf>,
    },
    /// An HTTP request; `{name}` in the URL and the header values is replaced
    /// by the argument of that name.
    Http {
        /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
        method: String,
        /// The address.
        url: String,
        /// Header names and values.
        headers: Vec<(String, Secret)>,
        /// Body template (a JSON value whose strings are templates); when
        /// absent, a method with a body sends the arguments as JSON.
        body: Option<Value>,
    },
}

/// A list of address patterns: `<a>.<b>.<c>.*`, exact addresses, CIDR, `*`
/// (contract section 2, `allow_from`, and its extensions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPatterns(pub(crate) Vec<AddressPattern>);

/// One pattern: an address and how many of its leading bits must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

/// Limits of protocol section 7, each a key under `limits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: usize,
    pub connections_per_address: usize,
    pub unauthenticated_per_address: usize,
    pub head_bytes: usize,
    pub head_count: usize,
    pub head_seconds: u64,
    pub body_bytes: usize,
    pub webhook_body_bytes: usize,
    pub auth_body_bytes: usize,
    pub body_seconds: u64,
    pub idle_seconds: u64,
    pub ping_seconds: u64,
    pub dead_seconds: u64,
    pub auth_seconds: u64,
    pub unauthenticated_message_bytes: usize,
    pub message_bytes: usize,
    pub outbox_bytes: usize,
    pub in_flight: usize,
    pub commands_per_second: u32,
    pub commands_burst: u32,
    pub waiting_turns: usize,
    pub waiting_turns_per_conversation: usize,
    pub turn_seconds: u64,
    pub tool_rounds: usize,
    pub webhook_per_second: u32,
    pub webhook_burst: u32,
    pub login_failures: u32,
    pub approval_seconds: u64,
}

/// The shared handle on the configuration file and what is in force of it.
pub struct Settings {}

impl Settings {
    /// Reads and validates the file at `path`.
    pub fn load(path: &std::path::Path) -> Result<Settings, Problems> {
        let _ = path;
        todo!()
    }

    /// The configuration in force. Callers take it once per request or turn.
    pub fn current(&self) -> Arc<Config> {
        todo!()
    }

    /// Rereads the file (SIGHUP). On problems the configuration in force stays.
    /// Returns the top-level fields that changed.
    pub fn reload(&self) -> Result<Vec<String>, Problems> {
        todo!()
    }

    /// Validates all of `changes` against the writable fields, then writes all
    /// or nothing (temporary file, fsync, rename) and puts them in force.
    /// Returns the names written, in the order given.
    ///
    /// Errors: `invalid_request` naming each unknown, unwritable or invalid field.
    pub fn update(&self, changes: &Map<String, Value>) -> Result<Vec<String>> {
        let _ = changes;
        todo!()
    }

    /// The readable fields for `get_config`, in order: `provider`, `model`,
    /// `temperature`, then every other; secrets only as `..._set` booleans.
    pub fn readable(&self) -> Map<String, Value> {
        todo!()
    }
}

/// Everything that is wrong with a configuration file.
#[derive(Debug)]
pub struct Problems {}

impl std::fmt::Display for Problems {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        todo!()
    }
}

/// Writes the first run's file to `path` if there is no file yet, readable by
/// its owner only. Returns whether it did.
pub fn write_first_run(path: &std::path::Path) -> Result<bool, Problems> {
    let _ = path;
    todo!()
}

impl Settings {
    /// What the owner should know about the file, a line for each.
    pub fn warnings(&self) -> Vec<String> {
        todo!()
    }
}

/// What is to be known of one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingDoc {
    pub key: String,
    pub expects: String,
    pub default: String,
    pub documentation: String,
    pub writable: bool,
}

/// Every setting, in the order of the file.
pub fn documentation() -> Vec<SettingDoc> {
    todo!()
}

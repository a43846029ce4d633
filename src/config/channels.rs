//! `channels`: how clients reach the server, in both forms of the contract (section 2).
//! An array lists transports; an object names them by key, `webhook` among them.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::address_patterns::AddressPatterns;
use super::collections::{addresses, read_section};
use super::declaration::{COMMENT, Declared, Rule, Setting, SettingDoc, section};
use super::key_path::{KeyPath, is_comment};
use super::readable::{by_name, is_set, is_there, masked_url};
use super::reader::Reader;
use super::relay::TOKEN_CHARACTERS;
use super::rules::{Choice, Flag, Parsed, SecretText, Text, UrlText, integer, words};
use super::webhook_accounts::{WebhookAccount, accounts, check_paths};
use base::language::Said;
use base::secret::Secret;
use base::url::is_exposed;

/// The type of a channel for a bot of Telegram, and what its senders are linked under.
pub const TELEGRAM: &str = "telegram";

/// The port of a `tcp` channel that names none (contract section 1).
pub const DEFAULT_PORT: u16 = 5000;

/// One channel.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type")]
pub enum Channel {
    /// A listening port for WebSocket, JSON lines and HTTP.
    #[serde(rename = "tcp")]
    Tcp(TcpChannel),
    /// A link to a relay.
    #[serde(rename = "websocket")]
    Relay(RelayChannel),
    /// Accounts of external systems.
    #[serde(rename = "webhook")]
    Webhook(WebhookChannel),
    /// A bot of Telegram.
    #[serde(rename = "telegram")]
    Telegram(TelegramChannel),
}

section! {
    /// A listening port (channel type `tcp`).
    #[derive(Clone, Debug, Serialize)]
    pub struct TcpChannel {
        /// The channel's name in logs.
        pub name: String = name();
        /// Listening port; 0 lets the system choose.
        pub port: u16 = integer(0..=65_535).or(DEFAULT_PORT);
        /// The only address of this machine to listen on.
        pub bind: Option<IpAddr> = BIND.optional("all addresses");
        /// Addresses that may connect.
        pub allow_from: AddressPatterns = addresses()
            .or_shown(AddressPatterns::private(), "loopback, private and link-local addresses");
    }
}

section! {
    /// A link to a relay (channel type `websocket`).
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct RelayChannel {
        /// The channel's name in logs.
        pub name: String = name();
        /// The relay's WebSocket address, best with `wss://`.
        #[serde(serialize_with = "masked_url")]
        pub url: String = UrlText(&["wss", "ws"]).required();
        /// The relay's AUTH_TOKEN, which lets this machine link to it.
        #[serde(rename = "auth_token_set", serialize_with = "is_set")]
        pub auth_token: Option<Secret> = SecretText.optional("none");
        /// Whether clients must encrypt what they send, so that the relay cannot read it:
        /// `required` refuses those that do not, `optional` accepts both. This concerns connections
        /// through this relay; `tls` protects direct ones.
        pub encryption: Encryption = ENCRYPTION.or(Encryption::Optional);
    }
}

section! {
    /// The webhook channel: its accounts, and its own port if it has one.
    #[derive(Clone, Debug, Serialize)]
    pub struct WebhookChannel {
        /// Not used: an array of channels may name each of them.
        pub name: String = name();
        /// A port that serves only webhooks and /health, so that you can expose nothing else.
        pub port: Option<u16> = integer(0..=65_535).optional("every tcp channel serves webhooks");
        /// External systems, by name.
        #[serde(serialize_with = "by_name")]
        pub accounts: Vec<WebhookAccount> = accounts().required();
    }
}

section! {
    /// A bot of Telegram (channel type `telegram`). The server asks for its messages, so no port is
    /// open for it.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct TelegramChannel {
        /// The channel's name in logs.
        pub name: String = name();
        /// The bot's token, from @BotFather.
        #[serde(rename = "bot_token_set", serialize_with = "is_there")]
        pub bot_token: Secret = SecretText.required();
        /// The address of the Bot API.
        pub base_url: String = UrlText(&["https", "http"]).or_shown(
            "https://api.telegram.org".to_owned(),
            "https://api.telegram.org",
        );
        /// Whether what linked people write counts as their own words, and not as text from outside
        /// after which tools with an effect ask again. What they forward never does.
        pub trusted: bool = Flag.or(true);
    }
}

/// Whether clients may talk to a machine in a way that its relay can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    /// Plain clients are refused.
    Required,
    /// It is the client's choice: the contract's own clients know no other way.
    Optional,
}

const ENCRYPTION: Choice<Encryption> = Choice(&[
    ("required", Encryption::Required),
    ("optional", Encryption::Optional),
]);

fn name() -> Setting<Text, String> {
    Text(1..=64).or_shown(String::new(), "its key, or else its type")
}

/// An address to listen on.
const BIND: Parsed<IpAddr> = Parsed {
    expected: "an IPv4 or IPv6 address of this machine, such as 192.168.1.10 or ::1",
    parse: |text| text.parse().ok(),
};

/// The contract's words for the kinds of channel.
const KINDS: Choice<&str> = Choice(&words(["tcp", "websocket", "webhook", TELEGRAM]));

impl Channel {
    /// Its name in logs.
    pub fn name(&self) -> &str {
        match self {
            Channel::Tcp(channel) => &channel.name,
            Channel::Relay(channel) => &channel.name,
            Channel::Webhook(channel) => &channel.name,
            Channel::Telegram(channel) => &channel.name,
        }
    }

    /// Its type, in the contract's words.
    pub fn kind(&self) -> &'static str {
        match self {
            Channel::Tcp(_) => "tcp",
            Channel::Relay(_) => "websocket",
            Channel::Webhook(_) => "webhook",
            Channel::Telegram(_) => TELEGRAM,
        }
    }
}

/// The rule for `channels`.
pub(super) struct Channels;

impl Rule for Channels {
    type Output = Vec<Channel>;

    fn expected(&self) -> Said {
        "an array of channels, or an object of them by name".into()
    }

    fn schema(&self) -> Value {
        let kind = |word: &str, mut schema: Value, is_required: bool| {
            schema["properties"]["type"] = json!({ "const": word });
            if let (true, Some(required)) = (is_required, schema["required"].as_array_mut()) {
                required.push(json!("type"));
            }
            schema
        };
        let any = |is_required| {
            json!({ "anyOf": [
                kind("tcp", TcpChannel::schema(&[]), is_required),
                kind("websocket", RelayChannel::schema(&[]), is_required),
                kind("webhook", WebhookChannel::schema(&[]), is_required),
                kind(TELEGRAM, TelegramChannel::schema(&[]), is_required),
            ] })
        };
        json!({ "anyOf": [
            { "type": "array", "items": any(true), "minItems": 1 },
            {
                "type": "object",
                "properties": {
                    "tcp": any(false),
                    "websocket": any(false),
                    "webhook": any(false),
                    "telegram": any(false),
                },
                "patternProperties": { COMMENT: {} },
                "additionalProperties": any(true),
            },
        ] })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Vec<Channel>> {
        let found: Vec<(KeyPath, Option<&str>, &Value)> = match value {
            Value::Array(items) => (items.iter().enumerate())
                .map(|(index, item)| (path.index(index), None, item))
                .collect(),
            Value::Object(members) => (members.iter())
                .filter(|(key, _)| !is_comment(key))
                .map(|(key, member)| (path.key(key), Some(key.as_str()), member))
                .collect(),
            _ => return reader.demand(path, &self.expected(), value, None),
        };
        let mut read: Vec<(KeyPath, Option<Channel>)> = Vec::with_capacity(found.len());
        for (path, key, member) in found {
            let channel = read_channel(reader, &path, key, member);
            read.push((path, channel));
        }
        let listens = |channel: &Channel| match channel {
            Channel::Tcp(_) => true,
            Channel::Webhook(webhook) => webhook.port.is_some(),
            Channel::Relay(_) | Channel::Telegram(_) => false,
        };
        // The object form is the contract's way to configure webhooks, which
        // does not mention transports: without one, nobody could connect.
        if value.is_object()
            && read
                .iter()
                .all(|(_, one)| one.as_ref().is_some_and(|one| !listens(one)))
        {
            read.push((path.clone(), Some(default_channel())));
        }
        let placed: Vec<(&KeyPath, &Channel)> = read
            .iter()
            .filter_map(|(path, channel)| Some((path, channel.as_ref()?)))
            .collect();
        check_ports(reader, &placed);
        check_names(reader, &placed);
        check_reachable(reader, path, value, &placed);
        check_telegram(reader, &placed);
        check_paths(
            reader,
            placed.iter().filter_map(|(path, channel)| match channel {
                Channel::Webhook(webhook) => Some((path.key("accounts"), &webhook.accounts)),
                _ => None,
            }),
        );
        read.into_iter().map(|(_, channel)| channel).collect()
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        docs.push(SettingDoc {
            key: format!("{key}[].type"),
            expects: KINDS.expected().to_string(),
            default: "its key, where that is one of them; else required".to_owned(),
            documentation: "A listening port, a link to a relay, accounts of external systems, or \
                            a bot of Telegram."
                .to_owned(),
            writable: false,
        });
        TcpChannel::document(&format!("{key}[tcp]"), docs);
        RelayChannel::document(&format!("{key}[websocket]"), docs);
        WebhookChannel::document(&format!("{key}.webhook"), docs);
        TelegramChannel::document(&format!("{key}[telegram]"), docs);
    }
}

/// The setting `channels`.
pub(super) fn channels() -> Setting<Channels, Vec<Channel>> {
    Channels.or_shown(vec![default_channel()], "one tcp channel on port 5000")
}

/// The channel of a configuration that has none to listen on.
fn default_channel() -> Channel {
    Channel::Tcp(TcpChannel {
        name: "lan".to_owned(),
        ..TcpChannel::absent()
    })
}

/// Reads one channel; `key` is its name in the object form.
fn read_channel(
    reader: &mut Reader<'_>,
    path: &KeyPath,
    key: Option<&str>,
    value: &Value,
) -> Option<Channel> {
    let members = reader.members(path, &Said::of("config.object", &[]), value)?;
    let kind = read_kind(reader, path, key, members)?;
    let named = |name: String| match name.as_str() {
        "" => key.unwrap_or(kind).to_owned(),
        _ => name,
    };
    let channel = match kind {
        "tcp" => {
            let mut tcp: TcpChannel = read_section(reader, path, members, &["type"])?;
            tcp.name = named(tcp.name);
            Channel::Tcp(tcp)
        }
        "websocket" => {
            let mut relay: RelayChannel = read_section(reader, path, members, &["type"])?;
            relay.name = named(relay.name);
            Channel::Relay(relay)
        }
        TELEGRAM => {
            let mut telegram: TelegramChannel = read_section(reader, path, members, &["type"])?;
            telegram.name = named(telegram.name);
            Channel::Telegram(telegram)
        }
        _ => {
            // It is one wherever it stands.
            let mut webhook: WebhookChannel = read_section(reader, path, members, &["type"])?;
            webhook.name = "webhook".to_owned();
            Channel::Webhook(webhook)
        }
    };
    match &channel {
        Channel::Tcp(tcp) if tcp.allow_from.is_empty() => {
            reader.caution(&path.key("allow_from"), "is empty: nobody can connect");
        }
        Channel::Relay(relay) => warn_about_relay(reader, path, relay),
        _ => {}
    }
    Some(channel)
}

fn read_kind(
    reader: &mut Reader<'_>,
    path: &KeyPath,
    key: Option<&str>,
    members: &Map<String, Value>,
) -> Option<&'static str> {
    let type_path = path.key("type");
    if let Some(value) = members.get("type") {
        return KINDS.read(reader, &type_path, value);
    }
    let implied = KINDS.0.iter().find(|(word, _)| Some(*word) == key);
    if implied.is_none() {
        let expected = KINDS.expected();
        reader.refuse(&type_path, format_args!("is required: {expected}"));
    }
    implied.map(|(_, kind)| *kind)
}

fn warn_about_relay(reader: &mut Reader<'_>, path: &KeyPath, relay: &RelayChannel) {
    if is_exposed(&relay.url) {
        reader.caution(
            &path.key("url"),
            "is not encrypted on its way to the relay; wss:// is",
        );
    }
    let token = relay.auth_token.as_ref();
    if token.is_some_and(|token| token.expose().len() < TOKEN_CHARACTERS) {
        reader.caution(
            &path.key("auth_token"),
            format_args!("has fewer than {TOKEN_CHARACTERS} characters; relays refuse that"),
        );
    }
}

/// Two channels cannot listen on one port of one address.
fn check_ports(reader: &mut Reader<'_>, placed: &[(&KeyPath, &Channel)]) {
    let mut taken: Vec<(u16, Option<IpAddr>, &KeyPath)> = Vec::new();
    for (path, channel) in placed {
        let (port, bind) = match channel {
            Channel::Tcp(tcp) => (tcp.port, tcp.bind.filter(|bind| !bind.is_unspecified())),
            Channel::Webhook(WebhookChannel {
                port: Some(port), ..
            }) => (*port, None),
            _ => continue,
        };
        let overlaps = |other: &Option<IpAddr>| other.is_none() || bind.is_none() || *other == bind;
        let earlier = taken
            .iter()
            .find(|(other, other_bind, _)| port != 0 && *other == port && overlaps(other_bind));
        if let Some((_, _, other)) = earlier {
            let port_path = path.key("port");
            let message = format!("\"{port_path}\" is {port}, and so is \"{other}.port\"");
            reader.problem(&port_path, message);
        }
        taken.push((port, bind, path));
    }
}

/// Names that a person chose must differ.
fn check_names(reader: &mut Reader<'_>, placed: &[(&KeyPath, &Channel)]) {
    for (index, (path, channel)) in placed.iter().enumerate() {
        let same = |(_, earlier): &&(&KeyPath, &Channel)| {
            earlier.name() == channel.name() && channel.name() != channel.kind()
        };
        if let Some((other, _)) = placed[..index].iter().find(same) {
            reader.refuse(
                &path.key("name"),
                format_args!("is {:?}, and so is the name of \"{other}\"", channel.name()),
            );
        }
    }
}

/// One bot, and no webhook account that passes for it.
fn check_telegram(reader: &mut Reader<'_>, placed: &[(&KeyPath, &Channel)]) {
    let mut bots = placed
        .iter()
        .filter(|(_, channel)| matches!(channel, Channel::Telegram(_)));
    let Some((first, _)) = bots.next() else {
        return;
    };
    if let Some((path, _)) = bots.next() {
        reader.refuse(
            path,
            format_args!("is a second bot beside \"{first}\"; there is one"),
        );
    }
    for (path, channel) in placed {
        if let Channel::Webhook(webhook) = channel
            && webhook
                .accounts
                .iter()
                .any(|account| account.name == TELEGRAM)
        {
            reader.refuse(
                &path.key("accounts").key(TELEGRAM),
                "has the name of the bot: give the account another one",
            );
        }
    }
}

/// Refuses a server that nothing can reach.
fn check_reachable(
    reader: &mut Reader<'_>,
    path: &KeyPath,
    value: &Value,
    placed: &[(&KeyPath, &Channel)],
) {
    if value.as_array().is_some_and(Vec::is_empty) {
        reader.refuse(
            path,
            "is empty: nobody could connect; remove it for the default channel",
        );
    }
    if placed.iter().any(|(_, one)| matches!(one, Channel::Tcp(_))) {
        return;
    }
    for (path, channel) in placed {
        if matches!(channel, Channel::Webhook(webhook) if webhook.port.is_none()) {
            reader.refuse(
                path,
                "has no \"port\", and there is no tcp channel that could serve it",
            );
        }
    }
}

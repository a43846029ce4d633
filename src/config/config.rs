//! The whole configuration: every top-level setting, with its default.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use base::calendar::Zone;
use base::error::{Error, Result};
use base::gzip::unpack_text;
use base::people::{Audience, UserRole, folded};
use base::secret::Secret;

use super::address_patterns::AddressPatterns;
use super::assistant::Identity;
use super::channels::{
    Channel, RelayChannel, TELEGRAM, TcpChannel, TelegramChannel, WebhookChannel, channels,
};
use super::collections::{addresses, list, map_of, object, section_of};
use super::custom_tools::{BUILTIN_TOOLS, UNRELATED_TOOLS};
use super::data::{Backup, Retention};
use super::declaration::{Declared, Rule, SettingDoc, default_is_absent, section};
use super::limits::{Limits, limits};
use super::mcp_servers::{McpServer, mcp_servers, server_of};
use super::memory::MemorySettings;
use super::notifications::WebPush;
use super::people::{Person, Privacy, people};
use super::problems::suggestion;
use super::providers::{Budget, MODEL_NAME, ModelChoice, OFFLINE, Price, ProviderName};
use super::readable::{by_name, is_set, url};
use super::relay::RelaySettings;
use super::rules::{
    Choice, EMAIL, Flag, HOST, Number, ORIGIN, SecretText, TIME_ZONE, Text, UrlText, integer, words,
};
use super::tls::{Tls, tls};
use super::tools::{PERMISSIONS, Permission, Tools, tool_permissions, tools};
use super::voice::Voice;
use super::webhook_accounts::WebhookAccount;

/// What `get_config` shows as `temperature` where none is set and the provider
/// uses its own: the usual default of providers, because the contract wants a number.
pub const PROVIDER_TEMPERATURE: f64 = 1.0;

/// Reasoning efforts, in the words of OpenAI's API.
const EFFORTS: Choice<&str> = Choice(&words([
    "none", "minimal", "low", "medium", "high", "xhigh", "max",
]));

/// Levels of the log, the least verbose first.
const LOG_LEVELS: Choice<&str> = Choice(&words(["error", "warn", "info", "debug", "trace"]));

/// The system prompt where the owner has written none: how to answer. Who the assistant
/// is, `assistant` says.
pub const SYSTEM_PROMPT: &str = "\
Answer briefly and plainly. Say when you do not know, and never claim to have done what you have \
not. Use your tools, and look things up rather than guess. Ask when a request is unclear, and \
before anything that cannot be undone.";

section! {
    /// The current configuration. It is made only by loading and validating a file,
    /// and never changes.
    #[derive(Clone, Debug, Serialize)]
    pub struct Config {
        /// Model provider. `offline` answers from simple rules and needs neither key nor network.
        pub provider: String = ProviderName.or(OFFLINE.to_owned()), writable;
        /// The model's name at the provider.
        pub model: String = Text(1..=200).or(OFFLINE.to_owned()), writable;
        /// Sampling temperature; sent to the provider only when set.
        #[serde(serialize_with = "temperature")]
        pub temperature: Option<f64> = Number(0.0..=2.0).optional("the provider's own"), writable;
        /// The provider's API key. If it is missing and the provider is at its usual address,
        /// Hearth reads the provider's usual environment variable (OPENAI_API_KEY,
        /// ANTHROPIC_API_KEY, ...). It belongs to the address that it was given for: a change of
        /// `provider` or `base_url` to another scheme, host or port removes it, unless the same
        /// change sets a new one.
        #[serde(rename = "api_key_set", serialize_with = "is_set")]
        pub api_key: Option<Secret> = SecretText.optional("the usual environment variable"), writable;
        /// The models of the same provider that people may choose for a conversation or a reply,
        /// beside `model`; any when empty.
        pub models: Vec<String> = list(Text(1..=200)).or(Vec::new()), writable;
        /// Whether the model is asked for a title of each conversation that begins in the page, with
        /// one small request after the first reply. Without it the title is the first line.
        pub titles: bool = Flag.or(true), writable;
        /// The model of the same provider that writes titles and summaries: a small and cheap one
        /// is enough.
        pub side_model: Option<String> = Text(1..=200).optional("the model of the conversation"), writable;
        /// The provider's address, if it is not the usual one; required for `openai-compatible`.
        #[serde(serialize_with = "url")]
        pub base_url: Option<String> = UrlText(&["https", "http"])
            .optional("the provider's usual address"), writable;
        /// Who the assistant is.
        pub assistant: Identity = section_of(), writable;
        /// System prompt: how the assistant answers. What `assistant` says, who lives here, and
        /// where the replies are read stands beside it. Your own is the only one that says who it
        /// is, unless `assistant.name` is set.
        pub system_prompt: String = Text(0..=100_000)
            .or_shown(SYSTEM_PROMPT.to_owned(), "a short one that suits a household"), writable;
        /// Largest reply, in tokens.
        pub max_tokens: Option<u32> = integer(1..=10_000_000)
            .optional("the provider's own"), writable;
        /// Context window of the model, in tokens. Older parts of a conversation are summarised to
        /// fit. Ollama gets this value too, and reloads the model when it changes.
        pub context_tokens: Option<u32> = integer(2_048..=10_000_000)
            .optional("what a server of your own says; else as `hearth help models` lists it"), writable;
        /// How long the model's first word may take before the next of `fallback` is asked, if that
        /// answers at present.
        pub first_token_seconds: Option<u32> = integer(1..=3_600)
            .optional("60; with a reasoning effort 180; for a server at home half of what is left of `limits.turn_seconds`"), writable;
        /// Reasoning effort.
        pub reasoning_effort: Option<&'static str> = EFFORTS
            .optional("the model's own"), writable;
        /// How long Ollama keeps the model in memory after an answer, in minutes. Loading it again
        /// takes a while.
        pub keep_alive_minutes: u32 = integer(0..=10_080).or(60), writable;
        /// Models to ask, in this order, when the first one fails: its server is down, refuses the
        /// key or has no quota left.
        pub fallback: Vec<ModelChoice> = list(object::<ModelChoice>())
            .or_shown(Vec::new(), "[]"), writable;
        /// How memories are found.
        pub memory: MemorySettings = section_of();
        /// Limits on what models may cost.
        pub budget: Budget = section_of(), writable;
        /// What tokens cost, by the name of the model: `hearth usage` then shows money, too.
        pub prices: BTreeMap<String, Price> = map_of(MODEL_NAME, object::<Price>())
            .or(BTreeMap::new()), writable;
        /// Whether tools run: `ask` asks before each run, `allow` runs all tools, `deny` blocks
        /// all.
        pub permission_mode: Permission = PERMISSIONS.or(Permission::Ask), writable;
        /// Permissions of single tools, by name; they override `permission_mode`.
        pub tool_permissions: BTreeMap<String, Permission> = tool_permissions()
            .or(BTreeMap::new()), writable;
        /// What single people may do, by the name of the user. Whoever is not named here may do
        /// what the role and the other settings allow.
        pub people: BTreeMap<String, Person> = people(), writable;
        /// How browsers are notified.
        pub notifications: WebPush = section_of();
        /// Who sees what.
        pub privacy: Privacy = section_of(), writable;
        /// Time zone of reminders, routines and the assistant: an IANA name such as Europe/Berlin.
        pub time_zone: Option<String> = TIME_ZONE.optional("the system's"), writable;
        /// How clients reach the server: listening ports, links to relays, and webhook accounts.
        pub channels: Vec<Channel> = channels();
        /// Whether this server is also a relay for other machines.
        pub relay: RelaySettings = section_of();
        /// What a client may cost the server.
        pub limits: Limits = limits();
        /// TLS certificates: the server's own, and those that Hearth trusts when it calls others.
        pub tls: Tls = tls();
        /// Tools that the model may use: settings of built-in ones, and your own.
        pub tools: Tools = tools();
        /// Servers of the Model Context Protocol, by name, whose tools the model may use.
        #[serde(serialize_with = "by_name")]
        pub mcp_servers: Vec<McpServer> = mcp_servers();
        /// The servers that turn speech into text, and text into speech.
        pub voice: Voice = section_of();
        /// The interfaces for programs made for OpenAI, Anthropic or Ollama.
        pub openai_api: OpenAiApi = section_of();
        /// Hearth as a server of the Model Context Protocol, for other assistants.
        pub mcp_api: McpApi = section_of();
        /// Metrics for Prometheus.
        pub metrics: Metrics = section_of();
        /// Origins of web pages that may use the server, in addition to its own.
        pub allowed_origins: Vec<String> = list(ORIGIN).or(Vec::new());
        /// Host names under which browsers may reach the server, in addition to addresses, names
        /// without a dot, this machine's own, and names that end in .local, .lan, .home,
        /// .home.arpa, .internal, .localdomain, .fritz.box or .ts.net.
        pub allowed_hosts: Vec<String> = list(HOST).or(Vec::new());
        /// Reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
        pub trusted_proxies: AddressPatterns = addresses().or(AddressPatterns::default());
        /// The nightly backups.
        pub backup: Backup = section_of();
        /// How long to keep things.
        pub retention: Retention = section_of(), writable;
        /// Threads that run turns and deliver replies.
        pub workers: usize = integer(1..=256).or(16);
        /// What is logged. HEARTH_LOG in the server's environment overrides it.
        pub log_level: &'static str = LOG_LEVELS.or("info");
        /// How long a session token is valid, in days.
        pub session_days: u32 = integer(1..=3_650).or(30);
    }
}

default_is_absent!(Config, Limits, Tls, Tools, Backup, RelaySettings);

section! {
    /// The section `openai_api`.
    #[derive(Clone, Debug, Serialize)]
    pub struct OpenAiApi {
        /// Whether programs made for OpenAI and Anthropic (`/v1/...`) and Ollama (`/api/...`) may
        /// talk to the assistant, with an API token as their key.
        pub enabled: bool = Flag.or(false);
        /// The user for programs that send no token to `/api/...`, from loopback and private
        /// addresses only: for clients of Ollama that cannot send a key. Anybody in your network
        /// can then talk to the assistant as this user.
        pub ollama_user: Option<String> = Text(1..=64).optional("nobody: a token is needed");
        /// Who the users of Open WebUI are here, by the address in its header
        /// `X-OpenWebUI-User-Email`. Its token must speak for them; another address is refused.
        pub users: BTreeMap<String, String> = map_of(EMAIL, Text(1..=64))
            .or_shown(BTreeMap::new(), "{}");
        /// Whether a program that streams a reply and hangs up stops its turn: the button Stop of
        /// most programs does no more than that.
        pub cancel_on_disconnect: bool = Flag.or(true);
    }
}

section! {
    /// The section `mcp_api`.
    #[derive(Clone, Debug, Serialize)]
    pub struct McpApi {
        /// Whether editors and other assistants reach memories, search, lists, reminders and the
        /// assistant at `/mcp`, with an API token.
        pub enabled: bool = Flag.or(false);
        /// Whether what they write counts as what their people say themselves. Otherwise it is
        /// text from outside: they may have read anything.
        pub trusted: bool = Flag.or(false);
    }
}

section! {
    /// The section `metrics`.
    #[derive(Clone, Debug, Serialize)]
    pub struct Metrics {
        /// Whether `GET /metrics` answers, in Prometheus's text format.
        pub enabled: bool = Flag.or(false);
        /// The token that a scraper must send as `Authorization: Bearer ...`, whatever its address.
        #[serde(rename = "token_set", serialize_with = "is_set")]
        pub token: Option<Secret> = SecretText.optional("none: only loopback may ask");
    }
}

/// Every setting, in the order of the declaration: what `hearth config keys` shows.
pub fn documentation() -> Vec<SettingDoc> {
    let lines = unpack_text(include_bytes!(concat!(env!("OUT_DIR"), "/settings.tsv.gz")));
    lines.lines().map(SettingDoc::of_line).collect()
}

/// The same out of the declarations themselves. Tests hold the text and the handbook to it;
/// the program itself has the text, which is smaller than the code that makes it.
pub fn declared_documentation() -> Vec<SettingDoc> {
    let mut docs = Vec::new();
    Config::document("", &mut docs);
    docs
}

/// The JSON Schema of the file (draft 2020-12), for editors.
pub fn schema() -> Value {
    let mut schema = Config::schema(&[]);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Hearth's configuration");
    schema["$defs"] = json!({
        "unset_or_variable": {
            "description": "null for the default, or the name of an environment variable.",
            "type": ["null", "string"],
            "pattern": r"^\$\{",
        },
    });
    schema
}

impl Config {
    /// The price of a model, under its name or, as providers call one that has answered, with
    /// the date of its version.
    pub fn price_of(&self, model: &str) -> Option<&Price> {
        let dated = |name: &str| {
            let version = model.strip_prefix(name)?.strip_prefix('-')?;
            let is_date = version
                .bytes()
                .all(|one| one.is_ascii_digit() || one == b'-');
            (is_date && version.len() >= 8).then_some(())
        };
        let found = self.prices.iter().find(|(name, _)| dated(name).is_some());
        self.prices.get(model).or(found.map(|(_, price)| price))
    }

    /// Takes the keys that are not set from the environment.
    pub(super) fn find_keys(&mut self, environment: &dyn Fn(&str) -> Option<String>) {
        let mut first = self.first_choice();
        first.find_key(environment);
        self.api_key = first.api_key;
        for choice in &mut self.fallback {
            choice.find_key(environment);
        }
    }

    /// The model that is asked first.
    pub fn first_choice(&self) -> ModelChoice {
        ModelChoice {
            provider: self.provider.clone(),
            model: self.model.clone(),
            api_key: self.api_key.clone(),
            base_url: self.base_url.clone(),
            context_tokens: self.context_tokens,
            first_token_seconds: self.first_token_seconds,
        }
    }

    /// That there is no tool of this name, and which may be meant. Which tools an MCP
    /// server has is not known here.
    pub fn unknown_tool(&self, name: &str) -> Option<String> {
        let custom = self.tools.custom.iter().map(|tool| tool.name.as_str());
        let known = || BUILTIN_TOOLS.into_iter().chain(custom.clone());
        let servers = self.mcp_servers.iter().map(|server| server.name.as_str());
        let is_of_server = server_of(name, servers).is_some();
        let is_known = name == "*" || is_of_server || known().any(|one| one == name);
        (!is_known).then(|| format!("there is no tool {name:?}{}", suggestion(name, known())))
    }

    /// What the configuration says about the user of this name, in any case.
    pub fn person(&self, name: &str) -> Option<&Person> {
        let wanted = folded(name);
        let mut people = self.people.iter();
        people.find_map(|(name, person)| (folded(name) == wanted).then_some(person))
    }

    /// The links to relays, in the order of the file.
    pub fn relays(&self) -> impl Iterator<Item = &RelayChannel> {
        self.channels.iter().filter_map(|channel| match channel {
            Channel::Relay(relay) => Some(relay),
            _ => None,
        })
    }

    /// The tcp channels, in the order of the file.
    pub fn tcp_channels(&self) -> impl Iterator<Item = &TcpChannel> {
        self.channels.iter().filter_map(|channel| match channel {
            Channel::Tcp(tcp) => Some(tcp),
            _ => None,
        })
    }

    /// The addresses and ports on which a server listens: those of the tcp channels, then the
    /// webhook channels' own.
    pub fn ports(&self) -> Vec<(Option<IpAddr>, u16)> {
        let tcp = self.tcp_channels();
        let tcp = tcp.map(|channel| (channel.bind, channel.port));
        tcp.chain(self.own_ports().map(|(_, port)| (None, port)))
            .collect()
    }

    fn own_ports(&self) -> impl Iterator<Item = (&WebhookChannel, u16)> {
        self.channels.iter().filter_map(|channel| match channel {
            Channel::Webhook(webhook) => Some((webhook, webhook.port?)),
            _ => None,
        })
    }

    /// The place in [`Config::ports`] where the messages of a webhook account are received.
    pub fn port_of_account(&self, name: &str) -> usize {
        let has = |channel: &WebhookChannel| channel.accounts.iter().any(|one| one.name == name);
        let own = self.own_ports().position(|(channel, _)| has(channel));
        let shared = self.ports().len() - self.own_ports().count();
        own.map_or(0, |place| shared + place)
    }

    /// The accounts of all webhook channels, in the order of the file.
    pub fn webhook_accounts(&self) -> impl Iterator<Item = &WebhookAccount> {
        self.channels
            .iter()
            .filter_map(|channel| match channel {
                Channel::Webhook(webhook) => Some(&webhook.accounts),
                _ => None,
            })
            .flatten()
    }

    /// The bot of Telegram, if there is one.
    pub fn telegram(&self) -> Option<&TelegramChannel> {
        self.channels.iter().find_map(|channel| match channel {
            Channel::Telegram(telegram) => Some(telegram),
            _ => None,
        })
    }

    /// Whether there is the bot of Telegram or the webhook account that a stored thing names.
    pub fn has_account(&self, name: &str) -> bool {
        match name {
            TELEGRAM => self.telegram().is_some(),
            name => self.webhook_account(name).is_some(),
        }
    }

    /// The webhook account of a name in a request.
    ///
    /// # Errors
    /// `not_found` when there is none.
    pub fn existing_account(&self, name: &str) -> Result<&WebhookAccount> {
        self.webhook_account(name).ok_or_else(|| no_account(name))
    }

    /// The webhook account of this name, whose conversations this person sees; none stands for
    /// whoever runs the server.
    ///
    /// # Errors
    /// `not_found`, also for one that the person does not see.
    pub fn account_seen_by(&self, name: &str, person: Option<&str>) -> Result<&WebhookAccount> {
        let account = self.existing_account(name)?;
        let is_seen = match (&account.audience, person) {
            (Audience::Household, _) | (_, None) => true,
            (Audience::People(names), Some(own)) => {
                names.iter().any(|name| folded(name) == folded(own))
            }
            (Audience::Private, Some(_)) => false,
        };
        match is_seen {
            true => Ok(account),
            false => Err(no_account(name)),
        }
    }

    /// Whether a tool is offered in the turns of a webhook account. What is offered may still
    /// be denied.
    pub fn offers(&self, account: &WebhookAccount, tool: &str) -> bool {
        let listed = account.lists(tool);
        listed.unwrap_or_else(|| !self.is_of_household(tool))
    }

    /// Whether a tool reaches what belongs to the household.
    pub fn is_of_household(&self, tool: &str) -> bool {
        let mut custom = self.tools.custom.iter().filter(|one| one.household);
        let servers = self.mcp_servers.iter().filter(|server| server.household);
        let servers = servers.map(|server| server.name.as_str());
        let is_builtin = BUILTIN_TOOLS.contains(&tool) && !UNRELATED_TOOLS.contains(&tool);
        is_builtin || custom.any(|one| one.name == tool) || server_of(tool, servers).is_some()
    }

    /// The household's time zone.
    pub fn zone(&self) -> Zone {
        Zone::of_household(self.time_zone.as_deref())
    }

    /// The webhook account of this name.
    pub fn webhook_account(&self, name: &str) -> Option<&WebhookAccount> {
        self.webhook_accounts().find(|account| account.name == name)
    }
}

/// What `get_config` shows: every current setting as it is declared, and no secret.
impl Config {
    /// The readable fields, in order: the contract's three first.
    pub(super) fn readable(&self) -> Map<String, Value> {
        match json!(self) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// The readable fields as the user of this name and role may see them.
    pub(super) fn readable_by(&self, name: &str, role: UserRole) -> Map<String, Value> {
        let mut fields = self.readable();
        if role < UserRole::Admin
            && let Some(Value::Object(people)) = fields.get_mut("people")
        {
            let own = folded(name);
            people.retain(|name, _| folded(name) == own);
        }
        // Those that this person may choose from.
        if role < UserRole::Admin && self.person(name).is_some_and(Person::is_limited) {
            fields.insert("models".to_owned(), Value::Array(Vec::new()));
        }
        // Which servers they are is for those who set them.
        if role < UserRole::Admin
            && let Some(Value::Object(voice)) = fields.get_mut("voice")
        {
            voice
                .values_mut()
                .for_each(|one| *one = json!(!one.is_null()));
        }
        if role < UserRole::User
            && let Some(Value::Array(channels)) = fields.get_mut("channels")
        {
            channels.retain(|channel| channel["type"] != "webhook");
        }
        fields
    }
}

fn no_account(name: &str) -> Error {
    Error::not_found(format!("there is no webhook account {name:?}"))
}

/// What the provider uses where none is set: the contract wants a number.
fn temperature<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(value.unwrap_or(PROVIDER_TEMPERATURE))
}

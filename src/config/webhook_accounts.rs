//! `channels.webhook.accounts`: external systems that POST messages and get the
//! replies by POST (contract sections 2 and 4.3).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::collections::{filled_list, list, map_of, object, object_as};
use super::declaration::{Rule, section};
use super::key_path::{KeyPath, channel_places, is_comment, quoted};
use super::people::SharedAudience;
use super::readable::{Named, host, is_set};
use super::reader::Reader;
use super::rules::{Choice, Flag, NAME, Parsed, SecretText, TOOL_NAME, Text, UrlText, integer};
use super::tools::{PERMISSIONS, Permission, tool_permissions};
use super::webhook_map::{WebhookFilter, WebhookMap, filter};
use base::error::{Error, Result};
use base::people::Audience;
use base::secret::Secret;
use base::url::is_exposed;

/// Where the server itself answers, here and below (protocol section 3).
const TAKEN: [&str; 11] = [
    "/assets",
    "/attachments",
    "/auth",
    "/events",
    "/export",
    "/health",
    "/help",
    "/import",
    "/register",
    "/trust",
    "/ws",
];

section! {
    /// One external system (contract section 2, `channels.webhook.accounts`).
    #[derive(Clone, Debug, Serialize)]
    pub struct WebhookAccount {
        /// The account's name.
        pub name: String = Text(1..=64).or_shown(String::new(), "its key under accounts");
        /// URL path of the account's requests. With `metrics` enabled, /metrics is not
        /// available either, nor /v1 and /api with `openai_api`, nor /mcp with `mcp_api`, unless
        /// the webhook channel has its own `port`.
        pub incoming_path: String = INCOMING_PATH.required();
        /// URL that receives the replies by POST.
        #[serde(serialize_with = "host")]
        pub outgoing_url: String = UrlText(&["https", "http"]).required();
        /// Shared secret. Incoming requests must send it, and outgoing ones do, in
        /// `X-Service-Secret`.
        #[serde(rename = "secret_set", serialize_with = "is_set")]
        pub secret: Option<Secret> = SecretText.optional("none: anyone who can connect may post");
        /// The previous secret, for the time until the other side knows the new one. It is accepted
        /// as well as `secret`, and callbacks are signed with both.
        #[serde(rename = "secret_previous_set", serialize_with = "is_set")]
        pub secret_previous: Option<Secret> = SecretText.optional("none");
        /// How messages may be sent: as JSON, as a form (with files as `multipart/form-data`), as
        /// plain text, which is the message, or in the query of a GET request. All but JSON take
        /// the secret as `?secret=`, too, and refuse what a page of another site sends.
        pub accept: Vec<WebhookFormat> = formats().or(vec![WebhookFormat::Json]);
        /// Model for this account's turns.
        pub model: Option<String> = Text(1..=200).optional("the server's `model`");
        /// Narrows `permission_mode` for this account's turns; it never widens it.
        pub permission_mode: Option<Permission> = PERMISSIONS.optional("the server's");
        /// The only tools offered in this account's turns. The tools that reach what belongs to the
        /// household (memories, search, schedules, files, commands, and those with `household`) are
        /// offered only if they are named here. `*` stands for every tool.
        pub tools: Option<Vec<String>> = list(TOOL_OR_ALL)
            .optional("all but those of the household");
        /// Permissions of single tools in this account's turns. They override `tool_permissions`,
        /// and are themselves narrowed by the account's `permission_mode` and `tools`. The answer
        /// "always" to an approval is stored here.
        pub tool_permissions: BTreeMap<String, Permission> = tool_permissions()
            .or(BTreeMap::new());
        /// Who sees the account's conversations: "household", or a list of names.
        pub audience: Audience = SharedAudience.or(Audience::Household);
        /// Whether the account's messages are trusted: they do not count as text from outside, after
        /// which tools with an effect ask again. Only for a system whose every text you write
        /// yourself.
        pub trusted: bool = Flag.or(false);
        /// Seconds that a turn of this account may run.
        pub timeout_seconds: Option<u64> = integer(1..=86_400).optional("`limits.turn_seconds`");
        /// Attempts at a callback before Hearth gives up: 10 take 32 hours.
        pub max_attempts: u32 = integer(1..=10).or(MOST_ATTEMPTS);
        /// Whether new messages are accepted. Earlier ones are still answered.
        pub enabled: bool = Flag.or(true);
        /// How to turn JSON of a different form into a message.
        #[serde(rename = "mapped", serialize_with = "is_set")]
        pub map: Option<WebhookMap> = object::<WebhookMap>()
            .optional("the body has `message`, `user_id` and `conversation_id`");
        /// Which events are taken: for each JSON pointer into the body, the value it must have or a
        /// list of them; `*` stands for any, and `[]` for none. Other events are answered with 200
        /// and `ignored`, and begin no turn.
        pub when: WebhookFilter = filter().or(WebhookFilter::new());
    }
}

/// How a message may be sent to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookFormat {
    /// A body of the type `application/json`.
    Json,
    /// A form, with or without files.
    Form,
    /// A body that is the message.
    Text,
    /// The query of a GET request.
    Get,
}

fn formats() -> impl Rule<Output = Vec<WebhookFormat>> {
    filled_list(Choice(&[
        ("json", WebhookFormat::Json),
        ("form", WebhookFormat::Form),
        ("text", WebhookFormat::Text),
        ("get", WebhookFormat::Get),
    ]))
}

impl WebhookAccount {
    /// Whether it takes messages in another way than as JSON, from senders that may be too simple
    /// to set a header.
    pub fn has_simple_senders(&self) -> bool {
        self.accept != [WebhookFormat::Json]
    }

    /// Whether its `tools` names a tool; none without `tools`.
    pub(super) fn lists(&self, tool: &str) -> Option<bool> {
        let tools = self.tools.as_ref()?;
        Some(tools.iter().any(|named| named == tool || named == ALL))
    }
}

/// What stands for every tool in `tools`.
const ALL: &str = "*";

const TOOL_OR_ALL: Parsed<String> = Parsed {
    expected: "a tool name (1 to 64 of A-Z a-z 0-9 _ -, not beginning with _) or *",
    parse: |text| match text {
        ALL => Some(ALL.to_owned()),
        name => (TOOL_NAME.parse)(name),
    },
};

/// Attempts at a callback that the schedule has (protocol section 4).
const MOST_ATTEMPTS: u32 = 10;

const INCOMING_PATH: Parsed<String> = Parsed {
    expected: "a URL path that begins with /, has no query, and is neither / nor at or below \
               /assets, /attachments, /auth, /events, /export, /health, /help, /import, /register or /ws, \
               which the server answers itself",
    parse: |path| {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\"<>\\{}".contains(&byte);
        let fits = path.starts_with('/')
            && path.len() <= 255
            && path.bytes().all(plain)
            && !path.split('/').any(|part| part == "." || part == "..")
            && !path.trim_end_matches('/').is_empty()
            && !TAKEN.iter().any(|taken| is_at_or_below(path, taken));
        fits.then(|| path.to_owned())
    },
};

/// Whether a URL path equals or is below `prefix`, which must not end in a slash.
pub fn is_at_or_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The accounts of a channel, by name.
pub(super) fn accounts() -> impl Rule<Output = Vec<WebhookAccount>> {
    map_of(NAME, account()).then(|reader, path, _, accounts: Vec<(String, WebhookAccount)>| {
        let named = accounts.into_iter().map(|(key, mut account)| {
            if !account.name.is_empty() && account.name != key {
                reader.refuse(
                    &path.key(&key).key("name"),
                    format_args!("must be {key:?}, the key of the account, or absent"),
                );
            }
            account.name = key;
            account
        });
        Some(named.collect())
    })
}

/// One account, with warnings about what its owner may not intend.
fn account() -> impl Rule<Output = WebhookAccount> {
    object_as::<WebhookAccount>("its settings", &[]).then(|reader, path, _, account| {
        if account.secret_previous.is_some() && account.secret.is_none() {
            reader.refuse(
                &path.key("secret_previous"),
                "needs a \"secret\" as well, which replaces it",
            );
        }
        if account.secret.is_none() && account.accept.contains(&WebhookFormat::Get) {
            reader.refuse(
                &path.key("accept"),
                "has \"get\", which needs a \"secret\": without one, any link could send a message",
            );
        }
        if let Some(secret) = &account.secret {
            reader.warn_if_short(&path.key("secret"), secret.expose());
            if is_exposed(&account.outgoing_url) {
                reader.caution(
                    &path.key("outgoing_url"),
                    "sends the secret unencrypted; https:// would not",
                );
            }
        }
        Some(account)
    })
}

/// Warns about an account of a version that did not ask who sees its conversations:
/// it had the tools of the household. `place` is the path of its `accounts`.
pub(super) fn warn_of_narrowing(
    reader: &mut Reader<'_>,
    document: &Value,
    place: &KeyPath,
    account: &WebhookAccount,
) {
    let path = place.key(&account.name);
    let is_set = |key: &str| {
        let found = path.key(key).find(document);
        found.is_some_and(|value| !value.is_null())
    };
    let runs_none = account.permission_mode == Some(Permission::Deny);
    if runs_none || is_set("tools") || is_set("audience") {
        return;
    }
    let command = |key: &str, value: &str| {
        let key = path.key(key).to_string();
        format!("hearth config set {} {value}", quoted(&key))
    };
    reader.caution(
        &path,
        format_args!(
            "has no \"tools\", so those of the household (memories, search, schedules, files) are \
             no longer offered to it; to offer all tools again: {}; to leave it so: {}",
            command("tools", "'[\"*\"]'"),
            command("audience", "household")
        ),
    );
}

/// Every account needs a unique path. `lists` are the accounts of each
/// webhook channel, with the place of its `accounts`.
pub(super) fn check_paths<'a>(
    reader: &mut Reader<'_>,
    lists: impl Iterator<Item = (KeyPath, &'a Vec<WebhookAccount>)>,
) {
    let mut taken: Vec<(&str, KeyPath)> = Vec::new();
    for (place, accounts) in lists {
        for account in accounts {
            let path = place.key(&account.name).key("incoming_path");
            let earlier = taken
                .iter()
                .find(|(taken, _)| *taken == account.incoming_path);
            if let Some((_, other)) = earlier {
                reader.refuse(
                    &path,
                    format_args!("is {:?}, and so is \"{other}\"", account.incoming_path),
                );
            }
            taken.push((&account.incoming_path, path));
        }
    }
}

/// The names of the webhook accounts in a file, in both forms of `channels`.
fn account_names(members: &Value) -> BTreeSet<String> {
    let places = channel_places(members).into_iter();
    let accounts = places.filter_map(|place| place.key("accounts").find(members)?.as_object());
    accounts
        .flat_map(|accounts| accounts.keys().filter(|name| !is_comment(name)).cloned())
        .collect()
}

/// Refuses a change of something else that would drop accounts, and with them secrets
/// that nobody could restore.
pub(super) fn keep_accounts(key: &str, before: &Value, after: &Value) -> Result<()> {
    let (before, after) = (account_names(before), account_names(after));
    let lost: Vec<&str> = before.difference(&after).map(String::as_str).collect();
    match lost.first() {
        None => Ok(()),
        Some(first) => Err(Error::invalid_request(format!(
            "this value of {key:?} lacks the webhook accounts {}, which would be lost with their \
             secrets; remove them first (hearth webhook remove {first}), or set one value of a \
             channel, such as channels.lan.port",
            lost.join(", ")
        ))),
    }
}

impl Named for WebhookAccount {
    fn name(&self) -> &str {
        &self.name
    }
}

//! The keys of relay channels and webhook accounts in the configuration file,
//! whose `channels` may be an array or an object (contract section 2).

use serde_json::{Map, Value, json};

use super::context::CliError;
use config::Settings;

/// The key of the relay channel of this name.
///
/// # Errors
///
/// The configuration cannot be read.
#[cfg(feature = "relay")]
pub fn relay_key(settings: &Settings, name: &str) -> Result<Option<String>, CliError> {
    let channels = settings.get("channels", false)?;
    Ok(find(&channels, |key, channel| {
        let kind = channel["type"].as_str().unwrap_or(key);
        let given = channel["name"].as_str().filter(|given| !given.is_empty());
        let fallback = if key.is_empty() { kind } else { key };
        kind == "websocket" && given.unwrap_or(fallback) == name
    }))
}

/// The key of a new relay channel, and the value to set there.
///
/// # Errors
///
/// The configuration cannot be read.
#[cfg(feature = "relay")]
pub fn new_relay(
    settings: &Settings,
    name: &str,
    mut channel: Map<String, Value>,
) -> Result<(String, Value), CliError> {
    channel.insert("type".to_owned(), json!("websocket"));
    Ok(match settings.get("channels", false)? {
        Value::Array(items) if is_in_file(settings) => {
            channel.insert("name".to_owned(), json!(name));
            (format!("channels[{}]", items.len()), Value::Object(channel))
        }
        // Without channels in the file the default one applies, and the object
        // form keeps it.
        _ => (format!("channels.{}", quoted(name)), Value::Object(channel)),
    })
}

/// The key of an existing webhook account.
///
/// # Errors
///
/// The file does not contain it.
pub fn account_key(settings: &Settings, name: &str) -> Result<String, CliError> {
    let channels = settings.get("channels", false)?;
    find(&channels, |key, channel| {
        is_webhook(key, channel) && channel["accounts"].get(name).is_some()
    })
    .map(|channel| key_in(&channel, name))
    .ok_or_else(|| {
        CliError::failed(format!(
            "the file does not contain webhook account {name:?}"
        ))
    })
}

/// The key of a new webhook account, and the value to set there: the account, or
/// the channel around it if there is none yet.
///
/// # Errors
///
/// The configuration cannot be read.
pub fn new_account(
    settings: &Settings,
    name: &str,
    account: Map<String, Value>,
) -> Result<(String, Value), CliError> {
    let channels = settings.get("channels", false)?;
    let account = Value::Object(account);
    Ok(match (find(&channels, is_webhook), &channels) {
        (Some(channel), _) => (key_in(&channel, name), account),
        (None, Value::Array(items)) if is_in_file(settings) => (
            format!("channels[{}]", items.len()),
            json!({"name": "webhook", "type": "webhook", "accounts": {name: account}}),
        ),
        _ => (key_in("channels.webhook", name), account),
    })
}

/// Whether the file sets `channels`; without it the default is shown.
fn is_in_file(settings: &Settings) -> bool {
    std::fs::read_to_string(settings.path())
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .is_some_and(|file| !file["channels"].is_null())
}

/// The key of the first channel that passes; in an array its own key is empty.
fn find(channels: &Value, passes: impl Fn(&str, &Value) -> bool) -> Option<String> {
    match channels {
        Value::Array(items) => items
            .iter()
            .position(|item| passes("", item))
            .map(|index| format!("channels[{index}]")),
        Value::Object(members) => members
            .iter()
            .find(|(key, member)| passes(key, member))
            .map(|(key, _)| format!("channels.{}", quoted(key))),
        _ => None,
    }
}

fn is_webhook(key: &str, channel: &Value) -> bool {
    channel["type"].as_str().unwrap_or(key) == "webhook"
}

fn key_in(channel: &str, account: &str) -> String {
    format!("{channel}.accounts.{}", quoted(account))
}

/// A key as a JSON string, in which dots do not separate.
fn quoted(key: &str) -> String {
    Value::from(key).to_string()
}

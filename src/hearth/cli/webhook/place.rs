//! Where an account stands in the configuration file, whose `channels` may be an
//! array or an object (contract section 2).

use serde_json::{Map, Value};

use crate::cli::Failure;
use ::config::Settings;
use serde_json::json;

/// The key of an account that is there.
pub fn of(settings: &Settings, name: &str) -> Result<String, Failure> {
    let channels = settings.get("channels", false)?;
    let holds = |channel: &Value| channel["accounts"].get(name).is_some();
    webhook_channel(&channels, holds)
        .map(|channel| account_key(&channel, name))
        .ok_or_else(|| {
            Failure::failed(format!(
                "the webhook account {name:?} was not found in the file"
            ))
        })
}

/// The key under which a new account is set, and what it is set to: the account,
/// or the channel around it where there is none yet.
pub fn for_new(
    settings: &Settings,
    name: &str,
    account: Map<String, Value>,
) -> Result<(String, Value), Failure> {
    let channels = settings.get("channels", false)?;
    if let Some(channel) = webhook_channel(&channels, |_| true) {
        return Ok((account_key(&channel, name), Value::Object(account)));
    }
    Ok(match &channels {
        Value::Array(items) if is_in_file(settings) => (
            format!("channels[{}]", items.len()),
            json!({"name": "webhook", "type": "webhook", "accounts": {name: account}}),
        ),
        _ => (
            account_key("channels.webhook", name),
            Value::Object(account),
        ),
    })
}

/// Whether `channels` stands in the file; what is shown without is the default.
fn is_in_file(settings: &Settings) -> bool {
    std::fs::read_to_string(settings.path())
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .is_some_and(|file| !file["channels"].is_null())
}

/// The key of the first webhook channel that passes.
fn webhook_channel(channels: &Value, passes: impl Fn(&Value) -> bool) -> Option<String> {
    let is_webhook = |key: &str, channel: &Value| match channel["type"].as_str() {
        Some(kind) => kind == "webhook",
        None => key == "webhook",
    };
    match channels {
        Value::Array(items) => items
            .iter()
            .position(|item| is_webhook("", item) && passes(item))
            .map(|index| format!("channels[{index}]")),
        Value::Object(members) => members
            .iter()
            .find(|(key, member)| is_webhook(key, member) && passes(member))
            .map(|(key, _)| format!("channels.{}", quoted(key))),
        _ => None,
    }
}

fn account_key(channel: &str, name: &str) -> String {
    format!("{channel}.accounts.{}", quoted(name))
}

/// A key as a JSON string, so that dots in it separate nothing.
fn quoted(key: &str) -> String {
    Value::from(key).to_string()
}

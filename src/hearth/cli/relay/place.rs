//! Where a relay's channel stands in the configuration file, whose `channels`
//! may be an array or an object (contract section 2).

use serde_json::{Map, Value};

use crate::cli::Failure;
use config::{Channel, Config, RelayChannel, Settings};
use serde_json::json;

/// The relay channels, in the order of the file.
pub fn relays(config: &Config) -> impl Iterator<Item = &RelayChannel> {
    config.channels.iter().filter_map(|channel| match channel {
        Channel::Relay(relay) => Some(relay),
        _ => None,
    })
}

/// The key of the channel of this name.
pub fn of(settings: &Settings, name: &str) -> Result<Option<String>, Failure> {
    let is_relay = |key: &str, channel: &Value| {
        let kind = channel["type"].as_str().unwrap_or(key);
        let called = match channel["name"].as_str() {
            Some(called) if !called.is_empty() => called,
            _ if key.is_empty() => kind,
            _ => key,
        };
        kind == "websocket" && called == name
    };
    Ok(match settings.get("channels", false)? {
        Value::Array(items) => items
            .iter()
            .position(|item| is_relay("", item))
            .map(|index| format!("channels[{index}]")),
        Value::Object(members) => members
            .iter()
            .find(|(key, member)| is_relay(key, member))
            .map(|(key, _)| object_key(key)),
        _ => None,
    })
}

/// The key under which a new channel is set, and what it is set to.
pub fn for_new(
    settings: &Settings,
    name: &str,
    mut channel: Map<String, Value>,
) -> Result<(String, Value), Failure> {
    channel.insert("type".to_owned(), json!("websocket"));
    Ok(match settings.get("channels", false)? {
        Value::Array(items) if is_in_file(settings) => {
            channel.insert("name".to_owned(), json!(name));
            (format!("channels[{}]", items.len()), Value::Object(channel))
        }
        // Without channels in the file there is the default one, and the
        // object form keeps it.
        _ => (object_key(name), Value::Object(channel)),
    })
}

/// Whether `channels` stands in the file; what is shown without is the default.
fn is_in_file(settings: &Settings) -> bool {
    std::fs::read_to_string(settings.path())
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .is_some_and(|file| !file["channels"].is_null())
}

/// A key as a JSON string, so that dots in it separate nothing.
fn object_key(name: &str) -> String {
    format!("channels.{}", Value::from(name))
}

//! What `get_config` shows: every current setting as it is declared, and no secret.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::config::{Config, PROVIDER_TEMPERATURE};
use super::custom_tools::CustomTool;
use super::mcp_servers::{McpServer, McpWay};
use super::webhook_accounts::WebhookAccount;
use base::people::folded;
use base::role::UserRole;
use base::url::{host_only, masked};

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
        if role < UserRole::User
            && let Some(Value::Array(channels)) = fields.get_mut("channels")
        {
            channels.retain(|channel| channel["type"] != "webhook");
        }
        fields
    }
}

/// What is too long to show, or a secret: whether it is there.
pub(super) fn is_set<T, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(value.is_some())
}

/// An address that may hold a password.
pub(super) fn url<S: Serializer>(url: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    url.as_deref().map(masked).serialize(to)
}

/// An address that may hold a password, and must be there.
pub(super) fn relay_url<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    masked(url).serialize(to)
}

/// An address whose path may be a secret, too.
pub(super) fn host<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    host_only(url).serialize(to)
}

/// What the provider uses where none is set: the contract wants a number.
pub(super) fn temperature<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(value.unwrap_or(PROVIDER_TEMPERATURE))
}

/// What the file has by name.
pub(super) fn by_name<T: Serialize + Named, S: Serializer>(
    named: &[T],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(named.iter().map(|one| (one.name(), one)))
}

/// What the file has by name.
pub(super) trait Named {
    fn name(&self) -> &str;
}

impl Named for WebhookAccount {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for McpServer {
    fn name(&self) -> &str {
        &self.name
    }
}

/// The names of tools: what they run is for whoever reads the file.
pub(super) fn names<S: Serializer>(tools: &[CustomTool], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(tools.iter().map(|tool| &tool.name))
}

impl Serialize for McpServer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut shown = json!({
            "disabled": self.disabled,
            "timeout_seconds": self.timeout_seconds,
            "trusted": self.trusted,
            "household": self.household,
        });
        match &self.way {
            McpWay::Stdio {
                command, sandbox, ..
            } => {
                shown["command"] = json!(command);
                shown["sandbox"] = json!(sandbox);
            }
            McpWay::Http { url, .. } => shown["url"] = json!(host_only(url)),
        }
        shown.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::documentation;
    use crate::declaration::Declared;
    use crate::key_path::KeyPath;

    #[test]
    fn every_setting_is_readable() {
        let shown = Value::Object(Config::absent().readable());
        let is_shown = |key: &str| key.parse::<KeyPath>().unwrap().find(&shown).is_some();
        for doc in documentation() {
            // What has a name of the owner's choice is not there, nor what is in a section that
            // is absent. Of `voice` only whether it is set is shown.
            let is_inside = doc.key.contains("NAME") || doc.key.contains('[');
            let sections = ["channels.", "voice.", "memory.embeddings."];
            if is_inside || sections.iter().any(|section| doc.key.starts_with(section)) {
                continue;
            }
            assert!(
                is_shown(&doc.key) || is_shown(&format!("{}_set", doc.key)),
                "{}",
                doc.key
            );
        }
    }
}

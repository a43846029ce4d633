//! The configuration, as its owner reads and changes it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Service, views};
use base::error::Result;
use base::people::{Audience, folded};
use config::{Config, Edit};
use protocol::command::{ReplaceConfig, SetConfig};
use protocol::record;
use store::{Identity, UserRole};

/// Somebody whom the configuration names and who does not exist: misspelt, or gone. Whoever
/// gets such a name gets what stands there.
pub struct UnknownName<'c> {
    /// The name.
    pub name: &'c str,
    /// The webhook account in whose audience it is; none where it is in `people`.
    pub account: Option<&'c str>,
}

impl UnknownName<'_> {
    /// The warning.
    pub fn text(&self) -> String {
        let name = self.name;
        match self.account {
            None => format!("people.{name} is for a user who does not exist"),
            Some(account) => format!(
                "the audience of webhook account {account} names {name}, a user who does not exist"
            ),
        }
    }
}

/// The names in `people` and in audiences that none of these users has.
pub fn unknown_names<'c>(config: &'c Config, users: &[String]) -> Vec<UnknownName<'c>> {
    let users: BTreeSet<String> = users.iter().map(|name| folded(name)).collect();
    let people = config.people.keys().map(|name| (None, name));
    let accounts = config.webhook_accounts().flat_map(|account| {
        let names = match &account.audience {
            Audience::People(names) => names.as_slice(),
            _ => &[],
        };
        names.iter().map(|name| (Some(account.name.as_str()), name))
    });
    let unknown = people.chain(accounts);
    let unknown = unknown.filter(|(_, name)| !users.contains(&folded(name)));
    unknown
        .map(|(account, name)| UnknownName { name, account })
        .collect()
}

/// Whether a running server applies this change only when it starts again: where it
/// listens, with which certificate, how many workers it has and whether it is a relay.
fn needs_restart(before: &Config, after: &Config) -> bool {
    let at_start = |config: &Config| {
        let identity = config.tls.identity();
        (
            config.ports(),
            identity.map(|(cert, key)| (cert.to_owned(), key.to_owned())),
            config.tls.is_only(),
            config.workers,
            config.relay.enabled,
        )
    };
    at_start(before) != at_start(after)
}

/// Every setting, as `hearth config keys` lists them.
pub(super) fn list_settings() -> Value {
    views::records("settings", config::documentation())
}

impl Service {
    /// The settings that the caller may read, or one of them: as it is in the file, for the
    /// owner.
    pub(super) fn get_config(&self, caller: &Identity, path: Option<&str>) -> Result<Value> {
        let (settings, user, role) = (&self.settings, &caller.user, caller.role);
        if role == UserRole::Owner {
            settings.check_is_read()?;
        }
        match path {
            None if role == UserRole::Owner => Ok(settings.readable().into()),
            None => Ok(settings.readable_by(user, role).into()),
            Some(path) => match role {
                UserRole::Owner => settings.get(path),
                role => settings.get_by(user, role, path),
            }
            .map(|value| json!({ "path": path, "value": value })),
        }
    }

    pub(super) fn update_config(&self, new: &Map<String, Value>, by: &Identity) -> Result<Value> {
        let before = self.settings.current();
        let updated = self.settings.update(new)?;
        self.config_changed(&updated);
        self.tell_of_phones(&before, by);
        Ok(json!({ "updated_fields": updated }))
    }

    pub(super) fn set_config(&self, set: SetConfig) -> Result<Value> {
        let (removed_key, change) =
            self.edit(|service| service.settings.set(&set.path, set.value))?;
        Ok(json!(record::ConfigChange {
            removed_key,
            ..change
        }))
    }

    pub(super) fn replace_config(&self, new: &ReplaceConfig) -> Result<Value> {
        let edit = self.edit(|service| service.settings.replace(&new.text, &new.was));
        edit.map(|(_, change)| json!(change))
    }

    pub(super) fn check_config(&self) -> Result<Value> {
        let (problems, mut warnings) = self.settings.check();
        warnings.extend(self.warnings_of_names()?);
        Ok(json!({ "problems": problems, "warnings": warnings }))
    }

    /// Has the owner change the file, and applies the change.
    pub(super) fn edit<T>(
        &self,
        change: impl FnOnce(&Service) -> Result<Edit<T>>,
    ) -> Result<(T, record::ConfigChange)> {
        let warnings = || -> Result<Vec<String>> {
            let mut lines = self.settings.warnings();
            lines.extend(self.warnings_of_names()?);
            Ok(lines)
        };
        let known = warnings()?;
        let edit = change(self)?;
        if edit.problems.is_empty() {
            self.config_edited(&edit.fields);
        }
        let mut new = warnings()?;
        new.retain(|warning| !known.contains(warning));
        let change = record::ConfigChange {
            removed_key: None,
            warnings: new,
            problems: edit.problems,
            needs_restart: needs_restart(&edit.before, &edit.after),
        };
        Ok((edit.made, change))
    }

    /// Names in the configuration that nobody has; before there are users, there are none.
    fn warnings_of_names(&self) -> Result<Vec<String>> {
        let users = self.store.users()?.into_iter().map(|user| user.name);
        let users: Vec<String> = users.collect();
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let config = self.settings.current();
        let unknown = unknown_names(&config, &users).into_iter();
        Ok(unknown.map(|one| one.text()).collect())
    }
}

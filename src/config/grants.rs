//! Changes of what one person or webhook account may do.

use serde_json::{Map, Value};

use super::key_path::{KeyPath, account_path};
use super::settings::Settings;
use super::tools::Permission;
use base::error::{Error, Result};
use base::people::{Audience, folded};

/// Who gets a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grantee<'a> {
    /// The user of this name.
    Person(&'a str),
    /// The webhook account of this name.
    Account(&'a str),
}

impl Settings {
    /// Sets the permission of one tool for one asker, in `people.NAME` or in the
    /// webhook account, and leaves the others as they are, even if they are being
    /// changed.
    ///
    /// # Errors
    /// As [`Settings::update`]; also `invalid_request` when there is no such webhook
    /// account.
    pub fn permit_tool_to(
        &self,
        grantee: Grantee<'_>,
        tool: &str,
        permission: Permission,
    ) -> Result<()> {
        let word = serde_json::to_value(permission).expect("a permission is a word");
        self.edit(|members| {
            let place = match grantee {
                Grantee::Person(name) => person_path(members, name),
                Grantee::Account(name) => account_path(members, name).ok_or_else(|| {
                    Error::invalid_request(format!("there is no webhook account {name:?}"))
                })?,
            };
            place.key("tool_permissions").key(tool).put(members, word)
        })
    }

    /// [`Settings::check_is_set`] of `people.NAME`.
    ///
    /// # Errors
    /// As [`Settings::check_is_set`].
    pub fn check_person_is_set(&self, name: &str) -> Result<()> {
        let place = self.with(|document| person_path(&document.members, name));
        self.check_place_is_set(&place)
    }

    /// Writes `people.NAME`, in place of what is there.
    ///
    /// # Errors
    /// As [`Settings::update`].
    pub fn narrow_person(&self, name: &str, limits: Value) -> Result<()> {
        self.edit(|members| person_path(members, name).put(members, limits))
    }

    /// Changes members of `people.NAME`; null removes one.
    ///
    /// # Errors
    /// As [`Settings::update`].
    pub fn limit_person(&self, name: &str, limits: Map<String, Value>) -> Result<()> {
        self.edit(|members| {
            let place = person_path(members, name);
            let mut limits = limits.into_iter();
            limits.try_for_each(|(key, value)| place.key(&key).put(members, value))
        })
    }

    /// Removes from `people.NAME` the permissions that lift something for this person, and not
    /// those that narrow. Returns whether there were any.
    ///
    /// # Errors
    /// As [`Settings::update`].
    pub fn end_permissions_of(&self, name: &str) -> Result<bool> {
        let config = self.current();
        let own = config.person(name).map(|person| &person.tool_permissions);
        let lifts = |permission: &Permission| {
            matches!(permission, Permission::Allow | Permission::AllowOwn)
        };
        let lifting = own.into_iter().flatten().filter(|(_, one)| lifts(one));
        let mut lifting = lifting.map(|(tool, _)| tool).peekable();
        if lifting.peek().is_none() {
            return Ok(false);
        }
        self.edit(|members| {
            let place = person_path(members, name).key("tool_permissions");
            lifting.try_for_each(|tool| place.key(tool).put(members, Value::Null))
        })?;
        Ok(true)
    }

    /// Removes `people.NAME`, in any case, of a user who is gone, and the name from the
    /// audiences of webhook accounts and from `openai_api`: whoever gets the name next is
    /// somebody else.
    /// Returns the fields that changed.
    ///
    /// # Errors
    /// As [`Settings::update`].
    pub fn forget_person(&self, name: &str) -> Result<Vec<String>> {
        let gone = folded(name);
        let is_gone = |one: &str| folded(one) == gone;
        let config = self.current();
        let names_them = |audience: &Audience| match audience {
            Audience::People(names) => names.iter().any(|one| is_gone(one)),
            Audience::Private | Audience::Household => false,
        };
        let mut seeing = config.webhook_accounts().map(|account| &account.audience);
        let programs = &config.openai_api;
        let mut asking = programs.users.values().chain(&programs.ollama_user);
        let is_asking = asking.any(|one| is_gone(one));
        if config.person(name).is_none() && !seeing.any(names_them) && !is_asking {
            return Ok(Vec::new());
        }
        self.edit(|members| {
            let mut changed = Vec::new();
            let path = person_path(members, name);
            if path.find(members).is_some() {
                path.put(members, Value::Null)?;
                changed.push("people".to_owned());
            }
            for account in config.webhook_accounts() {
                if let Some(path) = account_path(members, &account.name)
                    && let Some(Value::Array(names)) = path.key("audience").find_mut(members)
                {
                    names.retain(|one| !one.as_str().is_some_and(is_gone));
                    changed.push("channels".to_owned());
                }
            }
            changed.dedup();
            if is_asking {
                let names_them = |one: &Value| one.as_str().is_some_and(is_gone);
                let programs = KeyPath::top().key("openai_api");
                let alone = programs.key("ollama_user");
                if alone.find(members).is_some_and(names_them) {
                    alone.put(members, Value::Null)?;
                }
                if let Some(Value::Object(users)) = programs.key("users").find_mut(members) {
                    users.retain(|_, one| !names_them(one));
                }
                changed.push("openai_api".to_owned());
            }
            Ok(changed)
        })
    }
}

/// The path of `people.NAME` in a file: of the user's entry, in any case, or of a new
/// one.
fn person_path(members: &Value, name: &str) -> KeyPath {
    let wanted = folded(name);
    let people = members.get("people").and_then(Value::as_object);
    let mut names = people.into_iter().flat_map(|people| people.keys());
    let known = names.find(|known| folded(known) == wanted);
    KeyPath::top()
        .key("people")
        .key(known.map_or(name, String::as_str))
}

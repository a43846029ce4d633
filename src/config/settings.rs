//! The shared handle on the configuration file and the current configuration.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use serde_json::{Map, Value};

use super::config::{Config, documentation};
use super::declaration::Declared;
use super::document::{Document, to_text};
use super::file;
use super::key_path::{KeyPath, Step, texts};
use super::problems::{Problems, suggestion};
use super::providers::Preset;
use super::reader::{Environment, is_variable};
use super::webhook_accounts::keep_accounts;
use base::error::{Error, Result, without_numbers};
use base::role::UserRole;
use base::sync;
use base::url::{MASK, Url};

/// The key of a provider's API key, in the file and in an entry of `fallback`.
const API_KEY: &str = "api_key";

/// The shared handle on the configuration file and the current configuration.
/// Edits are serialised, also with those of other processes.
pub struct Settings {
    path: PathBuf,
    environment: Box<Environment>,
    in_force: RwLock<Document>,
    /// Held while the file is changed.
    editing: Mutex<()>,
}

impl Settings {
    /// Reads and validates the file at `path`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Settings, Problems> {
        Settings::load_with(path, |name| std::env::var(name).ok())
    }

    /// [`Settings::load`] with another environment than the process's.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn load_with(
        path: &Path,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Settings, Problems> {
        Settings::from_text(path, &file::read(path)?, environment)
    }

    /// Validates a text as if it were the file at `path`, which need not exist; the
    /// first change creates it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_text(
        path: &Path,
        text: &str,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Settings, Problems> {
        Ok(Settings {
            in_force: RwLock::new(Document::read(path, text, &environment)?),
            path: path.to_owned(),
            environment: Box::new(environment),
            editing: Mutex::new(()),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current configuration. Callers take it once per request or turn.
    pub fn current(&self) -> Arc<Config> {
        self.with(|document| Arc::clone(&document.config))
    }

    /// Warnings for the owner of the file, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let (mut lines, holds_secret) = self.with(|document| {
            let lines: Vec<String> = document.warnings.lines().collect();
            (lines, document.holds_secret)
        });
        if holds_secret && file::is_readable_by_others(&self.path) {
            lines.push(format!(
                "{}: the file contains secrets and others can read it; run: chmod 600 {0}",
                self.path.display()
            ));
        }
        lines
    }

    /// Rereads the file (SIGHUP). If there are problems, the current configuration stays.
    /// Returns the top-level fields that changed.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn reload(&self) -> Result<Vec<String>, Problems> {
        let _turn = sync::lock(&self.editing);
        let text = file::read(&self.path)?;
        let document = Document::read(&self.path, &text, &*self.environment)?;
        let changed = self.with(|before| changed_fields(&before.members, &document.members));
        self.put_in_force(document);
        Ok(changed)
    }

    /// Validates all of `changes` against the writable fields, then writes all
    /// or nothing (temporary file, fsync, rename) and applies them; `null` resets a
    /// field to its default. Edits made to the file by hand are kept, and apply too.
    /// Returns the names written, in the order given, and `api_key` if it was removed
    /// because it belongs to another address.
    ///
    /// # Errors
    /// `invalid_request` naming each unknown, unwritable or invalid
    /// field; `server_error` when the file cannot be read or written.
    pub fn update(&self, changes: &Map<String, Value>) -> Result<Vec<String>> {
        let removed = self.change(changes, true)?.0.then(|| API_KEY.to_owned());
        Ok(changes.keys().cloned().chain(removed).collect())
    }

    /// The configuration as [`Settings::update`] would leave it; nothing changes.
    ///
    /// # Errors
    /// As [`Settings::update`].
    pub fn preview(&self, changes: &Map<String, Value>) -> Result<Arc<Config>> {
        self.change(changes, false).map(|(_, config)| config)
    }

    /// Returns whether the API key was removed, and the configuration with the changes.
    fn change(&self, changes: &Map<String, Value>, saves: bool) -> Result<(bool, Arc<Config>)> {
        let refused: Vec<String> = changes
            .iter()
            .filter_map(|(key, value)| refusal(key, value))
            .collect();
        let put = |members: &mut Value| {
            let before = members.clone();
            for (key, value) in changes {
                if refusal(key, value).is_none() {
                    KeyPath::top().key(key).put(members, value.clone())?;
                }
            }
            Ok(!changes.contains_key(API_KEY) && remove_foreign_key(&before, members))
        };
        self.edit_unless(refused, put, saves)
    }

    /// The readable fields for `get_config`, in order: `provider`, `model`,
    /// `temperature`, then every other; secrets only as `..._set` booleans.
    pub fn readable(&self) -> Map<String, Value> {
        self.current().readable()
    }

    /// The readable fields as the user of this name and role may see them: what is said
    /// about other people is for admins, and a viewer sees no webhook accounts.
    pub fn readable_by(&self, name: &str, role: UserRole) -> Map<String, Value> {
        self.current().readable_by(name, role)
    }

    /// One of the readable fields, or what is in it, as the user of this name and role may
    /// see it.
    ///
    /// # Errors
    /// `invalid_request` when there is no such key.
    pub fn get_by(&self, name: &str, role: UserRole, key: &str) -> Result<Value> {
        let path: KeyPath = key.parse()?;
        let shown = Value::Object(self.readable_by(name, role));
        match path.settle(&shown).find(&shown) {
            Some(found) => Ok(found.clone()),
            None if is_declared(&path) => Ok(Value::Null),
            None => Err(unknown_key(key)),
        }
    }

    /// The value of a key such as `limits.turn_seconds` or
    /// `channels.webhook.accounts.ci.secret`: the value in the file, else the
    /// default, else null. Secrets are masked unless `reveal`; a `${NAME}` is
    /// none.
    ///
    /// # Errors
    /// `invalid_request` when there is no such key.
    pub fn get(&self, key: &str, reveal: bool) -> Result<Value> {
        let path: KeyPath = key.parse()?;
        self.with(|document| {
            let mut members = document.members.clone();
            let masked = document.secrets.iter().filter(|_| !reveal);
            for secret in masked {
                if let Some(Value::String(text)) = secret.find_mut(&mut members)
                    && !is_variable(text)
                {
                    MASK.clone_into(text);
                }
            }
            if let Some(found) = path.settle(&members).find(&members) {
                return Ok(found.clone());
            }
            if !is_declared(&path) {
                return Err(unknown_key(key));
            }
            let shown = Value::Object(document.config.readable());
            let path = path.settle(&shown);
            Ok(path.find(&shown).cloned().unwrap_or(Value::Null))
        })
    }

    /// Sets a key, for the owner at the command line: `value` is JSON, or else a
    /// string; `null` removes the key. The whole file must be valid afterwards.
    /// Returns the path of an API key that was removed because it belongs to
    /// another address.
    ///
    /// # Errors
    /// `invalid_request` with everything that would be wrong with the
    /// file; `server_error` when it cannot be read or written.
    pub fn set(&self, key: &str, value: &str) -> Result<Option<String>> {
        let path: KeyPath = key.parse()?;
        let put = |value: Value| {
            self.edit(|members| {
                let path = path.settle(members);
                let before = members.clone();
                path.put(members, value)?;
                if !path.names("accounts") {
                    keep_accounts(key, &before, members)?;
                }
                let model = path.parent().unwrap_or_default();
                let removed = match (model.find(&before), model.find_mut(members)) {
                    (Some(before), Some(after)) => remove_foreign_key(before, after),
                    _ => false,
                };
                Ok(removed.then(|| model.key(API_KEY).to_string()))
            })
        };
        let Ok(parsed) = serde_json::from_str::<Value>(value) else {
            return put(value.into());
        };
        let text_too = !parsed.is_string() && !parsed.is_null();
        // An API key may consist of digits: what is wrong as a number is tried
        // as the string that it may have been meant as.
        put(parsed).or_else(|error| {
            let as_text = text_too.then(|| put(value.into()).ok());
            as_text.flatten().ok_or(error)
        })
    }

    fn with<T>(&self, look: impl FnOnce(&Document) -> T) -> T {
        look(&sync::read(&self.in_force))
    }

    fn put_in_force(&self, document: Document) {
        *sync::write(&self.in_force) = document;
    }

    /// Applies `change` to the file as it is now, and saves it if it is valid.
    pub(super) fn edit<T>(&self, change: impl FnOnce(&mut Value) -> Result<T>) -> Result<T> {
        self.rewrite(true, change).map(|(made, _)| made)
    }

    /// The same, saved only if `saves`. Returns the changed configuration, too.
    ///
    /// # Errors
    /// As [`Settings::set`], and what `change` fails with.
    pub fn rewrite<T>(
        &self,
        saves: bool,
        change: impl FnOnce(&mut Value) -> Result<T>,
    ) -> Result<(T, Arc<Config>)> {
        self.edit_unless(Vec::new(), change, saves)
    }

    /// The same. What is `refused` is already known to be wrong, and nothing is written.
    fn edit_unless<T>(
        &self,
        refused: Vec<String>,
        change: impl FnOnce(&mut Value) -> Result<T>,
        saves: bool,
    ) -> Result<(T, Arc<Config>)> {
        let _turn = sync::lock(&self.editing);
        let target = file::target(&self.path);
        let unsaved = |error: io::Error| {
            let why = match error.kind() {
                ErrorKind::StorageFull => "the disk is full".to_owned(),
                _ => without_numbers(&error.to_string()),
            };
            Error::server(
                format_args!("the configuration could not be saved: {why}"),
                format_args!("{}: {error}", target.display()),
            )
        };
        let lock = file::lock(&target).map_err(unsaved)?;
        let standing = match &lock {
            Some(open) => Some(self.read_again(open)?),
            None => None,
        };
        let mut members = match &standing {
            Some(standing) => standing.clone(),
            None => self.with(|document| document.members.clone()),
        };
        let mut wrong = refused;
        let changed = change(&mut members);
        if let Err(error) = &changed {
            wrong.push(error.message().to_owned());
        }
        let text = to_text(&members);
        if text.len() as u64 > file::MOST_BYTES {
            wrong.push(format!(
                "the configuration would have {} bytes, and at most {} are read",
                text.len(),
                file::MOST_BYTES
            ));
        }
        let read = Document::read(&self.path, &text, &*self.environment);
        match &read {
            // A file that has gone since must not stop other changes.
            Ok(document) => wrong.extend(document.config.tls.missing(&self.current().tls)),
            Err(problems) => {
                wrong.extend(problems.iter().map(|problem| problem.message.clone()));
            }
        }
        let document = match read {
            Ok(document) if wrong.is_empty() => document,
            _ => return Err(Error::invalid_request(wrong.join("; "))),
        };
        let config = Arc::clone(&document.config);
        if saves {
            if standing.as_ref() != Some(&members) {
                file::save(&target, &text).map_err(unsaved)?;
            }
            self.put_in_force(document);
        }
        changed.map(|made| (made, config))
    }

    /// The file as it is now, if it is valid: a change must not be blamed for mistakes
    /// in edits by hand.
    fn read_again(&self, open: &File) -> Result<Value> {
        let read = file::decode(&self.path, open).and_then(|text| {
            // The current configuration was checked before.
            match serde_json::from_str(&text) {
                Ok(members) if self.with(|document| document.members == members) => Ok(members),
                _ => Document::read(&self.path, &text, &*self.environment)
                    .map(|document| document.members),
            }
        });
        read.map_err(|problems| {
            Error::server(
                "the configuration file on the server is not valid, so nothing was changed",
                problems,
            )
        })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Removes the API key of `after`, the file or an entry of `fallback`, if it was given
/// for the address that `before` has: who may change an address must not learn the
/// key by that. Returns whether it did.
fn remove_foreign_key(before: &Value, after: &mut Value) -> bool {
    let key = |model: &Value| model.get(API_KEY).filter(|key| !key.is_null()).cloned();
    let is_moved = address(before).is_some_and(|from| address(after) != Some(from));
    let is_foreign = is_moved && key(before).is_some() && key(before) == key(after);
    if let (true, Some(members)) = (is_foreign, after.as_object_mut()) {
        members.shift_remove(API_KEY);
    }
    is_foreign
}

/// Scheme, host and port of a model's provider.
fn address(model: &Value) -> Option<String> {
    let text = |key: &str| model.get(key).and_then(Value::as_str);
    let preset = || text("provider").and_then(Preset::of)?.base_url;
    let url = text("base_url").or_else(preset)?;
    let parsed = Url::parse(url);
    Some(parsed.map_or_else(
        |_| url.to_owned(),
        |url| format!("{}://{}:{}", url.scheme, url.authority.host, url.port()),
    ))
}

/// Why a client may not write a field, if so.
fn refusal(key: &str, value: &Value) -> Option<String> {
    let settings = || Config::KEYS.iter();
    match settings().find(|setting| setting.name == key) {
        None => {
            let writable = settings().filter(|setting| setting.writable);
            let hint = suggestion(key, writable.map(|setting| setting.name));
            Some(format!("there is no setting {key:?}{hint}"))
        }
        Some(setting) if !setting.writable => Some(format!(
            "{key:?} can only be changed in the configuration file"
        )),
        // Else a client could have the server's environment sent to any address.
        Some(_)
            if texts(&KeyPath::top(), value)
                .iter()
                .any(|(_, text)| is_variable(text)) =>
        {
            Some(format!(
                "{key:?} can be read from the environment only by the configuration file itself"
            ))
        }
        Some(_) => None,
    }
}

/// The top-level keys whose values differ, in the order of the declaration.
fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    Config::KEYS
        .iter()
        .filter(|setting| before.get(setting.name) != after.get(setting.name))
        .map(|setting| setting.name.to_owned())
        .collect()
}

/// Whether a setting of this key is declared; `NAME` and the text in brackets match
/// anything.
fn is_declared(path: &KeyPath) -> bool {
    let fits = |key: &str| {
        let dotted = key.replace('[', ".[");
        let mut words = dotted.split('.');
        let each = path.steps().iter().all(|step| match (step, words.next()) {
            (_, None) => false,
            (Step::Index(_), Some(word)) => word.starts_with('['),
            (Step::Key(key), Some(word)) => word == key || word == "NAME",
        });
        each && words.next().is_none()
    };
    documentation().iter().any(|doc| fits(&doc.key))
}

fn unknown_key(key: &str) -> Error {
    let docs = documentation();
    let hint = suggestion(key, docs.iter().map(|doc| doc.key.as_str()));
    Error::invalid_request(format!("there is no setting {key:?}{hint}"))
}

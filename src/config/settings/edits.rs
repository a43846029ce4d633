//! Changes of the configuration file, by clients and by the owner.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{API_KEY, Settings, no_setting};
use crate::config::{Config, documentation};
use crate::declaration::Declared;
use crate::document::{Document, to_text};
use crate::file;
use crate::key_path::{KeyPath, Step, channel_places, texts};
use crate::problems::Problems;
use crate::providers::Preset;
use crate::reader::is_variable;
use crate::webhook_accounts::keep_accounts;
use base::error::{Error, Result, without_numbers};
use base::files::replace;
use base::language::Said;
use base::sync;
use base::url::{MASK, Url};

/// What came of a change by the owner.
#[derive(Debug)]
pub struct Edit<T> {
    /// What the change returned.
    pub made: T,
    /// The configuration before it.
    pub before: Arc<Config>,
    /// The configuration now: the same, while something is wrong with the file.
    pub after: Arc<Config>,
    /// What is wrong with the file still, and was before; one line each.
    pub problems: Vec<String>,
    /// The top-level fields that changed.
    pub fields: Vec<String>,
}

impl Settings {
    /// Validates all of `changes` against the writable fields, then writes all
    /// or nothing (temporary file, fsync, rename) and applies them; `null` resets a
    /// field to its default, and a text as [`Settings::readable`] shows it stays as it is in
    /// the file. Edits made to the file by hand are kept, and apply too.
    /// Returns the names written, in the order given, and each API key that was removed
    /// because it belongs to another address.
    ///
    /// # Errors
    /// `invalid_request` naming each unknown, unwritable or invalid
    /// field; `server_error` when the file cannot be read or written.
    pub fn update(&self, changes: &Map<String, Value>) -> Result<Vec<String>> {
        let removed = self.change(changes, true)?.made;
        Ok(changes.keys().cloned().chain(removed).collect())
    }

    /// The configuration as [`Settings::update`] would leave it; nothing changes.
    ///
    /// # Errors
    /// As [`Settings::update`].
    pub fn preview(&self, changes: &Map<String, Value>) -> Result<Arc<Config>> {
        self.change(changes, false).map(|edit| edit.after)
    }

    /// Returns the paths of the API keys that were removed.
    fn change(&self, changes: &Map<String, Value>, saves: bool) -> Result<Edit<Vec<String>>> {
        let refused: Vec<Said> = changes
            .iter()
            .filter_map(|(key, value)| refusal(key, value))
            .collect();
        let shown = Value::Object(self.readable());
        let put = |members: &mut Value| {
            let before = members.clone();
            let mut removed = Vec::new();
            let mut changed: Vec<KeyPath> = Vec::new();
            for (key, value) in changes {
                if refusal(key, value).is_none() {
                    let path: KeyPath = key.parse()?;
                    path.put(members, value.clone())?;
                    for (place, text) in texts(&path, value) {
                        // A form sends back what it was shown, perhaps masked. A mask alone names
                        // no address: what it stands for could go to another one.
                        let is_as_shown =
                            text != MASK && place.find(&shown).is_some_and(|one| one == text);
                        if let Some(kept) = place.find(&before).filter(|_| is_as_shown) {
                            place.put(members, kept.clone())?;
                        }
                    }
                    changed.push(path);
                }
            }
            for path in &changed {
                let key = path.parent().unwrap_or_default().key(API_KEY);
                if !changed.contains(&key) {
                    removed.extend(remove_foreign_key(path, &before, members));
                }
            }
            Ok(removed)
        };
        self.edit_unless(refused, put, saves, false)
    }

    /// Adds a webhook account, for the owner, to the first webhook channel, or to a new one.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn add_account(&self, name: &str, account: Value) -> Result<Edit<()>> {
        let put = |members: &mut Value| {
            let mut places = channel_places(members).into_iter().filter(|place| {
                let channel = place.find(members);
                let key = place.steps().last().and_then(Step::text);
                channel.is_some_and(|one| one["type"].as_str().or(key) == Some("webhook"))
            });
            let top = KeyPath::top().key("channels");
            match (places.next(), members["channels"].is_array()) {
                (Some(place), _) => place.key("accounts").key(name).put(members, account),
                (None, true) => {
                    let channel = json!({ "type": "webhook", "accounts": { name: account } });
                    top.key("webhook").put(members, channel)
                }
                (None, false) => {
                    let accounts = top.key("webhook").key("accounts");
                    accounts.key(name).put(members, account)
                }
            }
        };
        self.edit_unless(Vec::new(), put, true, false)
    }

    /// Sets a key, for the owner; `null` removes it. The file must have no problem afterwards
    /// that it did not have before. Returns the path of an API key that was removed because
    /// it belongs to another address.
    ///
    /// # Errors
    /// `invalid_request` with everything that would be wrong with the
    /// file; `server_error` when it cannot be read or written.
    pub fn set(&self, key: &str, value: Value) -> Result<Edit<Option<String>>> {
        let path: KeyPath = key.parse()?;
        let put = |members: &mut Value| {
            let path = path.settle(members);
            // A key that does not exist is a typing mistake.
            if value.is_null() && path.find(members).is_none() {
                self.get(key)?;
            }
            let before = members.clone();
            path.put(members, value)?;
            if !path.names("accounts") {
                keep_accounts(key, &before, members)?;
            }
            Ok(remove_foreign_key(&path, &before, members))
        };
        self.edit_unless(Vec::new(), put, true, true)
    }

    /// Replaces the whole text, for the owner, under the same condition. `was` is the text
    /// that was read before: if the file has another now, it stays.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn replace(&self, text: &str, was: &str) -> Result<Edit<()>> {
        let _turn = sync::lock(&self.editing);
        let target = file::target(&self.path);
        let _lock = file::lock(&target).map_err(|error| unsaved(&target, &error))?;
        if file::read(&self.path).unwrap_or_default() != was {
            return Err(Error::invalid_request(
                "somebody else has changed the file meanwhile",
            ));
        }
        let standing = self.read(was).unwrap_or_else(Document::unreadable);
        let document = self.judge(text, &standing, Vec::new())?;
        replace(&target, text, 0o600).map_err(|error| unsaved(&target, &error))?;
        Ok(self.adopt(document, ()))
    }

    /// Applies `change` to the file as it is now, and saves it if it is valid.
    pub(crate) fn edit<T>(&self, change: impl FnOnce(&mut Value) -> Result<T>) -> Result<T> {
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
        let edit = self.edit_unless(Vec::new(), change, saves, false)?;
        Ok((edit.made, edit.after))
    }

    /// The same. What is `refused` is already known to be wrong, and nothing is written. The
    /// owner `mends` a file that has problems step by step.
    fn edit_unless<T>(
        &self,
        refused: Vec<Said>,
        change: impl FnOnce(&mut Value) -> Result<T>,
        saves: bool,
        mends: bool,
    ) -> Result<Edit<T>> {
        let _turn = sync::lock(&self.editing);
        let target = file::target(&self.path);
        let lock = file::lock(&target).map_err(|error| unsaved(&target, &error))?;
        let standing = match &lock {
            Some(open) => self.read_again(open, mends)?,
            None => self.with(Document::clone),
        };
        let mut members = standing.members.clone();
        let mut wrong = refused;
        let changed = change(&mut members);
        if let Err(error) = &changed {
            wrong.push(error.said().clone());
        }
        let text = to_text(&members);
        let document = self.judge(&text, &standing, wrong)?;
        let made = changed?;
        if !saves {
            return Ok(Edit {
                before: self.current(),
                after: Arc::clone(&document.config),
                made,
                problems: Vec::new(),
                fields: Vec::new(),
            });
        }
        if lock.is_none() || standing.members != members {
            replace(&target, &text, 0o600).map_err(|error| unsaved(&target, &error))?;
        }
        Ok(self.adopt(document, made))
    }

    /// A text that may be saved: nothing is wrong with it that was not before.
    fn judge(&self, text: &str, standing: &Document, mut wrong: Vec<Said>) -> Result<Document> {
        if text.len() as u64 > file::MOST_BYTES {
            let bytes = text.len();
            let most = file::MOST_BYTES;
            let large =
                format!("the configuration would have {bytes} bytes, and at most {most} are read");
            wrong.push(large.into());
        }
        match self.read(text) {
            Ok(document) => {
                // What is wrong between sections was not seen before.
                if standing.is_whole || !document.is_whole {
                    let problems = document.problems.since(&standing.problems);
                    wrong.extend(problems.map(|problem| problem.message.clone()));
                }
                // A file that has gone since must not stop other changes.
                let missing = document.config.tls.missing(&self.current().tls);
                wrong.extend(missing.into_iter().map(Said::from));
                if wrong.is_empty() {
                    return Ok(document);
                }
            }
            Err(problems) => wrong.extend(problems.lines().map(Said::from)),
        }
        let also = |said, more| {
            Said::of("config.also", &[])
                .with("said", said)
                .with("more", more)
        };
        let wrong = wrong.into_iter().reduce(also);
        Err(Error::invalid_request(wrong.unwrap_or(Said::from(""))))
    }

    /// Puts what was saved in force, unless something is wrong with it still.
    fn adopt<T>(&self, document: Document, made: T) -> Edit<T> {
        let before = self.current();
        let problems: Vec<String> = document.problems.lines().collect();
        let fields = self.with(|old| changed_fields(&old.members, &document.members));
        if problems.is_empty() {
            self.put_in_force(document);
        }
        Edit {
            before,
            after: self.current(),
            made,
            problems,
            fields,
        }
    }

    /// The file as it is now: a change must not be blamed for mistakes in edits by hand.
    fn read_again(&self, open: &File, mends: bool) -> Result<Document> {
        let read = file::decode(&self.path, open).and_then(|text| {
            // The current configuration was checked before.
            match serde_json::from_str::<Value>(&text) {
                Ok(members) if self.with(|one| one.members == members) => {
                    Ok(self.with(Document::clone))
                }
                _ => self.read(&text),
            }
        });
        match read {
            Ok(standing) if mends || standing.problems.is_empty() => Ok(standing),
            Err(problems) if mends => Err(unread(&problems)),
            Ok(Document { problems, .. }) | Err(problems) => Err(Error::server(
                "the configuration file on the server is not valid, so nothing was changed",
                problems,
            )),
        }
    }
}

/// What the owner reads about a file that is not a JSON object.
pub(super) fn unread(problems: &Problems) -> Error {
    Error::invalid_request(format!(
        "{problems}\n`hearth config edit` opens the file as it is"
    ))
}

/// Why the file could not be written; it names the place and what to do.
fn unsaved(target: &Path, error: &io::Error) -> Error {
    let why = match error.kind() {
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => without_numbers(&error.to_string()),
    };
    let directory = target.parent().unwrap_or(target).display();
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("; run this as its owner, or give this user the right to write in {directory}")
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!("; mount the file system of {directory} for writing")
        }
        _ => String::new(),
    };
    Error::server(
        format!("the configuration could not be saved: {why}"),
        format_args!("{}{advice}", target.display()),
    )
}

/// Removes the API key beside the setting at `path` if it was given for the address that
/// the file had before: who may change an address must not learn the key by that. Returns its
/// path if so.
fn remove_foreign_key(path: &KeyPath, before: &Value, after: &mut Value) -> Option<String> {
    let place = path.parent()?;
    let (before, after) = (place.find(before)?, place.find_mut(after)?);
    let key = |server: &Value| server.get(API_KEY).filter(|key| !key.is_null()).cloned();
    let is_moved = address(before).is_some_and(|from| address(after) != Some(from));
    let is_foreign = is_moved && key(before).is_some() && key(before) == key(after);
    let members = after.as_object_mut().filter(|_| is_foreign)?;
    members.shift_remove(API_KEY);
    Some(place.key(API_KEY).to_string())
}

/// Scheme, host and port of a model's provider, or of a server of speech.
fn address(server: &Value) -> Option<String> {
    let text = |key: &str| server.get(key).and_then(Value::as_str);
    let preset = || text("provider").and_then(Preset::of)?.base_url;
    let url = text("base_url").or(text("url")).or_else(preset)?;
    let parsed = Url::parse(url);
    Some(parsed.map_or_else(
        |_| url.to_owned(),
        |url| format!("{}://{}:{}", url.scheme, url.authority.host, url.port()),
    ))
}

/// Why a client may not write a setting, if so.
fn refusal(key: &str, value: &Value) -> Option<Said> {
    let settings = documentation();
    match settings.iter().find(|setting| setting.key == key) {
        None => {
            let writable = settings.iter().filter(|setting| setting.writable);
            Some(no_setting(
                key,
                writable.map(|setting| setting.key.as_str()),
            ))
        }
        Some(setting) if !setting.writable => Some(Said::of(
            "config.file_alone",
            &[("key", &format!("{key:?}"))],
        )),
        // Else a client could have the server's environment sent to any address.
        Some(_)
            if texts(&KeyPath::top(), value)
                .iter()
                .any(|(_, text)| is_variable(text)) =>
        {
            let why = "can be read from the environment only by the configuration file itself";
            Some(format!("{key:?} {why}").into())
        }
        Some(_) => None,
    }
}

/// The top-level keys whose values differ, in the order of the declaration.
pub(super) fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    Config::KEYS
        .iter()
        .filter(|setting| before.get(setting.name) != after.get(setting.name))
        .map(|setting| setting.name.to_owned())
        .collect()
}

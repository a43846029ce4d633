//! The shared handle on the configuration file and the current configuration.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use serde_json::{Map, Value, json};

use super::config::{Config, documentation};
use super::declaration::Declared;
use super::document::{Document, parse, to_text};
use super::file;
use super::key_path::{KeyPath, Step, account_path, channel_places, texts};
use super::problems::{Problems, Unset, suggestion};
use super::providers::Preset;
use super::reader::{Environment, is_variable};
use super::webhook_accounts::keep_accounts;
use base::error::{Error, Result, without_numbers};
use base::people::UserRole;
use base::sync;
use base::url::Url;

/// The key of a provider's API key, in the file and in an entry of `fallback`.
const API_KEY: &str = "api_key";

/// The shared handle on the configuration file and the current configuration.
/// Edits are serialised, also with those of other processes.
pub struct Settings {
    path: PathBuf,
    environment: Box<Environment>,
    /// How a text is read.
    read: ReadText,
    in_force: RwLock<Document>,
    /// Held while the file is changed.
    editing: Mutex<()>,
}

/// [`Document::examine`], or [`Document::without_environment`].
type ReadText = fn(&Path, &str, &Environment) -> Result<Document, Problems>;

/// The file before a change.
struct Standing {
    members: Value,
    problems: Problems,
    is_whole: bool,
}

impl Standing {
    fn of(document: &Document) -> Standing {
        Standing {
            members: document.members.clone(),
            problems: document.problems.clone(),
            is_whole: document.is_whole,
        }
    }
}

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
    /// Reads and validates the file at `path`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Settings, Problems> {
        Settings::from_text(path, &file::read(path)?, |name| std::env::var(name).ok())
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
            read: Document::examine,
            editing: Mutex::new(()),
        })
    }

    /// The settings for a command without a server. The file may be wrong: the current
    /// configuration is then the default, until the file is mended. And it may name variables
    /// that only the server has: whoever uses a value asks [`Settings::check_is_set`] before.
    pub fn open(
        path: &Path,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Settings {
        let read: ReadText = Document::without_environment;
        let document = file::read(path).and_then(|text| read(path, &text, &environment));
        Settings {
            in_force: RwLock::new(document.unwrap_or_else(Document::unreadable)),
            path: path.to_owned(),
            environment: Box::new(environment),
            read,
            editing: Mutex::new(()),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current configuration. Callers take it once per request or turn.
    pub fn current(&self) -> Arc<Config> {
        self.with(|document| Arc::clone(&document.config))
    }

    /// What is wrong with the file that was read.
    pub fn problems(&self) -> Problems {
        self.with(|document| document.problems.clone())
    }

    /// Checks that a key which is used, with all in it, is not left to the environment of the
    /// server alone.
    ///
    /// # Errors
    /// `invalid_request` naming each variable that is not set.
    pub fn check_is_set(&self, key: &str) -> Result<()> {
        self.check_place_is_set(&key.parse()?)
    }

    /// The same of a place in the file.
    pub(super) fn check_place_is_set(&self, place: &KeyPath) -> Result<()> {
        self.refuse_unset(|one| one.path.is_within(place) || place.is_within(&one.left_out))
    }

    /// The same of a list, of whose entries hardly more than the names is used: none is missing.
    ///
    /// # Errors
    /// As [`Settings::check_is_set`].
    pub fn check_is_whole(&self, key: &str) -> Result<()> {
        let key: KeyPath = key.parse()?;
        self.refuse_unset(|one| one.left_out.is_within(&key) && one.left_out != one.path)
    }

    /// What names a variable that the environment does not have, one line each.
    pub fn unset(&self) -> Vec<String> {
        self.with(|document| document.unset.iter().map(|one| one.line.clone()).collect())
    }

    fn refuse_unset(&self, is_used: impl Fn(&Unset) -> bool) -> Result<()> {
        self.with(|document| {
            let used = document.unset.iter().filter(|one| is_used(one));
            let lines: Vec<&str> = used.map(|one| one.line.as_str()).collect();
            match lines.as_slice() {
                [] => Ok(()),
                lines => Err(Error::invalid_request(lines.join("\n"))),
            }
        })
    }

    /// Warnings for the owner of the file, one line each.
    pub fn warnings(&self) -> Vec<String> {
        self.with(|document| self.warnings_of(document))
    }

    /// What is wrong with the file as it is now, and warnings for its owner, one line each.
    pub fn check(&self) -> (Vec<String>, Vec<String>) {
        let text = file::read(&self.path);
        match text.and_then(|text| Document::examine(&self.path, &text, &*self.environment)) {
            Ok(document) => {
                let problems = document.problems.lines().collect();
                (problems, self.warnings_of(&document))
            }
            Err(problems) => (problems.lines().collect(), Vec::new()),
        }
    }

    /// Whether the file, if there is one, says anything, whatever is in force.
    ///
    /// # Errors
    /// `invalid_request` when it cannot be read or is no JSON object.
    pub fn check_is_read(&self) -> Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        let text = file::read(&self.path).map_err(|problems| unread(&problems))?;
        let parsed = parse(&self.path, &text);
        parsed.map(drop).map_err(|problems| unread(&problems))
    }

    fn warnings_of(&self, document: &Document) -> Vec<String> {
        let mut lines: Vec<String> = document.warnings.lines().collect();
        if document.holds_secret && file::is_readable_by_others(&self.path) {
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
        let removed = self.change(changes, true)?.made;
        let removed = removed.then(|| API_KEY.to_owned());
        Ok(changes.keys().cloned().chain(removed).collect())
    }

    /// The configuration as [`Settings::update`] would leave it; nothing changes.
    ///
    /// # Errors
    /// As [`Settings::update`].
    pub fn preview(&self, changes: &Map<String, Value>) -> Result<Arc<Config>> {
        self.change(changes, false).map(|edit| edit.after)
    }

    /// Returns whether the API key was removed.
    fn change(&self, changes: &Map<String, Value>, saves: bool) -> Result<Edit<bool>> {
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
        self.edit_unless(refused, put, saves, false)
    }

    /// The readable fields for `get_config`, in order: `provider`, `model`,
    /// `temperature`, then every other; secrets only as `..._set` booleans.
    pub fn readable(&self) -> Map<String, Value> {
        // Of a file that does not load, what it says.
        self.with(|document| match &document.members {
            Value::Object(_) if !document.problems.is_empty() || !document.unset.is_empty() => {
                document.masked().as_object().cloned().unwrap_or_default()
            }
            _ => document.config.readable(),
        })
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
            None => match declared(&path, &shown) {
                Some(_) => Ok(Value::Null),
                None => Err(unknown_key(key)),
            },
        }
    }

    /// The value of a key such as `limits.turn_seconds` or
    /// `channels.webhook.accounts.ci.secret`: the value in the file, else the
    /// default, else null. Secrets are masked; a `${NAME}` is none.
    ///
    /// # Errors
    /// `invalid_request` when there is no such key.
    pub fn get(&self, key: &str) -> Result<Value> {
        let path: KeyPath = key.parse()?;
        self.with(|document| {
            let members = document.masked();
            if let Some(found) = path.settle(&members).find(&members) {
                return Ok(found.clone());
            }
            let shown = Value::Object(document.config.readable());
            if let Some(found) = path.settle(&shown).find(&shown) {
                return Ok(found.clone());
            }
            let setting = declared(&path, &members).ok_or_else(|| unknown_key(key))?;
            Ok(setting.default_in(&members))
        })
    }

    /// The path of a webhook account in the file, whose `channels` may be an array or an
    /// object.
    pub fn account_path(&self, name: &str) -> Option<String> {
        self.with(|document| Some(account_path(&document.members, name)?.to_string()))
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
        self.mend(|members| {
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
            let model = path.parent().unwrap_or_default();
            let removed = match (model.find(&before), model.find_mut(members)) {
                (Some(before), Some(after)) => remove_foreign_key(before, after),
                _ => false,
            };
            Ok(removed.then(|| model.key(API_KEY).to_string()))
        })
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
        let standing = self.read(was);
        let standing = standing.unwrap_or_else(Document::unreadable);
        let document = self.judge(text, &Standing::of(&standing), Vec::new())?;
        file::save(&target, text).map_err(|error| unsaved(&target, &error))?;
        Ok(self.adopt(document, ()))
    }

    fn read(&self, text: &str) -> Result<Document, Problems> {
        (self.read)(&self.path, text, &*self.environment)
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&Document) -> T) -> T {
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
        let edit = self.edit_unless(Vec::new(), change, saves, false)?;
        Ok((edit.made, edit.after))
    }

    /// The same, for the owner, who mends a file that has problems step by step.
    fn mend<T>(&self, change: impl FnOnce(&mut Value) -> Result<T>) -> Result<Edit<T>> {
        self.edit_unless(Vec::new(), change, true, true)
    }

    /// The same. What is `refused` is already known to be wrong, and nothing is written.
    fn edit_unless<T>(
        &self,
        refused: Vec<String>,
        change: impl FnOnce(&mut Value) -> Result<T>,
        saves: bool,
        mends: bool,
    ) -> Result<Edit<T>> {
        let _turn = sync::lock(&self.editing);
        let target = file::target(&self.path);
        let lock = file::lock(&target).map_err(|error| unsaved(&target, &error))?;
        let standing = match &lock {
            Some(open) => self.read_again(open, mends)?,
            None => self.with(Standing::of),
        };
        let mut members = standing.members.clone();
        let mut wrong = refused;
        let changed = change(&mut members);
        if let Err(error) = &changed {
            wrong.push(error.message().to_owned());
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
            file::save(&target, &text).map_err(|error| unsaved(&target, &error))?;
        }
        Ok(self.adopt(document, made))
    }

    /// A text that may be saved: nothing is wrong with it that was not before.
    fn judge(&self, text: &str, standing: &Standing, mut wrong: Vec<String>) -> Result<Document> {
        if text.len() as u64 > file::MOST_BYTES {
            wrong.push(format!(
                "the configuration would have {} bytes, and at most {} are read",
                text.len(),
                file::MOST_BYTES
            ));
        }
        match self.read(text) {
            Ok(document) => {
                // What is wrong between sections was not seen before.
                if standing.is_whole || !document.is_whole {
                    let problems = document.problems.since(&standing.problems);
                    wrong.extend(problems.map(|problem| problem.message.clone()));
                }
                // A file that has gone since must not stop other changes.
                wrong.extend(document.config.tls.missing(&self.current().tls));
                if wrong.is_empty() {
                    return Ok(document);
                }
            }
            Err(problems) => wrong.extend(problems.lines()),
        }
        Err(Error::invalid_request(wrong.join("; ")))
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
    fn read_again(&self, open: &File, mends: bool) -> Result<Standing> {
        let read = file::decode(&self.path, open).and_then(|text| {
            // The current configuration was checked before.
            match serde_json::from_str::<Value>(&text) {
                Ok(members) if self.with(|one| one.members == members) => {
                    Ok(self.with(Standing::of))
                }
                _ => self.read(&text).map(|document| Standing::of(&document)),
            }
        });
        match read {
            Ok(standing) if mends || standing.problems.is_empty() => Ok(standing),
            Err(problems) if mends => Err(unread(&problems)),
            Ok(Standing { problems, .. }) | Err(problems) => Err(Error::server(
                "the configuration file on the server is not valid, so nothing was changed",
                problems,
            )),
        }
    }
}

/// What the owner is told of a file that is no JSON object.
fn unread(problems: &Problems) -> Error {
    Error::invalid_request(format!(
        "{problems}\n`hearth config edit` opens the file as it is"
    ))
}

/// Why the file could not be written; the owner is told where, and what to do.
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
        format_args!("the configuration could not be saved: {why}"),
        format_args!("{}{advice}", target.display()),
    )
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

/// A setting that a path names.
struct Declaration {
    /// The default, as JSON or in words.
    default: String,
    /// The entry of a list or map whose setting it is; the top of the file otherwise.
    entry: KeyPath,
}

impl Declaration {
    /// The default; null where it is in words, and of an entry that the file does not have.
    fn default_in(&self, members: &Value) -> Value {
        let entry = self.entry.settle(members);
        let default = entry.find(members).map(|_| self.default.parse());
        default.and_then(Result::ok).unwrap_or_default()
    }
}

/// The setting of this key, if one is declared. `NAME` and brackets stand for any entry, but
/// a channel must be of the type.
fn declared(path: &KeyPath, members: &Value) -> Option<Declaration> {
    documentation().into_iter().find_map(|doc| {
        let dotted = doc.key.replace('[', ".[");
        let mut words = dotted.split('.');
        let (mut here, mut entry) = (KeyPath::top(), KeyPath::top());
        let channels = here.key("channels");
        for step in path.steps() {
            let word = words.next()?;
            let place = match step {
                Step::Key(key) => here.key(key),
                Step::Index(index) => here.index(*index),
            };
            let is_channel = here == channels;
            if is_channel || word == "NAME" || word.starts_with('[') {
                let kind = word.trim_matches(['[', ']']);
                let channel = place.settle(members);
                let channel = channel.find(members).map(|one| &one["type"]);
                let given = channel.and_then(Value::as_str).or(step.text());
                if is_channel && !kind.is_empty() && given != Some(kind) {
                    return None;
                }
                entry = place.clone();
            } else if step.text() != Some(word) {
                return None;
            }
            here = place;
        }
        words.next().is_none().then_some(Declaration {
            default: doc.default,
            entry,
        })
    })
}

fn unknown_key(key: &str) -> Error {
    let docs = documentation();
    let hint = suggestion(key, docs.iter().map(|doc| doc.key.as_str()));
    Error::invalid_request(format!("there is no setting {key:?}{hint}"))
}

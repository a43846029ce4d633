//! The shared handle on the configuration file and the current configuration.

mod edits;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use serde_json::{Map, Value};

use super::config::{Config, documentation};
use super::document::{Document, parse};
use super::file;
use super::key_path::{KeyPath, Step, account_path};
use super::problems::{Problems, Unset, with_nearest};
use super::reader::Environment;
use base::error::{Error, Result};
use base::language::Said;
use base::people::UserRole;
use base::sync;
pub use edits::Edit;
use edits::{changed_fields, unread};

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

    fn read(&self, text: &str) -> Result<Document, Problems> {
        (self.read)(&self.path, text, &*self.environment)
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&Document) -> T) -> T {
        look(&sync::read(&self.in_force))
    }

    fn put_in_force(&self, document: Document) {
        *sync::write(&self.in_force) = document;
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
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
    Error::invalid_request(no_setting(key, docs.iter().map(|doc| doc.key.as_str())))
}

/// That there is no setting of this key, and which is near of those that are known.
fn no_setting<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> Said {
    let none = Said::of("config.no_setting", &[("key", &format!("{key:?}"))]);
    with_nearest(none, key, known)
}

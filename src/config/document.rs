//! Reads the text of a configuration file: parses it, reads every setting, and
//! checks sections against each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use base::error::json_problem;
use base::secret::Secret;
use base::url::{MASK, is_exposed};

use super::channels::Channel;
use super::collections::read_section;
use super::config::Config;
use super::declaration::Declared;
use super::key_path::{KeyPath, Step, channel_places, is_comment, quoted};
use super::lines::Lines;
use super::problems::{Problem, Problems, Unset};
use super::providers::{ModelChoice, OFFLINE, OPENAI_COMPATIBLE, Preset};
use super::reader::{Environment, Reader, is_variable};
use super::tools::Permission;
use super::webhook_accounts::{WebhookAccount, is_at_or_below, warn_of_narrowing};

/// Permissions of tools, by name.
type Permissions = BTreeMap<String, Permission>;

/// A file that was read.
#[derive(Clone)]
pub(super) struct Document {
    /// The current configuration.
    pub config: Arc<Config>,
    /// Its JSON, with `${NAME}`, comments and order.
    pub members: Value,
    /// What is wrong with it: nothing, where `config` is what it says. Else that holds the
    /// defaults.
    pub problems: Problems,
    /// Whether it was read as a whole: what is wrong between sections is found only then.
    pub is_whole: bool,
    /// Warnings for its owner.
    pub warnings: Problems,
    /// The paths of its secrets.
    pub secrets: Vec<KeyPath>,
    /// Whether the file itself contains a secret.
    pub holds_secret: bool,
    /// What names a variable that the environment does not have, in a document of
    /// [`Document::without_environment`].
    pub unset: Vec<Unset>,
}

impl Document {
    /// Reads a text; `file` is its name in what is reported.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(file: &Path, text: &str, environment: &Environment) -> Result<Document, Problems> {
        let document = Document::examine(file, text, environment)?;
        if document.problems.is_empty() {
            Ok(document)
        } else {
            Err(document.problems)
        }
    }

    /// Reads a text that may be wrong.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn examine(
        file: &Path,
        text: &str,
        environment: &Environment,
    ) -> Result<Document, Problems> {
        let (text, document) = parse(file, text)?;
        let lines = Lines::of(text);
        let (config, mut reader) = read_whole(file, &document, environment);
        let mut problems = std::mem::take(&mut reader.problems);
        let mut warnings = std::mem::take(&mut reader.warnings);
        for path in &lines.repeated {
            let last = path.steps().last();
            let (list, effect) = if matches!(last, Some(Step::Key(key)) if is_comment(key)) {
                (&mut warnings, "saving keeps only the last")
            } else {
                (&mut problems, "each key may appear only once")
            };
            let message = format!("\"{path}\" appears here a second time; {effect}");
            list.push(Problem::of(path, message, false));
        }
        Ok(Document {
            is_whole: config.is_some(),
            config: Arc::new(
                config
                    .filter(|_| problems.is_empty())
                    .unwrap_or_else(Config::absent),
            ),
            problems: Problems::placed(file, problems, &lines),
            warnings: Problems::placed(file, warnings, &lines),
            secrets: reader.secrets,
            holds_secret: reader.holds_secret,
            members: document,
            unset: Vec::new(),
        })
    }

    /// The same where the environment may not be the server's. A setting whose variable is not
    /// set has its default, or goes with the entry that needs it, and a secret is one that
    /// fits nothing: whoever uses such a value looks into `unset` before.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn without_environment(
        file: &Path,
        text: &str,
        environment: &Environment,
    ) -> Result<Document, Problems> {
        let mut document = Document::examine(file, text, environment)?;
        let unset = document.problems.take_unset();
        if unset.is_empty() || !document.problems.is_empty() {
            return Ok(document);
        }
        let mut members = document.members.clone();
        // The last first: an item that is removed moves those behind it.
        for one in unset.iter().rev() {
            let is_secret = document.secrets.contains(&one.path);
            let value = is_secret.then(|| Secret::random_token().expose().into());
            let _ = one.path.put(&mut members, value.unwrap_or_default());
        }
        document.unset = unset;
        loop {
            let (config, mut reader) = read_whole(file, &members, environment);
            let Some(lack) = reader.problems.pop() else {
                document.config = Arc::new(config.unwrap_or_else(Config::absent));
                document.is_whole = true;
                return Ok(document);
            };
            let mut entry = lack.path;
            while entry.find(&members).is_none() {
                entry = entry.parent().unwrap_or_default();
            }
            for one in &mut document.unset {
                if one.path.is_within(&entry) {
                    one.left_out = entry.clone();
                }
            }
            if entry.put(&mut members, Value::Null).is_err() {
                members = Value::Object(Map::new());
            }
        }
    }

    /// That of a file that is no JSON object, or cannot be read.
    pub fn unreadable(problems: Problems) -> Document {
        Document {
            config: Arc::new(Config::absent()),
            members: Value::Object(Map::new()),
            warnings: Problems::none(problems.file()),
            problems,
            is_whole: false,
            secrets: Vec::new(),
            holds_secret: false,
            unset: Vec::new(),
        }
    }

    /// Its JSON with secrets masked; a `${NAME}` is none.
    pub fn masked(&self) -> Value {
        let mut members = self.members.clone();
        for secret in &self.secrets {
            if let Some(Value::String(text)) = secret.find_mut(&mut members)
                && !is_variable(text)
            {
                MASK.clone_into(text);
            }
        }
        members
    }
}

/// Parses a text, and returns it without the mark with which editors on some systems
/// begin a UTF-8 file (RFC 8259, section 8.1).
///
/// # Errors
/// The text is not one JSON object.
pub(super) fn parse<'t>(file: &Path, text: &'t str) -> Result<(&'t str, Value), Problems> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str(text) {
        Ok(document @ Value::Object(_)) => Ok((text, document)),
        Ok(_) => Err(Problems::of_file(file, "the file must be one JSON object")),
        Err(error) => Err(malformed(file, &error)),
    }
}

/// Reads every setting; none after `reader` has collected what is wrong.
pub(super) fn read_settings(
    reader: &mut Reader<'_>,
    members: &Map<String, Value>,
) -> Option<Config> {
    read_section(reader, &KeyPath::top(), members, &[])
}

/// Reads every setting, and checks the sections against each other.
fn read_whole<'e>(
    file: &Path,
    document: &Value,
    environment: &'e Environment,
) -> (Option<Config>, Reader<'e>) {
    let mut reader = Reader::new(environment);
    let members = document.as_object().expect("it was parsed as an object");
    let mut config = read_settings(&mut reader, members);
    if let Some(config) = &mut config {
        config.find_keys(environment);
        config.tls.settle(file.parent().unwrap_or(Path::new("")));
    }
    check_provider(&mut reader, members, config.as_ref());
    if let Some(config) = &config {
        check_fallback(&mut reader, config);
        check_accounts(&mut reader, document, config);
    }
    (config, reader)
}

/// The text of a file with these contents.
pub(super) fn to_text(members: &Value) -> String {
    let mut text = serde_json::to_string_pretty(members).expect("JSON always has a text");
    text.push('\n');
    text
}

fn malformed(file: &Path, error: &serde_json::Error) -> Problems {
    if error.is_eof() {
        let what = "the file ends too early: it must be one JSON object, at least {}";
        return Problems::at(file, Some(error.line()), None, what);
    }
    let problem = json_problem(error);
    // Here the position comes first.
    let sentence = problem
        .rsplit_once(" (line ")
        .map_or(problem.as_str(), |(sentence, _)| sentence);
    Problems::at(
        file,
        Some(error.line()),
        Some(error.column()),
        format!("this is not valid JSON: {sentence}"),
    )
}

/// Checks the settings of the provider against each other.
fn check_provider(reader: &mut Reader<'_>, members: &Map<String, Value>, config: Option<&Config>) {
    let top = KeyPath::top();
    let is_set = |key: &str| members.get(key).is_some_and(|value| !value.is_null());
    let written = members.get("provider").and_then(Value::as_str);
    let provider = match config {
        Some(config) => config.provider.as_str(),
        None => written.unwrap_or(OFFLINE),
    };
    if provider == OPENAI_COMPATIBLE && !is_set("base_url") {
        reader.problem(&top.key("provider"), needs_base_url(provider));
    }
    if let Some(config) = config {
        check_key(reader, &top, &config.first_choice());
    }
    let model = members.get("model").and_then(Value::as_str);
    if provider != OFFLINE && (!is_set("model") || model == Some(OFFLINE)) {
        let problem = match model {
            Some(_) => "\"model\" is still \"offline\"",
            None => "\"model\" is not set",
        };
        reader.warn(
            &top.key("provider"),
            format!("{problem}; name one of provider {provider:?}: hearth config set model NAME"),
        );
    }
    let has_embeddings = || Preset::of(provider).is_some_and(|preset| preset.api.has_embeddings());
    if config.is_some_and(|config| config.memory.embeddings.is_some()) && !has_embeddings() {
        reader.warn(
            &top.key("memory").key("embeddings"),
            format!(
                "\"memory.embeddings\" is not used, because provider {provider:?} has no \
                 embeddings"
            ),
        );
    }
    if provider == OFFLINE && is_set("api_key") {
        reader.warn(
            &top.key("api_key"),
            "\"api_key\" is not used, because \"provider\" is \"offline\"",
        );
    }
}

fn check_fallback(reader: &mut Reader<'_>, config: &Config) {
    for (index, choice) in config.fallback.iter().enumerate() {
        let path = KeyPath::top().key("fallback").index(index);
        if choice.provider == OPENAI_COMPATIBLE && choice.base_url.is_none() {
            reader.problem(&path.key("provider"), needs_base_url(&choice.provider));
        }
        check_key(reader, &path, choice);
    }
}

fn needs_base_url(provider: &str) -> String {
    format!(
        "\"base_url\" is required by provider {provider:?}: a URL such as \
         http://localhost:8080/v1"
    )
}

/// Warns about a key that is missing, or sent unencrypted.
fn check_key(reader: &mut Reader<'_>, path: &KeyPath, choice: &ModelChoice) {
    let provider = &choice.provider;
    let variable = Preset::of(provider).and_then(|preset| preset.key_variable);
    if let (Some(variable), None, None) = (variable, &choice.api_key, &choice.base_url) {
        let key = path.key("api_key");
        let word = quoted(&key.to_string());
        reader.warn(
            &path.key("provider"),
            format!(
                "\"{key}\" is not set, nor is {variable} in the environment; provider \
                 {provider:?} refuses requests without a key: hearth config set {word} -"
            ),
        );
    }
    let is_exposed = choice.base_url.as_deref().is_some_and(is_exposed);
    if is_exposed && choice.api_key.is_some() {
        reader.warn(
            &path.key("base_url"),
            "\"base_url\" sends the API key unencrypted; https:// would not",
        );
    }
}

/// Checks accounts against the other sections. A tool that does not exist is probably
/// misspelt.
fn check_accounts(reader: &mut Reader<'_>, document: &Value, config: &Config) {
    let warn = |reader: &mut Reader<'_>, path: KeyPath, name: &str| {
        if let Some(problem) = config.unknown_tool(name) {
            reader.warn(&path, format!("\"{path}\": {problem}"));
        }
    };
    let warn_keys = |reader: &mut Reader<'_>, path: &KeyPath, names: &Permissions| {
        for name in names.keys() {
            warn(reader, path.key("tool_permissions").key(name), name);
        }
    };
    warn_keys(reader, &KeyPath::top(), &config.tool_permissions);
    for (name, person) in &config.people {
        let path = KeyPath::top().key("people").key(name);
        warn_keys(reader, &path, &person.tool_permissions);
        for (key, list) in [("tools", &person.tools), ("approves", &person.approves)] {
            for name in list.iter().flatten() {
                warn(reader, path.key(key), name);
            }
        }
    }
    for (place, channel) in channel_places(document).iter().zip(&config.channels) {
        let Channel::Webhook(webhook) = channel else {
            continue;
        };
        if webhook.port.is_none() {
            check_shared_paths(reader, config, place, &webhook.accounts);
        }
        for account in &webhook.accounts {
            let place = place.key("accounts");
            warn_of_narrowing(reader, document, &place, account);
            let path = place.key(&account.name);
            warn_keys(reader, &path, &account.tool_permissions);
            for name in account.tools.iter().flatten() {
                warn(reader, path.key("tools"), name);
            }
        }
    }
}

/// Refuses paths that another enabled section answers first, in a channel without
/// its own port. `place` is the path of the channel.
fn check_shared_paths(
    reader: &mut Reader<'_>,
    config: &Config,
    place: &KeyPath,
    accounts: &[WebhookAccount],
) {
    let switched_on = [
        ("/metrics", "metrics", config.metrics.enabled),
        ("/v1", "openai_api", config.openai_api.enabled),
        ("/api", "openai_api", config.openai_api.enabled),
        ("/mcp", "mcp_api", config.mcp_api.enabled),
    ];
    for account in accounts {
        let taken = switched_on
            .iter()
            .find(|(taken, _, enabled)| *enabled && is_at_or_below(&account.incoming_path, taken));
        if let Some((taken, section, _)) = taken {
            let path = place
                .key("accounts")
                .key(&account.name)
                .key("incoming_path");
            reader.refuse(
                &path,
                format_args!(
                    "is {:?}, and \"{section}.enabled\" reserves {taken} and everything \
                     below it; choose another path, or give the webhook channel a \
                     \"port\" of its own",
                    account.incoming_path
                ),
            );
        }
    }
}

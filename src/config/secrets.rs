//! The configuration file in a backup: without secrets, which a restore takes from
//! the present file.

use std::path::Path;

use serde_json::Value;

use super::document::{parse, read_settings, to_text};
use super::key_path::{KeyPath, Step, is_comment};
use super::problems::Problems;
use super::reader::{Reader, is_variable};
use base::secret::Secret;
use base::url::{MASK, Url, host_only, masked};

/// A user and password inside a URL, masked.
const MASKED_USER: &str = "://***@";
/// Keys that say what a secret is for: it is not used for anything else.
const IDENTITY: [&str; 9] = [
    "name",
    "type",
    "provider",
    "base_url",
    "url",
    "outgoing_url",
    "command",
    "http",
    "args",
];
/// Words in the name of a comment that may contain an old secret.
const TELLING: [&str; 4] = ["key", "secret", "token", "password"];

/// The text of a configuration file with `***` in place of every secret, of the
/// arguments of programs, and of what follows the host in the URLs of HTTP tools and
/// MCP servers; `${NAME}` is none. What would have a secret in its name and
/// is a comment is left out.
///
/// # Errors
/// The text is not a valid configuration, so that secrets could be in
/// unexpected places.
pub fn without_secrets(file: &Path, text: &str) -> Result<String, Problems> {
    let (_, mut document) = parse(file, text)?;
    // A backup may be made without the server's environment.
    let environment = |_: &str| Some("unknown".to_owned());
    let mut reader = Reader::new(&environment);
    if let Some(members) = document.as_object() {
        let _ = read_settings(&mut reader, members);
    }
    let is_from_environment = |path: &KeyPath| {
        let value = path
            .settle(&document)
            .find(&document)
            .and_then(Value::as_str);
        value.is_some_and(is_variable)
    };
    let wrong = reader
        .problems
        .iter()
        .find(|problem| !is_from_environment(&problem.path));
    if let Some(wrong) = wrong {
        return Err(Problems::of_file(file, wrong.message.clone()));
    }
    type Mask = fn(&str) -> String;
    let masks = [
        (&reader.private, host_only as Mask),
        (&reader.secrets, masked),
    ];
    for (paths, mask) in masks {
        for path in paths {
            if let Some(Value::String(text)) = path.settle(&document).find_mut(&mut document)
                && !is_variable(text)
            {
                *text = mask(text);
            }
        }
    }
    drop_telling_comments(&mut document);
    Ok(to_text(&document))
}

fn drop_telling_comments(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| {
                let name = key.to_ascii_lowercase();
                !(is_comment(key) && TELLING.iter().any(|word| name.contains(word)))
            });
            members.values_mut().for_each(drop_telling_comments);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_telling_comments),
        _ => {}
    }
}

/// A configuration of a backup with secrets from the file in place.
#[derive(Debug, Default)]
pub struct Reunited {
    /// The text of the new file.
    pub text: String,
    /// Keys whose secrets were restored.
    pub kept: Vec<String>,
    /// Webhook accounts' secrets that were replaced by new ones: without a secret,
    /// anyone could post.
    pub renewed: Vec<String>,
    /// Keys of secrets that were not found: the new file does not have them.
    pub missing: Vec<String>,
}

/// Puts the secrets of `present`, the text of the file in place, where the
/// configuration of a backup has none. A secret is taken over only if what it
/// is for is the same in both.
///
/// # Errors
/// The text of the backup is not JSON.
pub fn reunite(backup: &str, present: Option<&str>) -> Result<Reunited, serde_json::Error> {
    let mut document: Value = serde_json::from_str(backup)?;
    let present: Value = present
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Value::Null);
    let mut places = Vec::new();
    find_masks(&KeyPath::top(), &document, &mut places);
    let mut reunited = Reunited::default();
    let original = document.clone();
    for place in places {
        let here = place.settle(&original);
        let name = place.to_string();
        let found = present_secret(&place, &original, &present);
        let value = if let Some(secret) = found {
            reunited.kept.push(name);
            secret.clone()
        } else if is_account_secret(&place) {
            reunited.renewed.push(name);
            Value::from(Secret::random_webhook().expose())
        } else {
            reunited.missing.push(name);
            match here.find(&original).and_then(Value::as_str) {
                Some(url) if url != MASK => Value::from(url.replacen(MASKED_USER, "://", 1)),
                // An argument less would change the meaning of the others.
                _ if matches!(here.steps().last(), Some(Step::Index(_))) => continue,
                _ => Value::Null,
            }
        };
        // The path exists, so this cannot fail.
        let _ = here.put(&mut document, value);
    }
    reunited.text = to_text(&document);
    Ok(reunited)
}

/// Finds masks; items of arrays are named by their `name`, if they have one.
fn find_masks(path: &KeyPath, value: &Value, places: &mut Vec<KeyPath>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                find_masks(&path.key(key), member, places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let path = match item.get("name").and_then(Value::as_str) {
                    Some(name) => path.key(name),
                    None => path.index(index),
                };
                find_masks(&path, item, places);
            }
        }
        Value::String(text) if is_masked(text) => places.push(path.clone()),
        _ => {}
    }
}

/// Whether a text is a mask, or a URL with a masked part.
fn is_masked(text: &str) -> bool {
    text == MASK || text.contains(MASK) && Url::parse(text).is_ok()
}

/// The present secret, if everything around it is the same.
fn present_secret<'v>(place: &KeyPath, backup: &Value, present: &'v Value) -> Option<&'v Value> {
    let secret = place.settle(present).find(present)?;
    let text = secret.as_str().filter(|text| !is_masked(text))?;
    if !agrees(place.settle(backup).find(backup)?, &text.into()) {
        return None;
    }
    let mut around = place.parent();
    let is_nested = place.steps().len() > 1;
    while let Some(path) = around {
        // The provider of the whole says nothing of an account.
        if is_nested && path.steps().is_empty() {
            break;
        }
        let (ours, theirs) = (
            path.settle(backup).find(backup)?,
            path.settle(present).find(present)?,
        );
        let is_same = IDENTITY
            .iter()
            .all(|key| match (ours.get(key), theirs.get(key)) {
                (Some(ours), Some(theirs)) => agrees(ours, theirs),
                (ours, theirs) => ours == theirs,
            });
        if !is_same {
            return None;
        }
        around = path.parent();
    }
    Some(secret)
}

/// Whether a value of a backup can be that of the present file: a mask stands for
/// anything, and an object for its URL alone.
fn agrees(backup: &Value, present: &Value) -> bool {
    match (backup, present) {
        (Value::String(ours), Value::String(theirs)) => {
            ours == MASK || [theirs.clone(), masked(theirs), host_only(theirs)].contains(ours)
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, theirs)| agrees(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            match (ours.get("url"), theirs.get("url")) {
                (Some(ours), Some(theirs)) => agrees(ours, theirs),
                (ours, theirs) => ours == theirs,
            }
        }
        (ours, theirs) => ours == theirs,
    }
}

fn is_account_secret(place: &KeyPath) -> bool {
    let last_key = place.steps().iter().rev().find_map(Step::text);
    place.names("accounts") && last_key == Some("secret")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stripped_text(config: &Value) -> String {
        without_secrets(Path::new("config.json"), &config.to_string()).unwrap()
    }

    fn config() -> Value {
        json!({
            "_help": "kept",
            "_old_api_key": "sk-old",
            "provider": "openai-compatible",
            "base_url": "https://ann:hunter2@models.example/v1",
            "api_key": "sk-secret",
            "model": "m",
            "fallback": [{"provider": "anthropic", "model": "c", "api_key": "${CLAUDE_KEY}"}],
            "workers": "${WORKERS}",
            "mcp_servers": {
                "files": {"command": "npx", "args": ["-y", "--token", "argument-secret", "${FILES}"]},
                "away": {"url": "https://mcp.example/path-secret/mcp"},
            },
            "tools": {"custom": [
                {"name": "bot", "description": "Writes.", "command": ["sh", "-c", "curl -H key:word-secret"],
                    "env": {"KEY": "environment-secret"}},
                {"name": "rain", "description": "Tells.", "http": {"url": "https://ann:user-secret@rain.example/bot-secret?key=query-secret"}},
            ]},
            "channels": {"webhook": {"accounts": {
                "ci": {"incoming_path": "/webhook/ci", "outgoing_url": "https://ci.example/hook", "secret": "account-secret-1234567890"},
            }}},
        })
    }

    #[test]
    fn no_secret_is_left_and_variables_stay() {
        let text = stripped_text(&config());
        for secret in ["-secret", "sk-old", "hunter2"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        let kept: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kept["fallback"][0]["api_key"], "${CLAUDE_KEY}");
        assert_eq!(kept["workers"], "${WORKERS}");
        assert_eq!(kept["_help"], "kept");
        assert_eq!(kept["api_key"], MASK);
        assert_eq!(kept["base_url"], "https://***@models.example/v1");
        let tools = &kept["tools"]["custom"];
        assert_eq!(tools[0]["command"], json!(["sh", MASK, MASK]));
        assert_eq!(tools[1]["http"]["url"], "https://rain.example/***");
        let servers = &kept["mcp_servers"];
        assert_eq!(servers["files"]["command"], "npx");
        assert_eq!(
            servers["files"]["args"],
            json!([MASK, MASK, MASK, "${FILES}"])
        );
        assert_eq!(servers["away"]["url"], "https://mcp.example/***");
    }

    #[test]
    fn what_is_not_valid_is_not_guessed_at() {
        for text in [
            "{",
            "[]",
            r#"{"api_kye": "sk-secret"}"#,
            r#"{"workers": "many"}"#,
        ] {
            let refused = without_secrets(Path::new("config.json"), text);
            assert!(refused.is_err(), "{text}");
        }
    }

    #[test]
    fn secrets_come_back_from_the_same_configuration() {
        let present = config();
        let reunited = reunite(&stripped_text(&present), Some(&present.to_string())).unwrap();
        let mut expected = present;
        expected
            .as_object_mut()
            .unwrap()
            .shift_remove("_old_api_key");
        let text: Value = serde_json::from_str(&reunited.text).unwrap();
        assert_eq!(text, expected);
        assert_eq!(reunited.kept.len(), 11, "{reunited:?}");
        assert!(reunited.missing.is_empty() && reunited.renewed.is_empty());
    }

    #[test]
    fn a_secret_is_not_given_to_somebody_else() {
        let mut present = config();
        present["base_url"] = json!("https://other.example/v1");
        present["mcp_servers"]["files"]["command"] = json!("uvx");
        present["mcp_servers"]["away"]["url"] = json!("https://other.example/path-secret/mcp");
        present["tools"]["custom"][0]["command"][0] = json!("bash");
        present["tools"]["custom"][1]["http"]["url"] = json!("https://other.example/");
        let reunited = reunite(&stripped_text(&config()), Some(&present.to_string())).unwrap();
        assert_eq!(reunited.kept, ["channels.webhook.accounts.ci.secret"]);
        present["channels"]["webhook"]["accounts"]["ci"]["outgoing_url"] =
            json!("https://x.example/");
        let reunited = reunite(&stripped_text(&config()), Some(&present.to_string())).unwrap();
        assert!(reunited.kept.is_empty(), "{reunited:?}");
        assert_eq!(
            reunited.missing,
            [
                "base_url",
                "api_key",
                "mcp_servers.files.args[0]",
                "mcp_servers.files.args[1]",
                "mcp_servers.files.args[2]",
                "mcp_servers.away.url",
                "tools.custom.bot.command[1]",
                "tools.custom.bot.command[2]",
                "tools.custom.bot.env.KEY",
                "tools.custom.rain.http.url",
            ]
        );
        assert_eq!(reunited.renewed, ["channels.webhook.accounts.ci.secret"]);
        let text: Value = serde_json::from_str(&reunited.text).unwrap();
        assert_eq!(text["base_url"], "https://models.example/v1");
        assert_eq!(text.get("api_key"), None);
        assert_eq!(
            text["mcp_servers"]["files"]["args"],
            json!([MASK, MASK, MASK, "${FILES}"])
        );
        assert!(!reunited.text.contains("-secret"), "{}", reunited.text);
        let made = text["channels"]["webhook"]["accounts"]["ci"]["secret"]
            .as_str()
            .unwrap();
        assert!(
            made.len() > 30 && !made.contains("account-secret"),
            "{made}"
        );
    }
}

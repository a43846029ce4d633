//! Chooses, tests and writes the model.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::arguments::Arguments;
use crate::cli::config::set_value;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::door::Door;
use crate::cli::local_models;
use crate::cli::password::read_secret;
use crate::cli::prompter::{by_number, numbered};
use agent::model::nearby;
use agent::model::probe::{Finding, models_at, probe};
use base::secret::Secret;
use base::url::{Host, Url};
use config::{Config, ModelChoice, OFFLINE, OPENAI_COMPATIBLE, PRESETS, Preset};
use net::tls::Trust;

/// Time limit of the provider's answer.
const LIMIT: Duration = Duration::from_secs(15);
/// Time limit of a local server's list of models.
const LIST: Duration = Duration::from_secs(2);
/// How many times the model is asked for, and tested.
const TRIES: usize = 3;

/// Where the API key is.
pub enum ApiKey {
    /// Not given: the provider needs none, or the configured one stays.
    None,
    /// In this variable of the server's environment.
    Variable(String),
    /// In the configuration.
    Text(Secret),
}

/// What was chosen.
pub struct ModelSetup {
    pub provider: String,
    pub model: String,
    pub base_url: Option<String>,
    pub key: ApiKey,
}

/// The options about the model.
const OPTIONS: [&str; 5] = [
    "provider",
    "model",
    "base-url",
    "api-key-env",
    "api-key-stdin",
];

/// Chooses by options and answers, and tests the choice. `current` is what is configured
/// already: it is the default, and stays (`None`) if nobody is asked and no option is given.
///
/// # Errors
///
/// An answer is missing or invalid, or the test failed.
pub fn choose(
    arguments: &Arguments,
    context: &mut CliContext,
    current: Option<&Config>,
) -> Result<Option<ModelSetup>, CliError> {
    let is_given = OPTIONS.iter().any(|option| arguments.has(option));
    if current.is_some() && !is_given && !context.input_is_terminal {
        return Ok(None);
    }
    let (preset, found) = provider(arguments, context, current)?;
    let current = current.filter(|config| config.provider == preset.name);
    let mut chosen = ModelSetup {
        provider: preset.name.to_owned(),
        model: OFFLINE.to_owned(),
        base_url: match found {
            Some(url) => Some(url),
            None => base_url(arguments, context, preset, current)?,
        },
        key: ApiKey::None,
    };
    if preset.name == OFFLINE {
        return Ok(Some(chosen));
    }
    // A key is for one address.
    let kept = current.filter(|config| config.base_url == chosen.base_url);
    let kept = kept.and_then(|config| config.api_key.clone());
    chosen.key = key(arguments, context, preset, kept.as_ref())?;
    let usual = current.map(|config| config.model.as_str());
    chosen.model = model(
        arguments,
        context,
        preset,
        chosen.base_url.as_deref(),
        usual,
    )?;
    if arguments.has("no-test") {
        return Ok(Some(chosen));
    }
    loop {
        let (said, corrects) = match test(&chosen, kept.as_ref(), context) {
            Ok(said) => {
                context.say(&said)?;
                return Ok(Some(chosen));
            }
            Err(failed) => failed,
        };
        if !context.input_is_terminal {
            return Err(CliError::failed(format!(
                "{said}\nNothing was written; --no-test skips this test."
            )));
        }
        context.say(&said)?;
        // What comes first is what helps most often.
        let words = [corrects, "again", "save"];
        let question = format!(
            "Enter another {corrects}, test again, or save it untested ({})?",
            words.join(", ")
        );
        match context.choose(&question, &words, corrects)?.as_deref() {
            Some("save") => return Ok(Some(chosen)),
            Some("key") => {
                if let Some(key) = context.ask_secret("API key:")? {
                    chosen.key = ApiKey::Text(key);
                }
            }
            Some("model") => {
                chosen.model = context.ask("Model:", &chosen.model)?.unwrap_or_default();
            }
            Some("address") => {
                let usual = chosen.base_url.as_deref().or(preset.base_url);
                chosen.base_url = context.ask("Address:", usual.unwrap_or_default())?;
            }
            _ => {}
        }
    }
}

/// Where the model may be that answers.
const PLACES: [(&str, &str); 4] = [
    ("here", "on this machine"),
    ("network", "on another machine of my network"),
    ("account", "an account with a provider on the internet"),
    ("later", "none yet: the offline stand-in answers until then"),
];

/// The place of the model that is configured, if one is.
fn place_of(config: &Config) -> Option<&'static str> {
    let preset = Preset::of(&config.provider)?;
    let is_here = match config.base_url.as_deref().map(Url::parse) {
        Some(url) => url.is_ok_and(|url| match url.authority.host {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost",
        }),
        None => preset.key_variable.is_none(),
    };
    match preset.name {
        OFFLINE => None,
        _ if is_here => Some("here"),
        _ if preset.key_variable.is_some() => Some("account"),
        _ => Some("network"),
    }
}

/// The provider, and its address where that was found.
type Provider = (&'static Preset, Option<String>);

fn provider(
    arguments: &Arguments,
    context: &mut CliContext,
    current: Option<&Config>,
) -> Result<Provider, CliError> {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let name = match arguments.choice("provider", &names)? {
        Some(name) => name,
        None if context.input_is_terminal => return ask_provider(context, current),
        None => current.map_or(OFFLINE, |config| &config.provider),
    };
    preset_of(name)
}

fn ask_provider(context: &mut CliContext, current: Option<&Config>) -> Result<Provider, CliError> {
    let suggestions = local_models::search(|name| context.variable(name));
    for suggestion in &suggestions {
        context.say(&format!("{}: {}.", suggestion.provider, suggestion.reason))?;
    }
    let found = suggestions.first().and_then(|one| Preset::of(one.provider));
    let usual = match (current.and_then(place_of), found) {
        (Some(configured), _) => configured,
        (None, Some(found)) if found.key_variable.is_some() => "account",
        (None, Some(_)) => "here",
        (None, None) => "later",
    };
    let words = PLACES.map(|(word, _)| word);
    let lines = PLACES.map(|(word, meaning)| format!("{word:<8} {meaning}"));
    context.say(&format!("Where is the model?\n{}", numbered(&lines)))?;
    let place = context.choose("Which one?", &words, usual)?;
    let place = place.as_deref().unwrap_or(usual);
    match place {
        "later" => return preset_of(OFFLINE),
        "network" => return on_the_network(context, current),
        _ => {}
    }
    let is_offered = |preset: &&Preset| match place {
        "account" => preset.key_variable.is_some(),
        _ => preset.key_variable.is_none() && preset.name != OFFLINE,
    };
    let names: Vec<&str> = PRESETS
        .iter()
        .filter(is_offered)
        .map(|preset| preset.name)
        .collect();
    let configured = current.map(|config| config.provider.as_str());
    let usual = [configured, found.map(|preset| preset.name)]
        .into_iter()
        .flatten();
    let usual = usual
        .chain(names.first().copied())
        .find(|name| names.contains(name));
    context.say(&format!("Model providers:\n{}", numbered(&names)))?;
    let answer = context.choose("Which one?", &names, usual.unwrap_or_default())?;
    preset_of(answer.as_deref().unwrap_or(OFFLINE))
}

fn preset_of(name: &str) -> Result<Provider, CliError> {
    let preset = Preset::of(name);
    let preset =
        preset.ok_or_else(|| CliError::failed(format!("there is no provider {name:?}")))?;
    Ok((preset, None))
}

/// Looks at an address until something answers there.
fn on_the_network(
    context: &mut CliContext,
    current: Option<&Config>,
) -> Result<Provider, CliError> {
    let configured = current.filter(|config| place_of(config) == Some("network"));
    let usual = configured
        .and_then(|config| config.base_url.as_deref())
        .unwrap_or_default();
    for _ in 0..TRIES {
        let question = "Address of that machine (such as nas.lan or 192.168.1.20:11434)?";
        let answer = context.ask(question, usual)?.unwrap_or_default();
        if let Some(config) = configured.filter(|_| !usual.is_empty() && answer == usual) {
            return preset_of(&config.provider);
        }
        let found = match nearby::at(std::slice::from_ref(&answer)) {
            Ok(found) => found,
            Err(error) => {
                context.say(error.message())?;
                continue;
            }
        };
        let urls: Vec<&str> = found
            .iter()
            .map(|server| server.base_url.as_str())
            .collect();
        let Some(first) = urls.first() else {
            context.say("Nothing answers there. Does its server listen on the network?")?;
            continue;
        };
        for server in &found {
            context.say(&format!("{} answers at {}.", server.title, server.base_url))?;
        }
        let chosen = match urls.len() {
            1 => (*first).to_owned(),
            _ => {
                context.say(&numbered(&urls))?;
                let answer = context.choose("Which one?", &urls, first)?;
                answer.unwrap_or_else(|| (*first).to_owned())
            }
        };
        let server = found.iter().find(|server| server.base_url == chosen);
        let (preset, _) = preset_of(server.map_or(OPENAI_COMPATIBLE, |server| server.provider))?;
        return Ok((preset, Some(chosen)));
    }
    Err(CliError::failed(
        "no model server was found; nothing was written",
    ))
}

fn base_url(
    arguments: &Arguments,
    context: &mut CliContext,
    preset: &Preset,
    current: Option<&Config>,
) -> Result<Option<String>, CliError> {
    let configured = current.and_then(|config| config.base_url.clone());
    let given = match arguments.text("base-url")? {
        Some(url) => Some(url.to_owned()),
        None if preset.name == OPENAI_COMPATIBLE => {
            let usual = configured.clone().unwrap_or_default();
            context.ask("Address (http://HOST:PORT/v1)?", &usual)?
        }
        None => None,
    };
    let given = given.or(configured);
    let given = given.filter(|url| !url.is_empty());
    if given.is_none() && preset.name == OPENAI_COMPATIBLE {
        return Err(arguments.usage(format!("{OPENAI_COMPATIBLE} needs --base-url")));
    }
    Ok(given)
}

fn key(
    arguments: &Arguments,
    context: &mut CliContext,
    preset: &Preset,
    kept: Option<&Secret>,
) -> Result<ApiKey, CliError> {
    if arguments.has("api-key-stdin") {
        return read_secret(context, "API key: ").map(ApiKey::Text);
    }
    if let Some(name) = arguments.text("api-key-env")? {
        // The file refers to it, and is invalid while it is not set.
        return match context.variable(name) {
            Some(_) => Ok(ApiKey::Variable(name.to_owned())),
            None => Err(CliError::failed(format!("{name} is not set"))),
        };
    }
    let Some(usual) = preset.key_variable else {
        return Ok(ApiKey::None);
    };
    if context.variable(usual).is_some() {
        context.say(&format!("The API key is taken from {usual}."))?;
        return Ok(ApiKey::Variable(usual.to_owned()));
    }
    let or_kept = kept.map_or("", |_| " [keep the one that is saved]");
    match context.ask_secret(&format!("The API key of {}{or_kept}:", preset.title))? {
        Some(key) if !key.is_empty() => Ok(ApiKey::Text(key)),
        _ if arguments.has("no-test") || kept.is_some() => Ok(ApiKey::None),
        _ => Err(arguments.usage(format!(
            "{} needs an API key: --api-key-env NAME or --api-key-stdin",
            preset.title
        ))),
    }
}

fn model(
    arguments: &Arguments,
    context: &mut CliContext,
    preset: &Preset,
    base_url: Option<&str>,
    current: Option<&str>,
) -> Result<String, CliError> {
    if let Some(model) = arguments.text("model")? {
        return Ok(model.to_owned());
    }
    // Local servers list their models without a key.
    let url = base_url.or(preset.base_url.filter(|_| preset.key_variable.is_none()));
    let models = url.and_then(|url| models_at(preset.name, url, LIST));
    let models = models.unwrap_or_default();
    if !models.is_empty() {
        context.say(&format!("Available models:\n{}", numbered(&models)))?;
    }
    let first = current
        .or(models.first().map(String::as_str))
        .unwrap_or_default();
    for _ in 0..TRIES {
        match context.ask("Which model?", first)? {
            Some(answer) if answer.is_empty() => context.say("Please enter the model's name.")?,
            Some(answer) => {
                let chosen = by_number(&answer, &models).unwrap_or(&answer);
                return Ok(chosen.to_owned());
            }
            None if !first.is_empty() => return Ok(first.to_owned()),
            None => break,
        }
    }
    Err(arguments.usage("the model is missing: --model NAME"))
}

/// Probes the provider; nothing is sent to a model. What fails names what to correct: the key,
/// the model or the address.
fn test(
    chosen: &ModelSetup,
    kept: Option<&Secret>,
    context: &CliContext,
) -> Result<String, (String, &'static str)> {
    let api_key = match &chosen.key {
        ApiKey::None => kept.cloned(),
        ApiKey::Text(key) => Some(key.clone()),
        ApiKey::Variable(name) => match context.variable(name) {
            Some(key) => Some(Secret::new(key)),
            None => return Err((format!("{name} is not set"), "key")),
        },
    };
    let choice = ModelChoice {
        provider: chosen.provider.clone(),
        model: chosen.model.clone(),
        api_key,
        base_url: chosen.base_url.clone(),
        context_tokens: None,
        first_token_seconds: None,
    };
    let probe = probe(&choice, &Trust::default(), LIMIT);
    let mut text = probe.said().to_string();
    let wrong = match probe.finding {
        finding if finding.is_usable() => return Ok(format!("{text}.")),
        Finding::NoModel { others, .. } => {
            text.push_str(&format!("; it has {}", others.join(", ")));
            "model"
        }
        Finding::NoKey | Finding::BadKey(_) => "key",
        _ => "address",
    };
    Err((text, wrong))
}

/// Writes the choice.
pub fn write(door: &mut Door, before: &Config, chosen: &ModelSetup) -> CliResult {
    let mut config = json!({
        "provider": chosen.provider,
        "base_url": chosen.base_url,
        "model": chosen.model,
    });
    match &chosen.key {
        ApiKey::None if before.provider == chosen.provider => {}
        ApiKey::Text(key) => config["api_key"] = json!(key.expose()),
        // One that is there belongs to the other provider, and the server reads the
        // usual variable anyway.
        ApiKey::None | ApiKey::Variable(_) => config["api_key"] = Value::Null,
    }
    door.ask(&json!({ "type": "update_config", "config": config }))?;
    match &chosen.key {
        ApiKey::Variable(name) if !is_usual(name, chosen) => {
            set_value(door, "api_key", json!(format!("${{{name}}}"))).map(drop)
        }
        _ => Ok(()),
    }
}

fn is_usual(name: &str, chosen: &ModelSetup) -> bool {
    let usual = Preset::of(&chosen.provider).and_then(|preset| preset.key_variable);
    usual == Some(name) && chosen.base_url.is_none()
}

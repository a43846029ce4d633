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
use base::nearest::nearest;
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
        let (said, wrong) = match test(&chosen, kept.as_ref(), context) {
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
        let corrects = match wrong {
            Correction::ApiKey => "key",
            Correction::Model => "model",
            Correction::Address => "address",
        };
        // What comes first is what helps most often.
        let words = [corrects, "again", "save"];
        let question = format!(
            "Enter another {corrects}, test again, or save it untested ({})?",
            words.join(", ")
        );
        match (
            context.choose(&question, &words, corrects)?.as_deref(),
            wrong,
        ) {
            (Some("save"), _) => return Ok(Some(chosen)),
            (Some("again"), _) | (None, _) => {}
            (_, Correction::ApiKey) => {
                if let Some(key) = context.ask_secret("API key:")? {
                    chosen.key = ApiKey::Text(key);
                }
            }
            (_, Correction::Model) => {
                chosen.model = context.ask("Model:", &chosen.model)?.unwrap_or_default();
            }
            (_, Correction::Address) => {
                let usual = chosen.base_url.as_deref().or(preset.base_url);
                chosen.base_url = context.ask("Address:", usual.unwrap_or_default())?;
            }
        }
    }
}

/// Where the model is that answers.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Here,
    Network,
    Account,
    Later,
}

impl Place {
    const ALL: [(Place, &str, &str); 4] = [
        (Place::Here, "here", "on this machine"),
        (
            Place::Network,
            "network",
            "on another machine of my network",
        ),
        (
            Place::Account,
            "account",
            "an account with a provider on the internet",
        ),
        (
            Place::Later,
            "later",
            "none yet: the offline stand-in answers until then",
        ),
    ];

    fn of(config: &Config) -> Option<Place> {
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
            _ if is_here => Some(Place::Here),
            _ if preset.key_variable.is_some() => Some(Place::Account),
            _ => Some(Place::Network),
        }
    }
}

/// The provider, and its address where that was found.
type Provider = (&'static Preset, Option<String>);

fn provider(
    arguments: &Arguments,
    context: &mut CliContext,
    current: Option<&Config>,
) -> Result<Provider, CliError> {
    let name = match arguments.text("provider")? {
        Some(name) => name,
        None if context.input_is_terminal => return ask_provider(context, current),
        None => current.map_or(OFFLINE, |config| &config.provider),
    };
    let preset = Preset::of(name).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        let hint = nearest(name, names.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        arguments.usage(format!(
            "--provider must be one of {}, not {name:?}{hint}",
            names.join(", ")
        ))
    })?;
    Ok((preset, None))
}

fn ask_provider(context: &mut CliContext, current: Option<&Config>) -> Result<Provider, CliError> {
    let suggestions = local_models::search(|name| context.variable(name));
    for suggestion in &suggestions {
        context.say(&format!("{}: {}.", suggestion.provider, suggestion.reason))?;
    }
    let found = suggestions.first().and_then(|one| Preset::of(one.provider));
    let usual = match (current.and_then(Place::of), found) {
        (Some(configured), _) => configured,
        (None, Some(found)) if found.key_variable.is_some() => Place::Account,
        (None, Some(_)) => Place::Here,
        (None, None) => Place::Later,
    };
    let words = Place::ALL.map(|(_, word, _)| word);
    let lines = Place::ALL.map(|(_, word, meaning)| format!("{word:<8} {meaning}"));
    context.say(&format!("Where is the model?\n{}", numbered(&lines)))?;
    let word = |place| {
        Place::ALL
            .iter()
            .find(|(one, ..)| *one == place)
            .map_or("", |one| one.1)
    };
    let answer = context.choose("Which one?", &words, word(usual))?;
    let place = Place::ALL
        .iter()
        .find(|(_, word, _)| answer.as_deref() == Some(word));
    let place = place.map_or(usual, |(place, ..)| *place);
    let is_offered = |preset: &&Preset| match place {
        Place::Account => preset.key_variable.is_some(),
        _ => preset.key_variable.is_none() && preset.name != OFFLINE,
    };
    match place {
        Place::Later => return preset_of(OFFLINE),
        Place::Network => return on_the_network(context, current),
        Place::Here | Place::Account => {}
    }
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
    let configured = current.filter(|config| Place::of(config) == Some(Place::Network));
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

/// What to correct after a failed test.
#[derive(Clone, Copy)]
enum Correction {
    ApiKey,
    Model,
    Address,
}

/// Probes the provider; nothing is sent to a model.
fn test(
    chosen: &ModelSetup,
    kept: Option<&Secret>,
    context: &CliContext,
) -> Result<String, (String, Correction)> {
    let api_key = match &chosen.key {
        ApiKey::None => kept.cloned(),
        ApiKey::Text(key) => Some(key.clone()),
        ApiKey::Variable(name) => match context.variable(name) {
            Some(key) => Some(Secret::new(key)),
            None => return Err((format!("{name} is not set"), Correction::ApiKey)),
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
            Correction::Model
        }
        Finding::NoKey | Finding::BadKey(_) => Correction::ApiKey,
        _ => Correction::Address,
    };
    Err((text, wrong))
}

/// Writes the choice. Each change must leave a valid file, so the order depends on
/// whether an address is added or removed.
///
/// # Errors
///
/// The configuration cannot be written.
pub fn write(
    door: &mut Door,
    before: &Config,
    chosen: &ModelSetup,
) -> Result<Vec<Value>, CliError> {
    let mut changes = Vec::new();
    let mut set = |key: &str, value: Value| -> CliResult {
        changes.push(set_value(door, key, value)?);
        Ok(())
    };
    if let Some(url) = &chosen.base_url {
        set("base_url", json!(url))?;
    }
    set("provider", json!(chosen.provider))?;
    if chosen.base_url.is_none() && before.base_url.is_some() {
        set("base_url", Value::Null)?;
    }
    set("model", json!(chosen.model))?;
    match &chosen.key {
        ApiKey::None if before.provider == chosen.provider => {}
        ApiKey::Text(key) => set("api_key", json!(key.expose()))?,
        ApiKey::Variable(name) if !is_usual(name, chosen) => {
            set("api_key", json!(format!("${{{name}}}")))?;
        }
        // One that is there belongs to the other provider, and the server reads the
        // usual variable anyway.
        ApiKey::None | ApiKey::Variable(_) => set("api_key", Value::Null)?,
    }
    Ok(changes)
}

fn is_usual(name: &str, chosen: &ModelSetup) -> bool {
    let usual = Preset::of(&chosen.provider).and_then(|preset| preset.key_variable);
    usual == Some(name) && chosen.base_url.is_none()
}

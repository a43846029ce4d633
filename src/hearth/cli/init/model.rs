//! Which model answers: asked for, tried, written.

use std::time::Duration;

use super::dialogue::Dialogue;
use crate::cli::arguments::Arguments;
use crate::cli::context::{Failure, Outcome};
use crate::cli::local_models;
use agent::provider::probe::{Finding, models_at, probe};
use base::secret::Secret;
use config::{ModelChoice, OFFLINE, OPENAI_COMPATIBLE, PRESETS, Preset, Settings};
use net::tls::Trust;

/// How long the provider may take to answer.
const LIMIT: Duration = Duration::from_secs(15);
/// How long a server on this machine may take to list its models.
const LIST: Duration = Duration::from_secs(2);
/// How often what is wrong is asked for again.
const TRIES: usize = 3;

/// Where the API key is.
pub enum Key {
    /// None is given: the provider needs none, or it is where it was.
    None,
    /// In this variable of the server's environment.
    Variable(String),
    /// In the configuration.
    Text(Secret),
}

/// What was chosen.
pub struct Chosen {
    pub provider: String,
    pub model: String,
    pub base_url: Option<String>,
    pub key: Key,
}

/// Chooses by options and answers, and tries what was chosen.
pub fn choose(arguments: &Arguments, dialogue: &mut Dialogue<'_, '_>) -> Result<Chosen, Failure> {
    let preset = provider(arguments, dialogue)?;
    let mut chosen = Chosen {
        provider: preset.name.to_owned(),
        model: OFFLINE.to_owned(),
        base_url: base_url(arguments, dialogue, preset)?,
        key: Key::None,
    };
    if preset.name == OFFLINE {
        return Ok(chosen);
    }
    chosen.key = key(arguments, dialogue, preset)?;
    chosen.model = model(arguments, dialogue, preset, chosen.base_url.as_deref())?;
    if arguments.has("no-test") {
        return Ok(chosen);
    }
    for _ in 1..TRIES {
        match test(&chosen, dialogue) {
            Ok(said) => {
                dialogue.say(&said)?;
                return Ok(chosen);
            }
            Err(_) if !dialogue.is_open() => break,
            Err((said, Wrong::Key)) => {
                dialogue.say(&said)?;
                if let Some(key) = dialogue.ask_secret("Another API key:")? {
                    chosen.key = Key::Text(key);
                }
            }
            Err((said, Wrong::Model)) => {
                dialogue.say(&said)?;
                if let Some(model) = dialogue.ask("Another model:", "")? {
                    chosen.model = model;
                }
            }
            Err((_, Wrong::Else)) => break,
        }
    }
    match test(&chosen, dialogue) {
        Ok(said) => dialogue.say(&said).map(|()| chosen),
        Err((said, _)) => Err(Failure::failed(format!(
            "{said}; nothing was written (--no-test leaves this out)"
        ))),
    }
}

fn provider(
    arguments: &Arguments,
    dialogue: &mut Dialogue<'_, '_>,
) -> Result<&'static Preset, Failure> {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let name = match arguments.text("provider")? {
        Some(name) => name.to_owned(),
        None if dialogue.is_open() => {
            let offers = local_models::look(|name| dialogue.variable(name));
            for offer in &offers {
                dialogue.say(&format!("{}: {}.", offer.provider, offer.reason))?;
            }
            let usual = offers.first().map_or(OFFLINE, |offer| offer.provider);
            dialogue.say(&format!("Model providers: {}.", names.join(", ")))?;
            let answer = dialogue.choose("Which one?", &names, usual)?;
            answer.unwrap_or_else(|| OFFLINE.to_owned())
        }
        None => OFFLINE.to_owned(),
    };
    Preset::of(&name).ok_or_else(|| {
        arguments.usage(format!(
            "--provider must be one of {}, not {name:?}",
            names.join(", ")
        ))
    })
}

fn base_url(
    arguments: &Arguments,
    dialogue: &mut Dialogue<'_, '_>,
    preset: &Preset,
) -> Result<Option<String>, Failure> {
    let given = match arguments.text("base-url")? {
        Some(url) => Some(url.to_owned()),
        None if preset.name == OPENAI_COMPATIBLE => {
            dialogue.ask("Where is it (http://HOST:PORT/v1)?", "")?
        }
        None => None,
    };
    let given = given.filter(|url| !url.is_empty());
    if given.is_none() && preset.name == OPENAI_COMPATIBLE {
        return Err(arguments.usage(format!("{OPENAI_COMPATIBLE} needs --base-url")));
    }
    Ok(given)
}

fn key(
    arguments: &Arguments,
    dialogue: &mut Dialogue<'_, '_>,
    preset: &Preset,
) -> Result<Key, Failure> {
    if arguments.has("api-key-stdin") {
        return dialogue.take_secret().map(Key::Text);
    }
    if let Some(name) = arguments.text("api-key-env")? {
        // The file names it, and is wrong where it is not set.
        return match dialogue.variable(name) {
            Some(_) => Ok(Key::Variable(name.to_owned())),
            None => Err(Failure::failed(format!("{name} is not set here"))),
        };
    }
    let Some(usual) = preset.key_variable else {
        return Ok(Key::None);
    };
    if dialogue.variable(usual).is_some() {
        dialogue.say(&format!("The API key is taken from {usual}."))?;
        return Ok(Key::Variable(usual.to_owned()));
    }
    match dialogue.ask_secret(&format!("The API key of {}:", preset.title))? {
        Some(key) if !key.is_empty() => Ok(Key::Text(key)),
        _ if arguments.has("no-test") => Ok(Key::None),
        _ => Err(arguments.usage(format!(
            "{} needs an API key: --api-key-env NAME or --api-key-stdin",
            preset.title
        ))),
    }
}

fn model(
    arguments: &Arguments,
    dialogue: &mut Dialogue<'_, '_>,
    preset: &Preset,
    base_url: Option<&str>,
) -> Result<String, Failure> {
    if let Some(model) = arguments.text("model")? {
        return Ok(model.to_owned());
    }
    // Servers in the house list their models to anybody.
    let url = base_url.or(preset.base_url.filter(|_| preset.key_variable.is_none()));
    let models = url.and_then(|url| models_at(preset.name, url, LIST));
    let models = models.unwrap_or_default();
    if !models.is_empty() {
        dialogue.say(&format!("It has {}.", models.join(", ")))?;
    }
    let first = models.first().map_or("", String::as_str);
    let answer = match dialogue.ask("Which model?", first)? {
        Some(answer) => answer,
        None => first.to_owned(),
    };
    match answer.as_str() {
        "" => Err(arguments.usage("no model is named: --model NAME")),
        _ => Ok(answer),
    }
}

/// What would mend it.
enum Wrong {
    Key,
    Model,
    Else,
}

/// Asks the provider, as the doctor does: nothing is sent to a model.
fn test(chosen: &Chosen, dialogue: &Dialogue<'_, '_>) -> Result<String, (String, Wrong)> {
    let api_key = match &chosen.key {
        Key::None => None,
        Key::Text(key) => Some(key.clone()),
        Key::Variable(name) => match dialogue.variable(name) {
            Some(key) => Some(Secret::new(key)),
            None => return Err((format!("{name} is not set here"), Wrong::Key)),
        },
    };
    let choice = ModelChoice {
        provider: chosen.provider.clone(),
        model: chosen.model.clone(),
        api_key,
        base_url: chosen.base_url.clone(),
    };
    let probe = probe(&choice, &Trust::default(), LIMIT);
    let mut text = probe.to_string();
    let wrong = match probe.finding {
        finding if finding.is_usable() => return Ok(format!("{text}.")),
        Finding::NoModel { others, .. } => {
            text.push_str(&format!("; it has {}", others.join(", ")));
            Wrong::Model
        }
        Finding::NoKey | Finding::BadKey(_) => Wrong::Key,
        _ => Wrong::Else,
    };
    Err((text, wrong))
}

/// Writes what was chosen. Each change must leave a valid file, so that the
/// order depends on whether an address comes or goes.
pub fn write(settings: &Settings, chosen: &Chosen) -> Outcome {
    let before = settings.current();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    if let Some(url) = &chosen.base_url {
        settings.set("base_url", &quoted(url))?;
    }
    settings.set("provider", &quoted(&chosen.provider))?;
    if chosen.base_url.is_none() && before.base_url.is_some() {
        settings.set("base_url", "null")?;
    }
    settings.set("model", &quoted(&chosen.model))?;
    match &chosen.key {
        // Another provider's key is not for this one.
        Key::None if before.provider != chosen.provider => settings.set("api_key", "null")?,
        Key::None => {}
        Key::Text(key) => settings.set("api_key", &quoted(key.expose()))?,
        // That variable is read anyway, also before it is set.
        Key::Variable(name) if is_usual(name, chosen) => settings.set("api_key", "null")?,
        Key::Variable(name) => settings.set("api_key", &quoted(&format!("${{{name}}}")))?,
    }
    Ok(())
}

fn is_usual(name: &str, chosen: &Chosen) -> bool {
    let usual = Preset::of(&chosen.provider).and_then(|preset| preset.key_variable);
    usual == Some(name) && chosen.base_url.is_none()
}

//! Whether each configured model would answer.

use std::thread;
use std::time::Duration;

use super::diagnosis::{Diagnosis, Installation, Level};
use agent::model::probe::{Finding, Probe, probe};
use agent::model::takes_effort;
use config::{Config, ModelChoice, OFFLINE, Preset, Settings};
use net::tls::Trust;

/// How long one provider may take to answer.
const LIMIT: Duration = Duration::from_secs(15);

/// Asks all providers at once, and says whose models do without a setting.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let choices = choices(&config);
    let probes: Vec<Probe> = thread::scope(|scope| {
        let asked: Vec<_> = choices
            .iter()
            .map(|(_, choice)| scope.spawn(|| probe(choice, &trust, LIMIT)))
            .collect();
        asked
            .into_iter()
            .map(|thread| thread.join().expect("asking a provider does not panic"))
            .collect()
    });
    choices
        .iter()
        .zip(probes)
        .flat_map(|((place, choice), probe)| {
            let without = without_effort(installation, &config, choice);
            let found = diagnose(installation, settings, place, choice, probe);
            [found].into_iter().chain(without)
        })
        .collect()
}

/// A warning where the reasoning effort that is set does nothing.
fn without_effort(
    installation: &Installation<'_>,
    config: &Config,
    choice: &ModelChoice,
) -> Option<Diagnosis> {
    let effort = config.reasoning_effort.filter(|effort| *effort != "none")?;
    let (model, option) = (&choice.model, &installation.option);
    (choice.provider != OFFLINE && !takes_effort(choice)).then(|| {
        Diagnosis::warning(format!(
            "the model {model:?} takes no reasoning effort: reasoning_effort {effort:?} does \
             nothing for it"
        ))
        .advise(format!("hearth config unset{option} reasoning_effort"))
        .advise("or choose a model that thinks")
    })
}

/// Every model that may be asked, and how its keys begin in the configuration.
pub fn choices(config: &Config) -> Vec<(String, ModelChoice)> {
    let others = config.fallback.iter().cloned().enumerate();
    let others = others.map(|(index, choice)| (format!("fallback[{index}]."), choice));
    std::iter::once((String::new(), config.first_choice()))
        .chain(others)
        .collect()
}

fn diagnose(
    installation: &Installation<'_>,
    settings: &Settings,
    place: &str,
    choice: &ModelChoice,
    probe: Probe,
) -> Diagnosis {
    let preset = Preset::of(&choice.provider);
    let set = |key: &str, value: &str| installation.set(settings, place, key, value);
    let level = match &probe.finding {
        Finding::Offline | Finding::NoList => Level::Warning,
        finding if finding.is_usable() => Level::Ok,
        _ => Level::Problem,
    };
    let advice = match &probe.finding {
        Finding::Offline => vec![
            format!("hearth config set{} model NAME", installation.option),
            format!("hearth config set{} provider ollama", installation.option),
            "`hearth config keys` lists the other providers".to_owned(),
        ],
        Finding::NoList => vec![format!("hearth chat{} \"hello\"", installation.option)],
        finding if finding.is_usable() => Vec::new(),
        Finding::NoModel { others, .. } => {
            let pull = format!("ollama pull {}", choice.model);
            let pull = (choice.provider == "ollama").then_some(pull);
            let choose = match others.as_slice() {
                [] => "it has no models at all".to_owned(),
                [first, ..] => {
                    format!("{}   (it has {})", set("model", first), others.join(", "))
                }
            };
            pull.into_iter().chain([choose]).collect()
        }
        Finding::NoKey | Finding::BadKey(_) => {
            let variable = preset.and_then(|preset| preset.key_variable);
            let put = |name| format!("or put it into {name} in the server's environment");
            [set("api_key", "-")]
                .into_iter()
                .chain(variable.map(put))
                .collect()
        }
        Finding::NoAddress => vec![set("base_url", "http://HOST:PORT/v1")],
        _ => {
            let preset = preset.filter(|_| choice.base_url.is_none());
            let start = preset.and_then(|preset| preset.quirks.start);
            let start = start.map(|start| format!("start it: {start}"));
            let elsewhere = format!("if it is elsewhere: {}", set("base_url", "URL"));
            start.into_iter().chain([elsewhere]).collect()
        }
    };
    Diagnosis {
        advice,
        ..Diagnosis::new(level, probe.said().to_string())
    }
}

//! Whether each configured model would answer.

use std::thread;
use std::time::Duration;

use super::diagnosis::{Diagnosis, Installation, Level};
use agent::provider::probe::{Finding, Probe, probe};
use config::{Config, ModelChoice, Preset, Settings};
use net::tls::Trust;

/// How long one provider may take to answer.
const LIMIT: Duration = Duration::from_secs(15);

/// Asks all providers at once.
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
        .map(|((place, choice), probe)| diagnose(installation, settings, place, choice, probe))
        .collect()
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
    let key_advice = || {
        let mut advice = vec![set("api_key", "-")];
        if let Some(variable) = preset.and_then(|preset| preset.key_variable) {
            advice.push(format!(
                "or put it into {variable} in the server's environment"
            ));
        }
        advice
    };
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
            let mut advice: Vec<String> = (choice.provider == "ollama")
                .then_some(pull)
                .into_iter()
                .collect();
            advice.push(match others.as_slice() {
                [] => "it has no models at all".to_owned(),
                others => format!(
                    "{}   (it has {})",
                    set("model", &others[0]),
                    others.join(", ")
                ),
            });
            advice
        }
        Finding::NoKey | Finding::BadKey(_) => key_advice(),
        Finding::NoAddress => vec![set("base_url", "http://HOST:PORT/v1")],
        _ => {
            let start = preset.and_then(|preset| preset.quirks.start);
            let mut advice = Vec::new();
            if let (Some(start), None) = (start, &choice.base_url) {
                advice.push(format!("start it: {start}"));
            }
            advice.push(format!("if it is elsewhere: {}", set("base_url", "URL")));
            advice
        }
    };
    Diagnosis {
        check: "",
        level,
        text: probe.to_string(),
        advice,
    }
}

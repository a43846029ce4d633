//! Whether each configured model would answer.

use std::thread;
use std::time::Duration;

use super::{Diagnosis, Level, Scene};
use agent::provider::probe::{Finding, Probe, probe};
use config::{ModelChoice, Preset};
use net::tls::Trust;

/// How long one provider may take to answer.
const LIMIT: Duration = Duration::from_secs(15);

/// Asks all providers at once.
pub fn check(scene: &Scene<'_>) -> Vec<Diagnosis> {
    let config = scene.settings.current();
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let first = config.first_choice();
    let choices: Vec<(String, &ModelChoice)> = std::iter::once((String::new(), &first))
        .chain(
            config
                .fallback
                .iter()
                .enumerate()
                .map(|(index, choice)| (format!("fallback[{index}]."), choice)),
        )
        .collect();
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
        .map(|((place, choice), probe)| diagnose(scene, place, choice, probe))
        .collect()
}

fn diagnose(scene: &Scene<'_>, place: &str, choice: &ModelChoice, probe: Probe) -> Diagnosis {
    let (subject, model) = (&probe.subject, &choice.model);
    let preset = Preset::of(&choice.provider);
    let set = |key: &str, value: &str| match place {
        "" => format!("hearth config set{} {key} {value}", scene.option),
        place => format!("set {place}{key} in {}", scene.settings.path().display()),
    };
    let key_advice = || {
        let mut advice = vec![set("api_key", "-")];
        if let Some(variable) = preset.and_then(|preset| preset.key_variable) {
            advice.push(format!(
                "or put it into {variable} in the server's environment"
            ));
        }
        advice
    };
    let (level, text, advice) = match probe.finding {
        Finding::Offline => (
            Level::Warning,
            "no model is connected: the offline stand-in answers from rules".to_owned(),
            vec![
                format!("hearth config set{} model NAME", scene.option),
                format!("hearth config set{} provider ollama", scene.option),
                "`hearth config keys` lists the other providers".to_owned(),
            ],
        ),
        Finding::Good => {
            let key = match choice.api_key {
                Some(_) => ", accepts the key",
                None => "",
            };
            let text = format!("{subject} answers{key} and has the model {model:?}");
            (Level::Ok, text, Vec::new())
        }
        Finding::NoList => (
            Level::Warning,
            format!("{subject} answers, but does not list its models: {model:?} was not checked"),
            vec![format!("hearth chat{} \"hello\"", scene.option)],
        ),
        Finding::NoModel { others, is_served } => {
            let level = if is_served { Level::Ok } else { Level::Problem };
            let text = match is_served {
                true => format!(
                    "{subject} answers with the model that it has ({}), whatever {model:?} is",
                    others.join(", ")
                ),
                false => format!("{subject} answers, but has no model {model:?}"),
            };
            let mut advice = Vec::new();
            if !is_served {
                if choice.provider == "ollama" {
                    advice.push(format!("ollama pull {model}"));
                }
                match others.as_slice() {
                    [] => advice.push("it has no models at all".to_owned()),
                    others => advice.push(format!(
                        "{}   (it has {})",
                        set("model", &others[0]),
                        others.join(", ")
                    )),
                }
            }
            (level, text, advice)
        }
        Finding::NoKey => (
            Level::Problem,
            format!("{subject} needs an API key, and none is set"),
            key_advice(),
        ),
        Finding::BadKey(said) => (
            Level::Problem,
            format!("{subject} refuses the API key: {said}"),
            key_advice(),
        ),
        Finding::Away(why) => {
            let start = preset.and_then(|preset| preset.quirks.start);
            let mut advice = Vec::new();
            if let (Some(start), None) = (start, &choice.base_url) {
                advice.push(format!("start it: {start}"));
            }
            advice.push(format!("if it is elsewhere: {}", set("base_url", "URL")));
            (Level::Problem, format!("{subject} {why}"), advice)
        }
        Finding::NoAddress => (
            Level::Problem,
            format!("the provider {:?} has no address", choice.provider),
            vec![set("base_url", "http://HOST:PORT/v1")],
        ),
    };
    Diagnosis {
        check: "provider",
        level,
        text,
        advice,
    }
}

//! Whether each configured model can do what Hearth needs of it: it is asked.

use super::diagnosis::{Diagnosis, Installation};
use super::providers::choices;
use agent::model::trial::{Trial, Tried};
use config::Settings;

/// Tries one model after the other, so that two on one machine do not slow each other
/// down. Passes each result on as it comes.
pub fn check(
    installation: &Installation<'_>,
    settings: &Settings,
    note: &mut dyn FnMut(Diagnosis),
) {
    let config = settings.current();
    for (place, choice) in choices(&config) {
        let Some(trial) = Trial::new(&config, &choice) else {
            let text = "no model is connected: there is nothing to ask".to_owned();
            let option = &installation.option;
            note(Diagnosis::warning(text).advise(format!("hearth init{option}")));
            continue;
        };
        let subject = format!("{}, {:?}", trial.subject(), choice.model);
        let question = trial.question();
        let cost_of_question = cost(&question);
        if let Err(what) = question.outcome {
            let text = format!("{subject}: {what} ({cost_of_question})");
            let advice = "`hearth doctor` checks address, key and model";
            note(Diagnosis::problem(text).advise(advice));
            continue;
        }
        let text = format!("{subject}: answers a question ({cost_of_question})");
        note(Diagnosis::ok(text));
        let call = trial.tool_call();
        let cost = cost(&call);
        note(match call.outcome {
            Ok(()) => Diagnosis::ok(format!(
                "{subject}: calls a tool and uses its result ({cost})"
            )),
            Err(what) => {
                Diagnosis::problem(format!("{subject}: cannot use tools: it {what} ({cost})"))
                    .advise("without tools it can only talk: choose a model that is made for them")
                    .advise(installation.set(settings, &place, "model", "NAME"))
                    .advise("vLLM: start it with --enable-auto-tool-choice and --tool-call-parser")
            }
        });
    }
}

/// Time and tokens.
fn cost(tried: &Tried) -> String {
    let seconds = tried.took.as_secs_f64();
    let about = if tried.is_estimated { "about " } else { "" };
    let usage = tried.usage;
    match usage.input + usage.output {
        0 => format!("{seconds:.1} s"),
        _ => format!(
            "{seconds:.1} s, {about}{} tokens in, {} out",
            usage.input, usage.output
        ),
    }
}

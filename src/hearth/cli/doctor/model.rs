//! Whether each configured model can do what Hearth needs of it: it is asked.

use super::diagnosis::{Diagnosis, Installation};
use super::providers::choices;
use agent::provider::trial::{Outcome, Trial, Tried};
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
        let report = Report {
            subject: format!("{}, {:?}", trial.subject, choice.model),
            set: &|key, value| installation.set(settings, &place, key, value),
        };
        let question = trial.question();
        let answers = question.outcome == Outcome::Works;
        note(report.question(&question));
        if !answers {
            continue;
        }
        note(report.tool_call(&trial.tool_call()));
        note(report.image(&trial.image()));
        let (sent, tried) = trial.long_prompt();
        note(report.long_prompt(sent, trial.window(), &tried));
    }
}

/// Words for what came of a model's trial.
struct Report<'a> {
    subject: String,
    /// How to set a key of the model to a value.
    set: &'a dyn Fn(&str, &str) -> String,
}

impl Report<'_> {
    fn question(&self, tried: &Tried) -> Diagnosis {
        self.diagnose("answers a question", tried)
            .unwrap_or_else(|what| {
                self.problem(&what)
                    .advise("`hearth doctor` checks address, key and model")
            })
    }

    fn tool_call(&self, tried: &Tried) -> Diagnosis {
        self.diagnose("calls a tool and uses its result", tried)
            .unwrap_or_else(|what| {
                self.problem(&format!("cannot use tools: it {what}"))
                    .advise("without tools it can only talk: choose a model that is made for them")
                    .advise((self.set)("model", "NAME"))
                    .advise("vLLM: start it with --enable-auto-tool-choice and --tool-call-parser")
            })
    }

    fn image(&self, tried: &Tried) -> Diagnosis {
        let found = self.diagnose("sees a picture", tried);
        found.unwrap_or_else(|what| match tried.outcome {
            Outcome::NoImages | Outcome::Unread { .. } => {
                Diagnosis::warning(format!("{}: sees no pictures: it {what}", self.subject)).advise(
                    "it gets only the names of pictures: choose a model that accepts images",
                )
            }
            _ => self
                .problem(&format!("fails with pictures: it {what}"))
                .advise("choose another model, or send it no pictures"),
        })
    }

    fn long_prompt(&self, sent: usize, window: usize, tried: &Tried) -> Diagnosis {
        let does = format!("reads a long prompt of about {sent} tokens, of a window of {window}");
        self.diagnose(&does, tried).unwrap_or_else(|what| {
            let found = self.problem(&format!(
                "does not read a prompt of about {sent} tokens, although its window has {window}: \
                 it {what}"
            ));
            match tried.outcome {
                Outcome::Cut { counted, .. } => {
                    let size =
                        counted.map_or_else(|| "TOKENS".to_owned(), |tokens| tokens.to_string());
                    found
                        .advise("start its server with a larger window")
                        .advise(format!(
                            "or have Hearth send less: {}",
                            (self.set)("context_tokens", &size)
                        ))
                }
                Outcome::TimedOut(_) => found
                    .advise("long conversations will fail so: raise limits.turn_seconds")
                    .advise(format!(
                        "or have Hearth send less: {}",
                        (self.set)("context_tokens", "8192")
                    )),
                _ => found.advise(format!(
                    "if it is too small to keep track, have Hearth send less: {}",
                    (self.set)("context_tokens", "8192")
                )),
            }
        })
    }

    fn problem(&self, what: &str) -> Diagnosis {
        Diagnosis::problem(format!("{}: {what}", self.subject))
    }

    /// What works.
    ///
    /// # Errors
    /// What the model does instead.
    fn diagnose(&self, does: &str, tried: &Tried) -> Result<Diagnosis, String> {
        let what = match &tried.outcome {
            Outcome::Works => {
                let text = format!("{}: {does} ({})", self.subject, cost(tried));
                return Ok(Diagnosis::ok(text));
            }
            Outcome::Failed(says) => says.clone(),
            Outcome::TimedOut(limit) => format!("did not answer within {} s", limit.as_secs()),
            Outcome::Empty { used_up: true } => {
                "used up the whole reply by thinking: raise max_tokens, or lower reasoning_effort"
                    .to_owned()
            }
            Outcome::Empty { used_up: false } => "answered nothing".to_owned(),
            Outcome::NoCall { said } => format!("answered in words instead of a call: {said}"),
            Outcome::BadCall { arguments } => {
                format!("made a call that nothing can run: {arguments}")
            }
            Outcome::NoImages => "takes none".to_owned(),
            Outcome::Unread { said } => format!("answered without what it was to read: {said}"),
            Outcome::Cut {
                counted: Some(counted),
                ..
            } => format!("read only {counted} tokens of it"),
            Outcome::Cut { counted: None, .. } => "refused it as too long".to_owned(),
        };
        Err(format!("{what} ({})", cost(tried)))
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

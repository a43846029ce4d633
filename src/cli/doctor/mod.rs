//! `hearth doctor`: checks what can be wrong, and says what to do about it.
//!
//! Each family of checks is a file of its own and a line in [`CHECKS`].

mod data;
mod providers;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::data_directory::DataDirectory;
use super::{Context, Failure, Outcome, table};
use crate::config::Settings;

/// What a check may look at.
struct Scene<'a> {
    settings: &'a Settings,
    /// What follows `hearth COMMAND` in advice, for another data directory than
    /// the usual.
    option: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// All is well.
    Ok,
    /// It works, but perhaps not as was meant.
    Warning,
    /// It does not work.
    Problem,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

/// What a check found.
#[derive(Debug)]
struct Diagnosis {
    /// The family of checks.
    check: &'static str,
    level: Level,
    /// What was checked, and how it is.
    text: String,
    /// What to do about it, a line for each step.
    advice: Vec<String>,
}

/// All checks, in the order of the output.
const CHECKS: &[fn(&Scene<'_>) -> Vec<Diagnosis>] = &[configuration, data::check, providers::check];

/// `hearth doctor`
pub fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let directory = DataDirectory::of(arguments, context)?;
    let path = directory.config();
    if !path.exists() {
        return Err(Failure::failed(format!(
            "there is no configuration {}; `hearth serve` writes one at its first start",
            path.display()
        )));
    }
    let diagnoses = match Settings::load(&path) {
        Ok(settings) => {
            let scene = Scene {
                settings: &settings,
                option: match arguments.has("data-dir") {
                    true => format!(" --data-dir {}", directory.path().display()),
                    false => String::new(),
                },
            };
            CHECKS.iter().flat_map(|check| check(&scene)).collect()
        }
        Err(problems) => vec![Diagnosis {
            check: "configuration",
            level: Level::Problem,
            text: problems.to_string(),
            advice: vec![format!("Correct {}", path.display())],
        }],
    };
    let is_sick = diagnoses.iter().any(|found| found.level == Level::Problem);
    if arguments.has("json") {
        let checks: Vec<Value> = diagnoses.iter().map(to_json).collect();
        table::print_json(context, &json!({ "ok": !is_sick, "checks": checks }))?;
    } else {
        for found in &diagnoses {
            print(found, context)?;
        }
    }
    context.output.flush()?;
    if is_sick { Err(Failure::Told) } else { Ok(()) }
}

fn print(found: &Diagnosis, context: &mut Context) -> Outcome {
    let mut lines = found.text.lines();
    let first = lines.next().unwrap_or_default();
    writeln!(context.output, "{:8} {first}", found.level.as_str())?;
    for line in lines {
        writeln!(context.output, "{:8} {line}", "")?;
    }
    for line in &found.advice {
        writeln!(context.output, "{:8}   -> {line}", "")?;
    }
    Ok(())
}

fn to_json(found: &Diagnosis) -> Value {
    json!({
        "check": found.check,
        "level": found.level.as_str(),
        "text": found.text,
        "advice": found.advice,
    })
}

/// What the file's owner should know of it.
fn configuration(scene: &Scene<'_>) -> Vec<Diagnosis> {
    let path = scene.settings.path().display();
    let warnings = scene.settings.warnings();
    if warnings.is_empty() {
        return vec![Diagnosis {
            check: "configuration",
            level: Level::Ok,
            text: format!("{path} is good"),
            advice: Vec::new(),
        }];
    }
    let warning = |text| Diagnosis {
        check: "configuration",
        level: Level::Warning,
        text,
        advice: Vec::new(),
    };
    warnings.into_iter().map(warning).collect()
}

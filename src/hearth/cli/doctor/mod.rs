//! `hearth doctor`: checks what can be wrong, and says what to do about it.
//!
//! Each family of checks is a file of its own and a line in [`CHECKS`].

mod backups;
mod certificate;
mod data;
mod exposure;
mod mcp_servers;
mod providers;
mod relay;
mod server;

use serde_json::Value;

use super::arguments::Arguments;
use super::data_directory::DataDirectory;
use super::{Context, Failure, Outcome, table};
use base::error::without_numbers;
use config::Settings;
use serde_json::json;

/// Where the server lives, which can be looked at whatever the configuration is.
struct Place<'a> {
    directory: &'a DataDirectory,
    /// What follows `hearth COMMAND` in advice, for another data directory than
    /// the usual.
    option: String,
}

/// What a check of the configuration may look at.
struct Scene<'a> {
    place: &'a Place<'a>,
    settings: &'a Settings,
    /// That of the place.
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

impl Diagnosis {
    fn ok(check: &'static str, text: String) -> Diagnosis {
        Diagnosis {
            check,
            level: Level::Ok,
            text: without_numbers(&text),
            advice: Vec::new(),
        }
    }

    fn warning(check: &'static str, text: String) -> Diagnosis {
        Diagnosis {
            level: Level::Warning,
            ..Diagnosis::ok(check, text)
        }
    }

    fn problem(check: &'static str, text: String) -> Diagnosis {
        Diagnosis {
            level: Level::Problem,
            ..Diagnosis::ok(check, text)
        }
    }

    /// With one more line of advice.
    fn advise(mut self, line: impl Into<String>) -> Diagnosis {
        self.advice.push(line.into());
        self
    }
}

/// Checks of the configuration and of what it names, in the order of the output.
const CHECKS: &[fn(&Scene<'_>) -> Vec<Diagnosis>] = &[
    configuration,
    exposure::check,
    certificate::check,
    providers::check,
    mcp_servers::check,
    relay::check,
    backups::check,
];

/// Checks that need no configuration, in the order of the output, after the others.
const PLACE_CHECKS: &[fn(&Place<'_>) -> Vec<Diagnosis>] = &[
    data::directory,
    data::database,
    data::disk,
    data::log,
    data::clock,
    server::check,
];

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
    let place = Place {
        directory: &directory,
        option: match arguments.has("data-dir") {
            true => format!(" --data-dir {}", directory.path().display()),
            false => String::new(),
        },
    };
    let mut diagnoses: Vec<Diagnosis> = match Settings::load(&path) {
        Ok(settings) => {
            let scene = Scene {
                settings: &settings,
                option: place.option.clone(),
                place: &place,
            };
            CHECKS.iter().flat_map(|check| check(&scene)).collect()
        }
        Err(problems) => vec![
            Diagnosis::problem("configuration", problems.to_string())
                .advise(format!("Correct {}", path.display())),
        ],
    };
    diagnoses.extend(PLACE_CHECKS.iter().flat_map(|check| check(&place)));
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
        return vec![Diagnosis::ok("configuration", format!("{path} is good"))];
    }
    let warning = |text| Diagnosis::warning("configuration", text);
    warnings.into_iter().map(warning).collect()
}

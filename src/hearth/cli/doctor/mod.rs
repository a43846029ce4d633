//! `hearth doctor`: checks what can be wrong, and says how to fix it.
//!
//! Each group of checks is a file of its own and a line in [`CHECKS`].

mod backups;
mod certificate;
mod data;
mod diagnosis;
mod exposure;
mod household;
mod mcp_servers;
mod model;
mod providers;
mod relay;
mod telegram;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::{DataDirectory, with_option};
use super::running_server::RunningServer;
use super::table;
use config::Settings;
use diagnosis::{Diagnosis, Installation, Level};
use serde_json::json;

pub const COMMAND: Command = Command::new(
    "\
doctor: Check the installation, and say how to fix what is wrong
Checks the configuration, who can reach the server, what reaches the household's data without
a person, the providers, MCP servers, relays and Telegram, the data directory with its database,
disk, log and clock, and the running server. Each line is ok, a warning or a problem, with advice
on how to fix it. The exit code is 1 if there is a problem.

Each provider is asked whether it accepts the key and has the model; nothing is sent to a model.
The running server is asked how its MCP servers do; without one they are started here, and
stopped again. Keys are looked up in this shell's environment, which may differ from the
server's.
--model  Instead, send the model and each fallback a small question and a tool
         call, and say what works, how long it took and how many tokens.
         Costs what these cost.
--json
--data-dir",
)
.run(run);

type SettingsCheck = fn(&Installation<'_>, &Settings) -> Vec<Diagnosis>;

/// What the checks of the models use.
const MODEL_KEYS: &[&str] = &["provider", "model", "base_url", "api_key", "fallback"];

/// Checks of the configuration and of what it refers to, in the order of the output, with the
/// keys without which there is nothing to check.
const CHECKS: [(&str, &[&str], SettingsCheck); 12] = [
    ("configuration", &[], configuration),
    ("exposure", &["channels"], exposure::check),
    ("port", &["channels"], data::ports),
    ("household", &["channels", "people"], household::check),
    ("tls", &["tls"], certificate::check),
    ("provider", MODEL_KEYS, providers::check),
    ("mcp server", &["mcp_servers"], mcp_servers::check),
    ("skill", &[], mcp_servers::skills),
    ("relay", &["relay", "relays"], relay::check),
    ("telegram", &["channels"], telegram::check),
    ("backup", &["backup"], backups::check),
    ("sandbox", &[], exposure::sandbox),
];

type InstallationCheck = fn(&Installation<'_>) -> Vec<Diagnosis>;

/// Checks that need no configuration, in the order of the output, after the others.
const INSTALLATION_CHECKS: [(&str, InstallationCheck); 6] = [
    ("data directory", data::directory),
    ("database", data::database),
    ("disk space", data::disk),
    ("log", data::log),
    ("clock", data::clock),
    ("server", data::server),
];

/// `hearth doctor`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    // What is wrong with its files is looked at below.
    let directory = DataDirectory::resolve(arguments.raw("data-dir"), context.environment)?;
    let path = directory.config();
    directory.check_is_configured()?;
    let installation = Installation {
        directory: &directory,
        option: directory.option(arguments.has("data-dir")),
    };
    let is_json = arguments.has("json");
    let mut diagnoses: Vec<Diagnosis> = Vec::new();
    let mut printed: CliResult = Ok(());
    let mut note = |name, found: Diagnosis| {
        let found = found.of(name);
        if !is_json && printed.is_ok() {
            // Some checks take long.
            printed = print(&found, context).and_then(|()| Ok(context.output.flush()?));
        }
        diagnoses.push(found);
    };
    // Variables may be set for the server alone: what needs none of them is checked.
    let settings = Settings::load(&path).or_else(|problems| {
        let settings = Settings::open(&path, |name| std::env::var(name).ok());
        match settings.problems().is_empty() {
            true => Ok(settings),
            false => Err(problems),
        }
    });
    let is_set = |settings: &Settings, keys: &[&str]| {
        keys.iter().all(|key| settings.check_is_set(key).is_ok())
    };
    let unset = settings.iter().flat_map(Settings::unset);
    let has_server = RunningServer::find(&directory).is_some();
    for line in unset {
        let text = format!("{line} in this shell");
        let found = match has_server {
            true => Diagnosis::warning(text),
            false => Diagnosis::problem(text),
        };
        let advice = "What uses it is not checked here. Set it in this shell, too, to check that";
        note("configuration", found.advise(advice));
    }
    match &settings {
        Ok(settings) if arguments.has("model") && is_set(settings, MODEL_KEYS) => {
            model::check(&installation, settings, &mut |found| note("model", found));
        }
        Ok(settings) => {
            let checks = CHECKS.into_iter().filter(|_| !arguments.has("model"));
            for (name, keys, check) in checks {
                // A running server is asked how its MCP servers do.
                if !(is_set(settings, keys) || has_server && name == "mcp server") {
                    continue;
                }
                let found = check(&installation, settings).into_iter();
                found.for_each(|found| note(name, found));
            }
        }
        Err(problems) => {
            let found = Diagnosis::problem(problems.to_string());
            let fix = format!("Fix {}", path.display());
            note("configuration", found.advise(fix));
        }
    }
    if !arguments.has("model") {
        for (name, check) in INSTALLATION_CHECKS {
            let found = check(&installation).into_iter();
            found.for_each(|found| note(name, found));
        }
    }
    printed?;
    let has_problem = diagnoses.iter().any(|found| found.level == Level::Problem);
    if is_json {
        table::print_json(context, &json!({ "ok": !has_problem, "checks": diagnoses }))?;
    }
    context.output.flush()?;
    if has_problem {
        Err(CliError::Reported)
    } else {
        Ok(())
    }
}

fn print(found: &Diagnosis, context: &mut CliContext) -> CliResult {
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

/// The warnings about the configuration file.
fn configuration(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let path = settings.path().display();
    let warnings = settings.warnings();
    if warnings.is_empty() {
        return vec![Diagnosis::ok(format!("{path} is valid"))];
    }
    warnings
        .iter()
        .map(|warning| Diagnosis::warning(with_option(warning, &installation.option)))
        .collect()
}

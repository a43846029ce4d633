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

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::{DataDirectory, with_option};
use super::table;
use config::Settings;
use diagnosis::{Diagnosis, Installation, Level};
use serde_json::json;

pub const COMMAND: Command = Command::new(
    "\
doctor: Check the installation, and say how to fix what is wrong
Checks the configuration, who can reach the server, what reaches the household's things without
a person, the providers, MCP servers and relays, the data directory with its database, disk, log
and clock, and the running server. Each line is ok, a warning or a problem, with advice on how to
fix it. The exit code is 1 if there is a problem.

Each provider is asked whether it accepts the key and has the model; nothing is sent to a model.
The running server is asked how its MCP servers do; without one they are started here, and
stopped again. Keys are looked up in this shell's environment, which may differ from the
server's.
--model  Send the model, and each that stands in for it, a small question
         and a tool call instead, and say what works, how long it took and
         how many tokens. Costs what these cost.
--json
--data-dir",
)
.run(run);

type SettingsCheck = fn(&Installation<'_>, &Settings) -> Vec<Diagnosis>;

/// Checks of the configuration and of what it refers to, in the order of the output.
const CHECKS: [(&str, SettingsCheck); 10] = [
    ("configuration", configuration),
    ("exposure", exposure::check),
    ("household", household::check),
    ("tls", certificate::check),
    ("provider", providers::check),
    ("mcp server", mcp_servers::check),
    ("skill", mcp_servers::skills),
    ("relay", relay::check),
    ("backup", backups::check),
    ("sandbox", exposure::sandbox),
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
    let directory = DataDirectory::of(arguments, context)?;
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
    let settings = Settings::load(&path);
    match &settings {
        Ok(settings) if arguments.has("model") => {
            model::check(&installation, settings, &mut |found| note("model", found));
        }
        Ok(settings) => {
            for (name, check) in CHECKS {
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

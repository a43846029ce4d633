//! Whether the configured MCP servers start and have tools: the running server is asked,
//! because its environment may find other programs than this shell. Without one they are
//! started here.

use std::thread;
use std::time::{Duration, Instant};

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::context::CliError;
use crate::cli::door::Door;
use crate::cli::running_server::RunningServer;
use agent::mcp::{Mcp, ServerStatus};
use config::{Config, Settings};
use net::cancel::Cancel;
use serde_json::json;

/// Time limit of their start; npx and uvx download a program first.
const LIMIT: Duration = Duration::from_secs(30);

/// Pause between two questions to a server whose MCP servers are starting.
const PAUSE: Duration = Duration::from_millis(200);

/// How one of them does.
struct Finding {
    name: String,
    state: String,
    tools: u64,
    problem: Option<String>,
}

/// Asks the running server, else starts them all as the server would, lists their tools,
/// and stops them.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    if config.mcp_servers.is_empty() {
        return Vec::new();
    }
    let is_running = RunningServer::find(installation.directory)
        .is_some_and(|server| !server.addresses.is_empty());
    let found = match is_running {
        true => match ask_running(installation, &config) {
            Ok(found) => found,
            Err(error) => return vec![unasked(error.message(), installation)],
        },
        false => start(installation, &config),
    };
    let judge = |finding: Finding| judge(&finding, settings, is_running);
    found.into_iter().map(judge).collect()
}

fn unasked(error: &str, installation: &Installation<'_>) -> Diagnosis {
    let text = format!("the running server does not say how its MCP servers do: {error}");
    let log = installation.directory.log();
    Diagnosis::problem(text).advise(format!("see the end of {}", log.display()))
}

/// What the running server says of them, once each of them has started or failed.
fn ask_running(installation: &Installation<'_>, config: &Config) -> Result<Vec<Finding>, CliError> {
    let deadline = Instant::now() + LIMIT;
    let mut door = Door::at(installation.directory.clone());
    loop {
        let info = door.ask(&json!({"type": "server_info"}))?;
        let of = |name: &str| {
            let servers = info["mcp_servers"].as_array()?;
            servers.iter().find(|server| server["name"] == name)
        };
        let is_starting = |name: &str| of(name).is_some_and(|one| one["state"] == "starting");
        let names = || config.mcp_servers.iter().map(|server| server.name.as_str());
        if Instant::now() < deadline && names().any(is_starting) {
            thread::sleep(PAUSE);
            continue;
        }
        let finding = |name: &str| match of(name) {
            Some(server) => Finding {
                name: name.to_owned(),
                state: server["state"].as_str().unwrap_or_default().to_owned(),
                tools: server["tools"].as_u64().unwrap_or_default(),
                problem: server["problem"].as_str().map(str::to_owned),
            },
            None => Finding {
                name: name.to_owned(),
                state: String::new(),
                tools: 0,
                problem: Some("the running server has not reloaded the configuration".to_owned()),
            },
        };
        return Ok(names().map(finding).collect());
    }
}

fn start(installation: &Installation<'_>, config: &Config) -> Vec<Finding> {
    let mcp = Mcp::new(installation.directory.path().to_owned());
    mcp.apply(config);
    mcp.wait_until_settled(LIMIT, &Cancel::default());
    let statuses = mcp.statuses();
    mcp.stop(true);
    let finding = |status: ServerStatus| Finding {
        name: status.name,
        state: status.state.as_str().to_owned(),
        tools: status.tools as u64,
        problem: status.problem,
    };
    statuses.into_iter().map(finding).collect()
}

fn judge(finding: &Finding, settings: &Settings, is_running: bool) -> Diagnosis {
    let Finding { name, tools, .. } = finding;
    let file = settings.path().display();
    match (finding.state.as_str(), &finding.problem) {
        ("ready", _) => Diagnosis::ok(format!("{name} answers and has {tools} tools")),
        ("disabled", None) => Diagnosis::ok(format!("{name} is disabled")),
        (_, problem) => {
            let why = problem.as_deref().unwrap_or("does not answer in time");
            let found = Diagnosis::problem(format!("{name}: {why}")).advise(format!(
                "correct mcp_servers.{name} in {file}, or set its \"disabled\" to true"
            ));
            match is_running {
                true => found
                    .advise("the server looks for programs in its own PATH: give the whole path"),
                false => found,
            }
        }
    }
}

//! Whether the configured MCP servers start and have tools.

use std::time::Duration;

use super::diagnosis::{Diagnosis, Installation};
use agent::mcp::{Mcp, ServerState, ServerStatus};
use config::Settings;
use net::cancel::Cancel;

/// Time limit of their start; npx and uvx download a program first.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts them all as the server would, lists their tools, and stops them.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    if config.mcp_servers.is_empty() {
        return Vec::new();
    }
    let mcp = Mcp::new(installation.directory.path().to_owned());
    mcp.apply(&config);
    mcp.wait_until_settled(LIMIT, &Cancel::default());
    let statuses = mcp.statuses();
    mcp.stop(true);
    let judge = |status: ServerStatus| {
        let name = &status.name;
        let file = settings.path().display();
        match (status.state, status.problem) {
            (ServerState::Ready, _) => {
                Diagnosis::ok(format!("{name} answers and has {} tools", status.tools))
            }
            (ServerState::Disabled, None) => Diagnosis::ok(format!("{name} is disabled")),
            (_, problem) => {
                let why = problem.unwrap_or_else(|| "does not answer in time".to_owned());
                Diagnosis::problem(format!("{name}: {why}")).advise(format!(
                    "correct mcp_servers.{name} in {file}, or set its \"disabled\" to true"
                ))
            }
        }
    };
    statuses.into_iter().map(judge).collect()
}

//! `hearth relay status`: the state of the links to relays.

use serde_json::Value;

use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::data_directory::DataDirectory;
use crate::cli::door::Door;
use crate::cli::row::{Shown, text, time};
use crate::cli::running_server::RunningServer;
use serde_json::json;

const LINKS: Shown = Shown::Record {
    member: "relays",
    columns: &[
        ("name", |relay| text(&relay["name"])),
        ("relay", |relay| text(&relay["url"])),
        ("state", |relay| text(&relay["state"])),
        ("clients", |relay| text(&relay["clients"])),
        ("next try", |relay| time(&relay["next_try"])),
        ("last error", |relay| text(&relay["last_error"])),
    ],
    empty: "There are no links to relays; add one with `hearth relay join URL`.",
};

/// Shows the links.
pub fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let links = match RunningServer::find(&directory) {
        Some(_) => running(&directory)?,
        None => stopped(&directory)?,
    };
    if let Some(machine) = links["machine_id"].as_str()
        && !arguments.has("json")
    {
        writeln!(context.output, "machine id  {machine}\n")?;
    }
    LINKS.print(&links, arguments, context)
}

/// From the running server.
fn running(directory: &DataDirectory) -> Result<Value, CliError> {
    let info = Door::at(directory.clone()).ask(&json!({"type": "server_info"}))?;
    Ok(json!({ "machine_id": info["machine_id"], "relays": info["relays"] }))
}

/// From the configuration, while no server is running.
fn stopped(directory: &DataDirectory) -> Result<Value, CliError> {
    let settings = directory.settings()?;
    let identity = relay::identity::Identity::load(directory.path()).map_err(CliError::failed)?;
    let config = settings.current();
    let relays = config.relays().map(|channel| {
        json!({
            "name": channel.name,
            "url": channel.url.split('?').next(),
            "state": "stopped",
            "clients": 0,
            "last_error": "the server is not running",
            "next_try": null,
        })
    });
    Ok(json!({
        "machine_id": identity.as_ref().map(|identity| identity.machine_id.as_str()),
        "relays": relays.collect::<Vec<_>>(),
    }))
}

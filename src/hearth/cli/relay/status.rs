//! `hearth relay status`: the state of the links to relays.

use serde_json::Value;

use crate::cli::arguments::Arguments;
use crate::cli::chat::connection::ask_once;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::data_directory::DataDirectory;
use crate::cli::running_server::RunningServer;
use crate::cli::table;
use base::clock::Timestamp;
use serde_json::json;

/// Shows the links.
pub fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let (machine, relays) = match RunningServer::find(&directory) {
        Some(_) => running(arguments, context)?,
        None => stopped(&directory)?,
    };
    if arguments.has("json") {
        return table::print_json(context, &json!({"machine_id": machine, "relays": relays}));
    }
    if let Some(machine) = machine.as_str() {
        writeln!(context.output, "machine id  {machine}\n")?;
    }
    let relays = relays.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Vec<String>> = relays
        .iter()
        .map(|relay| {
            let text = |key: &str| relay[key].as_str().unwrap_or("-").to_owned();
            vec![
                text("name"),
                text("url"),
                text("state"),
                relay["clients"].to_string(),
                readable(&text("next_try")),
                text("last_error"),
            ]
        })
        .collect();
    let columns = [
        "name",
        "relay",
        "state",
        "clients",
        "next try",
        "last error",
    ];
    let nothing = "There are no links to relays; add one with `hearth relay join URL`.";
    table::print(context, &columns, &rows, nothing)
}

/// A time of the wire as people read it; anything else stays as it is.
fn readable(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => table::time(Timestamp::from_millis(time.as_millisecond())),
        Err(_) => text.to_owned(),
    }
}

/// From the running server.
fn running(arguments: &Arguments, context: &mut CliContext) -> Result<(Value, Value), CliError> {
    let info = ask_once(&json!({"type": "server_info"}), arguments, context)?;
    Ok((info["machine_id"].clone(), info["relays"].clone()))
}

/// From the configuration, while no server is running.
fn stopped(directory: &DataDirectory) -> Result<(Value, Value), CliError> {
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
    Ok((
        identity.map_or(Value::Null, |identity| json!(identity.machine_id.as_str())),
        relays.collect(),
    ))
}

//! `hearth relay leave`: removes a relay channel.

use crate::cli::arguments::Arguments;
use crate::cli::channels;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::data_directory::DataDirectory;
use crate::cli::running_server::RunningServer;

/// Ends the link to a relay.
pub fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let directory = DataDirectory::of(arguments, context)?;
    let settings = directory.settings()?;
    let Some(key) = channels::relay_key(&settings, name)? else {
        let config = settings.current();
        let known: Vec<&str> = config
            .relays()
            .map(|channel| channel.name.as_str())
            .collect();
        return Err(CliError::failed(match known.as_slice() {
            [] => "no relay channel is configured; `hearth relay join` adds one".to_owned(),
            known => format!(
                "there is no relay channel {name:?}; there are {}",
                known.join(", ")
            ),
        }));
    };
    settings.set(&key, "null")?;
    let reloaded = RunningServer::reload_if_running(&directory);
    context.note(format_args!(
        "Removed the relay channel {name}; {reloaded}."
    ))?;
    reloaded.end()
}

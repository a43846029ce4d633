//! `hearth relay leave`: removes a relay channel.

use serde_json::Value;

use super::join::named;
use crate::cli::arguments::Arguments;
use crate::cli::config::{channel_path, report, set_value};
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::door::Door;

/// Ends the link to a relay.
pub fn run(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let relays = named(door, "websocket")?;
    if !relays.iter().any(|known| known == name) {
        return Err(CliError::failed(match relays.as_slice() {
            [] => "no relay channel is configured; `hearth relay join` adds one".to_owned(),
            known => format!(
                "there is no relay channel {name:?}; there are {}",
                known.join(", ")
            ),
        }));
    }
    let changed = set_value(door, &channel_path(name), Value::Null)?;
    let done = format!("Removed the relay channel {name}");
    report(door, &done, &changed, arguments, context)
}

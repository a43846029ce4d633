//! `hearth backup`: all data in one file.

use std::path::PathBuf;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::progress::{ProgressLine, count, size};
use crate::service::backups::enclosed;
use base::clock::Clock;
use store::{BackupRequest, back_up};

pub const COMMAND: Command = Command::new(
    "\
backup FILE: Back everything up into one file, even while the server runs
FILE is a database that any SQLite program can open. It appears under its name only after it has
been read back and verified. Its copy of the configuration has *** in place of each secret. The
server makes such backups itself every night (`hearth config keys` explains `backup`).
--with-secrets  Include API keys, passwords and the machine's key
--force         Replace FILE if it exists
--data-dir",
)
.run(run);

/// `hearth backup FILE`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    directory.check_is_used()?;
    let target = PathBuf::from(arguments.required(0));
    directory.check_output(&target)?;
    let with_secrets = arguments.has("with-secrets");
    let (files, left_out) = enclosed(directory.path(), with_secrets, Clock::system().now());
    let line = ProgressLine::stoppable();
    let order = BackupRequest {
        database: &directory.database(),
        target: &target,
        overwrite: arguments.has("force"),
        files,
    };
    let made = back_up(&order, &line.watch()).map_err(CliError::failed)?;
    drop(line);
    if let Some(reason) = left_out {
        writeln!(context.errors, "hearth: {reason}")?;
    }
    context.print(format_args!(
        "Backed up {} in {} to {} ({}), {}.",
        count(made.messages, "message"),
        count(made.conversations, "conversation"),
        target.display(),
        size(made.bytes),
        match with_secrets {
            true => "including all secrets: keep it safe",
            false => "without secrets",
        }
    ))
}

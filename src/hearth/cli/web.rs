//! `hearth web export`: the page as files for another web server.

use std::fs;
use std::io;
use std::path::Path;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use crate::web::Web;

pub const COMMAND: Command = Command::new(
    "\
web: Export the web page, to serve it from elsewhere
The server includes the page; this is for a web server of your own.",
)
.members(&[Command::new(
    "\
export DIR: Write the page's files to a directory
Prints the setting that lets the page talk to Hearth.
--force  Write even if the directory is not empty",
)
.run(export)]);

/// `hearth web export DIR`
fn export(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let folder = Path::new(arguments.required(0));
    let failure = |path: &Path, error: io::Error| CliError::unwritable(path, &error);
    fs::create_dir_all(folder).map_err(|error| failure(folder, error))?;
    let mut entries = fs::read_dir(folder).map_err(|error| failure(folder, error))?;
    if entries.next().is_some() && !arguments.has("force") {
        return Err(CliError::failed(format!(
            "{} is not empty; choose another directory, or overwrite its files with --force",
            folder.display()
        )));
    }
    let files = Web::new().exported();
    let count = files.len();
    for (name, bytes) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failure(parent, error))?;
        }
        fs::write(&path, bytes).map_err(|error| failure(&path, error))?;
    }
    context.print(format_args!(
        "Wrote {count} files to {}. Serve them with any web server, over https: on pages
served over plain http, browsers disable the encryption that a relay needs.

Through a relay the page works without further settings.
To let it talk to Hearth directly, allow the page's origin, for example:

    hearth config set allowed_origins '[\"https://chat.example\"]'

After an update of Hearth, export again with --force.",
        folder.display()
    ))
}

//! `hearth web export`: the page as files for a web server of one's own.

use std::fs;
use std::io;
use std::path::Path;

use super::arguments::{Arguments, flag, required};
use super::command::Command;
use super::context::{Context, Failure, Outcome};
use crate::web::Web;

pub const COMMAND: Command = Command::new("web", "Export the web page, to serve it from elsewhere")
    .details("The server includes the page; this is for a web server of your own.")
    .members(&[
        Command::new("export", "Write the page's files to a directory")
            .details("Prints the setting that lets the page talk to Hearth.")
            .operands(&[required("DIR")])
            .options(&[flag("force", "Write even if the directory is not empty")])
            .run(export),
    ]);

/// `hearth web export DIR`
fn export(arguments: &Arguments, context: &mut Context) -> Outcome {
    let folder = Path::new(arguments.required(0));
    let trouble = |path: &Path, error: io::Error| {
        Failure::failed(format!("{} cannot be written: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| trouble(folder, error))?;
    let mut entries = fs::read_dir(folder).map_err(|error| trouble(folder, error))?;
    if entries.next().is_some() && !arguments.has("force") {
        return Err(Failure::failed(format!(
            "{} is not empty; name another directory, or add --force to write over what is there",
            folder.display()
        )));
    }
    let files = Web::new().exported();
    let count = files.len();
    for (name, bytes) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| trouble(parent, error))?;
        }
        fs::write(&path, bytes).map_err(|error| trouble(&path, error))?;
    }
    writeln!(
        context.output,
        "{count} files are in {}. Serve them with any web server, over https: browsers
withhold the encryption that a relay needs from pages that come over plain http.

Through a relay the page works as it is: the relay takes browsers by their token.
To talk to Hearth directly, permit the page's origin there, for example:

    hearth config set allowed_origins '[\"https://chat.example\"]'

Export again, with --force, after an update of Hearth.",
        folder.display()
    )?;
    Ok(())
}

//! `hearth web` and its members.

use super::declaration::{flag, one};
use super::{Action, Command};
use crate::cli::web;

/// `hearth web`.
pub const WEB: Command = Command {
    name: "web",
    summary: "Export the web page, to serve it from elsewhere",
    details: "The server has the page built in; this is for a web server of your own.",
    operands: &[],
    options: &[],
    action: Action::Group(&[Command {
        name: "export",
        summary: "Write the page's files to a directory",
        details: "Says which setting lets the page talk to Hearth.",
        operands: &[one("DIR")],
        options: &[flag("force", "Write although the directory is not empty")],
        action: Action::Run(web::export),
    }]),
};

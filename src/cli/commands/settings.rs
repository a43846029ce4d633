//! `hearth config` and `hearth web`.

use super::declaration::{flag, one};
use super::{Action, Command, DATA_DIR, JSON, Many, Operand};
use crate::cli::config;
#[cfg(feature = "web")]
use crate::cli::web;

/// `hearth config`.
pub const CONFIG: Command = Command {
    name: "config",
    summary: "Check, read and change the configuration",
    details: "The configuration is the file config.json in the data directory.",
    operands: &[],
    options: &[],
    action: Action::Group(&[
        Command {
            name: "check",
            summary: "Say everything that is wrong with the configuration",
            details: "",
            operands: &[],
            options: &[DATA_DIR],
            action: Action::Run(config::check),
        },
        Command {
            name: "get",
            summary: "Print one setting, or all that may be shown",
            details: "KEY may be dotted, as in tool_permissions.current_time. Secrets are never printed.",
            operands: &[Operand {
                name: "KEY",
                many: Many::ZeroOrOne,
            }],
            options: &[JSON, DATA_DIR],
            action: Action::Run(config::get),
        },
        Command {
            name: "set",
            summary: "Change one setting",
            details: "\
KEY may be dotted, as in limits.turn_seconds. VALUE is JSON, or else a text; null goes back
to the default; `-` reads it from standard input, so that a secret stays out of the shell's
history. A running server is told, and takes it up with the next turn.",
            operands: &[one("KEY"), one("VALUE")],
            options: &[DATA_DIR],
            action: Action::Run(config::set),
        },
        Command {
            name: "path",
            summary: "Print where the configuration is",
            details: "",
            operands: &[],
            options: &[DATA_DIR],
            action: Action::Run(config::path),
        },
        Command {
            name: "keys",
            summary: "Explain every setting",
            details: "",
            operands: &[],
            options: &[JSON],
            action: Action::Run(config::keys),
        },
    ]),
};

/// `hearth web`.
#[cfg(feature = "web")]
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

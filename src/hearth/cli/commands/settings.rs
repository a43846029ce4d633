//! `hearth config` and its members.

use super::declaration::one;
use super::{Action, Command, DATA_DIR, JSON, Many, Operand};
use crate::cli::config;

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

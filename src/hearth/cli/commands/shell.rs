//! What `hearth` prints for the shell and for man.

use super::declaration::one;
use super::{Action, Command};
use crate::cli::{completions, manual};

/// `hearth completions`.
pub const COMPLETIONS: Command = Command {
    name: "completions",
    summary: "Print what completes `hearth` in a shell",
    details: "SHELL is bash, zsh or fish. `make install` puts all three where the shells look for them.",
    operands: &[one("SHELL")],
    options: &[],
    action: Action::Run(completions::run),
};

/// `hearth man`.
pub const MAN: Command = Command {
    name: "man",
    summary: "Print the manual page",
    details: "In the form of man(7): `hearth man | man -l -` shows it, and `make install` installs it.",
    operands: &[],
    options: &[],
    action: Action::Run(manual::run),
};

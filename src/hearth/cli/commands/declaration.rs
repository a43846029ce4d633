//! What a command is declared by.

use crate::cli::arguments::Arguments;
use crate::cli::{Context, Outcome};

/// One command, or a group of them.
pub struct Command {
    pub name: &'static str,
    /// One line, without its full stop.
    pub summary: &'static str,
    /// What else a person should know.
    pub details: &'static str,
    pub operands: &'static [Operand],
    pub options: &'static [Setting],
    pub action: Action,
}

/// What a command does.
pub enum Action {
    Run(fn(&Arguments, &mut Context) -> Outcome),
    Group(&'static [Command]),
    /// Runs, and has members too.
    #[cfg(feature = "relay")]
    Both(fn(&Arguments, &mut Context) -> Outcome, &'static [Command]),
}

impl Action {
    /// The commands that may follow.
    pub fn members(&self) -> &'static [Command] {
        match self {
            Action::Run(_) => &[],
            Action::Group(members) => members,
            #[cfg(feature = "relay")]
            Action::Both(_, members) => members,
        }
    }

    /// What runs when none of them follows.
    pub fn run(&self) -> Option<fn(&Arguments, &mut Context) -> Outcome> {
        match self {
            Action::Run(run) => Some(*run),
            #[cfg(feature = "relay")]
            Action::Both(run, _) => Some(*run),
            Action::Group(_) => None,
        }
    }
}

/// A word that is no option.
pub struct Operand {
    pub name: &'static str,
    pub many: Many,
}

/// How often an operand stands in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Many {
    One,
    ZeroOrOne,
    AnyNumber,
}

/// An option: `--name`, with a value if `value` says what to call it.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub value: Option<&'static str>,
    pub help: &'static str,
    /// Whether it may be given more than once.
    pub repeats: bool,
}

/// An option with a value.
pub const fn option(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        value: Some(value),
        help,
        repeats: false,
    }
}

/// An option without one.
pub const fn flag(name: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        value: None,
        help,
        repeats: false,
    }
}

/// A word that must stand in the line.
pub const fn one(name: &'static str) -> Operand {
    Operand {
        name,
        many: Many::One,
    }
}

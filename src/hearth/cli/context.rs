//! What every command gets and returns: the process around it, and its outcome.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// The parts of the process that a command may use. Tests bring their own.
pub struct CliContext<'a> {
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
    pub input: &'a mut dyn Input,
    pub input_is_terminal: bool,
    pub output_is_terminal: bool,
    pub output: &'a mut dyn Write,
    pub errors: &'a mut dyn Write,
}

impl CliContext<'_> {
    /// An environment variable, if it is set, not empty and UTF-8.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name)
            .and_then(|value| value.into_string().ok())
            .filter(|value| !value.is_empty())
    }

    /// Prints a line of the result.
    pub fn print(&mut self, line: impl fmt::Display) -> CliResult {
        Ok(writeln!(self.output, "{line}")?)
    }

    /// Prints a line for the person, beside the result.
    pub fn note(&mut self, line: impl fmt::Display) -> CliResult {
        Ok(writeln!(self.errors, "{line}")?)
    }
}

/// Standard input or a substitute. It is polled together with a socket, so
/// nothing may buffer it.
pub trait Input: Read + AsFd {}

impl<T: Read + AsFd> Input for T {}

/// The process's standard input without the standard library's buffer, which
/// would hide what it holds from `poll`.
pub struct StandardInput(pub io::Stdin);

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, buffer)?)
    }
}

impl AsFd for StandardInput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Why a command did not succeed.
#[derive(Debug)]
pub enum CliError {
    /// The command line is wrong: exit code 2. Names the command to ask for help.
    Usage { message: String, command: String },
    /// Exit code 1.
    Failed(String),
    /// Exit code 1; the command has printed the reason already.
    Reported,
    /// The reader of our output has closed it: not a failure, exit code 0.
    OutputClosed,
}

impl CliError {
    pub fn failed(message: impl fmt::Display) -> CliError {
        CliError::Failed(message.to_string())
    }

    /// A file that cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> CliError {
        CliError::failed(format!("{} cannot be written: {error}", path.display()))
    }

    /// The reason; empty where it has been printed.
    pub fn message(&self) -> &str {
        match self {
            CliError::Usage { message, .. } | CliError::Failed(message) => message,
            CliError::Reported | CliError::OutputClosed => "",
        }
    }
}

impl From<base::error::Error> for CliError {
    fn from(error: base::error::Error) -> CliError {
        CliError::failed(error.in_full().message())
    }
}

/// For errors of writing to the output. Code that reads or writes files names
/// them in its own errors.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::OutputClosed,
            _ => CliError::Failed(format!("cannot write the output: {error}")),
        }
    }
}

pub type CliResult = Result<(), CliError>;

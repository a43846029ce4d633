//! The command line: finds the command, runs it, and turns what came of it
//! into one line on standard error and an exit code (0, 1 failed, 2 usage).
//!
//! All commands are declared in one table, `commands::COMMANDS`; parsing and
//! every help text come from it.

mod arguments;
mod backup;
mod chat;
mod commands;
mod completions;
mod config;
mod data_directory;
mod deliveries;
mod doctor;
mod export;
mod first_run;
mod health;
mod help;
mod http;
mod import;
mod init;
mod local_models;
mod logging;
mod manual;
mod memory;
mod password;
mod progress;
#[cfg(feature = "relay")]
mod relay;
mod restore;
mod running_server;
mod schedule;
mod search;
mod serve;
mod service_manager;
mod table;
#[cfg(feature = "tls")]
mod tls;
mod token;
mod usage;
mod user;
#[cfg(feature = "web")]
mod web;
mod webhook;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

use arguments::Arguments;

/// Runs one command line (without the program's name) in this process's
/// environment, on its standard streams.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut context = Context {
        environment: &|name| std::env::var_os(name),
        input: &mut StandardInput(io::stdin()),
        input_is_terminal: io::stdin().is_terminal(),
        output_is_terminal: io::stdout().is_terminal(),
        output: &mut io::stdout(),
        errors: &mut io::stderr(),
    };
    ExitCode::from(run_in(arguments.into_iter().collect(), &mut context))
}

/// What a command may touch of the process around it; tests bring their own.
struct Context<'a> {
    environment: &'a dyn Fn(&str) -> Option<OsString>,
    input: &'a mut dyn Input,
    input_is_terminal: bool,
    output_is_terminal: bool,
    output: &'a mut dyn Write,
    errors: &'a mut dyn Write,
}

impl Context<'_> {
    /// An environment variable, if it is set, not empty and UTF-8.
    fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name)
            .and_then(|value| value.into_string().ok())
            .filter(|value| !value.is_empty())
    }
}

/// Standard input, or what stands for it: it can be read, and waited for
/// together with a socket, so nothing may buffer it.
trait Input: Read + AsFd {}

impl<T: Read + AsFd> Input for T {}

/// The process's standard input without the standard library's buffer, which
/// would hide what it holds from `poll`.
struct StandardInput(io::Stdin);

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

/// Why a command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// The command line is wrong: exit code 2. Names the command to ask for help.
    Usage { message: String, command: String },
    /// It was tried and failed: exit code 1.
    Failed(String),
    /// It failed, and has said so already: exit code 1.
    Told,
    /// Whoever read our output has enough of it: no failure, exit code 0.
    OutputClosed,
}

impl Failure {
    fn failed(message: impl fmt::Display) -> Failure {
        Failure::Failed(message.to_string())
    }
}

impl From<base::error::Error> for Failure {
    fn from(error: base::error::Error) -> Failure {
        Failure::failed(error.for_owner())
    }
}

/// For writing to the output; what reads files names them in its own errors.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Failed(format!("the output cannot be written: {error}")),
        }
    }
}

type Outcome = Result<(), Failure>;

/// The version, with the commit that it was built from where that is known.
fn version() -> String {
    match option_env!("HEARTH_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn run_in(arguments: Vec<OsString>, context: &mut Context) -> u8 {
    let outcome =
        dispatch(arguments, context).and_then(|()| context.output.flush().map_err(Failure::from));
    let (code, message) = match outcome {
        Ok(()) | Err(Failure::OutputClosed) => return 0,
        Err(Failure::Told) => return 1,
        Err(Failure::Failed(message)) => (1, message),
        Err(Failure::Usage { message, command }) => (
            2,
            format!("{message} (`{} --help` tells more)", command.trim()),
        ),
    };
    // Nobody is left to tell when standard error is gone too.
    let message = base::error::without_numbers(&message);
    let _ = writeln!(context.errors, "hearth: {message}");
    code
}

fn dispatch(arguments: Vec<OsString>, context: &mut Context) -> Outcome {
    let words: Vec<&str> = arguments.iter().map_while(|word| word.to_str()).collect();
    match words.first().copied() {
        None => {
            return Err(Failure::Usage {
                message: "no command given".to_owned(),
                command: "hearth".to_owned(),
            });
        }
        Some("--help" | "-h") => {
            context.output.write_all(help::overview().as_bytes())?;
            return Ok(());
        }
        Some("--version" | "-V") => {
            writeln!(context.output, "hearth {}", version())?;
            return Ok(());
        }
        Some("help") => {
            let text = match words.get(1) {
                None => help::overview(),
                Some(_) => help::of(&words[1..])?,
            };
            context.output.write_all(text.as_bytes())?;
            return Ok(());
        }
        Some(word) if word.starts_with("--") => {
            return Err(Failure::Usage {
                message: format!("options such as {word} stand behind the command"),
                command: "hearth".to_owned(),
            });
        }
        Some(_) => {}
    }

    let found = commands::find(&words)?;
    let rest = arguments.into_iter().skip(found.words);
    match (found.command.action.run(), Arguments::parse(&found, rest)?) {
        (_, None) | (None, _) => {
            let text = help::of_command(&found.path, found.command);
            context.output.write_all(text.as_bytes())?;
            Ok(())
        }
        (Some(run), Some(arguments)) => run(&arguments, context),
    }
}

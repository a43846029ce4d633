//! The command line: finds the command, runs it, and reports a failure as one line
//! on standard error and an exit code (0, 1 failed, 2 usage).
//!
//! 1. [`run`] takes the words of the command line.
//! 2. `command::find` looks them up in `COMMANDS`. Each command's module
//!    declares its options and its function.
//! 3. `Arguments::parse` checks the remaining words against the declaration.
//! 4. The command sends its request through `door` and shows the response, or does what
//!    has no place in the service.
//!
//! Help, completions and the manual page come from the same table.

mod account;
mod approvals;
mod arguments;
mod avahi;
mod backup;
mod calendar;
mod called;
mod chat;
mod command;
mod completions;
mod config;
mod context;
mod data_directory;
mod doctor;
mod door;
mod export;
mod first_run;
mod health;
mod help;
mod household;
mod http;
mod import;
mod init;
mod local_models;
mod logging;
mod manual;
mod notify;
mod operation;
mod password;
mod progress;
mod prompter;
#[cfg(feature = "relay")]
mod relay;
mod restore;
mod row;
mod running_server;
mod serve;
mod service_manager;
mod skill;
mod table;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
mod token;
mod tool;
mod user;
#[cfg(feature = "web")]
mod web;
mod webhook;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use arguments::Arguments;
use called::Renamed;
use command::{Command, CommandFunction};
use context::{CliContext, CliError, CliResult, StandardInput};
use door::Door;

/// Every command, in the order of the overview.
const COMMANDS: &[Command] = &[
    serve::COMMAND,
    init::COMMAND,
    chat::COMMAND,
    approvals::COMMAND,
    #[cfg(feature = "relay")]
    relay::COMMAND,
    user::COMMAND,
    account::COMMAND,
    token::COMMAND,
    household::SEARCH,
    household::MEMORY,
    household::LIST,
    household::SCHEDULE,
    calendar::COMMAND,
    calendar::TODAY,
    skill::COMMAND,
    tool::COMMAND,
    config::COMMAND,
    #[cfg(feature = "web")]
    web::COMMAND,
    webhook::COMMAND,
    operation::DELIVERIES,
    notify::COMMAND,
    backup::COMMAND,
    restore::COMMAND,
    export::COMMAND,
    import::COMMAND,
    operation::USAGE,
    operation::ERRORS,
    #[cfg(feature = "tls")]
    tls::COMMAND,
    doctor::COMMAND,
    health::COMMAND,
    avahi::COMMAND,
    completions::COMMAND,
    manual::COMMAND,
];

/// The commands whose output says what to do next, in words of ours alone.
const ADVISERS: [&str; 8] = [
    "doctor", "init", "relay", "tls", "token", "tool", "user", "webhook",
];

/// Runs one command line (without the program's name) in this process's
/// environment, on its standard streams.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let (mut output, mut errors) = (io::stdout(), io::stderr());
    let mut renamed = Renamed::new(&mut output, &is_command);
    let mut plain = io::stdout();
    let command = arguments.first().and_then(|word| word.to_str());
    let is_help = arguments
        .last()
        .is_some_and(|word| word == "-h" || word == "--help");
    let mut context = CliContext {
        environment: &|name| std::env::var_os(name),
        input: &mut StandardInput(io::stdin()),
        input_is_terminal: io::stdin().is_terminal(),
        output_is_terminal: io::stdout().is_terminal(),
        output: match command {
            Some(word) if is_help || ADVISERS.contains(&word) => &mut renamed,
            // What others wrote stays as it is.
            _ => &mut plain,
        },
        errors: &mut Renamed::new(&mut errors, &is_command),
    };
    ExitCode::from(run_in(arguments, &mut context))
}

fn is_command(word: &str) -> bool {
    ["help", "--help"].contains(&word) || COMMANDS.iter().any(|one| one.name() == word)
}

fn run_in(arguments: Vec<OsString>, context: &mut CliContext) -> u8 {
    let outcome =
        dispatch(arguments, context).and_then(|()| context.output.flush().map_err(CliError::from));
    let (code, message) = match outcome {
        Ok(()) | Err(CliError::OutputClosed) => return 0,
        Err(CliError::Reported) => return 1,
        Err(CliError::Failed(message)) => (1, message),
        Err(CliError::Usage { message, command }) => {
            (2, format!("{message} (see `{command} --help`)"))
        }
    };
    // If standard error is closed too, nobody can read the message.
    let message = base::error::without_numbers(&message);
    let _ = writeln!(context.errors, "hearth: {message}");
    code
}

fn dispatch(arguments: Vec<OsString>, context: &mut CliContext) -> CliResult {
    let words: Vec<&str> = arguments.iter().map_while(|word| word.to_str()).collect();
    match words.first().copied() {
        None => {
            return Err(CliError::Usage {
                message: "no command given".to_owned(),
                command: "hearth".to_owned(),
            });
        }
        Some("--help" | "-h") => {
            context
                .output
                .write_all(help::overview(COMMANDS).as_bytes())?;
            return Ok(());
        }
        Some("--version" | "-V") => {
            writeln!(context.output, "hearth {}", help::version())?;
            return Ok(());
        }
        Some("__complete") => return completions::complete(&words[1..], context),
        Some("help") => {
            let text = match words.get(1) {
                None => help::overview(COMMANDS),
                Some(_) => help::of_words(COMMANDS, &words[1..], context.output_is_terminal)?,
            };
            context.output.write_all(text.as_bytes())?;
            return Ok(());
        }
        Some(word) if word.starts_with("--") => {
            return Err(CliError::Usage {
                message: format!("put options such as {word} after the command"),
                command: "hearth".to_owned(),
            });
        }
        Some(_) => {}
    }

    let found = command::find(COMMANDS, &words)?;
    let rest = arguments.into_iter().skip(found.words);
    let command = found.command;
    let operands: Option<Vec<&str>> = command.run.map(|_| command.operands().collect());
    let parsed = Arguments::parse(&found.path, &command.options(), operands.as_deref(), rest)?;
    match (command.run, parsed) {
        (_, None) | (None, _) => {
            let text = help::of_command(&found.path, command);
            context.output.write_all(text.as_bytes())?;
            Ok(())
        }
        (Some(CommandFunction::Plain(run)), Some(arguments)) => run(&arguments, context),
        (Some(CommandFunction::Row(row)), Some(arguments)) => row.run(&arguments, context),
        (Some(CommandFunction::Door(configuration, ask)), Some(arguments)) => {
            let mut door = Door::of(configuration, &arguments, context);
            ask(&mut door, &arguments, context)
        }
    }
}

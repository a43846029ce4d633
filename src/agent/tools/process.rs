//! Runs a program to its end for a tool: with input, a deadline and bounded
//! output, in an environment without our keys.

use std::io;
use std::process::Command;
use std::time::Instant;

use super::output::{Captured, Tail};
use net::cancel::Cancel;
use net::process::{ExitReason, Limits, Process, Sandbox, StopMode, Stream, keep_only};

/// What a program inherits of our environment.
pub(crate) const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// Bytes kept of the end of the error output.
const STDERR_BYTES: usize = 4 * 1024;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) end: ExitReason,
    /// The beginning of its standard output.
    pub(crate) stdout: Captured,
    /// The end of its error output.
    pub(crate) stderr: Tail,
}

/// The input and the limits of a run.
pub(crate) struct RunOptions {
    /// What it reads from its standard input.
    pub(crate) input: Vec<u8>,
    /// Most bytes that are kept of its standard output.
    pub(crate) output_bytes: usize,
    /// When it must end.
    pub(crate) deadline: Instant,
    /// As [`Limits::children_may_stay`].
    pub(crate) children_may_stay: bool,
}

/// A command that runs `program` with little of our environment: the rest may
/// hold keys.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    keep_only(&mut command, &INHERITED);
    command
}

/// Runs `command` in its own process group, within `sandbox` if there is one.
///
/// # Errors
/// It cannot be started, or the system refuses to wait for it.
pub(crate) fn run(
    command: &mut Command,
    sandbox: Option<&Sandbox>,
    options: RunOptions,
    cancel: &Cancel,
) -> io::Result<Finished> {
    let process = Process::start(command, sandbox)?;
    let control = process.control().clone();
    control.send(options.input).map_err(io::Error::other)?;
    control.end_input();
    let limits = Limits {
        deadline: Some(options.deadline),
        ends_with_output: false,
        children_may_stay: options.children_may_stay,
    };
    let mut stdout = Captured::new(options.output_bytes);
    let mut stderr = Tail::new(STDERR_BYTES);
    let mut take = |stream, bytes: &[u8]| match stream {
        Stream::Output => stdout.push(bytes),
        Stream::Error => stderr.push(bytes),
    };
    let end = cancel.guard(
        move || control.stop(StopMode::AtOnce),
        || process.run(limits, &mut take),
    )?;
    Ok(Finished {
        end,
        stdout,
        stderr,
    })
}

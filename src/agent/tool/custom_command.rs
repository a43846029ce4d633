//! Custom tools that are programs.

use std::time::Instant;

use super::definition::{Arguments, RunLimit, cancelled};
use super::files::Workspace;
use super::process;
use config::{CustomCommand, CustomTool};
use net::cancel::Cancel;
use net::process::{ExitReason, describe_exit};

/// Runs a program without a shell, with the arguments as JSON on its standard
/// input and its standard output as the result.
pub(super) fn run(
    tool: &CustomTool,
    command: &CustomCommand,
    arguments: &Arguments,
    workspace: &Workspace,
    turn_deadline: Instant,
    cancel: &Cancel,
) -> Result<String, String> {
    let name = &tool.name;
    let limit = RunLimit::new(tool.timeout_seconds, turn_deadline);
    let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let (program, rest) = words
        .split_first()
        .ok_or_else(|| format!("the tool {name:?} names no program"))?;
    let directory = command.directory.as_deref();
    let (directory, sandbox) = workspace.confine(&words, directory, command.sandbox);
    let mut child = process::command(program);
    child.args(rest).current_dir(directory);
    if let Some(sandbox) = &sandbox {
        // It cannot read the owner's, and git and others fail without one.
        child.env("HOME", sandbox.workspace());
    }
    for (name, value) in &command.environment {
        child.env(name, value.expose());
    }
    let mut input = serde_json::to_vec(arguments)
        .map_err(|error| format!("the arguments cannot be written as JSON: {error}"))?;
    // A shell's `read` fails on a line without a line break.
    input.push(b'\n');
    let finished = process::run(
        &mut child,
        sandbox.as_ref(),
        process::RunOptions {
            input,
            output_bytes: tool.output_bytes,
            deadline: limit.deadline,
            // A tool may start the radio.
            children_may_stay: true,
        },
        cancel,
    )
    .map_err(|error| {
        log::warn!("tool {name:?}: {error}");
        format!("the tool {name:?} could not be run: {error}")
    })?;
    match finished.end {
        ExitReason::Exited(status) if status.success() => Ok(finished.stdout.into_text()),
        ExitReason::Exited(status) => {
            let told = match finished.stderr.into_text() {
                // Some programs complain on their standard output.
                text if text.is_empty() => finished.stdout.into_text(),
                text => text,
            };
            let reason = describe_exit(status, "failed");
            Err(format!("the tool {name:?} {reason}: {told}"))
        }
        ExitReason::TimedOut => Err(with_complaint(
            limit.exceeded(name),
            &finished.stderr.into_text(),
        )),
        ExitReason::Stopped | ExitReason::OutputClosed => Err(cancelled(name)),
    }
}

fn with_complaint(sentence: String, complaint: &str) -> String {
    if complaint.is_empty() {
        sentence
    } else {
        format!("{sentence}: {complaint}")
    }
}

#[cfg(test)]
mod tests;

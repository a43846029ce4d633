//! Tools of the configuration: programs and HTTP requests.

use std::sync::Arc;
use std::time::Instant;

use super::custom_http::Request;
use super::definition::{Arguments, Definition, RunLimit, Tool, ToolContext, cancelled};
use super::files::{Workspace, workspace_of};
use super::process;
use base::sync::lock;
use config::{CustomCommand, CustomRun};
use net::cancel::Cancel;
use net::http_client::HttpClient;
use net::process::{ExitReason, describe_exit};

/// A tool of the configuration.
pub(super) struct CustomTool {
    definition: Definition,
    settings: config::CustomTool,
    http_client: Arc<HttpClient>,
}

impl CustomTool {
    /// The tool with these settings; requests are sent by `http_client`.
    pub(super) fn new(settings: &config::CustomTool, http_client: &Arc<HttpClient>) -> CustomTool {
        CustomTool {
            definition: Definition::custom(settings),
            settings: settings.clone(),
            http_client: Arc::clone(http_client),
        }
    }
}

impl Tool for CustomTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        let (tool, deadline, cancel) = (&self.settings, context.deadline, context.cancel);
        match &tool.run {
            CustomRun::Command(command) => {
                let workspace = workspace_of(context, None);
                run(tool, command, arguments, &workspace, deadline, cancel)
            }
            CustomRun::Http(http) => Request {
                is_trial: false,
                tool,
                http,
                arguments,
            }
            .send(&self.http_client, deadline, cancel)
            .map_err(|failure| {
                lock(&context.details).needs_admin = failure.needs_admin;
                failure.text
            }),
        }
    }
}

/// Runs a program without a shell, with the arguments as JSON on its standard
/// input and its standard output as the result.
fn run(
    tool: &config::CustomTool,
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
        ExitReason::TimedOut => Err(match finished.stderr.into_text() {
            text if text.is_empty() => limit.exceeded(name),
            text => format!("{}: {text}", limit.exceeded(name)),
        }),
        ExitReason::Stopped | ExitReason::OutputClosed => Err(cancelled(name)),
    }
}

#[cfg(test)]
mod tests;

//! Custom tools that are programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::definition::{Arguments, Definition, RunLimit, Tool, ToolContext, cancelled};
use super::process;
use base::secret::Secret;
use config::CustomTool;
use net::cancel::Cancel;
use net::process::{ExitReason, describe_exit};

/// Runs a program without a shell, with the arguments as JSON on its standard
/// input and its standard output as the result.
pub(super) struct CommandTool {
    definition: Definition,
    argv: Vec<String>,
    environment: BTreeMap<String, Secret>,
    directory: Option<PathBuf>,
    timeout_seconds: u64,
    output_bytes: usize,
}

impl CommandTool {
    /// The tool of a configuration that runs `argv`.
    pub(super) fn new(
        tool: &CustomTool,
        argv: &[String],
        environment: &BTreeMap<String, Secret>,
        directory: Option<&Path>,
    ) -> CommandTool {
        CommandTool {
            definition: Definition::custom(tool),
            argv: argv.to_owned(),
            environment: environment.clone(),
            directory: directory.map(Path::to_owned),
            timeout_seconds: tool.timeout_seconds,
            output_bytes: tool.output_bytes,
        }
    }

    fn execute(
        &self,
        arguments: &Arguments,
        data_dir: &Path,
        turn_deadline: Instant,
        cancel: &Cancel,
    ) -> Result<String, String> {
        let name = &self.definition.spec.name;
        let limit = RunLimit::new(self.timeout_seconds, turn_deadline);
        let directory = self.directory.as_deref().unwrap_or(data_dir);
        let mut command = self.command(directory)?;
        let mut input = serde_json::to_vec(arguments)
            .map_err(|error| format!("the arguments cannot be written as JSON: {error}"))?;
        // A shell's `read` fails on a line without a line break.
        input.push(b'\n');
        let finished = process::run(
            &mut command,
            process::RunOptions {
                input,
                output_bytes: self.output_bytes,
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

    fn command(&self, directory: &Path) -> Result<Command, String> {
        let (program, rest) = self
            .argv
            .split_first()
            .ok_or_else(|| format!("the tool {:?} names no program", self.definition.spec.name))?;
        let mut command = process::command(program);
        command.args(rest).current_dir(directory);
        for (name, value) in &self.environment {
            command.env(name, value.expose());
        }
        Ok(command)
    }
}

impl Tool for CommandTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        self.execute(
            arguments,
            context.data_dir,
            context.deadline,
            context.cancel,
        )
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

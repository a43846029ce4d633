//! Custom tools that are programs.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use serde_json::{Map, Value};

use super::process::{self, End};
use super::{RunLimit, Source, Tool, ToolContext, cancelled, spec_of};
use crate::model::ToolSpec;
use base::secret::Secret;
use config::CustomTool;
use net::cancel::Cancel;

/// What a program inherits of our own environment. The rest stays here: it may
/// hold keys.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// Where programs are looked for when our own environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that is run without a shell, with the arguments as JSON on its
/// standard input and its standard output as the result.
pub(super) struct CommandTool {
    spec: ToolSpec,
    argv: Vec<String>,
    environment: BTreeMap<String, Secret>,
    directory: Option<PathBuf>,
    is_read_only: bool,
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
            spec: spec_of(tool),
            argv: argv.to_owned(),
            environment: environment.clone(),
            directory: directory.map(Path::to_owned),
            is_read_only: tool.read_only,
            timeout_seconds: tool.timeout_seconds,
            output_bytes: tool.output_bytes,
        }
    }

    fn execute(
        &self,
        arguments: &Map<String, Value>,
        data_dir: &Path,
        turn_deadline: Instant,
        cancel: &Cancel,
    ) -> Result<String, String> {
        let name = &self.spec.name;
        let limit = RunLimit::new(self.timeout_seconds, turn_deadline);
        let directory = self.directory.as_deref().unwrap_or(data_dir);
        let mut command = self.command(directory)?;
        let mut input = serde_json::to_vec(arguments)
            .map_err(|error| format!("the arguments cannot be written as JSON: {error}"))?;
        // A shell's `read` fails on a line without an end.
        input.push(b'\n');
        let finished = process::run(
            &mut command,
            process::Plan {
                input: &input,
                output_bytes: self.output_bytes,
                deadline: limit.deadline,
                // A tool may start the radio.
                children_may_stay: true,
            },
            cancel,
        )
        .map_err(|error| self.cannot_start(directory, &error))?;
        match finished.end {
            End::Exited(status) if status.success() => Ok(finished.stdout.into_text()),
            End::Exited(status) => {
                let told = match finished.stderr.into_text() {
                    // Some programs complain on their standard output.
                    text if text.is_empty() => finished.stdout.into_text(),
                    text => text,
                };
                Err(format!("the tool {name:?} {}: {told}", failure(status)))
            }
            End::TimedOut => Err(with_complaint(
                limit.exceeded(name),
                &finished.stderr.into_text(),
            )),
            End::Cancelled => Err(cancelled(name)),
        }
    }

    fn command(&self, directory: &Path) -> Result<Command, String> {
        let (program, rest) = self
            .argv
            .split_first()
            .ok_or_else(|| format!("the tool {:?} names no program", self.spec.name))?;
        let mut command = Command::new(program);
        command.args(rest).current_dir(directory);
        clear_environment(&mut command);
        for (name, value) in &self.environment {
            command.env(name, value.expose());
        }
        Ok(command)
    }

    fn cannot_start(&self, directory: &Path, error: &std::io::Error) -> String {
        // The system says the same of a missing program and a missing directory.
        let subject = if directory.is_dir() {
            format!("program {:?}", self.argv[0])
        } else {
            format!("directory {directory:?}")
        };
        log::warn!("tool {:?}: {subject}: {error}", self.spec.name);
        format!(
            "the tool {:?} could not be run: {subject}: {error}",
            self.spec.name
        )
    }
}

impl Tool for CommandTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn source(&self) -> Source {
        Source::Custom
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn brings_outside_text(&self) -> bool {
        true
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        context: &ToolContext<'_>,
    ) -> Result<String, String> {
        self.execute(
            arguments,
            context.data_dir,
            context.deadline,
            context.cancel,
        )
    }
}

/// Leaves a program nothing of our environment but what it cannot do without.
pub(super) fn clear_environment(command: &mut Command) {
    command.env_clear().env("PATH", DEFAULT_PATH);
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// How a program that did not succeed ended.
pub(super) fn failure(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
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

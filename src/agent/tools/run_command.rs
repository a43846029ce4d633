//! Shell commands in the workspace, if the owner has enabled them.

use serde_json::json;

use super::definition::{Arguments, Definition, RunLimit, ToolContext, cancelled, required_text};
use super::files::workspace_of;
use super::function::FunctionTool;
use super::output::Captured;
use super::process;
use crate::skills;
use net::process::{ExitReason, describe_exit};

const NAME: &str = "run_command";
const SHELL: &str = "/bin/sh";

/// Runs `/bin/sh -c COMMAND` without input. When the shell exits, everything else
/// in its process group is killed.
pub(super) fn run_command() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            NAME,
            "Run a shell command among your files, without input, when no other tool does it; \
             everybody's are in $SHARED. Returns what it prints, and its exit code if it failed.",
            json!({"command": {"type": "string"}}),
            &["command"],
        )
        .bringing_outside_text(),
        intent: |arguments, approver| {
            let command = arguments.get("command")?.as_str()?;
            approver.intent("action.run_command", &[("command", command)])
        },
        run,
    }
}

fn run(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let text = required_text(arguments, "command")?;
    if text.contains('\0') {
        return Err("a command cannot hold a NUL".to_owned());
    }
    let settings = &context.config.tools.run_command;
    let owner = context.files_of()?;
    context.shows_files_of(owner);
    let workspace = workspace_of(context, owner);
    // Scripts of skills may be read and run.
    let skills = context.data_dir.join(skills::FOLDER);
    let readable: Vec<&str> = skills.to_str().into_iter().collect();
    let (directory, sandbox) = workspace.confine(&readable, Some(&workspace.make()?), true);
    let shared = workspace_of(context, None).make()?;
    let sandbox = sandbox.map(|sandbox| sandbox.and_shared(&shared));
    let limit = RunLimit::new(settings.timeout_seconds, context.deadline);
    let mut command = process::command(SHELL);
    command.args(["-c", text]).current_dir(&directory);
    // The owner's home may hold keys; programs may keep files in the workspace.
    command.env("HOME", &directory).env("PWD", &directory);
    command.env("SHARED", &shared);
    let finished = process::run(
        &mut command,
        sandbox.as_ref(),
        process::RunOptions {
            input: Vec::new(),
            output_bytes: settings.output_bytes,
            deadline: limit.deadline,
            children_may_stay: false,
        },
        context.cancel,
    )
    .map_err(|error| {
        log::warn!("tool {NAME}: {error}");
        format!("the command could not be run: {error}")
    })?;
    let output = both(finished.stdout, finished.stderr.into_text());
    match finished.end {
        ExitReason::Exited(status) if status.success() => Ok(output),
        ExitReason::Exited(status) => {
            let reason = describe_exit(status, "failed");
            Err(format!("the command {reason}\n{output}"))
        }
        ExitReason::TimedOut => Err(format!("{}\n{output}", limit.exceeded(NAME))),
        ExitReason::Stopped | ExitReason::OutputClosed => Err(cancelled(NAME)),
    }
}

/// Standard output and standard error, labelled where there are both.
fn both(stdout: Captured, stderr: String) -> String {
    match (stdout.is_empty(), stderr.is_empty()) {
        (_, true) => stdout.into_text(),
        (true, false) => format!("[error output]\n{stderr}"),
        (false, false) => format!("{}\n[error output]\n{stderr}", stdout.into_text()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::testing::Household;
    use super::*;

    fn household() -> Household {
        let mut household = Household::new();
        household.config.tools.run_command.output_bytes = 1_000;
        household
    }

    #[test]
    fn a_command_runs_in_the_workspace_with_a_clean_environment() {
        let household = household();
        let place = household.directory().join("files").canonicalize();
        let run = |command: &str| household.run_tool(&run_command(), json!({"command": command}));
        assert_eq!(
            run("echo one; echo two >&2"),
            Ok("one\n[error output]\ntwo".to_owned())
        );
        let place = place
            .or_else(|_| household.directory().join("files").canonicalize())
            .unwrap();
        assert_eq!(run("pwd -P"), Ok(place.display().to_string()));
        let names = run("env | cut -d= -f1 | sort | tr '\\n' ' '").unwrap();
        for name in names.split_whitespace() {
            let known = [
                "PATH", "HOME", "LANG", "TZ", "TMPDIR", "SHARED", "PWD", "OLDPWD", "SHLVL", "_",
            ];
            assert!(known.contains(&name), "{names}");
        }
        assert_eq!(
            run("cat"),
            Ok("[no output]".to_owned()),
            "its input is empty"
        );
        assert_eq!(run("true"), Ok("[no output]".to_owned()));
        assert_eq!(
            run("cat nothing 2>/dev/null; exit 3"),
            Err("the command failed with exit code 3\n[no output]".to_owned())
        );
        assert!(run("kill -9 $$").unwrap_err().contains("signal 9"));
        assert!(run(" ").unwrap_err().contains("must not be empty"));
    }

    #[test]
    fn whatever_a_command_does_it_ends_and_is_bounded() {
        let mut household = household();
        let mut run = |seconds, command: &str| {
            household.config.tools.run_command.timeout_seconds = seconds;
            household.run_tool(&run_command(), json!({"command": command}))
        };
        let flood = run(60, "yes | head -c 100000000").unwrap();
        assert!(
            flood.contains("[output cut: only its first 1000 bytes are shown]"),
            "{flood}"
        );
        let binary = run(60, "head -c 100000 /dev/zero").unwrap();
        assert!(binary.starts_with("[binary output of"), "{binary}");
        // A busy machine may need longer to begin than to be given up.
        let hanging = [1, 10, 60].into_iter().find_map(|seconds| {
            let said =
                run(seconds, "trap '' TERM; echo before; sleep 600 & sleep 600").unwrap_err();
            assert!(
                said.contains(&format!("within {seconds} seconds")),
                "{said}"
            );
            said.contains("before").then_some(())
        });
        assert!(hanging.is_some());
    }

    #[test]
    fn nothing_stays_behind() {
        let household = household();
        let started = household.run_tool(
            &run_command(),
            json!({"command": "sleep 600 >/dev/null 2>&1 & echo $!"}),
        );
        let child: i32 = started.unwrap().trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(child).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        // It is killed immediately, but remains visible until init has reaped it.
        while rustix::process::test_kill_process(pid).is_ok() {
            let status = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            if status.is_empty() || status.contains(") Z ") {
                break;
            }
            assert!(Instant::now() < deadline, "{status}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

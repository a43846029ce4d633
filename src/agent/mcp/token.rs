//! A bearer token that a program prints.

use std::time::{Duration, Instant};

use crate::tools::Workspace;
use crate::tools::process::{RunOptions, command, run};
use base::secret::Secret;
use net::cancel::Cancel;
use net::process::ExitReason;

/// How long the program may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Longest token, in bytes.
const TOKEN_BYTES: usize = 8 * 1024;

/// Runs a program, which the owner chose, for the token that it prints.
///
/// # Errors
/// Why there is none, without what it printed.
pub(super) fn token_of(
    words: &[String],
    workspace: &Workspace,
    cancel: &Cancel,
) -> Result<Secret, String> {
    let failed = |why: String| format!("there is no token: \"token_command\" {why}");
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| failed("names no program".to_owned()))?;
    let (directory, _) = workspace.confine(&[], None, false);
    let options = RunOptions {
        input: Vec::new(),
        output_bytes: TOKEN_BYTES,
        deadline: Instant::now() + LIMIT,
        children_may_stay: false,
    };
    let mut command = command(program);
    command.args(arguments).current_dir(directory);
    let finished = run(&mut command, None, options, cancel)
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    match finished.end {
        ExitReason::Exited(status) if status.success() => {}
        ExitReason::Exited(status) => {
            log::debug!("token_command: {}", finished.stderr.into_text());
            return Err(failed(format!("failed with {status}")));
        }
        _ => return Err(failed("took too long or was stopped".to_owned())),
    }
    let printed = finished.stdout.into_bytes();
    let printed = String::from_utf8_lossy(&printed);
    let token = printed.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    match is_token && token.len() < TOKEN_BYTES {
        true => Ok(Secret::new(token)),
        false => Err(failed("printed no token".to_owned())),
    }
}

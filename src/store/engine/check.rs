//! SQLite's own checks of a file, and the progress of what takes long.

use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};

/// Steps of SQLite's virtual machine between two calls of the watcher: a few
/// milliseconds on a small board.
const STEPS: i32 = 20_000;
/// Most faults that are reported of one file.
const FINDINGS: usize = 5;

/// The progress of a long task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing, such as `copying`.
    pub stage: &'static str,
    /// How much is done, in any unit.
    pub done: u64,
    /// How much there is; absent if unknown.
    pub total: Option<u64>,
}

/// Called with the progress of a long task, many times a second and from its
/// thread. The task stops when it returns false.
pub type ProgressWatcher = Arc<dyn Fn(Progress) -> bool + Send + Sync>;

/// Runs `integrity_check` or `quick_check`; none when the watcher stopped it.
pub(crate) fn run_check(
    connection: &mut Connection,
    pragma: &str,
    watch: &ProgressWatcher,
) -> rusqlite::Result<Option<Vec<String>>> {
    let mut done = 0;
    let follow = Arc::clone(watch);
    let handler = move || {
        done += 1;
        let progress = Progress {
            stage: "checking",
            done,
            total: None,
        };
        !follow(progress)
    };
    connection.progress_handler(STEPS, Some(handler))?;
    let findings = findings(connection, pragma);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match findings {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(None)
        }
        findings => findings.map(Some),
    }
}

fn findings(connection: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("{pragma}({FINDINGS})"))?;
    let mut rows = statement.query([])?;
    let mut findings = Vec::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            findings.extend(text.lines().map(str::to_owned));
        }
    }
    // A heading, not a fault.
    findings.retain(|line| !line.starts_with("*** in database"));
    findings.truncate(FINDINGS);
    Ok(findings)
}

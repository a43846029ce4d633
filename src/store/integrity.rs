//! Finding damage: quickly when the server starts, thoroughly when asked.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use super::connection::{self, Purpose};
use super::schema::{Cause, OpenError};

/// Steps of SQLite's machine between two looks at the watcher: some
/// milliseconds on a small board.
const STEPS: i32 = 20_000;
/// Most findings that are told of one file.
const FINDINGS: usize = 5;
/// How long the start may look for damage after a clean stop, and after a crash.
const START_TIME: Duration = Duration::from_secs(1);
const CRASH_TIME: Duration = Duration::from_secs(10);

/// How far long work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is done at the moment, as in `copying`.
    pub stage: &'static str,
    /// How much of it is done, in units of its own.
    pub done: u64,
    /// How much there is; absent where nobody knows.
    pub total: Option<u64>,
}

/// Follows long work; answers whether it is to go on. Called many times a
/// second, from the thread that works.
pub type Watch = Arc<dyn Fn(Progress) -> bool + Send + Sync>;

/// A watcher that lets everything happen.
pub fn unwatched() -> Watch {
    Arc::new(|_| true)
}

/// Reads a whole database and returns what is wrong with it, at most five
/// findings; empty when all is well, none when the watcher stopped it. Works
/// while a server writes to the file, and changes nothing.
///
/// Errors: the file cannot be opened or read.
pub fn check_integrity(path: &Path, watch: &Watch) -> Result<Option<Vec<String>>, OpenError> {
    let checked = open_untouched(path).and_then(|mut connection| {
        connection::prepare(&connection, Purpose::Read)?;
        examine(&mut connection, "PRAGMA integrity_check", watch)
    });
    match checked {
        Err(error) if is_damage(&error) => Ok(Some(vec![error.to_string()])),
        checked => checked.map_err(|error| OpenError::new(path, error)),
    }
}

/// Looks for damage before a server uses the database: at all of it, but no
/// longer than a second, or ten after a crash. Changes nothing; a file that is
/// missing or empty is good.
///
/// Errors: the file is damaged.
pub fn check_at_start(path: &Path) -> Result<(), OpenError> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.len());
    if length(path) == 0 {
        return Ok(());
    }
    // A clean stop leaves an empty write-ahead log, or none.
    let time = match length(&connection::log_of(path)) {
        0 => START_TIME,
        _ => CRASH_TIME,
    };
    let deadline = Instant::now() + time;
    let watch: Watch = Arc::new(move |_| Instant::now() < deadline);
    let checked = open_untouched(path).and_then(|mut connection| {
        connection::prepare(&connection, Purpose::Read)?;
        examine(&mut connection, "PRAGMA quick_check", &watch)
    });
    match checked {
        Ok(findings) => match findings.unwrap_or_default().into_iter().next() {
            Some(finding) => Err(OpenError::new(path, Cause::Inconsistent(finding))),
            None => Ok(()),
        },
        Err(error) if is_damage(&error) => Err(OpenError::new(path, error)),
        // What else there is, opening the database tells better.
        Err(_) => Ok(()),
    }
}

/// Opens the file so that closing it does not write to it either.
fn open_untouched(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connection::open(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Runs `integrity_check` or `quick_check`; none when the watcher stopped it.
pub(super) fn examine(
    connection: &mut Connection,
    pragma: &str,
    watch: &Watch,
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
    // The first line only names the database.
    findings.retain(|line| !line.starts_with("*** in database"));
    findings.truncate(FINDINGS);
    Ok(findings)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

//! Finding damage: quickly when the server starts, thoroughly when asked.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::connection::{self, Purpose};
use crate::schema::{self, Cause, OpenError};
use base::clock::Timestamp;

/// Steps of SQLite's machine between two looks at the watcher: some
/// milliseconds on a small board.
const STEPS: i32 = 20_000;
/// Most findings that are told of one file.
const FINDINGS: usize = 5;
/// Largest file that is read whole at each start, which takes milliseconds. A
/// larger one is read by each nightly backup, and after a crash.
const SMALL_BYTES: u64 = 4 * 1024 * 1024;
/// How long the start may look for damage after a crash.
const CRASH_TIME: Duration = Duration::from_secs(10);
/// How long another program's lock is waited for.
const BUSY_WAIT: Duration = Duration::from_secs(2);

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

/// What was found in a database file.
#[derive(Debug, PartialEq, Eq)]
pub struct Examination {
    /// What is wrong with it, at most five faults.
    pub faults: Vec<String>,
    /// Whether everything was looked at within the time.
    pub is_complete: bool,
    /// When the newest message was stored.
    pub last_message_at: Option<Timestamp>,
}

/// A watcher that lets everything happen.
pub fn unwatched() -> Watch {
    Arc::new(|_| true)
}

/// A watcher that lets work go on for this long.
fn lasting(time: Duration) -> Watch {
    let deadline = Instant::now() + time;
    Arc::new(move |_| Instant::now() < deadline)
}

/// Reads a whole database and returns what is wrong with it, at most five
/// findings; empty when all is well, none when the watcher stopped it. Works
/// while a server writes to the file, and changes nothing.
///
/// # Errors
/// The file cannot be opened or read.
pub fn check_integrity(path: &Path, watch: &Watch) -> Result<Option<Vec<String>>, OpenError> {
    match check(path, "PRAGMA integrity_check", watch) {
        Err(error) if is_damage(&error) => Ok(Some(vec![error.to_string()])),
        checked => checked.map_err(|error| OpenError::new(path, error)),
    }
}

/// Looks for damage before a server uses the database: in a small one always,
/// in a large one after a crash, for at most ten seconds. Changes nothing; a
/// file that is missing or empty is good.
///
/// # Errors
/// The file is damaged.
pub fn check_at_start(path: &Path) -> Result<(), OpenError> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.len());
    // A clean stop leaves an empty write-ahead log, or none.
    let has_crashed = length(&connection::log_of(path)) > 0;
    if length(path) == 0 || (length(path) > SMALL_BYTES && !has_crashed) {
        return Ok(());
    }
    match check(path, "PRAGMA quick_check", &lasting(CRASH_TIME)) {
        Ok(findings) => match findings.unwrap_or_default().into_iter().next() {
            Some(finding) => Err(OpenError::new(path, Cause::Inconsistent(finding))),
            None => Ok(()),
        },
        Err(error) if is_damage(&error) => Err(OpenError::new(path, error)),
        // What else there is, opening the database tells better.
        Err(_) => Ok(()),
    }
}

/// Examines the database at `path` for at most `limit`, without changing it; a
/// server may run on it meanwhile.
///
/// # Errors
/// It is not there, cannot be read, or is not ours.
pub fn examine(path: &Path, limit: Duration) -> Result<Examination, OpenError> {
    let connection = open_to_look(path)?;
    // What is damaged is named below.
    let last_message_at = connection
        .query_row(
            "SELECT created_at FROM messages ORDER BY id DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .ok()
        .map(Timestamp::from_millis);
    let checked = check_integrity(path, &lasting(limit))?;
    Ok(Examination {
        is_complete: checked.is_some(),
        faults: checked.unwrap_or_default(),
        last_message_at,
    })
}

/// Opens a database of ours to read in it.
///
/// # Errors
/// It is not there, cannot be read, or is not ours.
pub(crate) fn open_to_look(path: &Path) -> Result<Connection, OpenError> {
    let failed = |error| OpenError::new(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    schema::check(path, &connection)?;
    Ok(connection)
}

/// Runs a check on a file; none when the watcher stopped it. Closing the file
/// does not write to it either.
fn check(path: &Path, pragma: &str, watch: &Watch) -> rusqlite::Result<Option<Vec<String>>> {
    let mut connection = connection::open(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection::prepare(&connection, Purpose::Read)?;
    run_check(&mut connection, pragma, watch)
}

/// Runs `integrity_check` or `quick_check`; none when the watcher stopped it.
pub(crate) fn run_check(
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::testing::{TempDir, open};

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_whole_file_has_no_faults_while_it_is_open_and_after() {
        let dir = TempDir::new();
        let path = dir.path().join("hearth.db");
        let store = open(&dir);
        let expected = Examination {
            faults: Vec::new(),
            is_complete: true,
            last_message_at: None,
        };
        assert_eq!(examine(&path, LIMIT).unwrap(), expected);
        store.close();
        let before = fs::read(&path).unwrap();
        assert_eq!(examine(&path, LIMIT).unwrap(), expected);
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn what_is_damaged_is_named() {
        let dir = TempDir::new();
        let path = dir.path().join("hearth.db");
        open(&dir).close();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let pages = file.metadata().unwrap().len() / 4096;
        for page in 2..pages {
            file.write_all_at(&[0xff; 4096], page * 4096).unwrap();
        }
        match examine(&path, LIMIT) {
            Ok(found) => assert!(!found.faults.is_empty()),
            Err(error) => assert!(error.to_string().contains("hearth.db"), "{error}"),
        }
    }

    #[test]
    fn what_is_no_database_of_ours_is_an_error() {
        let dir = TempDir::new();
        let path = dir.path().join("hearth.db");
        assert!(examine(&path, LIMIT).is_err(), "there is none");
        assert!(!path.exists(), "and none was made");
        fs::write(&path, "this is a letter to my aunt, not a database").unwrap();
        let error = examine(&path, LIMIT).unwrap_err().to_string();
        assert!(error.contains("not a database"), "{error}");
    }
}

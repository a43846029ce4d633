//! Integrity checks: quick at a start after a crash, thorough on request.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::engine::check::{ProgressWatcher, run_check};
use crate::engine::connection::{self, Purpose};
use crate::engine::schema::{self, Cause, OpenError};
use crate::files;
use base::clock::Timestamp;

/// How long the check after a crash may take.
const CRASH_TIME: Duration = Duration::from_secs(10);
/// How long to wait for the lock of another program.
const BUSY_WAIT: Duration = Duration::from_secs(2);

/// The result of [`examine`].
#[derive(Debug, PartialEq, Eq)]
pub struct Examination {
    /// What is wrong with the file, at most five faults.
    pub faults: Vec<String>,
    /// Whether the check was completed within its time.
    pub is_complete: bool,
    /// When the newest message was stored.
    pub last_message_at: Option<Timestamp>,
    /// Its schema, which an older version may have made.
    pub schema: usize,
    /// How many migrations the next start makes.
    pub missing_migrations: usize,
}

/// A watcher that stops the task after this time.
fn time_limit(time: Duration) -> ProgressWatcher {
    let deadline = Instant::now() + time;
    Arc::new(move |_| Instant::now() < deadline)
}

/// Checks a whole database and returns its faults, at most five; none when the
/// watcher stopped it. A server may be using the file. Changes nothing.
///
/// # Errors
/// The file cannot be opened or read.
pub fn check_integrity(
    path: &Path,
    watch: &ProgressWatcher,
) -> Result<Option<Vec<String>>, OpenError> {
    match check(path, "PRAGMA integrity_check", watch) {
        Err(error) if is_damage(&error) => Ok(Some(vec![error.to_string()])),
        checked => checked.map_err(|error| OpenError::new(path, error)),
    }
}

/// Checks the database before the server opens it, if the last one crashed, for at most
/// ten seconds: otherwise it is read by the nightly backups. Changes nothing. A missing or
/// empty file is not an error. Returns whether it was to be checked.
///
/// # Errors
/// The file is damaged.
pub fn check_after_crash(path: &Path) -> Result<bool, OpenError> {
    let is_empty = |path: &Path| std::fs::metadata(path).map_or(true, |about| about.len() == 0);
    // A clean shutdown leaves no write-ahead log, or an empty one.
    if is_empty(&connection::log_of(path)) || is_empty(path) {
        return Ok(false);
    }
    // Opening the database reports it better. Reading it would leave an index of the
    // log that nobody may write either, even when the file itself may be again.
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        return Ok(true);
    }
    match check(path, "PRAGMA quick_check", &time_limit(CRASH_TIME)) {
        Ok(findings) => match findings.unwrap_or_default().into_iter().next() {
            Some(finding) => Err(OpenError::new(path, Cause::Inconsistent(finding))),
            None => Ok(true),
        },
        Err(error) if is_damage(&error) => Err(OpenError::new(path, error)),
        // Opening the database reports other errors better.
        Err(_) => Ok(true),
    }
}

/// Examines the database at `path` for at most `limit`. A server may be using it.
/// Changes nothing.
///
/// # Errors
/// It does not exist, cannot be read, or is not a database of Hearth.
pub fn examine(path: &Path, limit: Duration) -> Result<Examination, OpenError> {
    let connection = open_to_look(path)?;
    let schema = schema::schema_of(&connection).map_err(|cause| OpenError::new(path, cause))?;
    // The check below reports damage.
    let last_message_at = connection
        .query_row(
            "SELECT created_at FROM messages ORDER BY id DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .ok()
        .map(Timestamp::from_millis);
    let checked = check_integrity(path, &time_limit(limit))?;
    let mut faults = checked.clone().unwrap_or_default();
    if faults.is_empty() {
        // A database of an older version has no such table.
        faults.extend(files::faults(&connection).unwrap_or_default());
    }
    Ok(Examination {
        is_complete: checked.is_some(),
        faults,
        last_message_at,
        schema,
        missing_migrations: schema::newest().saturating_sub(schema),
    })
}

/// Whether an older version has made the database at `path`: opening it upgrades it.
pub fn is_of_older_version(path: &Path) -> bool {
    open_to_look(path)
        .is_ok_and(|it| schema::schema_of(&it).is_ok_and(|schema| schema < schema::newest()))
}

/// Opens a database of Hearth for reading.
///
/// # Errors
/// It does not exist, cannot be read, or is not a database of Hearth.
pub(crate) fn open_to_look(path: &Path) -> Result<Connection, OpenError> {
    let failed = |error| OpenError::new(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    schema::check(path, &connection)?;
    Ok(connection)
}

/// Runs a check on a file; none when the watcher stopped it. Writes nothing, not
/// even on closing.
fn check(
    path: &Path,
    pragma: &str,
    watch: &ProgressWatcher,
) -> rusqlite::Result<Option<Vec<String>>> {
    let mut connection = connection::open(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection::prepare(&connection, Purpose::Read)?;
    run_check(&mut connection, pragma, watch)
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
    use crate::testing::{TemporaryDirectory, open};

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_whole_file_has_no_faults_while_it_is_open_and_after() {
        let dir = TemporaryDirectory::new();
        let path = dir.path().join("hearth.db");
        let store = open(&dir);
        let expected = Examination {
            faults: Vec::new(),
            is_complete: true,
            last_message_at: None,
            schema: schema::newest(),
            missing_migrations: 0,
        };
        assert_eq!(examine(&path, LIMIT).unwrap(), expected);
        store.close();
        let before = fs::read(&path).unwrap();
        assert_eq!(examine(&path, LIMIT).unwrap(), expected);
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn what_is_damaged_is_named() {
        let dir = TemporaryDirectory::new();
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
        let dir = TemporaryDirectory::new();
        let path = dir.path().join("hearth.db");
        assert!(examine(&path, LIMIT).is_err(), "there is none");
        assert!(!path.exists(), "and none was made");
        fs::write(&path, "this is a letter to my aunt, not a database").unwrap();
        let error = examine(&path, LIMIT).unwrap_err().to_string();
        assert!(error.contains("not a database"), "{error}");
    }
}

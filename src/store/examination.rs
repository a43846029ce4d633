//! Looks whether a database file is whole, without changing it; a server may
//! run on it meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::OpenFlags;

use super::Connection;
use super::integrity::{Watch, check_integrity};
use super::schema::{self, OpenError};
use crate::clock::Timestamp;

/// How long another program's lock is waited for.
const BUSY_WAIT: Duration = Duration::from_secs(2);

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

/// Examines the database at `path` for at most `limit`.
///
/// Errors: it is not there, cannot be read, or is not ours.
pub fn examine(path: &Path, limit: Duration) -> Result<Examination, OpenError> {
    let failed = |error| OpenError::new(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    schema::check(path, &connection)?;
    let newest = connection
        .query_row(
            "SELECT created_at FROM messages ORDER BY id DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .map(|millis| Some(Timestamp::from_millis(millis)));
    let last_message_at = match newest {
        Err(rusqlite::Error::QueryReturnedNoRows) => None,
        // What is damaged is named below.
        Err(_) => None,
        Ok(newest) => newest,
    };
    let deadline = Instant::now() + limit;
    let watch: Watch = Arc::new(move |_| Instant::now() < deadline);
    let checked = check_integrity(path, &watch)?;
    Ok(Examination {
        is_complete: checked.is_some(),
        faults: checked.unwrap_or_default(),
        last_message_at,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::store::testing::{TempDir, open};

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

//! Opening connections to the database file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// How long a statement waits for the lock of another program.
pub(crate) const BUSY_WAIT: Duration = Duration::from_millis(5000);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Write,
    Read,
}

/// Opens an existing file without reading it.
///
/// Each connection is used by one thread at a time, so SQLite's own mutex
/// around it is left out.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    // Otherwise SQLite plans a cached statement with LIMIT ? or a range again each
    // time it is bound: a seventh of the work of a chat turn.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// The write-ahead log of the database at `path`.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The index of that log.
pub(crate) fn index_of(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

/// Lets the owner write the log and its index where the file may be written: whoever
/// read a file that nobody might write has left them with its permissions of then.
pub(crate) fn share_permissions(path: &Path) {
    const OWNER_WRITES: u32 = 0o200;
    let mode = |path: &Path| fs::metadata(path).map(|about| about.permissions().mode());
    let Ok(permissions) = mode(path) else { return };
    if permissions & OWNER_WRITES == 0 {
        return;
    }
    for other in [log_of(path), index_of(path)] {
        if mode(&other).is_ok_and(|mode| mode & OWNER_WRITES == 0) {
            // If it fails, opening the database reports that.
            let _ = fs::set_permissions(&other, Permissions::from_mode(permissions & 0o777));
        }
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// A file that a connection has open: its name, and which file that was.
pub(crate) struct OpenFile {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl OpenFile {
    /// The file of a connection that was just opened; none of a database in memory.
    pub fn of(connection: &Connection) -> Option<OpenFile> {
        OpenFile::at(PathBuf::from(connection.path()?))
    }

    /// The file that has this name now.
    fn at(path: PathBuf) -> Option<OpenFile> {
        let device_and_inode = device_and_inode(&path)?;
        Some(OpenFile {
            path,
            device_and_inode,
        })
    }

    /// The write-ahead log of this database, and its index.
    pub fn log_and_index(&self) -> Vec<OpenFile> {
        let beside = [log_of(&self.path), index_of(&self.path)];
        beside.into_iter().filter_map(OpenFile::at).collect()
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it still has this name: it may have been deleted or moved, alone or with
    /// its directory. SQLite does not notice.
    pub fn is_in_place(&self) -> bool {
        device_and_inode(&self.path) == Some(self.device_and_inode)
    }
}

fn device_and_inode(path: &Path) -> Option<(u64, u64)> {
    let about = fs::metadata(path).ok()?;
    Some((about.dev(), about.ino()))
}

/// Sets the PRAGMAs that every connection needs. SQLite stores only `journal_mode`
/// in the file.
///
/// # Errors
/// Those of SQLite; also when it stays without a write-ahead log, which is no error
/// to it.
pub(crate) fn prepare(connection: &Connection, purpose: Purpose) -> rusqlite::Result<()> {
    match purpose {
        Purpose::Write => {
            set_journal_mode(connection, "wal")?;
            // What is deleted is overwritten where its page is written anyway. ON would
            // write each page that becomes free as well, also those of the full-text index.
            connection.execute_batch(
                "PRAGMA synchronous = FULL;
                 PRAGMA secure_delete = FAST;
                 PRAGMA foreign_keys = ON;
                 PRAGMA journal_size_limit = 67108864;
                 PRAGMA wal_autocheckpoint = 0;
                 PRAGMA temp_store = MEMORY;
                 PRAGMA cache_size = -2048;",
            )?;
            connection.set_prepared_statement_cache_capacity(64);
        }
        Purpose::Read => {
            connection.execute_batch(
                "PRAGMA query_only = ON;
                 PRAGMA temp_store = MEMORY;
                 PRAGMA cache_size = -1024;",
            )?;
            connection.set_prepared_statement_cache_capacity(32);
        }
    }
    Ok(())
}

/// Sets how the file is kept safe from a crash: `wal` or `delete`.
///
/// # Errors
/// Those of SQLite; also when the mode stays another, which is no error to it.
pub(crate) fn set_journal_mode(connection: &Connection, mode: &str) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(&format!("PRAGMA journal_mode = {mode}"))?;
    let mut rows = statement.query([])?;
    let mut found = String::new();
    // To the end: the header is written only after the row, and an error of that
    // leaves a connection that damages the file.
    while let Some(row) = rows.next()? {
        found = row.get(0)?;
    }
    if found == mode {
        return Ok(());
    }
    let why = format!("the journal mode stays {found} instead of {mode}");
    let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
    Err(rusqlite::Error::SqliteFailure(error, Some(why)))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::testing::TemporaryDirectory;

    #[test]
    fn the_writer_syncs_every_commit() {
        let dir = TemporaryDirectory::new();
        let path = dir.path().join("a.db");
        std::fs::File::create(&path).unwrap();
        let connection = open(&path).unwrap();
        prepare(&connection, Purpose::Write).unwrap();
        for (name, value) in [
            ("synchronous", 2),
            ("foreign_keys", 1),
            ("busy_timeout", 5000),
            ("journal_size_limit", 67_108_864),
        ] {
            let found: i64 = connection
                .pragma_query_value(None, name, |row| row.get(0))
                .unwrap();
            assert_eq!(found, value, "{name}");
        }
        let mode: String = connection
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn an_index_that_nobody_may_write_does_not_outlast_its_cause() {
        let dir = TemporaryDirectory::new();
        let store = crate::testing::open(&dir);
        let path = dir.path().join("hearth.db");
        store.close();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        let index = index_of(&path);
        fs::write(&index, "").unwrap();
        for (of_file, expected) in [(0o400, 0o400), (0o640, 0o640)] {
            set(&index, 0o400).unwrap();
            set(&path, of_file).unwrap();
            share_permissions(&path);
            assert_eq!(mode(&index), expected);
        }
    }

    #[test]
    fn a_database_without_a_write_ahead_log_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        let error = prepare(&connection, Purpose::Write).unwrap_err();
        let why = "the journal mode stays memory instead of wal";
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn a_cached_statement_is_planned_once() {
        let dir = TemporaryDirectory::new();
        let path = dir.path().join("a.db");
        std::fs::File::create(&path).unwrap();
        let connection = open(&path).unwrap();
        connection
            .execute_batch("CREATE TABLE a (b INTEGER PRIMARY KEY)")
            .unwrap();
        let mut statement = connection
            .prepare_cached("SELECT b FROM a WHERE b < ?1 LIMIT ?2")
            .unwrap();
        for limit in 1..4 {
            let rows = statement.query_map([100, limit], |_| Ok(())).unwrap();
            assert_eq!(rows.count(), 0);
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}

//! Opening connections to the database file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// How long a statement waits for the lock of another program.
const BUSY_WAIT: Duration = Duration::from_millis(5000);

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
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Sets the PRAGMAs that every connection needs. SQLite stores only `journal_mode`
/// in the file.
pub(crate) fn prepare(connection: &Connection, purpose: Purpose) -> rusqlite::Result<()> {
    match purpose {
        Purpose::Write => {
            connection.execute_batch(
                "PRAGMA journal_mode = WAL;
                 PRAGMA synchronous = FULL;
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

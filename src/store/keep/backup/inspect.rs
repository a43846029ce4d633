//! Inspecting a backup, and extracting its database.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::error::BackupError;
use crate::engine::check::{Progress, ProgressWatcher, run_check};
use crate::engine::connection::{log_of, set_journal_mode};
use crate::engine::schema;
use base::files;
use base::url::percent_encode;

/// Bytes that are copied per step.
const CHUNK: usize = 256 * 1024;
/// Largest file of a backup, and the most files: those of skills are among them.
const MOST_BYTES: i64 = 4 * 1024 * 1024;
const MOST_FILES: i64 = 20_000;

/// A file inside a backup.
#[derive(Clone)]
pub struct BackupFile {
    /// Its path below the data directory.
    pub name: String,
    /// All of it, at most 4 MiB.
    pub content: Vec<u8>,
}

/// The contents of a backup or a database.
pub struct BackupContents {
    /// The schema of its tables.
    pub schema: usize,
    /// Conversations in it.
    pub conversations: u64,
    /// Messages in it.
    pub messages: u64,
    /// Its files; none in a plain database.
    pub files: Vec<BackupFile>,
}

impl BackupContents {
    /// The text of one of its files.
    pub fn text(&self, name: &str) -> Option<&str> {
        let file = self.files.iter().find(|file| file.name == name)?;
        std::str::from_utf8(&file.content).ok()
    }
}

/// Inspects a backup, or a database that nobody uses, and checks all of it if
/// `thoroughly`. Changes nothing.
///
/// # Errors
/// It cannot be read, is not a file of Hearth, was made by a newer version, or is
/// damaged; or the watcher stopped it.
pub fn inspect(
    path: &Path,
    thoroughly: bool,
    watch: &ProgressWatcher,
) -> Result<BackupContents, BackupError> {
    let about = fs::metadata(path).map_err(|error| BackupError::io(path, "read", &error))?;
    if !about.is_file() || about.len() == 0 {
        return Err(BackupError::Foreign(path.to_owned()));
    }
    let unread = |error: rusqlite::Error| BackupError::sql(path, "read", &error);
    let mut connection = open(path).map_err(unread)?;
    let schema =
        schema::schema_of(&connection).map_err(|cause| BackupError::refusal(path, cause))?;
    if schema == 0 {
        return Err(BackupError::Foreign(path.to_owned()));
    }
    if thoroughly {
        let findings =
            run_check(&mut connection, "PRAGMA integrity_check", watch).map_err(unread)?;
        match findings {
            None => return Err(BackupError::Stopped),
            Some(findings) if findings.is_empty() => {}
            Some(findings) => {
                return Err(BackupError::Damaged {
                    path: path.to_owned(),
                    findings,
                });
            }
        }
    }
    let (conversations, messages) = counts(&connection).map_err(unread)?;
    Ok(BackupContents {
        schema,
        conversations,
        messages,
        files: files(&connection).map_err(unread)?,
    })
}

/// Opens a file without creating others next to it, even on a read-only disk
/// (<https://www.sqlite.org/uri.html>, `immutable`). One with a write-ahead log is
/// opened as a database.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if fs::metadata(log_of(path)).is_ok_and(|about| about.len() > 0) {
        return Connection::open_with_flags(path, flags);
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = percent_encode(absolute.as_os_str().as_bytes(), |byte| {
        byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte)
    });
    let uri = format!("file:{path}?immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

/// Conversations and messages.
fn counts(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    let count = |table| {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0))
    };
    Ok((count("conversations")?, count("messages")?))
}

fn files(connection: &Connection) -> rusqlite::Result<Vec<BackupFile>> {
    let has_files: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'backup_files')",
        [],
        |row| row.get(0),
    )?;
    if !has_files {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(
        "SELECT name, CAST(content AS BLOB) FROM backup_files WHERE length(content) <= ?1 LIMIT ?2",
    )?;
    let rows = statement.query_map([MOST_BYTES, MOST_FILES], |row| {
        Ok(BackupFile {
            name: row.get(0)?,
            content: row.get(1)?,
        })
    })?;
    rows.collect()
}

/// Copies the database of a backup, or a database with its write-ahead log, to a new
/// file (mode 0600), syncs and verifies it. The file must not exist.
///
/// # Errors
/// As [`inspect`], or the copy cannot be written. The caller removes what was
/// written.
pub fn unpack(
    backup: &Path,
    database: &Path,
    watch: &ProgressWatcher,
) -> Result<BackupContents, BackupError> {
    let contents = inspect(backup, false, watch)?;
    copy(backup, database, watch)?;
    if fs::metadata(log_of(backup)).is_ok_and(|about| about.len() > 0) {
        copy(&log_of(backup), &log_of(database), watch)?;
    }
    let unwritten = |error: rusqlite::Error| BackupError::sql(database, "written", &error);
    let connection = Connection::open(database).map_err(unwritten)?;
    set_journal_mode(&connection, "delete")
        .and_then(|()| connection.execute_batch("DROP TABLE IF EXISTS backup_files;"))
        .map_err(unwritten)?;
    connection.close().map_err(|(_, error)| unwritten(error))?;
    let found = inspect(database, true, watch).map_err(|error| match error {
        BackupError::Damaged { findings, .. } => BackupError::Damaged {
            path: backup.to_owned(),
            findings,
        },
        error => error,
    })?;
    Ok(BackupContents {
        files: contents.files,
        ..found
    })
}

fn copy(from: &Path, to: &Path, watch: &ProgressWatcher) -> Result<(), BackupError> {
    let unread = |error| BackupError::io(from, "read", &error);
    let unwritten = |error| BackupError::io(to, "written", &error);
    let mut source = File::open(from).map_err(unread)?;
    let total = source.metadata().map_err(unread)?.len();
    let mut target = files::create(to).map_err(unwritten)?;
    let mut buffer = vec![0; CHUNK];
    let mut done = 0;
    loop {
        let count = source.read(&mut buffer).map_err(unread)?;
        if count == 0 {
            return target.sync_all().map_err(unwritten);
        }
        target.write_all(&buffer[..count]).map_err(unwritten)?;
        done += count as u64;
        let progress = Progress {
            stage: "copying",
            done,
            total: Some(total),
        };
        if !watch(progress) {
            return Err(BackupError::Stopped);
        }
    }
}

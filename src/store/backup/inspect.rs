//! Looking into a backup, and taking the database out of it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{BackupError, Enclosed, counts};
use crate::connection::log_of;
use crate::integrity::{Progress, Watch, run_check};
use crate::schema;

/// Bytes that are copied at a time.
const CHUNK: usize = 256 * 1024;
/// Largest file that is taken out of a backup, and how many there may be.
const MOST_BYTES: i64 = 1024 * 1024;
const MOST_FILES: i64 = 16;

/// What a backup, or a database, holds.
pub struct Contents {
    /// The schema of its tables.
    pub schema: usize,
    /// Conversations in it.
    pub conversations: u64,
    /// Messages in it.
    pub messages: u64,
    /// What it holds beside the database; nothing in a plain database.
    pub files: Vec<Enclosed>,
}

impl Contents {
    /// The text of a file in it.
    pub fn text(&self, name: &str) -> Option<&str> {
        let file = self.files.iter().find(|file| file.name == name)?;
        std::str::from_utf8(&file.content).ok()
    }
}

/// Looks into a backup or a database that nobody uses, and reads all of it when
/// `thoroughly`. Writes nothing to it.
///
/// # Errors
/// It cannot be read, is not one of ours, was made by a newer Hearth, or
/// is damaged; the watcher stopped it.
pub fn inspect(path: &Path, thoroughly: bool, watch: &Watch) -> Result<Contents, BackupError> {
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
    Ok(Contents {
        schema,
        conversations,
        messages,
        files: files(&connection).map_err(unread)?,
    })
}

/// Opens a file without leaving anything beside it, also on a disk that cannot
/// be written (<https://www.sqlite.org/uri.html>, `immutable`). One that has a
/// write-ahead log beside it is opened as what it is: a database.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if fs::metadata(log_of(path)).is_ok_and(|about| about.len() > 0) {
        return Connection::open_with_flags(path, flags);
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for &byte in absolute.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri.push_str("?immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

fn files(connection: &Connection) -> rusqlite::Result<Vec<Enclosed>> {
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
        Ok(Enclosed {
            name: row.get(0)?,
            content: row.get(1)?,
        })
    })?;
    rows.collect()
}

/// Copies the database out of a backup, or out of a database with its
/// write-ahead log, to a new file for its owner alone; what the copy holds is
/// read and found whole, and on disk. The file must not exist.
///
/// # Errors
/// As [`inspect`], or the copy cannot be written; what was written of
/// it stays for the caller to remove.
pub fn unpack(backup: &Path, database: &Path, watch: &Watch) -> Result<Contents, BackupError> {
    let contents = inspect(backup, false, watch)?;
    copy(backup, database, watch)?;
    if fs::metadata(log_of(backup)).is_ok_and(|about| about.len() > 0) {
        copy(&log_of(backup), &log_of(database), watch)?;
    }
    let unwritten = |error: rusqlite::Error| BackupError::sql(database, "written", &error);
    let connection = Connection::open(database).map_err(unwritten)?;
    connection
        .execute_batch("PRAGMA journal_mode = DELETE; DROP TABLE IF EXISTS backup_files;")
        .map_err(unwritten)?;
    connection.close().map_err(|(_, error)| unwritten(error))?;
    let found = inspect(database, true, watch).map_err(|error| match error {
        BackupError::Damaged { findings, .. } => BackupError::Damaged {
            path: backup.to_owned(),
            findings,
        },
        error => error,
    })?;
    Ok(Contents {
        files: contents.files,
        ..found
    })
}

fn copy(from: &Path, to: &Path, watch: &Watch) -> Result<(), BackupError> {
    let unread = |error| BackupError::io(from, "read", &error);
    let unwritten = |error| BackupError::io(to, "written", &error);
    let mut source = File::open(from).map_err(unread)?;
    let total = source.metadata().map_err(unread)?.len();
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .map_err(unwritten)?;
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

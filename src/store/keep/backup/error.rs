//! Why a backup could not be made or used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::engine::schema::{Cause, OpenError};

/// Why a backup could not be made or used. The text names the file and what to do.
#[derive(Debug)]
pub enum BackupError {
    /// The database to copy cannot be opened.
    Source(OpenError),
    /// The file exists.
    Exists(PathBuf),
    /// Another backup to the same file is running.
    Busy(PathBuf),
    /// The disk of this file is full.
    Full(PathBuf),
    /// This file cannot be read or written.
    File {
        /// Its path.
        path: PathBuf,
        /// What was tried, such as `written`.
        tried: &'static str,
        /// What the system or SQLite said.
        reason: String,
    },
    /// The file is neither a backup nor a database of Hearth.
    Foreign(PathBuf),
    /// A newer Hearth made the file.
    Newer {
        /// Its path.
        path: PathBuf,
        /// Its schema.
        schema: i32,
    },
    /// The file is damaged.
    Damaged {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        findings: Vec<String>,
    },
    /// The database that was copied is damaged.
    Copied {
        /// What is wrong with it.
        findings: Vec<String>,
    },
    /// The watcher stopped it.
    Stopped,
}

impl BackupError {
    /// From an I/O error.
    pub(super) fn io(path: &Path, tried: &'static str, error: &io::Error) -> BackupError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                BackupError::Full(path.to_owned())
            }
            io::ErrorKind::AlreadyExists => BackupError::Exists(path.to_owned()),
            _ => BackupError::File {
                path: path.to_owned(),
                tried,
                reason: error.to_string(),
            },
        }
    }

    /// From an error of SQLite.
    pub(super) fn sql(path: &Path, tried: &'static str, error: &rusqlite::Error) -> BackupError {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => BackupError::Full(path),
            Some(ErrorCode::NotADatabase) => BackupError::Foreign(path),
            Some(ErrorCode::DatabaseCorrupt) => BackupError::Damaged {
                path,
                findings: vec![error.to_string()],
            },
            _ => BackupError::File {
                path,
                tried,
                reason: error.to_string(),
            },
        }
    }

    /// The error for a file that this version cannot use, by its cause.
    pub(super) fn refusal(path: &Path, cause: Cause) -> BackupError {
        match cause {
            Cause::Newer(schema) => BackupError::Newer {
                path: path.to_owned(),
                schema,
            },
            Cause::Damaged(error) | Cause::Sql(error) => BackupError::sql(path, "read", &error),
            _ => BackupError::Foreign(path.to_owned()),
        }
    }
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Source(error) => write!(f, "{error}"),
            BackupError::Exists(path) => write!(
                f,
                "{} already exists; choose another name, or replace it with --force",
                path.display()
            ),
            BackupError::Busy(path) => write!(
                f,
                "another backup to {} is running; wait until it ends",
                path.display()
            ),
            BackupError::Full(path) => write!(
                f,
                "{} cannot be written, the disk is full: make space, or choose another disk",
                path.display()
            ),
            BackupError::File {
                path,
                tried,
                reason,
            } => write!(f, "{} cannot be {tried}: {reason}", path.display()),
            BackupError::Foreign(path) => write!(
                f,
                "{} is neither a backup nor a database of Hearth",
                path.display()
            ),
            BackupError::Newer { path, schema } => write!(
                f,
                "{} was made by a newer Hearth (schema {schema}): install that version first",
                path.display()
            ),
            BackupError::Damaged { path, findings } => write!(
                f,
                "{} is damaged ({}): use another backup",
                path.display(),
                findings.join("; ")
            ),
            BackupError::Copied { findings } => write!(
                f,
                "the database is damaged ({}): restore an earlier backup",
                findings.join("; ")
            ),
            BackupError::Stopped => f.write_str("stopped before it was complete"),
        }
    }
}

impl std::error::Error for BackupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BackupError::Source(error) => Some(error),
            _ => None,
        }
    }
}

//! What can go wrong inside a database job, and what the caller is told of it.

use rusqlite::ErrorCode;

use base::error::Error;

/// Why a job failed. `?` makes one of a refusal as well as of an SQL error.
#[derive(Debug)]
pub(super) enum Failure {
    /// The request cannot be done, and the caller is told why.
    Refused(Error),
    /// SQLite failed; the caller learns only that, the log learns what.
    Sql(Box<rusqlite::Error>),
}

/// What a database job returns.
pub(super) type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Refused(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Sql(Box::new(error))
    }
}

impl Failure {
    /// What a caller who wanted to read is told.
    pub fn on_read(self) -> Error {
        match self {
            Failure::Refused(error) => error,
            Failure::Sql(error) if is_busy(&error) => busy(),
            Failure::Sql(error) => Error::server("the database could not be read", detail(&error)),
        }
    }

    /// What a caller who wanted to write is told.
    pub fn on_write(self) -> Error {
        match self {
            Failure::Refused(error) => error,
            Failure::Sql(error) if is_busy(&error) => busy(),
            Failure::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                Error::server(
                    "the database could not be written: the disk is full",
                    detail(&error),
                )
                .with_status(503)
            }
            Failure::Sql(error) => {
                let status = if is_storage_fault(&error) { 503 } else { 500 };
                Error::server("the database could not be written", detail(&error))
                    .with_status(status)
            }
        }
    }
}

/// Whether the disk or the file is at fault rather than the statement.
pub(super) fn is_storage_fault(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::CannotOpen
                | ErrorCode::NotADatabase
                | ErrorCode::PermissionDenied
        )
    )
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn busy() -> Error {
    Error::overloaded("the database is busy: another program is using it", 1)
}

/// SQLite's words with its extended code, which tells one I/O error from another.
fn detail(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(sqlite) => format!("{error} (SQLite code {})", sqlite.extended_code),
        None => error.to_string(),
    }
}

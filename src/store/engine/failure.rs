//! What can go wrong inside a database job, and the error that the caller gets.

use rusqlite::ErrorCode;
use rusqlite::types::FromSqlError;

use base::error::{Code, Error};
use base::language::Said;

/// Why a job failed. `?` converts both our own errors and those of SQLite.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request is invalid; the caller gets this error.
    Refused(Error),
    /// SQLite failed; the details go to the log only.
    Sql(Box<rusqlite::Error>),
}

/// After how many seconds a client should try again what the disk refused.
const RETRY_SECONDS: u32 = 10;

/// What a database job returns.
pub(crate) type Outcome<T> = Result<T, Failure>;

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

impl From<FromSqlError> for Failure {
    fn from(error: FromSqlError) -> Failure {
        rusqlite::Error::from(error).into()
    }
}

/// The error for a caller of a read.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        failure.on_read()
    }
}

impl Failure {
    /// The error for a caller of a read.
    pub fn on_read(self) -> Error {
        match self {
            Failure::Refused(error) => error,
            Failure::Sql(error) if is_busy(&error) => busy(),
            Failure::Sql(error) => server("error.database.unread", &error),
        }
    }

    /// The error for a caller of a write.
    pub fn on_write(self) -> Error {
        match self {
            Failure::Refused(error) => error,
            Failure::Sql(error) if is_busy(&error) => busy(),
            Failure::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                Error::server(Said::of("error.database.full", &[]), detail(&error))
                    .with_status(503)
                    .with_retry_after(RETRY_SECONDS)
            }
            Failure::Sql(error) => server("error.database.unwritten", &error),
        }
    }
}

/// To be tried again where the machine caused it: it may have room or descriptors then.
fn server(key: &'static str, error: &rusqlite::Error) -> Error {
    let refused = Error::server(Said::of(key, &[]), detail(error));
    match is_storage_fault(error) {
        true => refused
            .with_status(503)
            .with_retry_after(RETRY_SECONDS)
            .of_storage(),
        false => refused,
    }
}

/// Whether the disk or the file caused it rather than the statement.
pub(crate) fn is_storage_fault(error: &rusqlite::Error) -> bool {
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

/// Whether another program holds a lock on the file.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn busy() -> Error {
    Error::overloaded("the database is busy: another program is using it", 1).of_storage()
}

/// SQLite's message with its extended code, which distinguishes I/O errors.
fn detail(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(sqlite) => format!("{error} (SQLite code {})", sqlite.extended_code),
        None => error.to_string(),
    }
}

/// The error of a write that is not tried, because the last one failed.
pub(crate) fn unwritable() -> Error {
    unavailable("error.database.unwritable")
}

/// The error of every call after `Store::close`.
pub(crate) fn closed() -> Error {
    unavailable("error.database.closed")
}

fn unavailable(key: &'static str) -> Error {
    let error = Error::worded(Code::ServerError, key, &[]);
    error.with_status(503).with_retry_after(RETRY_SECONDS)
}

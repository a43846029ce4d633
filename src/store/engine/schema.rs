//! Opening a database file, recognising ours, and migrating its schema.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, MAIN_DB, TransactionBehavior};

use crate::engine::connection::{self, Purpose};
use crate::engine::failure::Failure;
use base::files;

/// `Hrth`: identifies our files in their header.
pub(crate) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Hrth");

/// 3.51.3, the first version without the WAL-reset bug
/// (<https://www.sqlite.org/wal.html#walresetbug>).
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long to retry while another process is creating or closing the file.
const OPEN_WAIT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const OPEN_RETRY: Duration = Duration::from_millis(10);

/// Entry N migrates a file from schema N to N + 1. Released entries never change,
/// because existing files were made by them.
const MIGRATIONS: [&str; 49] = [
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004_imports.sql"),
    include_str!("../migrations/0005_schedules.sql"),
    include_str!("../migrations/0006_model_api.sql"),
    include_str!("../migrations/0007_sign_ins.sql"),
    include_str!("../migrations/0008.sql"),
    include_str!("../migrations/0009_audiences.sql"),
    include_str!("../migrations/0010_approvals.sql"),
    include_str!("../migrations/0011_late_replies.sql"),
    include_str!("../migrations/0012_attachments.sql"),
    include_str!("../migrations/0013_invitations.sql"),
    include_str!("../migrations/0014_usage_and_uploads.sql"),
    include_str!("../migrations/0015_narrow_uploads.sql"),
    include_str!("../migrations/0016_compared_memories.sql"),
    include_str!("../migrations/0017_tokens_for_others.sql"),
    include_str!("../migrations/0018_lists.sql"),
    include_str!("../migrations/0019_surfaces.sql"),
    include_str!("../migrations/0020_shown.sql"),
    include_str!("../migrations/0021_kept_results.sql"),
    include_str!("../migrations/0022_tool_files.sql"),
    include_str!("../migrations/0023_memory_vectors.sql"),
    include_str!("../migrations/0024_versions.sql"),
    include_str!("../migrations/0025_turn_ends.sql"),
    include_str!("../migrations/0026_told_memories.sql"),
    include_str!("../migrations/0027_notifications.sql"),
    include_str!("../migrations/0028_push_subscriptions.sql"),
    include_str!("../migrations/0029_schedules_from_outside.sql"),
    include_str!("../migrations/0030_lasting_keys.sql"),
    include_str!("../migrations/0031_search_words.sql"),
    include_str!("../migrations/0032_questions.sql"),
    include_str!("../migrations/0033_questions_end.sql"),
    include_str!("../migrations/0034_credentials.sql"),
    include_str!("../migrations/0035_deliveries_of_accounts.sql"),
    include_str!("../migrations/0036_outside_speakers.sql"),
    include_str!("../migrations/0037_ranked_search.sql"),
    include_str!("../migrations/0038_usage_by_purpose.sql"),
    include_str!("../migrations/0039_title_terms.sql"),
    include_str!("../migrations/0040_sources_of_questions.sql"),
    include_str!("../migrations/0041_calendars.sql"),
    include_str!("../migrations/0042_routines.sql"),
    include_str!("../migrations/0043_senders.sql"),
    include_str!("../migrations/0044_senders_and_prompts.sql"),
    include_str!("../migrations/0045_index_later.sql"),
    include_str!("../migrations/0046_reminders_for_others.sql"),
    include_str!("../migrations/0047_message_vectors.sql"),
    include_str!("../migrations/0048_languages.sql"),
    include_str!("../migrations/0049_household_tokens.sql"),
];

/// Why a database cannot be opened. The text names the path and what to do.
#[derive(Debug)]
pub struct OpenError {
    path: PathBuf,
    cause: Cause,
}

#[derive(Debug)]
pub(crate) enum Cause {
    OldLibrary(&'static str),
    Newer(i32),
    Foreign,
    NotADatabase,
    Damaged(rusqlite::Error),
    Inconsistent(String),
    Unwritable,
    Busy,
    Full,
    /// The file itself may be whole.
    Disk(rusqlite::Error),
    Create(io::Error),
    Sql(rusqlite::Error),
    Thread(io::Error),
    /// No copy could be made before the schema was to be migrated.
    NotCopied(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.cause {
            Cause::OldLibrary(version) => write!(
                f,
                "{path} cannot be opened safely with SQLite {version}: build Hearth with 3.51.3 or newer"
            ),
            Cause::Newer(schema) => write!(
                f,
                "{path} was written by a newer Hearth (schema {schema}; this one knows {}): \
                 install the newer version or restore a backup",
                MIGRATIONS.len()
            ),
            Cause::Foreign => write!(
                f,
                "{path} is the database of another program: move it away or choose another data directory"
            ),
            Cause::NotADatabase => write!(
                f,
                "{path} is not a database: move it away or restore a backup"
            ),
            Cause::Damaged(error) => {
                write!(f, "{path} is damaged ({error}): restore a backup")
            }
            Cause::Inconsistent(finding) => {
                write!(f, "{path} is damaged ({finding}): restore a backup")
            }
            Cause::Unwritable => write!(
                f,
                "{path} cannot be written: check that it is a file, and the permissions of it and its directory"
            ),
            Cause::Busy => write!(
                f,
                "{path} is locked by another program: stop that program and try again"
            ),
            Cause::Full => write!(
                f,
                "{path} cannot be written, the disk is full: make space and try again"
            ),
            Cause::Disk(error) => write!(
                f,
                "{path} cannot be read or written: {error}: check the disk"
            ),
            Cause::Create(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{path} cannot be created: its directory does not exist")
            }
            Cause::Create(error) => write!(
                f,
                "{path} cannot be created: {error}: check the permissions of its directory"
            ),
            Cause::Sql(error) => write!(
                f,
                "{path} cannot be opened: {error}: check the file or restore a backup"
            ),
            Cause::Thread(error) => write!(
                f,
                "{path} cannot be opened: no thread for writing: {error}: raise the limit of threads"
            ),
            Cause::NotCopied(error) => write!(
                f,
                "{path} was not upgraded, because it could not be copied first: {error}"
            ),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Create(error) | Cause::Thread(error) => Some(error),
            Cause::Damaged(error) | Cause::Disk(error) | Cause::Sql(error) => Some(error),
            Cause::NotCopied(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

impl OpenError {
    pub(crate) fn new(path: &Path, cause: impl Into<Cause>) -> OpenError {
        OpenError {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }

    /// Whether the file itself is damaged, so that only a backup helps.
    pub fn is_damage(&self) -> bool {
        matches!(
            self.cause,
            Cause::NotADatabase | Cause::Damaged(_) | Cause::Inconsistent(_)
        )
    }
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Cause {
        match failure {
            Failure::Refused(error) => Cause::Inconsistent(error.to_string()),
            Failure::Sql(error) => Cause::from(*error),
        }
    }
}

impl From<rusqlite::Error> for Cause {
    fn from(error: rusqlite::Error) -> Cause {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Cause::NotADatabase,
            Some(ErrorCode::DatabaseCorrupt) => Cause::Damaged(error),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Cause::Unwritable
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Cause::Busy,
            Some(ErrorCode::DiskFull) => Cause::Full,
            Some(ErrorCode::SystemIoFailure) => Cause::Disk(error),
            _ => Cause::Sql(error),
        }
    }
}

/// Copies a database, of which it gets the path and the schema, before it is migrated.
pub(crate) type Keep = fn(&Path, usize) -> Result<(), Box<dyn Error + Send + Sync>>;

/// Opens the database for writing, creates it if it does not exist, and migrates its
/// schema after `keep`. Also returns the largest id in it. Never changes a file that is
/// not ours.
pub(crate) fn open(path: &Path, keep: Keep) -> Result<(Connection, i64), OpenError> {
    let deadline = Instant::now() + OPEN_WAIT;
    loop {
        match open_or_cause(path, keep) {
            // SQLite itself does not wait for a process that is creating the file,
            // or closing the last connection to it.
            Err(Cause::Busy) if Instant::now() < deadline => thread::sleep(OPEN_RETRY),
            opened => {
                return opened.map_err(|cause| {
                    let cause = match cause {
                        // SQLite calls it an I/O error where its shared memory does not fit.
                        Cause::Disk(_) if is_full(path) => Cause::Full,
                        Cause::Create(error) if error.kind() == io::ErrorKind::StorageFull => {
                            Cause::Full
                        }
                        cause => cause,
                    };
                    OpenError::new(path, cause)
                });
            }
        }
    }
}

/// Whether the disk of a file has no room for what SQLite needs to open it.
fn is_full(path: &Path) -> bool {
    const NEEDED: u64 = 64 * 1024;
    rustix::fs::statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < NEEDED)
}

fn open_or_cause(path: &Path, keep: Keep) -> Result<(Connection, i64), Cause> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(Cause::OldLibrary(rusqlite::version()));
    }
    create(path).map_err(Cause::Create)?;
    connection::share_permissions(path);
    let mut connection = connection::open(path)?;
    if connection.is_readonly(MAIN_DB)? {
        return Err(Cause::Unwritable);
    }
    // Before `prepare`, because journal_mode changes the header. In a transaction, so
    // that another process cannot initialise the file in between.
    let transaction = connection.transaction()?;
    let schema = schema_of(&transaction)?;
    transaction.finish()?;
    connection::prepare(&connection, Purpose::Write)?;
    if schema < MIGRATIONS.len() {
        migrate(path, &mut connection, keep)?;
    }
    let last = largest_id(&connection)?;
    Ok((connection, last))
}

/// The schema that this version makes of a file.
pub(crate) const fn newest() -> usize {
    MIGRATIONS.len()
}

/// Checks that an open file is ours and has a known schema.
pub(crate) fn check(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let schema = schema_of(connection).map(drop);
    schema.map_err(|cause| OpenError::new(path, cause))
}

/// Creates the file with mode 0600; SQLite gives its journal the same mode.
///
/// An existing file is not opened here: closing it would release the locks that
/// another connection of this process holds on it
/// (<https://www.sqlite.org/howtocorrupt.html>, section 2.2).
fn create(path: &Path) -> io::Result<()> {
    match files::create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

/// The schema of one of our files, 0 for an empty one.
pub(crate) fn schema_of(connection: &Connection) -> Result<usize, Cause> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let application = number("application_id")?;
    let schema = number("user_version")?;
    let is_empty: bool = connection.query_row(
        "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)",
        [],
        |row| row.get(0),
    )?;
    match usize::try_from(schema) {
        Ok(schema) if application == APPLICATION_ID && schema <= MIGRATIONS.len() => Ok(schema),
        Ok(0) if application == 0 && is_empty => Ok(0),
        _ if application == APPLICATION_ID => Err(Cause::Newer(schema)),
        _ => Err(Cause::Foreign),
    }
}

/// Runs the missing migrations in one transaction, so that a crash leaves either the
/// old schema or the new one. What there was is kept under the lock, so that nobody can
/// add to it afterwards.
fn migrate(path: &Path, connection: &mut Connection, keep: Keep) -> Result<(), Cause> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Again under the lock, because another process may have been faster.
    let done = schema_of(&transaction)?;
    if (1..MIGRATIONS.len()).contains(&done) {
        keep(path, done).map_err(Cause::NotCopied)?;
    }
    for (place, sql) in MIGRATIONS.iter().enumerate().skip(done) {
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", place as i32 + 1)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()?;
    Ok(())
}

/// The largest id of all tables: one seek each.
fn largest_id(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row(
        "SELECT max(
             ifnull((SELECT max(id) FROM messages), 0),
             ifnull((SELECT max(id) FROM turns), 0),
             ifnull((SELECT max(id) FROM conversations), 0),
             ifnull((SELECT max(id) FROM approvals), 0),
             ifnull((SELECT max(id) FROM attachments), 0),
             ifnull((SELECT max(id) FROM deleted_attachments), 0),
             ifnull((SELECT max(id) FROM deliveries), 0),
             ifnull((SELECT max(id) FROM notifications), 0),
             ifnull((SELECT max(id) FROM push_subscriptions), 0),
             ifnull((SELECT max(id) FROM memories), 0),
             ifnull((SELECT max(id) FROM lists), 0),
             ifnull((SELECT max(id) FROM list_items), 0),
             ifnull((SELECT max(id) FROM kept_results), 0),
             ifnull((SELECT max(id) FROM schedules), 0),
             ifnull((SELECT max(id) FROM calendars), 0),
             ifnull((SELECT max(id) FROM calendar_events), 0),
             ifnull((SELECT max(id) FROM schedule_runs), 0),
             ifnull((SELECT max(id) FROM users), 0),
             ifnull((SELECT max(id) FROM invitations), 0),
             ifnull((SELECT max(id) FROM tokens), 0))",
        [],
        |row| row.get(0),
    )
}

#[cfg(test)]
mod tests;

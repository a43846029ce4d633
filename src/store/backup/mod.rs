//! Backups: copies of the database that any SQLite program can open. In addition to
//! the tables of Hearth a backup has `backup_files`, with the configuration and
//! other files of the data directory.

mod before_migration;
mod error;
mod inspect;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, params};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::check::{Progress, ProgressWatcher};
use super::connection::{self, Purpose};
use super::schema::{self, OpenError};

pub(crate) use before_migration::keep_before_migration;
pub use error::BackupError;
use inspect::counts;
pub use inspect::{BackupContents, BackupFile, inspect, unpack};

/// Suffix of the name of an unfinished backup.
pub const PARTIAL: &str = ".partial";
/// Pages (of 4 KiB) that are copied per step.
const PAGES: i32 = 256;
/// How long to wait for the lock of another program.
const BUSY_WAIT: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const BUSY_RETRY: Duration = Duration::from_millis(10);

/// The table for the files of a backup.
const ENCLOSE: &str = "
    DROP TABLE IF EXISTS backup_files;
    CREATE TABLE backup_files (name TEXT PRIMARY KEY, content BLOB NOT NULL);";

/// What to back up, and where.
pub struct BackupRequest<'a> {
    /// The database. A server may be using it.
    pub database: &'a Path,
    /// The file to write. Its directory must exist.
    pub target: &'a Path,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Files to include.
    pub files: Vec<BackupFile>,
}

/// A complete and verified backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// Size of the file.
    pub bytes: u64,
    /// Conversations in it.
    pub conversations: u64,
    /// Messages in it.
    pub messages: u64,
}

/// Makes a backup: a snapshot of one moment that does not delay writers. The file
/// (mode 0600) gets its name only after it has been read back and verified; until
/// then, and after a crash, there is at most a file whose name ends in [`PARTIAL`].
///
/// # Errors
/// The database cannot be read or is damaged, the file exists or cannot be written,
/// or the watcher stopped it. The unfinished file is removed.
pub fn back_up(
    order: &BackupRequest<'_>,
    watch: &ProgressWatcher,
) -> Result<BackupSummary, BackupError> {
    if !order.overwrite && fs::symlink_metadata(order.target).is_ok() {
        return Err(BackupError::Exists(order.target.to_owned()));
    }
    let partial = with_suffix(order.target, PARTIAL);
    let lock = create(&partial, order.target)?;
    let made = copy_and_verify(order, &partial, watch).and_then(|made| {
        let finished = lock.sync_all().and_then(|()| put_in_place(order, &partial));
        finished.map_err(|error| BackupError::io(order.target, "written", &error))?;
        Ok(made)
    });
    if made.is_err() {
        // The first error matters more than one of cleaning up.
        let _ = fs::remove_file(&partial);
        let _ = fs::remove_file(with_suffix(&partial, "-journal"));
    }
    made
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates the unfinished file. The returned handle locks it against other backups
/// until it is dropped.
fn create(partial: &Path, target: &Path) -> Result<File, BackupError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => BackupError::File {
            path: target.to_owned(),
            tried: "written",
            reason: "its directory does not exist".to_owned(),
        },
        _ => BackupError::io(target, "written", &error),
    };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(partial)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(BackupError::Busy(target.to_owned())),
        // Some network file systems do not support locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // An interrupted backup may have left data.
    file.set_len(0).map_err(failed)?;
    Ok(file)
}

fn copy_and_verify(
    order: &BackupRequest<'_>,
    partial: &Path,
    watch: &ProgressWatcher,
) -> Result<BackupSummary, BackupError> {
    let from_source = |error| BackupError::Source(OpenError::new(order.database, error));
    let source = connection::open(order.database).map_err(from_source)?;
    connection::prepare(&source, Purpose::Read).map_err(from_source)?;
    // The transaction stays open until the end and keeps the snapshot. Without it
    // every commit of the server would restart the copy.
    source.execute_batch("BEGIN").map_err(from_source)?;
    schema::schema_of(&source)
        .map_err(|cause| BackupError::Source(OpenError::new(order.database, cause)))?;
    let expected = counts(&source).map_err(from_source)?;
    let written = |error| BackupError::sql(order.target, "written", &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(partial, flags).map_err(written)?;
    // The whole file is synced at the end, and discarded after a crash.
    copy.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;
         PRAGMA cache_size = -2048;",
    )
    .map_err(written)?;
    copy_pages(&source, &mut copy, watch).map_err(|error| match error {
        Some(error) => written(error),
        None => BackupError::Stopped,
    })?;
    drop(source);
    enclose(&mut copy, &order.files).map_err(written)?;
    copy.close().map_err(|(_, error)| written(error))?;

    let found = inspect(partial, true, watch).map_err(|error| match error {
        // A damaged page of the database is damaged in the copy too.
        BackupError::Damaged { findings, .. } => BackupError::Damaged {
            path: order.database.to_owned(),
            findings,
        },
        error => error,
    })?;
    if (found.conversations, found.messages) != expected {
        return Err(BackupError::Damaged {
            path: order.target.to_owned(),
            findings: vec!["messages are missing".to_owned()],
        });
    }
    let about = fs::metadata(partial);
    let bytes = about.map_err(|error| BackupError::io(order.target, "read", &error))?;
    Ok(BackupSummary {
        bytes: bytes.len(),
        conversations: found.conversations,
        messages: found.messages,
    })
}

/// The error is `None` when the watcher stopped it.
fn copy_pages(
    source: &Connection,
    copy: &mut Connection,
    watch: &ProgressWatcher,
) -> Result<(), Option<rusqlite::Error>> {
    let backup = Backup::new(source, copy)?;
    let mut deadline = Instant::now() + BUSY_WAIT;
    loop {
        match backup.step(PAGES)? {
            StepResult::Done => return Ok(()),
            StepResult::More => deadline = Instant::now() + BUSY_WAIT,
            _ if Instant::now() < deadline => thread::sleep(BUSY_RETRY),
            _ => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(Some(rusqlite::Error::SqliteFailure(busy, None)));
            }
        }
        let progress = backup.progress();
        let pages = u64::try_from(progress.pagecount).unwrap_or(0);
        let left = u64::try_from(progress.remaining).unwrap_or(0);
        let goes_on = watch(Progress {
            stage: "copying",
            done: pages.saturating_sub(left),
            total: Some(pages),
        });
        if !goes_on {
            return Err(None);
        }
    }
}

/// Adds the other files, and turns the copy into one file without a log.
fn enclose(copy: &mut Connection, files: &[BackupFile]) -> rusqlite::Result<()> {
    connection::set_journal_mode(copy, "delete")?;
    let transaction = copy.transaction()?;
    transaction.execute_batch(ENCLOSE)?;
    for file in files {
        transaction.execute(
            "INSERT INTO backup_files (name, content) VALUES (?1, ?2)",
            params![file.name, file.content],
        )?;
    }
    transaction.commit()
}

/// Renames the finished file, durably.
fn put_in_place(order: &BackupRequest<'_>, partial: &Path) -> io::Result<()> {
    if order.overwrite {
        fs::rename(partial, order.target)?;
    } else {
        match renameat_with(CWD, partial, CWD, order.target, RenameFlags::NOREPLACE) {
            // Not every file system supports it. The name was free a moment ago.
            Err(Errno::INVAL | Errno::NOSYS) => fs::rename(partial, order.target)?,
            renamed => renamed?,
        }
    }
    let directory = match order.target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

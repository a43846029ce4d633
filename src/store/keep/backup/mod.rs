//! Backups: copies of the database that any SQLite program can open. In addition to
//! the tables of Hearth a backup has `backup_files`, with the configuration and
//! other files of the data directory.

mod before_migration;
mod error;
mod inspect;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base::age::{self, AgeError, Recipient};
use base::files::{directory_of, unless_missing};
use rusqlite::{Connection, OpenFlags, params};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::engine::check::{Progress, ProgressWatcher};
use crate::engine::connection::{self, Purpose};
use crate::engine::schema::{self, OpenError};

pub(crate) use before_migration::keep_before_migration;
pub use error::BackupError;
pub use inspect::{BackupContents, BackupFile, inspect, unpack};

/// Suffix of the name of an unfinished backup.
pub const PARTIAL: &str = ".partial";
/// Suffix of the copy that an encrypted backup is made of.
const PLAIN_PARTIAL: &str = ".plain.partial";
/// Most bytes of a piece of a snapshot: several pages, which have at most 64 KiB.
pub const SNAPSHOT_PIECE: u64 = 256 * 1024;

// `.cargo/config.toml` sets it. Without it SQLite is built without DBPAGE_VTAB, and every
// backup fails; better this build does.
const _: &str = env!(
    "LIBSQLITE3_FLAGS",
    "build in Hearth's own directory, where .cargo/config.toml sets how SQLite is compiled"
);

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
    /// How it is encrypted, if it is.
    pub encryption: Option<BackupEncryption<'a>>,
}

/// How a backup is encrypted.
pub struct BackupEncryption<'a> {
    /// Who can decrypt it.
    pub recipient: Recipient,
    /// The directory of the copy that is checked before it is encrypted: that of the database,
    /// where the same can be read anyway. No other disk has anything that is not encrypted.
    pub directory: &'a Path,
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
    order: BackupRequest<'_>,
    watch: &ProgressWatcher,
) -> Result<BackupSummary, BackupError> {
    let mut copy = BackupWriter::create(order.target, order.overwrite, order.encryption)?;
    let mut snapshot = FileSnapshot::open(order.database)?;
    while let Some(piece) = snapshot.next_piece()? {
        copy.add(&piece)?;
        let progress = Progress {
            stage: "copying",
            done: copy.bytes,
            total: Some(snapshot.bytes()),
        };
        if !watch(progress) {
            return Err(BackupError::Stopped);
        }
    }
    drop(snapshot);
    copy.finish(order.files, watch)
}

/// One moment of a database, as the bytes of its file. Writers go on meanwhile.
pub struct FileSnapshot {
    path: PathBuf,
    connection: Connection,
    page_bytes: u64,
    pages: u64,
    /// Pages that were read.
    read: u64,
}

impl FileSnapshot {
    /// That of now. A server may be using the database.
    pub fn open(database: &Path) -> Result<FileSnapshot, BackupError> {
        let failed = |error| BackupError::Source(OpenError::new(database, error));
        let connection = connection::open(database).map_err(failed)?;
        connection::prepare(&connection, Purpose::Read).map_err(failed)?;
        // The transaction stays open until the end and keeps the moment.
        connection.execute_batch("BEGIN").map_err(failed)?;
        schema::schema_of(&connection)
            .map_err(|cause| BackupError::Source(OpenError::new(database, cause)))?;
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
        Ok(FileSnapshot {
            path: database.to_owned(),
            page_bytes: pragma("page_size").map_err(failed)?,
            pages: pragma("page_count").map_err(failed)?,
            read: 0,
            connection,
        })
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.pages * self.page_bytes
    }

    /// The next [`SNAPSHOT_PIECE`] bytes or fewer; none at the end.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, BackupError> {
        let end = self.pages.min(self.read + SNAPSHOT_PIECE / self.page_bytes);
        if self.read == end {
            return Ok(None);
        }
        let mut piece = Vec::with_capacity(SNAPSHOT_PIECE as usize);
        let mut append = |page: u64| {
            // Its pages as the transaction sees them (https://www.sqlite.org/dbpage.html).
            let mut statement = (self.connection)
                .prepare_cached("SELECT data FROM sqlite_dbpage('main') WHERE pgno = ?1")?;
            statement.query_row([page.cast_signed()], |row| {
                piece.extend_from_slice(row.get_ref(0)?.as_blob()?);
                Ok(())
            })
        };
        (self.read + 1..=end)
            .try_for_each(&mut append)
            .map_err(|error| BackupError::sql(&self.path, "read", &error))?;
        self.read = end;
        Ok(Some(piece))
    }
}

/// The file of a backup, until it is complete. Dropped before, it is removed.
pub struct BackupWriter {
    target: PathBuf,
    overwrite: bool,
    /// The copy that is checked.
    partial: PathBuf,
    /// Locked against other backups.
    file: File,
    bytes: u64,
    encrypted: Option<EncryptedCopy>,
    is_finished: bool,
}

/// The encrypted file that the copy becomes.
struct EncryptedCopy {
    recipient: Recipient,
    partial: PathBuf,
    file: File,
}

impl BackupWriter {
    /// Begins a file. Its directory must exist; `overwrite` lets it replace another file. What is
    /// added is encrypted in the end, when it has been checked.
    ///
    /// # Errors
    /// The file exists or cannot be written, or is being written.
    pub fn create(
        target: &Path,
        overwrite: bool,
        encryption: Option<BackupEncryption<'_>>,
    ) -> Result<BackupWriter, BackupError> {
        let finished = with_suffix(target, PARTIAL);
        let partial = match &encryption {
            None => finished.clone(),
            Some(encryption) => {
                let name = target.file_name().unwrap_or_default();
                with_suffix(&encryption.directory.join(name), PLAIN_PARTIAL)
            }
        };
        remove_leftovers(&partial);
        match fs::symlink_metadata(target) {
            Ok(_) if !overwrite => return Err(BackupError::Exists(target.to_owned())),
            // Renaming the copy over a device or a FIFO would remove it, or a link to one.
            Ok(_) if fs::metadata(target).is_ok_and(|about| !about.is_file()) => {
                return Err(BackupError::File {
                    path: target.to_owned(),
                    tried: "replaced",
                    reason: "it is no regular file".to_owned(),
                });
            }
            _ => {}
        }
        let mut writer = BackupWriter {
            file: create(&partial, target)?,
            target: target.to_owned(),
            partial,
            overwrite,
            bytes: 0,
            encrypted: None,
            is_finished: false,
        };
        if let Some(BackupEncryption { recipient, .. }) = encryption {
            writer.encrypted = Some(EncryptedCopy {
                recipient,
                file: create(&finished, target)?,
                partial: finished,
            });
        }
        Ok(writer)
    }

    /// Adds the next piece of a [`FileSnapshot`].
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, piece: &[u8]) -> Result<(), BackupError> {
        let written = self.file.write_all(piece);
        written.map_err(|error| BackupError::io(&self.target, "written", &error))?;
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Adds the other files, reads all of it back, and gives it its name.
    ///
    /// # Errors
    /// It is damaged or cannot be written, or the watcher stopped it.
    pub fn finish(
        mut self,
        files: Vec<BackupFile>,
        watch: &ProgressWatcher,
    ) -> Result<BackupSummary, BackupError> {
        enclose(&self.partial, &files)
            .map_err(|error| BackupError::sql(&self.target, "written", &error))?;
        let found = inspect(&self.partial, true, watch).map_err(|error| match error {
            // A damaged page of the database is damaged in the copy too.
            BackupError::Damaged { findings, .. } => BackupError::Copied { findings },
            error => error,
        })?;
        let unwritten = |error| BackupError::io(&self.target, "written", &error);
        let (file, partial) = match &mut self.encrypted {
            None => (&self.file, &self.partial),
            Some(encrypted) => {
                encrypted.write(&self.partial, &self.target, watch)?;
                (&encrypted.file, &encrypted.partial)
            }
        };
        file.sync_all().map_err(unwritten)?;
        put_in_place(partial, &self.target, self.overwrite).map_err(unwritten)?;
        let about = file.metadata().map_err(unwritten)?;
        self.is_finished = true;
        Ok(BackupSummary {
            bytes: about.len(),
            conversations: found.conversations,
            messages: found.messages,
        })
    }
}

impl EncryptedCopy {
    fn write(
        &mut self,
        plain: &Path,
        target: &Path,
        watch: &ProgressWatcher,
    ) -> Result<(), BackupError> {
        let unread = |error| BackupError::io(plain, "read", &error);
        let source = File::open(plain).map_err(unread)?;
        let total = source.metadata().map_err(unread)?.len();
        let mut watched = |done| {
            watch(Progress {
                stage: "encrypting",
                done,
                total: Some(total),
            })
        };
        let written = age::encrypt(source, &mut self.file, &self.recipient, &mut watched);
        written.map_err(|error| match error {
            AgeError::Read(error) => unread(error),
            AgeError::Write(error) => BackupError::io(target, "written", &error),
            _ => BackupError::Stopped,
        })
    }
}

impl Drop for BackupWriter {
    fn drop(&mut self) {
        // The first error matters more than one of cleaning up.
        if !self.is_finished || self.encrypted.is_some() {
            let _ = fs::remove_file(&self.partial);
        }
        // SQLite closes a database whose journal it could not remove without a word.
        let _ = fs::remove_file(with_suffix(&self.partial, "-journal"));
        if let Some(encrypted) = self.encrypted.as_ref().filter(|_| !self.is_finished) {
            let _ = fs::remove_file(&encrypted.partial);
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes unfinished backups beside a file that nobody is writing: a crash left them, and
/// whoever names each backup by its day would never replace them.
fn remove_leftovers(target: &Path) {
    for entry in fs::read_dir(directory_of(target)).into_iter().flatten() {
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        // Opening a FIFO would wait for its writer.
        if path.to_string_lossy().ends_with(PARTIAL)
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(&path)
            && is_ours(&file)
            && file.try_lock().is_ok()
        {
            // What cannot be removed takes space, and nothing else.
            let _ = fs::remove_file(with_suffix(&path, "-journal"));
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a file is a database of Hearth, by its header
/// (https://www.sqlite.org/fileformat.html, section 1.3).
fn is_ours(file: &File) -> bool {
    let mut header = [0; 72];
    file.read_exact_at(&mut header, 0).is_ok()
        && header.starts_with(b"SQLite format 3\0")
        && header.ends_with(&schema::APPLICATION_ID.to_be_bytes())
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
    // An interrupted backup may have left data, and a journal that would be played back.
    file.set_len(0).map_err(failed)?;
    unless_missing(fs::remove_file(with_suffix(partial, "-journal"))).map_err(failed)?;
    Ok(file)
}

/// Adds the other files, and turns the copy into one file without a log.
fn enclose(partial: &Path, files: &[BackupFile]) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(partial, flags)?;
    // The whole file is synced at the end, and discarded after a crash.
    copy.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF;")?;
    connection::set_journal_mode(&copy, "delete")?;
    let transaction = copy.transaction()?;
    transaction.execute_batch(ENCLOSE)?;
    for file in files {
        transaction.execute(
            "INSERT INTO backup_files (name, content) VALUES (?1, ?2)",
            params![file.name, file.content],
        )?;
    }
    transaction.commit()?;
    copy.close().map_err(|(_, error)| error)
}

/// Renames the finished file, durably.
fn put_in_place(partial: &Path, target: &Path, overwrite: bool) -> io::Result<()> {
    if overwrite {
        fs::rename(partial, target)?;
    } else {
        match renameat_with(CWD, partial, CWD, target, RenameFlags::NOREPLACE) {
            // Not every file system supports it. The name was free a moment ago.
            Err(Errno::INVAL | Errno::NOSYS) => fs::rename(partial, target)?,
            renamed => renamed?,
        }
    }
    File::open(directory_of(target))?.sync_all()
}

//! The configuration file on disk: bounded reading, and one writer at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::problems::Problems;
use base::files::check_is_file;

/// Largest file that is read, in bytes.
pub(super) const MOST_BYTES: u64 = 1024 * 1024;
/// How long another process may take to save.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Interval between attempts to lock the file.
const LOCK_STEP: Duration = Duration::from_millis(5);

/// Reads the text of a configuration file.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, Problems> {
    decode(path, &open(path).map_err(|error| unreadable(path, &error))?)
}

/// Opens the file, and waits for nobody.
fn open(path: &Path) -> io::Result<File> {
    check_is_file(path)?;
    File::open(path)
}

fn unreadable(path: &Path, error: &io::Error) -> Problems {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; give it to the user who runs hearth (chown)",
        _ => "",
    };
    Problems::of_file(path, format!("the file cannot be read: {error}{advice}"))
}

/// [`read`] of a file that is open.
pub(super) fn decode(path: &Path, file: &File) -> Result<String, Problems> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("the file is larger than {MOST_BYTES} bytes");
        return Err(Problems::of_file(path, message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        Problems::at(path, Some(line), None, "the file must be UTF-8 text")
    })
}

/// Whether others than the owner may read the file.
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.mode() & 0o044 != 0)
}

/// The file itself, when `path` is a symbolic link to it.
pub(super) fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Opens the file and keeps other Hearth processes from saving it until the
/// returned handle is dropped; none when there is no file.
///
/// # Errors
/// It cannot be opened, or another process held it for [`LOCK_WAIT`].
pub(super) fn lock(path: &Path) -> io::Result<Option<File>> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        let file = match open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            // Saving replaces the file, so this one may be out of date.
            Ok(()) if is_same(&file, path)? => return Ok(Some(file)),
            Ok(()) => {}
            // Some network file systems have no locks; saving is atomic even there.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                return Ok(Some(file));
            }
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_STEP),
        }
        if Instant::now() >= deadline {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "another process keeps the file locked",
            ));
        }
    }
}

fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(theirs) => Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

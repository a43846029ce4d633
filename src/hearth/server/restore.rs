//! Puts a restored database in place, so that a crash at any moment leaves the
//! old data, the new data, or a step that the next start finishes.
//!
//! The new files are completed in `restore.partial`, which has no effect by
//! itself. Renaming it to `restore.ready` commits the restore: this process or
//! the next start then moves the files into place, one rename at a time, and
//! skips the renames that are already done.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::lock::LOCK_FILE;
use base::files::{give_to_owner_of, unless_missing};

/// The database's name in the data directory.
pub const DATABASE_FILE: &str = "hearth.db";
const PARTIAL: &str = "restore.partial";
const READY: &str = "restore.ready";
/// Inside [`READY`]: names the directory for the replaced files.
const ASIDE: &str = "aside";
/// Files that SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["hearth.db-shm", "hearth.db-wal"];

/// Makes an empty directory for the new files, on the same disk. Removes what an
/// earlier attempt left there.
///
/// # Errors
/// The data directory cannot be written.
pub fn begin(data_dir: &Path) -> io::Result<PathBuf> {
    let partial = data_dir.join(PARTIAL);
    discard(data_dir)?;
    DirBuilder::new().mode(0o700).create(&partial)?;
    Ok(partial)
}

/// Removes the directory of [`begin`].
///
/// # Errors
/// It cannot be removed. A directory that does not exist is no error.
pub fn discard(data_dir: &Path) -> io::Result<()> {
    unless_missing(fs::remove_dir_all(data_dir.join(PARTIAL)))
}

/// Commits the restore: [`finish`] will replace the files of the data directory
/// by those of the same names in the directory of [`begin`], and move the
/// replaced ones to `aside`, a new directory in the data directory.
///
/// # Errors
/// A file cannot be written, synced or given to the owner of the data directory;
/// then nothing is restored.
pub fn commit(data_dir: &Path, aside: &str) -> io::Result<()> {
    let partial = data_dir.join(PARTIAL);
    fs::write(partial.join(ASIDE), aside)?;
    complete(data_dir, &partial)?;
    unless_missing(give_to_owner_of(data_dir, &data_dir.join(LOCK_FILE)))?;
    fs::rename(&partial, data_dir.join(READY))?;
    sync(data_dir)
}

/// Gives a directory and all below it to the owner of the data directory, and syncs it.
fn complete(data_dir: &Path, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            complete(data_dir, &entry.path())?
        } else {
            unless_missing(give_to_owner_of(data_dir, &entry.path()))?;
            sync(&entry.path())?;
        }
    }
    unless_missing(give_to_owner_of(data_dir, directory))?;
    sync(directory)
}

/// Whether a restore is committed and not finished.
pub fn is_pending(data_dir: &Path) -> bool {
    data_dir.join(READY).exists()
}

/// Finishes the committed restore, if there is one, and removes what another left that was
/// killed before. Returns where the replaced files are. Nothing else may use the data
/// directory meanwhile.
///
/// # Errors
/// A file cannot be moved or removed; the next call continues.
pub fn finish(data_dir: &Path) -> io::Result<Option<PathBuf>> {
    discard(data_dir)?;
    let ready = data_dir.join(READY);
    let aside = match fs::read_to_string(ready.join(ASIDE)) {
        Ok(name) => data_dir.join(name),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return unless_missing(fs::remove_dir(&ready)).map(|()| None);
        }
        Err(error) => return Err(error),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&aside)?;
    unless_missing(give_to_owner_of(data_dir, &aside))?;
    let mut names: Vec<OsString> = fs::read_dir(&ready)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<_>>()?;
    names.retain(|name| name != ASIDE);
    for name in names {
        if name == DATABASE_FILE {
            // The log belongs to the old database and would corrupt the new one.
            for beside in BESIDE {
                move_aside(data_dir, &aside, beside.as_ref())?;
            }
        }
        move_aside(data_dir, &aside, &name)?;
        sync(&aside)?;
        fs::rename(ready.join(&name), data_dir.join(&name))?;
        sync(data_dir)?;
    }
    fs::remove_file(ready.join(ASIDE))?;
    fs::remove_dir(&ready)?;
    sync(data_dir)?;
    Ok(Some(aside))
}

fn move_aside(data_dir: &Path, aside: &Path, name: &std::ffi::OsStr) -> io::Result<()> {
    unless_missing(fs::rename(data_dir.join(name), aside.join(name)))
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use base::testing::TemporaryDirectory;

    use super::*;

    /// A data directory with an old household and a prepared restore.
    fn scene() -> TemporaryDirectory {
        let folder = TemporaryDirectory::new();
        for file in ["hearth.db", "hearth.db-wal", "hearth.db-shm", "config.json"] {
            fs::write(folder.join(file), format!("old {file}")).unwrap();
        }
        let partial = begin(&folder).unwrap();
        for file in ["hearth.db", "config.json"] {
            fs::write(partial.join(file), format!("new {file}")).unwrap();
        }
        folder
    }

    fn check_restored(folder: &Path) {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("hearth.db"), "new hearth.db");
        assert_eq!(read("config.json"), "new config.json");
        assert!(!folder.join("hearth.db-wal").exists() && !folder.join("hearth.db-shm").exists());
        for file in ["hearth.db", "hearth.db-wal", "hearth.db-shm", "config.json"] {
            assert_eq!(read(&format!("aside-1/{file}")), format!("old {file}"));
        }
        assert!(!is_pending(folder) && !folder.join(PARTIAL).exists());
        assert_eq!(finish(folder).unwrap(), None);
    }

    #[test]
    fn before_the_decision_nothing_has_happened() {
        let folder = scene();
        assert_eq!(finish(&folder).unwrap(), None);
        assert_eq!(
            fs::read_to_string(folder.join("hearth.db")).unwrap(),
            "old hearth.db"
        );
        assert!(
            !folder.join(PARTIAL).exists(),
            "it holds the passwords of all"
        );
    }

    #[test]
    fn after_the_decision_any_crash_is_made_up_for() {
        let moves: [(&str, &str); 6] = [
            ("hearth.db-shm", "aside-1/hearth.db-shm"),
            ("hearth.db-wal", "aside-1/hearth.db-wal"),
            ("hearth.db", "aside-1/hearth.db"),
            ("restore.ready/hearth.db", "hearth.db"),
            ("config.json", "aside-1/config.json"),
            ("restore.ready/config.json", "config.json"),
        ];
        for crash_after in 0..=moves.len() {
            let folder = scene();
            commit(&folder, "aside-1").unwrap();
            assert!(is_pending(&folder));
            if crash_after > 0 {
                fs::create_dir(folder.join("aside-1")).unwrap();
            }
            for (from, to) in &moves[..crash_after] {
                fs::rename(folder.join(from), folder.join(to)).unwrap();
            }
            assert_eq!(finish(&folder).unwrap(), Some(folder.join("aside-1")));
            check_restored(&folder);
        }
    }

    #[test]
    fn a_crash_at_the_very_end_leaves_an_empty_directory() {
        let folder = scene();
        commit(&folder, "aside-1").unwrap();
        finish(&folder).unwrap();
        fs::create_dir(folder.join(READY)).unwrap();
        assert_eq!(finish(&folder).unwrap(), None);
        check_restored(&folder);
    }
}

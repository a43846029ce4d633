//! What the tests of all members share.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::secret::reference;

/// A directory of one test. Dropping it removes it with everything in it, also
/// when the test panics.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// An empty directory in the system's place for temporary files.
    pub fn new() -> TemporaryDirectory {
        TemporaryDirectory::within(&std::env::temp_dir())
    }

    /// An empty directory in `parent`, which is made where it is missing.
    pub fn within(parent: &Path) -> TemporaryDirectory {
        // Random: a process that was killed may have left a directory behind,
        // and its id come again.
        let path = parent.join(format!("hearth-test-{}", reference()));
        fs::create_dir_all(&path).expect("a test can make a temporary directory");
        TemporaryDirectory(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for TemporaryDirectory {
    fn default() -> TemporaryDirectory {
        TemporaryDirectory::new()
    }
}

impl Deref for TemporaryDirectory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.0).is_err() {
            // A test may have taken away the right to change it.
            use std::os::unix::fs::PermissionsExt;
            let _ = fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700));
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// The rows of a table in a text: one on each line, cells between ` | `. Empty lines
/// are left out, and spaces around a cell.
///
/// # Panics
///
/// A row has another number of cells.
pub fn rows<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let cells = |line| -> Vec<&str> { str::split(line, " | ").map(str::trim).collect() };
    let row = |line| <[&str; N]>::try_from(cells(line)).expect(line);
    lines.map(row).collect()
}

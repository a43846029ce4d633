//! Whether a file is still the one that was read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identifies the state of a file without reading it: its modification time,
/// length and inode (a file replaced by renaming may have the same time). A
/// missing file has a stamp too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(Option<[i64; 5]>);

impl Stamp {
    /// The stamp of no file.
    pub fn none() -> Stamp {
        Stamp(None)
    }

    /// The current stamp of the file at `path`, following links.
    pub fn of(path: &Path) -> Stamp {
        Stamp(fs::metadata(path).ok().map(|found| {
            [
                found.mtime(),
                found.mtime_nsec(),
                found.size().cast_signed(),
                found.dev().cast_signed(),
                found.ino().cast_signed(),
            ]
        }))
    }
}

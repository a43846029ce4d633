//! Whether a file is still the one that was read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one state of a file from another, without reading it: when it was
/// last written, how long it is, and which file it is (whoever replaces a file
/// by renaming may keep its time). A file that is not there has a stamp too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(Option<[i64; 5]>);

impl Stamp {
    /// The stamp of no file.
    pub fn none() -> Stamp {
        Stamp(None)
    }

    /// The present stamp of the file that `path` leads to.
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

//! The log file, which is rotated by size.
//!
//! Own code: the weighed libraries cost more than these 110 lines and do not notice
//! that others moved or truncated the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base::files::unless_missing;

/// Largest size of one file, in bytes.
pub const MOST_BYTES: u64 = 5_000_000;
/// Number of files: the current one and four older ones, `.1` the newest.
pub const FILES: usize = 5;

/// The log file at `path`, with the older ones beside it. What one `write` gets stays
/// in one file.
pub struct RotatingFile {
    path: PathBuf,
    file: File,
    /// Bytes in the file, unless others have truncated it.
    length: u64,
    most_bytes: u64,
}

impl RotatingFile {
    /// Opens the file, or creates it for its owner only.
    ///
    /// # Errors
    ///
    /// It cannot be opened for writing.
    pub fn open(path: &Path, most_bytes: u64) -> io::Result<RotatingFile> {
        let file = append_to(path)?;
        Ok(RotatingFile {
            path: path.to_owned(),
            length: file.metadata()?.len(),
            file,
            most_bytes,
        })
    }

    /// Rotates the files. If that fails the file keeps growing, and the next attempt
    /// follows after as many bytes: a log must not end because it cannot be moved.
    fn rotate(&mut self) {
        let moved = self.is_in_place().and_then(|in_place| {
            let length = self.file.metadata()?.len();
            match in_place {
                // Somebody has truncated it.
                true if length < self.length => Ok(length),
                true => {
                    self.shift()?;
                    self.file = append_to(&self.path)?;
                    Ok(0)
                }
                // Somebody has moved it away.
                false => {
                    self.file = append_to(&self.path)?;
                    Ok(self.file.metadata()?.len())
                }
            }
        });
        self.length = moved.unwrap_or(0);
    }

    /// Whether the open file still has this name.
    fn is_in_place(&self) -> io::Result<bool> {
        let open = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives each file the next number; the oldest is overwritten.
    fn shift(&self) -> io::Result<()> {
        for number in (0..FILES - 1).rev() {
            let moved = fs::rename(self.numbered(number), self.numbered(number + 1));
            unless_missing(moved)?;
        }
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        PathBuf::from(name)
    }
}

impl Write for RotatingFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if self.length > 0 && self.length + lines.len() as u64 > self.most_bytes {
            self.rotate();
        }
        self.file.write_all(lines)?;
        self.length += lines.len() as u64;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;

    fn read_all(file: &RotatingFile) -> Vec<String> {
        (0..FILES + 1)
            .filter_map(|number| fs::read_to_string(file.numbered(number)).ok())
            .collect()
    }

    #[test]
    fn it_keeps_the_newest_lines_in_five_files() {
        let root = DataDirectoryUnderTest::default();
        let path = root.path().join("hearth.log");
        let mut file = RotatingFile::open(&path, 100).unwrap();
        for number in 0..100 {
            writeln!(file, "line {number:04}").unwrap();
        }
        let kept = read_all(&file);
        assert_eq!(kept.len(), FILES);
        assert!(kept.iter().all(|text| text.len() <= 100), "{kept:?}");
        let newest_last: String = kept.into_iter().rev().collect();
        let expected: String = (50..100)
            .map(|number| format!("line {number:04}\n"))
            .collect();
        assert_eq!(newest_last, expected);
        // The next start goes on in the same file.
        let mut file = RotatingFile::open(&path, 100).unwrap();
        writeln!(file, "after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
    }

    #[test]
    fn no_line_is_lost_or_torn_under_many_threads() {
        const THREADS: usize = 8;
        const LINES: usize = 500;
        let root = DataDirectoryUnderTest::default();
        let path = root.path().join("hearth.log");
        // What is kept must hold everything, and every file begin in between.
        let line = |thread: usize, number: usize| format!("thread {thread} line {number:04}\n");
        let most_bytes = (THREADS * LINES * line(0, 0).len() / (FILES - 1)) as u64;
        let file = Mutex::new(RotatingFile::open(&path, most_bytes).unwrap());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let file = &file;
                scope.spawn(move || {
                    for number in 0..LINES {
                        let text = line(thread, number);
                        file.lock().unwrap().write_all(text.as_bytes()).unwrap();
                    }
                });
            }
        });
        let kept = read_all(&file.into_inner().unwrap());
        assert!(kept.len() >= FILES - 1, "{} files", kept.len());
        let seen: HashSet<String> = kept
            .iter()
            .flat_map(|text| text.split_inclusive('\n'))
            .map(str::to_owned)
            .collect();
        let expected: HashSet<String> = (0..THREADS)
            .flat_map(|thread| (0..LINES).map(move |number| line(thread, number)))
            .collect();
        assert!(
            seen == expected,
            "{} of {} lines",
            seen.len(),
            expected.len()
        );
    }

    #[test]
    fn changes_by_others_are_noticed() {
        let root = DataDirectoryUnderTest::default();
        let path = root.path().join("hearth.log");
        let mut file = RotatingFile::open(&path, 20).unwrap();
        writeln!(file, "0123456789").unwrap();
        // As logrotate does with copytruncate.
        File::create(&path).unwrap();
        writeln!(file, "0123456789").unwrap();
        assert_eq!(read_all(&file).len(), 1, "there was room");
        fs::rename(&path, root.path().join("taken")).unwrap();
        writeln!(file, "0123456789").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "0123456789\n");
    }

    #[test]
    fn a_file_that_cannot_be_moved_keeps_growing() {
        let root = DataDirectoryUnderTest::default();
        let path = root.path().join("hearth.log");
        // Folders that are not empty stand in the way.
        for name in ["hearth.log.3/x", "hearth.log.4/x"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        let mut file = RotatingFile::open(&path, 20).unwrap();
        for _ in 0..5 {
            writeln!(file, "0123456789").unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 5);
    }
}

//! Keys that are made once, each in a file of its own in the data directory.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::files;
use crate::secret::reference;

/// More than any key in base64 and an end of line.
const FILE_BYTES: u64 = 512;

/// Reads a key: the text of the file without white space around it.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.trim_ascii().to_vec())
}

/// The bytes of a key whose file holds their base64; none where it holds something else.
///
/// # Errors
/// The file cannot be read.
pub fn load(path: &Path) -> io::Result<Vec<u8>> {
    read(path).map(|text| STANDARD.decode(text).unwrap_or_default())
}

/// The same of a file in a data directory, which is made with a fresh `key` if it is missing.
///
/// # Errors
/// It cannot be read or made.
pub fn load_or_make(
    data_dir: &Path,
    name: &str,
    key: impl FnOnce() -> io::Result<Vec<u8>>,
) -> io::Result<Vec<u8>> {
    let path = data_dir.join(name);
    match load(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        loaded => return loaded,
    }
    match make(data_dir, name, &STANDARD.encode(key()?)) {
        // Another process was faster; its key counts.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => load(&path),
    }
}

/// Writes a key for its owner only, so that the file is complete or missing, even after
/// a power cut, and never replaces another.
///
/// # Errors
/// There is a file of this name, or it cannot be written.
pub fn make(data_dir: &Path, name: &str, key: &str) -> io::Result<()> {
    let temporary = data_dir.join(format!("{name}.{}.new", reference()));
    let path = data_dir.join(name);
    // A rename would replace a key that was created meanwhile; a link does not.
    let place = || match fs::hard_link(&temporary, &path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // Some file systems have no hard links.
            fs::rename(&temporary, &path)
        }
        linked => linked,
    };
    let written = write(&temporary, key).and_then(|()| place());
    // The first error says more than one of the cleanup.
    let _ = fs::remove_file(&temporary);
    written?;
    File::open(data_dir)?.sync_all()
}

fn write(path: &Path, key: &str) -> io::Result<()> {
    let mut file = files::create(path)?;
    writeln!(file, "{key}")?;
    file.sync_all()
}

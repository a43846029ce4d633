//! Files in the data directory: for their owner only, and whole even after a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, fchown, lchown};
use std::path::Path;

/// Creates a file that only its owner may read.
///
/// # Errors
/// There is a file of this name, or it cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    create_with(path, 0o600)
}

fn create_with(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Checks that what is at a path, if anything is, is no directory, pipe or socket: none can be
/// read as a file, and who opens a pipe waits for its other end.
///
/// # Errors
/// What it is.
pub fn check_is_file(path: &Path) -> io::Result<()> {
    let what = match fs::metadata(path) {
        Ok(about) if about.is_dir() => "a directory",
        Ok(about) if about.file_type().is_fifo() => "a named pipe",
        Ok(about) if about.file_type().is_socket() => "a socket",
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "a symbolic link that leads to itself"
        }
        _ => return Ok(()),
    };
    let said = format!("it is {what} and must be a file; move it away and try again");
    Err(io::Error::other(said))
}

/// What came of removing or moving a file that may not be there: that is no error.
///
/// # Errors
/// Every other one.
pub fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Gives a file or folder to the owner of another: what root makes in the data directory must
/// be the server's.
///
/// # Errors
/// One of them cannot be read, or this user may not give it.
pub fn give_to_owner_of(other: &Path, path: &Path) -> io::Result<()> {
    let (owner, now) = (fs::metadata(other)?, fs::symlink_metadata(path)?);
    match (owner.uid(), owner.gid()) == (now.uid(), now.gid()) {
        true => Ok(()),
        false => lchown(path, Some(owner.uid()), Some(owner.gid())),
    }
}

/// Where a file is.
pub fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes a file in place of one that may be there. When this returns, the new file survives
/// a power cut; on an error the old one is as it was.
///
/// # Errors
/// It cannot be written.
pub fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let directory = directory_of(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = directory.join(name);
    unless_missing(fs::remove_file(&temporary))?;
    let write = || {
        let mut file = create_with(&temporary, mode)?;
        // What `sudo hearth` writes is for the user who runs the server.
        let (replaced, ours) = (fs::metadata(path), file.metadata()?);
        let is_new = replaced.is_err();
        let owner = replaced.or_else(|_| fs::metadata(directory))?;
        if (ours.uid(), ours.gid()) != (owner.uid(), owner.gid()) {
            let given = fchown(&file, Some(owner.uid()), Some(owner.gid()));
            // Who may write to the folder of somebody else keeps what is new there.
            if !is_new {
                given?;
            }
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    if let Err(error) = write() {
        // The error that stopped us says more than one of cleaning up.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(directory)?.sync_all()
}

//! One server for one data directory.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::StartError;

/// The lock file's name in the data directory. It holds the process id of the
/// running server; what counts is the lock on it, which ends with the process.
pub const LOCK_FILE: &str = "hearth.lock";

/// Holds the data directory as long as it lives.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock. Errors: another server holds it, or the directory
    /// cannot be written.
    pub fn take(data_dir: &Path) -> Result<Lock, StartError> {
        let path = data_dir.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| StartError::Unwritable { path: path.clone(), source })?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut process = String::new();
            let _ = file.read_to_string(&mut process);
            return Err(StartError::AlreadyRunning {
                data_dir: data_dir.to_owned(),
                process: process.trim().to_owned(),
            });
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        match written {
            Ok(()) => Ok(Lock { _file: file }),
            Err(source) => Err(StartError::Unwritable { path, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_has_one_server() {
        let folder = std::env::temp_dir().join(format!("hearth-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let held = Lock::take(&folder).unwrap();
        let refused = Lock::take(&folder).err().unwrap().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(held);
        assert!(Lock::take(&folder).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

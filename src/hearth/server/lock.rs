//! The lock that keeps a second server out of a data directory.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::StartError;

/// The lock file's name in the data directory. Its first line is the process
/// id of the running server. Its addresses follow, one a line, and with TLS
/// `certificate` and the certificate's file. Only the lock on the file counts;
/// it ends with the process.
pub const LOCK_FILE: &str = "hearth.lock";

/// How long the command line may hold the lock to see whether a server runs.
const LOOKED_AT: Duration = Duration::from_millis(100);

/// Keeps other servers out of the data directory until it is dropped.
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// Another server holds it, or the directory cannot be written.
    pub fn take(data_dir: &Path) -> Result<Lock, StartError> {
        let path = data_dir.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| StartError::unwritable(&path, &error))?;
        if !lock(&file) {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            return Err(StartError::new(format_args!(
                "another hearth (process {}) uses {} already; stop it first, or choose another \
                 directory with --data-dir",
                text.lines().next().unwrap_or("unknown"),
                data_dir.display()
            )));
        }
        let mut lock = Lock { file };
        lock.write_details(&[], None)
            .map_err(|error| StartError::unwritable(&path, &error))?;
        Ok(lock)
    }

    /// Writes the process id, the addresses and the certificate's file into the
    /// lock file, where the command line reads them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_details(
        &mut self,
        addresses: &[SocketAddr],
        certificate: Option<&Path>,
    ) -> std::io::Result<()> {
        let mut text = format!("{}\n", std::process::id());
        for address in addresses {
            text.push_str(&format!("{address}\n"));
        }
        if let Some(path) = certificate {
            text.push_str(&format!("certificate {}\n", path.display()));
        }
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }

    /// Sets the file's modification time. The command line waits for that to see
    /// that the server has reread its configuration.
    pub fn touch(&self) {
        if let Err(error) = self.file.set_modified(SystemTime::now()) {
            log::debug!("hearth.lock: {error}");
        }
    }
}

/// Locks the file, unless another server holds it.
fn lock(file: &File) -> bool {
    let deadline = Instant::now() + LOOKED_AT;
    while flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOKED_AT / 20);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_has_one_server() {
        let folder = base::testing::TemporaryDirectory::new();
        let held = Lock::take(&folder).unwrap();
        let refused = Lock::take(&folder).err().unwrap().to_string();
        assert!(
            refused.contains(&format!("process {}", std::process::id())),
            "{refused}"
        );
        drop(held);
        assert!(Lock::take(&folder).is_ok());
    }
}

//! The lock that keeps a second server out of a data directory.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::StartError;

/// The lock file's name in the data directory. Its first line is the process
/// id of the running server. Its addresses follow, one a line, and with TLS
/// `certificate` and the certificate's file. Only the locks on the file and on its directory
/// count; they end with the process.
pub const LOCK_FILE: &str = "hearth.lock";

/// How long the command line may hold the lock to see whether a server runs.
const LOOKED_AT: Duration = Duration::from_millis(100);
/// How long a command may hold the lock while no server runs.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// Begins the file of a command that holds the lock, in place of a server.
const COMMAND: &str = "command ";

/// Who holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A server, until it stops.
    Server,
    /// A command of the terminal, for a moment.
    Command,
}

/// Keeps other servers out of the data directory until it is dropped.
pub struct Lock {
    file: File,
    /// Locked as well: unlike the file, it cannot be removed while its database is used.
    _directory: File,
}

impl Lock {
    /// Takes the lock. Waits up to 30 seconds while a command holds it.
    ///
    /// # Errors
    /// Another server holds it, or the directory cannot be written.
    pub fn take(data_dir: &Path, holder: Holder) -> Result<Lock, StartError> {
        let begun = Instant::now();
        loop {
            if let Some(lock) = Lock::try_take(data_dir, holder)? {
                return Ok(lock);
            }
            let text = fs::read_to_string(data_dir.join(LOCK_FILE)).unwrap_or_default();
            let is_command = text.starts_with(COMMAND);
            let most = if is_command { COMMAND_TIME } else { LOOKED_AT };
            if begun.elapsed() >= most {
                if let Some(command) = Lock::command(data_dir) {
                    return Err(StartError::new(format_args!(
                        "{command} has used {} for {} seconds; end it, or start again when it \
                         has ended",
                        data_dir.display(),
                        COMMAND_TIME.as_secs()
                    )));
                }
                let process = text.lines().next();
                let process = process.map_or_else(String::new, |id| format!(" (process {id})"));
                return Err(StartError::new(format_args!(
                    "another hearth{process} uses {} already; stop it first, or choose \
                     another directory with --data-dir",
                    data_dir.display()
                )));
            }
            thread::sleep(LOOKED_AT / 20);
        }
    }

    /// The command that holds the lock, such as "`hearth import` (process 4711)".
    pub fn command(data_dir: &Path) -> Option<String> {
        let text = fs::read_to_string(data_dir.join(LOCK_FILE)).ok()?;
        let process: u32 = text.strip_prefix(COMMAND)?.trim().parse().ok()?;
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let words = line.split(|&byte| byte == 0).skip(1);
        let words: Vec<_> = words
            .take_while(|word| word.first().is_some_and(u8::is_ascii_lowercase))
            .take(2)
            .map(String::from_utf8_lossy)
            .collect();
        Some(format!("`hearth {}` (process {process})", words.join(" ")))
    }

    /// Takes the lock if nobody holds it.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn try_take(data_dir: &Path, holder: Holder) -> Result<Option<Lock>, StartError> {
        let path = data_dir.join(LOCK_FILE);
        let unwritable = |error| StartError::unwritable(&path, &error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            // Root runs this in the directory of a user who must not lead it elsewhere.
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .and_then(|file| check_own(&file, data_dir).map(|()| file))
            .map_err(unwritable)?;
        // Opened first: who may not write here gets that error, whoever holds the lock.
        let directory = File::open(data_dir).map_err(unwritable)?;
        // Some network file systems lock only files.
        if flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
            || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
        {
            return Ok(None);
        }
        let mut lock = Lock {
            file,
            _directory: directory,
        };
        match holder {
            Holder::Server => lock.write_details(&[], None),
            Holder::Command => lock
                .give_to_owner_of(data_dir)
                .and_then(|()| lock.write(&format!("{COMMAND}{}\n", std::process::id()))),
        }
        .map_err(unwritable)?;
        Ok(Some(lock))
    }

    /// Else the file that `sudo hearth` makes would keep the server out.
    fn give_to_owner_of(&self, data_dir: &Path) -> std::io::Result<()> {
        let (owner, ours) = (fs::metadata(data_dir)?, self.file.metadata()?);
        if (owner.uid(), owner.gid()) == (ours.uid(), ours.gid()) || !geteuid().is_root() {
            return Ok(());
        }
        fchown(&self.file, Some(owner.uid()), Some(owner.gid()))
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
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
        self.write(&text)
    }
}

/// Checks that a file in a data directory was not put there to lead root elsewhere: it is a
/// file of its own, and belongs to the directory's owner or to this user.
///
/// # Errors
/// It is something else.
pub(super) fn check_own(file: &File, data_dir: &Path) -> std::io::Result<()> {
    let (about, owner) = (file.metadata()?, fs::metadata(data_dir)?.uid());
    let is_own = about.uid() == owner || about.uid() == geteuid().as_raw();
    if about.is_file() && about.nlink() <= 1 && is_own {
        return Ok(());
    }
    Err(std::io::Error::other(
        "it is not a file of the directory's owner",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_has_one_server() {
        let folder = base::testing::TemporaryDirectory::new();
        let held = Lock::take(&folder, Holder::Server).unwrap();
        let refused = Lock::take(&folder, Holder::Server)
            .err()
            .unwrap()
            .to_string();
        assert!(
            refused.contains(&format!("process {}", std::process::id())),
            "{refused}"
        );
        fs::remove_file(folder.join(LOCK_FILE)).unwrap();
        let refused = Lock::take(&folder, Holder::Server)
            .err()
            .unwrap()
            .to_string();
        assert!(refused.starts_with("another hearth uses"), "{refused}");
        drop(held);
        assert!(Lock::take(&folder, Holder::Server).is_ok());
    }

    #[test]
    fn a_server_of_a_version_that_locks_the_file_alone_is_noticed() {
        let folder = base::testing::TemporaryDirectory::new();
        let older = File::create(folder.join(LOCK_FILE)).unwrap();
        flock(&older, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(Lock::take(&folder, Holder::Server).is_err());
        drop(older);
        assert!(Lock::take(&folder, Holder::Server).is_ok());
    }

    #[test]
    fn a_command_that_holds_the_directory_is_named() {
        let folder = base::testing::TemporaryDirectory::new();
        assert_eq!(Lock::command(&folder), None);
        let held = Lock::take(&folder, Holder::Command).unwrap();
        let named = Lock::command(&folder).unwrap();
        let process = format!("(process {})", std::process::id());
        assert!(
            named.starts_with("`hearth ") && named.ends_with(&process),
            "{named}"
        );
        drop(held);
        let _server = Lock::take(&folder, Holder::Server).unwrap();
        assert_eq!(Lock::command(&folder), None);
    }

    #[test]
    fn a_link_to_another_file_is_not_followed() {
        let folder = base::testing::TemporaryDirectory::new();
        let other = folder.join("other");
        fs::write(&other, "keep this").unwrap();
        for is_symbolic in [true, false] {
            let link = folder.join(LOCK_FILE);
            if is_symbolic {
                std::os::unix::fs::symlink(&other, &link).unwrap();
            } else {
                fs::hard_link(&other, &link).unwrap();
            }
            for holder in [Holder::Server, Holder::Command] {
                assert!(Lock::take(&folder, holder).is_err());
            }
            assert_eq!(fs::read_to_string(&other).unwrap(), "keep this");
            fs::remove_file(link).unwrap();
        }
    }
}

//! Why a server cannot start, and what to do about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use base::error::without_numbers;

/// Why a server cannot start: a sentence that names the file, key or address, and
/// says what to do.
#[derive(Debug)]
pub struct StartError(String);

impl StartError {
    pub(super) fn new(reason: impl fmt::Display) -> StartError {
        StartError(reason.to_string())
    }

    /// A file or directory that cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> StartError {
        let path = path.display();
        StartError(match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                format!("{path} cannot be written, the disk is full: make space and try again")
            }
            io::ErrorKind::ReadOnlyFilesystem => format!(
                "{path} cannot be written: its file system is mounted for reading alone; mount it \
                 for writing, or choose another directory with --data-dir"
            ),
            _ => format!(
                "{path} cannot be written: {}; give this user the right to write there, or choose \
                 another directory with --data-dir",
                without_numbers(&error.to_string())
            ),
        })
    }

    /// An address, as the configuration or `--port` gave it, that the server cannot
    /// listen on; `setting` changes the port.
    pub(super) fn listen(address: SocketAddr, setting: &str, error: &io::Error) -> StartError {
        let port = address.port();
        StartError(match error.kind() {
            io::ErrorKind::AddrInUse => {
                let known = match port {
                    5000 => " (Frigate and container registries also use port 5000)",
                    _ => "",
                };
                format!(
                    "port {port} is in use by another program; choose another with {setting}{known}"
                )
            }
            io::ErrorKind::PermissionDenied => format!(
                "port {port} may not be used by this user: ports below 1024 need root; choose \
                 another with {setting}"
            ),
            io::ErrorKind::AddrNotAvailable => format!(
                "{} is not an address of this machine; choose another with --bind, or with \"bind\" \
                 of the channel in config.json",
                address.ip()
            ),
            _ => format!("cannot listen on {address}: {error}"),
        })
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_what_helps() {
        for (kind, advice) in [
            (io::ErrorKind::StorageFull, "the disk is full: make space"),
            (io::ErrorKind::QuotaExceeded, "the disk is full: make space"),
            (io::ErrorKind::ReadOnlyFilesystem, "mount it for writing"),
            (io::ErrorKind::PermissionDenied, "give this user the right"),
        ] {
            let said = StartError::unwritable(Path::new("/d/x"), &kind.into()).to_string();
            assert!(said.starts_with("/d/x cannot be written"), "{said}");
            assert!(said.contains(advice), "{said}");
        }
    }
}

//! Why a server cannot start, and what to do about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use base::error::Error;
use config::Problems;
use net::tls::CertificateError;
#[cfg(feature = "relay")]
use relay::identity::IdentityError;
use store::OpenError;

/// Why a server cannot start.
#[derive(Debug)]
pub enum StartError {
    /// A file of the data directory cannot be written.
    Unwritable {
        /// The file or the directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another server uses the data directory.
    AlreadyRunning {
        /// The directory.
        data_dir: PathBuf,
        /// The other server's process id, as its lock file has it.
        process: String,
    },
    /// The configuration is wrong.
    Config(Problems),
    /// The database cannot be opened.
    Database {
        /// What is wrong.
        error: OpenError,
        /// Lines on how to go on, for a damaged one.
        advice: String,
    },
    /// The server cannot listen on an address.
    Listen {
        /// Address and port, as the configuration or `--port` gave them.
        address: SocketAddr,
        /// What changes the port.
        setting: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    Certificate(CertificateError),
    /// The configuration wants TLS, and this program was built without it.
    WithoutTls,
    /// The service cannot begin its work.
    Service(Error),
    /// The machine's key, which relays know it by, cannot be used.
    #[cfg(feature = "relay")]
    Identity(IdentityError),
}

impl StartError {
    pub(super) fn listen(
        address: SocketAddr,
        setting: &'static str,
        source: io::Error,
    ) -> StartError {
        StartError::Listen {
            address,
            setting,
            source,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Unwritable { path, source } => write!(
                f,
                "{} cannot be written: {source}; give this user the right to write there, or \
                 choose another directory with --data-dir",
                path.display()
            ),
            StartError::AlreadyRunning { data_dir, process } => write!(
                f,
                "another hearth (process {process}) uses {} already; stop it first, or choose \
                 another directory with --data-dir",
                data_dir.display()
            ),
            StartError::Config(problems) => write!(f, "{problems}"),
            StartError::Database { error, advice } => write!(f, "{error}{advice}"),
            StartError::Listen {
                address,
                setting,
                source,
            } => listen(f, address, setting, source),
            StartError::Certificate(error) => write!(f, "\"tls\" in config.json: {error}"),
            StartError::WithoutTls => f.write_str(
                "\"tls.cert\" is set in config.json, but this hearth was built without TLS: build \
                 it with the feature `tls`, or remove \"tls\"",
            ),
            StartError::Service(error) => write!(f, "{error}"),
            #[cfg(feature = "relay")]
            StartError::Identity(error) => write!(f, "{error}"),
        }
    }
}

fn listen(
    f: &mut fmt::Formatter<'_>,
    address: &SocketAddr,
    setting: &str,
    source: &io::Error,
) -> fmt::Result {
    let port = address.port();
    match source.kind() {
        io::ErrorKind::AddrInUse => write!(
            f,
            "port {port} is in use by another program; choose another with {setting}{}",
            if port == 5000 {
                " (Frigate and container registries also use port 5000)"
            } else {
                ""
            }
        ),
        io::ErrorKind::PermissionDenied => write!(
            f,
            "port {port} may not be used by this user: ports below 1024 need root; choose \
             another with {setting}"
        ),
        io::ErrorKind::AddrNotAvailable => write!(
            f,
            "{} is not an address of this machine; choose another with --bind, or with \"bind\" \
             of the channel in config.json",
            address.ip()
        ),
        _ => write!(f, "cannot listen on {address}: {source}"),
    }
}

impl std::error::Error for StartError {}

impl From<Problems> for StartError {
    fn from(problems: Problems) -> StartError {
        StartError::Config(problems)
    }
}

impl From<CertificateError> for StartError {
    fn from(error: CertificateError) -> StartError {
        StartError::Certificate(error)
    }
}

impl From<Error> for StartError {
    fn from(error: Error) -> StartError {
        StartError::Service(error)
    }
}

#[cfg(feature = "relay")]
impl From<IdentityError> for StartError {
    fn from(error: IdentityError) -> StartError {
        StartError::Identity(error)
    }
}

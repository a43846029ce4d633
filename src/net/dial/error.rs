//! Why a WebSocket could not be opened.

use std::fmt;
use std::io;

use base::url::{Authority, Url};

/// Why a WebSocket could not be opened.
#[derive(Debug)]
pub enum DialError {
    /// The URL is not that of a WebSocket.
    Malformed(String),
    /// The host name cannot be resolved, or not in time.
    Unknown {
        /// The name.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// No connection could be made, or it broke.
    Unreachable {
        /// Host and port.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The other side answered, but not with a WebSocket.
    Refused {
        /// Host and port.
        address: String,
        /// The HTTP status.
        status: u16,
        /// The error of its envelope, if it sent one.
        error: Option<String>,
    },
    /// The other side did not answer in HTTP, or not as a WebSocket must.
    NotWebSocket {
        /// Host and port.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DialError::Malformed(url) => write!(
                f,
                "{url:?} is not the URL of a WebSocket; it looks like wss://HOST/ws"
            ),
            DialError::Unknown { host, reason } => {
                write!(f, "the name {host} cannot be resolved: {reason}")
            }
            DialError::Unreachable { address, source } => {
                write!(f, "{address} cannot be reached: {source}")
            }
            DialError::Refused {
                address,
                status,
                error: Some(error),
            } => write!(f, "{address} answered {status}: {error}"),
            DialError::Refused {
                address, status, ..
            } => write!(
                f,
                "{address} answered {status} instead of opening a WebSocket"
            ),
            DialError::NotWebSocket { address, reason } => {
                write!(f, "{address} does not open a WebSocket: {reason}")
            }
        }
    }
}

impl std::error::Error for DialError {}

/// Host and port, as errors name a server.
pub(super) fn host_and_port(url: &Url) -> String {
    let authority = Authority {
        port: Some(url.port()),
        ..url.authority.clone()
    };
    authority.to_string()
}

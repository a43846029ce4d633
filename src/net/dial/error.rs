//! Why a WebSocket could not be opened.

use std::fmt;
use std::io;

use base::url::{Authority, Url};

/// Why a WebSocket could not be opened.
#[derive(Debug)]
pub enum DialError {
    /// No connection could be made, or it broke.
    Unreachable {
        /// Host and port.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The other side answered, but not with a WebSocket.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The sentence for a person, with the error of the envelope if it sent one.
        message: String,
    },
    /// Anything else, as a sentence: the URL, its name or the answer cannot be used.
    Other(String),
}

impl DialError {
    /// The URL is not that of a WebSocket.
    pub(super) fn malformed(url: &str) -> DialError {
        DialError::Other(format!(
            "{url:?} is not the URL of a WebSocket; it looks like wss://HOST/ws"
        ))
    }

    pub(super) fn unreachable(url: &Url, source: io::Error) -> DialError {
        DialError::Unreachable {
            address: host_and_port(url),
            source,
        }
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DialError::Unreachable { address, source } => {
                write!(f, "{address} cannot be reached: {source}")
            }
            DialError::Refused { message, .. } | DialError::Other(message) => f.write_str(message),
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

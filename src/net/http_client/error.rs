//! Why an exchange failed.

use std::fmt;
use std::io;
use std::time::Duration;

use ureq::{Error, Timeout};

use super::connector::ReadLimit;
use super::resolver::Refused;
use crate::capacity::is_out_of_descriptors;

/// Why a request got no (whole) answer. The texts are for logs; they hold
/// neither headers nor bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The address or a header cannot be used at all.
    Address(String),
    /// No connection was made: nothing has been sent.
    Unreachable(String),
    /// Nothing listens at the address: nothing has been sent.
    Refused(String),
    /// No descriptor is left for a connection: nothing has been sent.
    Exhausted,
    /// The address may not be dialled (see `HttpClient::checking`): nothing has
    /// been sent.
    Forbidden(String),
    /// The other side offers no TLS, or none that can be trusted: nothing has
    /// been sent.
    Untrusted(String),
    /// What came was not HTTP.
    NotHttp(String),
    /// The connection broke.
    Interrupted {
        /// What the socket or the transport said.
        reason: String,
        /// It broke before the first byte of an answer, on a connection that
        /// was kept from an earlier exchange: the server most likely closed it
        /// while it lay idle.
        stale: bool,
    },
    /// Nothing came for this long (see `ClientResponse::limit_silence`).
    Silent(Duration),
    /// The body is longer than the caller takes, in bytes.
    TooLarge(usize),
    /// The deadline has passed.
    TimedOut,
    /// The exchange was stopped.
    Cancelled,
}

impl ClientError {
    pub(super) fn from_ureq(error: Error, read_limit: &ReadLimit) -> ClientError {
        match error {
            Error::Timeout(Timeout::PerRead) => ClientError::Silent(read_limit.limit()),
            Error::Timeout(Timeout::Resolve) => {
                ClientError::Unreachable("the name could not be looked up in time".to_owned())
            }
            Error::Timeout(Timeout::Connect) => {
                ClientError::Unreachable("no connection in time".to_owned())
            }
            Error::Timeout(Timeout::PerWrite) => interrupted("the other side stopped reading"),
            Error::Timeout(_) => ClientError::TimedOut,
            Error::HostNotFound => {
                ClientError::Unreachable("no address is known for this name".to_owned())
            }
            Error::Io(error) if is_out_of_descriptors(&error) => ClientError::Exhausted,
            Error::Io(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => ClientError::Refused(error.to_string()),
                io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable => ClientError::Unreachable(error.to_string()),
                // rustls reports certificates and broken records this way.
                io::ErrorKind::InvalidData => ClientError::Untrusted(error.to_string()),
                _ => interrupted(error),
            },
            Error::ConnectProxyFailed(_) => ClientError::Unreachable(error.to_string()),
            Error::Protocol(_) | Error::LargeResponseHeader(..) => {
                ClientError::NotHttp(error.to_string())
            }
            Error::Other(error) if error.is::<Refused>() => {
                ClientError::Forbidden(error.to_string())
            }
            Error::Http(_) | Error::BadUri(_) => ClientError::Address(error.to_string()),
            error => interrupted(error),
        }
    }

    /// The same, before any answer, on a connection that was `used` before.
    pub(super) fn on_connection(self, used: bool) -> ClientError {
        match self {
            ClientError::Interrupted { reason, .. } => ClientError::Interrupted {
                reason,
                stale: used,
            },
            error => error,
        }
    }
}

fn interrupted(reason: impl fmt::Display) -> ClientError {
    ClientError::Interrupted {
        reason: reason.to_string(),
        stale: false,
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Address(reason) => write!(f, "the address cannot be used: {reason}"),
            ClientError::Unreachable(reason) | ClientError::Refused(reason) => {
                write!(f, "no connection: {reason}")
            }
            ClientError::Exhausted => {
                f.write_str("no descriptor is left for a connection: raise the limit of open files")
            }
            ClientError::Forbidden(reason) => f.write_str(reason),
            ClientError::Untrusted(reason) => write!(f, "no trusted connection: {reason}"),
            ClientError::NotHttp(reason) => write!(f, "the answer is not HTTP: {reason}"),
            ClientError::Interrupted { reason, .. } => {
                write!(f, "the connection broke: {reason}")
            }
            ClientError::Silent(limit) => write!(f, "nothing came for {} s", limit.as_secs()),
            ClientError::TooLarge(limit) => write!(f, "the answer is longer than {limit} bytes"),
            ClientError::TimedOut => f.write_str("the time was up"),
            ClientError::Cancelled => f.write_str("it was stopped"),
        }
    }
}

impl std::error::Error for ClientError {}

//! Why an exchange failed.

use std::fmt;
use std::io;
use std::time::Duration;

use base::error::without_numbers;
use base::language::Said;
use ureq::{Error, Timeout};

use super::connector::ReadLimit;
use super::resolver::Refused;
use crate::capacity::is_out_of_descriptors;

/// Why a request got no (whole) answer. The texts hold neither headers nor bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The address or a header cannot be used at all.
    Address(String),
    /// No connection was made: nothing has been sent.
    Unreachable(Said),
    /// Nothing listens at the address: nothing has been sent.
    Refused(Said),
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
    /// The body is compressed in this way, although only a plain one was asked for.
    Encoded(String),
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
                ClientError::Unreachable(Said::of("connection.slow_name", &[]))
            }
            Error::Timeout(Timeout::Connect) => {
                ClientError::Unreachable(Said::of("connection.slow", &[]))
            }
            Error::Timeout(Timeout::PerWrite) => interrupted("the other side stopped reading"),
            Error::Timeout(_) => ClientError::TimedOut,
            Error::HostNotFound => ClientError::Unreachable(Said::of("connection.no_name", &[])),
            Error::Io(error) if is_out_of_descriptors(&error) => ClientError::Exhausted,
            Error::Io(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    ClientError::Refused(Said::of("connection.refused", &[]))
                }
                io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable => {
                    ClientError::Unreachable(without_numbers(&error.to_string()).into())
                }
                // rustls reports certificates and broken records this way.
                io::ErrorKind::InvalidData => ClientError::Untrusted(error.to_string()),
                _ => interrupted(error),
            },
            Error::ConnectProxyFailed(_) => ClientError::Unreachable(error.to_string().into()),
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

    /// What happened, for a person.
    pub fn said(&self) -> Said {
        let of = |key: &'static str| Said::of(key, &[]);
        let because = |key, why: &str| of(key).with("why", without_numbers(why));
        match self {
            ClientError::Address(why) => because("connection.address", why),
            ClientError::Unreachable(why) | ClientError::Refused(why) => {
                of("connection.none").with("why", why.clone())
            }
            ClientError::Exhausted => of("connection.no_descriptors"),
            ClientError::Forbidden(why) => why.as_str().into(),
            ClientError::Untrusted(why) => because("connection.untrusted", why),
            ClientError::NotHttp(why) => because("connection.not_http", why),
            ClientError::Encoded(coding) => {
                of("connection.encoded").with("coding", coding.as_str())
            }
            ClientError::Interrupted { reason, .. } => because("connection.broke", reason),
            ClientError::Silent(limit) => {
                of("connection.silent").with("seconds", limit.as_secs().to_string())
            }
            ClientError::TooLarge(most) => {
                of("connection.too_large").with("most", most.to_string())
            }
            ClientError::TimedOut => of("connection.time_up"),
            ClientError::Cancelled => of("connection.stopped"),
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
        self.said().fmt(f)
    }
}

impl std::error::Error for ClientError {}

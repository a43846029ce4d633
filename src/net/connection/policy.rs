//! What a listening port serves, and who may connect.

use std::net::IpAddr;
use std::sync::Arc;

use base::error::{Error, Result};
use config::AddressPatterns;

use crate::client_handler::HandlerFactory;
use crate::http::handler::Handler;
#[cfg(feature = "tls")]
use crate::http::https_redirect::HttpsRedirect;
#[cfg(feature = "tls")]
use crate::tls::Acceptor;

/// What one listening port serves, and who may connect.
pub struct ListenerPolicy {
    /// The addresses that may connect.
    pub allow_from: AddressPatterns,
    /// Answers HTTP requests.
    pub handler: Arc<dyn Handler>,
    /// Opens handlers for JSON lines, and for WebSockets unless [`Handler`] names
    /// another factory. With None the port takes no JSON lines.
    pub sessions: Option<HandlerFactory>,
    /// Whether HTTP connections may become WebSockets.
    pub upgrades: bool,
    /// Whether it is a socket in the file system, which only the server's user and root
    /// may connect to.
    pub is_local: bool,
    /// Set when the port speaks TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsPolicy>,
}

impl ListenerPolicy {
    /// Checks that `address` may connect.
    ///
    /// # Errors
    /// `unauthorized` for an address outside `allow_from`.
    pub fn admit(&self, address: IpAddr) -> Result<()> {
        match self.allow_from.allows(address) {
            true => Ok(()),
            false => Err(Error::unauthorized(
                "your address may not connect here: it is not in \"allow_from\"",
            )),
        }
    }

    /// Whether the port speaks TLS.
    pub fn is_secure(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}

/// How a port speaks TLS.
#[cfg(feature = "tls")]
pub struct TlsPolicy {
    /// Completes handshakes.
    pub acceptor: Arc<Acceptor>,
    /// Serves clients that begin without TLS: sends them to https. None where they are
    /// served like the others.
    pub plain: Option<Arc<ListenerPolicy>>,
}

#[cfg(feature = "tls")]
impl TlsPolicy {
    /// The policy of a port to which `allow_from` may connect, with TLS `only` or also without.
    pub fn new(acceptor: Arc<Acceptor>, only: bool, allow_from: AddressPatterns) -> TlsPolicy {
        let plain = ListenerPolicy {
            allow_from,
            handler: Arc::new(HttpsRedirect),
            sessions: None,
            upgrades: false,
            is_local: false,
            tls: None,
        };
        TlsPolicy {
            acceptor,
            plain: only.then(|| Arc::new(plain)),
        }
    }
}

//! What is known of one connection while it lasts.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ListenerPolicy;
use super::admission::Admission;
use crate::peer::Peer;
use config::{Config, Limits};

/// One connection.
pub struct Connection {
    pub(super) door: Arc<ListenerPolicy>,
    /// The configuration as it was when the connection was accepted.
    pub config: Arc<Config>,
    /// Its place in the counts.
    pub admission: Admission,
    /// The other end of the socket, with IPv4-mapped IPv6 made plain IPv4.
    pub remote: IpAddr,
    /// Whether the socket itself is encrypted.
    pub secure: bool,
    pub begun: Instant,
    /// Requests or messages received.
    pub received: u64,
}

impl Connection {
    /// The limits that hold for it.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Whether its socket comes from a reverse proxy that is believed.
    pub fn is_proxied(&self) -> bool {
        self.config.trusted_proxies.allows(self.remote)
    }

    /// The other end of the socket itself.
    pub fn socket_peer(&self) -> Peer {
        Peer {
            address: self.remote,
            secure: self.secure,
            relay: None,
        }
    }

    /// When a write that begins now gives up.
    pub fn write_deadline(&self) -> Instant {
        Instant::now() + seconds(self.limits().dead_seconds)
    }
}

/// A limit of the configuration as a duration, bounded so that it can be added
/// to any instant.
pub fn seconds(seconds: u64) -> Duration {
    const YEAR: u64 = 365 * 24 * 60 * 60;
    Duration::from_secs(seconds.min(YEAR))
}

//! An accepted connection: its limits, its counts and its entry in the registry.

pub mod admission;
pub mod policy;
pub mod registry;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{Config, Limits};

use crate::client_handler::{ClientHandler, HandlerFactory};
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::wait::Waker;
use admission::Admission;
use policy::ListenerPolicy;
use registry::Registered;

/// One connection.
pub struct Connection {
    /// What its port serves, and who may connect.
    pub policy: Arc<ListenerPolicy>,
    /// The configuration as it was when the connection was accepted.
    pub config: Arc<Config>,
    /// Its part of the connection counts.
    pub admission: Admission,
    /// The other end of the socket, with IPv4-mapped IPv6 made plain IPv4.
    pub remote: IpAddr,
    /// Whether the socket itself is encrypted.
    pub secure: bool,
    /// When it was accepted.
    pub begun: Instant,
    /// Requests or messages received.
    pub received: u64,
}

impl Connection {
    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Whether the other end of the socket is a trusted reverse proxy.
    pub fn is_proxied(&self) -> bool {
        self.config.trusted_proxies.allows(self.remote)
    }

    /// The other end of the socket itself.
    pub fn socket_peer(&self) -> Peer {
        Peer {
            address: self.remote,
            secure: self.secure,
            relay: None,
            is_local: self.policy.is_local,
        }
    }

    /// When a write that begins now gives up.
    pub fn write_deadline(&self) -> Instant {
        Instant::now() + seconds(self.limits().dead_seconds)
    }
}

/// A client handler, and the outbox through which its responses go.
pub struct ConnectionIo {
    /// Takes what the client sends.
    pub client_handler: Box<dyn ClientHandler>,
    /// Queues what is sent to the client; bounded by `limits.outbox_bytes`.
    pub outbox: Arc<Outbox>,
    /// Wakes the connection's thread when the outbox has something new.
    pub waker: Arc<Waker>,
}

impl ConnectionIo {
    /// Opens a handler for `connection`. From then on, closing the outbox ends the
    /// connection.
    ///
    /// # Errors
    /// No file descriptor is left for the waker.
    pub fn open(
        connection: &Connection,
        registered: &Registered,
        open: &HandlerFactory,
        peer: Peer,
    ) -> io::Result<ConnectionIo> {
        let waker = Arc::new(Waker::new()?);
        let wake = Arc::clone(&waker);
        let outbox = Arc::new(Outbox::new(
            connection.config.limits.outbox_bytes,
            move || wake.wake(),
        ));
        registered.set_outbox(&outbox);
        let transport = connection.admission.transport().as_str();
        Ok(ConnectionIo {
            client_handler: open(peer, transport, Arc::clone(&outbox)),
            outbox,
            waker,
        })
    }
}

/// A limit of the configuration as a duration, bounded so that it can be added
/// to any instant.
pub fn seconds(seconds: u64) -> Duration {
    const YEAR: u64 = 365 * 24 * 60 * 60;
    Duration::from_secs(seconds.min(YEAR))
}

//! The way in: accepts connections within limits, tells WebSocket, JSON lines
//! and HTTP apart by their first bytes, and frames each strictly.
//!
//! ```text
//! listen -> (admission, registry) -> detect_protocol -> http_connection -> Handler
//!                                          |       '-> handshake -> websocket -> ClientHandler
//!                                          '-> lines ---------------------------> ClientHandler
//! ```
//!
//! Each connection has one thread, which waits on its socket and its outbox at
//! once ([`wait`]). Where TLS is wanted, its handshake comes before the sniffing
//! ([`secure`]). Every wait has a deadline that a slow client cannot extend
//! ([`stream`]), and every buffer a bound.

pub mod admission;
mod body;
pub mod bucket;
pub mod cancel;
pub mod client_handler;
mod connection;
pub mod demand;
mod detect_protocol;
pub mod dial;
pub mod exchange;
pub mod forwarded;
mod frames;
mod handshake;
mod head;
mod http_connection;
mod later;
mod lines;
pub mod listen;
pub mod outbound;
pub mod outbox;
pub mod peer;
pub mod pipe;
pub mod process_group;
mod registry;
pub mod relays;
mod respond;
pub mod secure;
pub mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tls;
#[cfg(feature = "tls")]
mod tls_policy;
pub mod wait;
mod websocket;

#[cfg(test)]
mod tests;

pub use registry::STACK_BYTES;

use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;

#[cfg(feature = "tls")]
use crate::tls::Acceptor;
use admission::{Admissions, Connections};
use base::error::{Error, Result};
use client_handler::HandlerFactory;
use config::{AddressPatterns, Config, Settings};
use exchange::Handler;
use listen::Listener;

/// The way in: opens listeners, whose connections it counts together.
pub struct Listeners {
    shared: Arc<Shared>,
    /// None before a relay, which has no sessions of its own.
    sessions: Option<HandlerFactory>,
    #[cfg(feature = "tls")]
    tls: Option<Arc<Acceptor>>,
}

/// What all listeners share.
struct Shared {
    config: Box<dyn Fn() -> Arc<Config> + Send + Sync>,
    admissions: Arc<Admissions>,
}

impl Listeners {
    /// Connections are handled by `sessions`. The limits come from `settings`
    /// and are read once for each connection, so that a change applies to the
    /// next one.
    pub fn new(settings: Arc<Settings>, sessions: HandlerFactory) -> Listeners {
        Listeners::with(move || settings.current(), sessions)
    }

    /// A listeners before a relay: no service, and limits that do not change.
    pub fn of_relay(config: Config) -> Listeners {
        let config = Arc::new(config);
        Listeners::build(move || Arc::clone(&config), None)
    }

    /// A listeners that asks `config` for the configuration in force and `sessions`
    /// for dialogues.
    fn with(
        config: impl Fn() -> Arc<Config> + Send + Sync + 'static,
        sessions: HandlerFactory,
    ) -> Listeners {
        Listeners::build(config, Some(sessions))
    }

    fn build(
        config: impl Fn() -> Arc<Config> + Send + Sync + 'static,
        sessions: Option<HandlerFactory>,
    ) -> Listeners {
        Listeners {
            shared: Arc::new(Shared {
                config: Box::new(config),
                admissions: Arc::default(),
            }),
            sessions,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Lets all listeners that are opened from now on speak TLS, if there is an
    /// acceptor. Clients that do not are told so.
    #[cfg(feature = "tls")]
    pub fn with_tls(mut self, acceptor: Option<Arc<Acceptor>>) -> Listeners {
        self.tls = acceptor;
        self
    }

    /// Serves WebSocket, JSON lines and HTTP on `socket`, to peers that
    /// `allow_from` permits (contract section 5).
    ///
    /// # Errors
    /// The socket cannot be used, or no thread or descriptor is left.
    pub fn listen(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        self.open(socket, allow_from, handler, true)
    }

    /// Serves only HTTP on `socket`: a port for webhooks alone.
    ///
    /// # Errors
    /// As [`Listeners::listen`].
    pub fn listen_http(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        self.open(socket, allow_from, handler, false)
    }

    fn open(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
        upgrades: bool,
    ) -> io::Result<Listener> {
        #[cfg(feature = "tls")]
        let tls = (self.tls.clone())
            .map(|acceptor| tls_policy::TlsPolicy::new(acceptor, allow_from.clone()));
        let door = ListenerPolicy {
            allow_from,
            handler,
            sessions: self.sessions.clone().filter(|_| upgrades),
            upgrades,
            #[cfg(feature = "tls")]
            tls,
        };
        Listener::start(&self.shared, door, socket)
    }

    /// The counts of connections, which outlive the listeners with its listeners.
    pub fn admissions(&self) -> Arc<Admissions> {
        Arc::clone(&self.shared.admissions)
    }

    /// How many connections are open now, over all listeners.
    pub fn connections(&self) -> Connections {
        self.shared.admissions.open()
    }
}

/// What is behind one listening port.
struct ListenerPolicy {
    allow_from: AddressPatterns,
    handler: Arc<dyn Handler>,
    /// Whom JSON lines lead to, and WebSockets that the handler leads nowhere else.
    sessions: Option<HandlerFactory>,
    /// Whether there are WebSockets.
    upgrades: bool,
    /// Set when it is opened with TLS.
    #[cfg(feature = "tls")]
    tls: Option<tls_policy::TlsPolicy>,
}

impl ListenerPolicy {
    /// Checks that `address` may connect.
    fn admit(&self, address: IpAddr) -> Result<()> {
        match self.allow_from.allows(address) {
            true => Ok(()),
            false => Err(Error::unauthorized(
                "your address may not connect here: it is not in \"allow_from\"",
            )),
        }
    }

    /// Whether TLS is spoken there.
    fn is_secure(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}

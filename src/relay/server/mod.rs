//! The relay: machines that cannot be dialled link to it, and clients reach them by
//! their machine_id (protocol section 6).
//!
//! ```text
//! client --> RelayClient --Frame--> link's outbox --> machine
//! client <-- client's outbox <--Frame-- RelayLink <-- machine
//! ```
//!
//! It keeps nothing on disk and never dials. A machine's link is bound to its
//! machine_id only after the machine has proved that it holds the key. A client's
//! message waits as one frame in the link's outbox; a client with too many waiting
//! frames is not read from. What a client does not read fills its own outbox, until
//! it is closed. So no client delays another.
//!
//! - [`Relay::open`] checks the token (`entrance`) and makes the handler of a
//!   WebSocket: `RelayLink` for a machine, `RelayClient` for a client.
//! - `RelayLink::greet` proves the machine's key and binds the link
//!   (`LinkRegistry::bind`).
//! - `RelayClient::receive` finds the link (`Relay::find`), joins it (`Link::enter`)
//!   and passes messages on (`Attached::pass`).
//! - `RelayLink::take` decodes a machine's frame and delivers it (`Link::deliver`).

mod client;
mod entrance;
mod link;
mod link_registry;
mod relay;
mod routes;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use config::{AddressPatterns, Config, Limits};
use net::listener::Listener;
use net::listener::Listeners;
#[cfg(feature = "tls")]
use net::tls::Acceptor;

pub use entrance::{TOKEN_CHARACTERS, Token};
pub use relay::{CLIENTS_PER_MACHINE, MACHINES, MESSAGES_PER_SECOND, Relay, Rules};

/// Bytes of a message, and of what waits for one client, unless they are set.
pub const MESSAGE_BYTES: usize = 1024 * 1024;
/// Connections from one address, as an [`AddressKey`](net::peer::AddressKey) counts
/// them, unless it is set.
pub const CONNECTIONS_PER_ADDRESS: usize = 256;

/// How often a machine's link is pinged, and how long it may be silent before it is
/// considered dead (protocol section 6).
const PING_SECONDS: u64 = 25;
const DEAD_SECONDS: u64 = 60;

/// How to run a standalone relay.
pub struct Options {
    /// Admits machines and clients.
    pub token: Token,
    /// What it allows.
    pub rules: Rules,
    /// Reverse proxies whose forwarding headers are trusted.
    pub trusted_proxies: AddressPatterns,
    /// The certificate, with which it speaks TLS and nothing else.
    #[cfg(feature = "tls")]
    pub acceptor: Option<Acceptor>,
}

impl Options {
    /// The defaults.
    pub fn new(token: Token) -> Options {
        let limits = Limits {
            connections: MACHINES * (1 + CLIENTS_PER_MACHINE),
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            message_bytes: MESSAGE_BYTES,
            outbox_bytes: MESSAGE_BYTES,
            ping_seconds: PING_SECONDS,
            dead_seconds: DEAD_SECONDS,
            ..Limits::default()
        };
        Options {
            token,
            rules: Rules::under(limits),
            trusted_proxies: AddressPatterns::default(),
            #[cfg(feature = "tls")]
            acceptor: None,
        }
    }
}

/// A standalone relay.
pub struct RelayServer {
    listener: Listener,
}

impl RelayServer {
    /// Serves on `socket`.
    ///
    /// # Errors
    /// The socket cannot be used, or no thread or file descriptor is left.
    pub fn start(options: Options, socket: TcpListener) -> io::Result<RelayServer> {
        let listeners = Listeners::of_relay(Config {
            limits: options.rules.limits.clone(),
            trusted_proxies: options.trusted_proxies,
            ..Config::default()
        });
        #[cfg(feature = "tls")]
        let listeners = listeners.with_tls(options.acceptor.map(Arc::new), true);
        let relay = Relay::new(options.token, options.rules);
        let routes = Arc::new(routes::Routes::new(relay));
        let listener = listeners.listen(socket, AddressPatterns::all(), routes)?;
        Ok(RelayServer { listener })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Stops: closes every link and client with 1001, after sending what waits for
    /// it. Returns after at most five seconds.
    pub fn stop(self) {
        self.listener.stop();
    }
}

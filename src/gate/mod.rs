//! The way in: accepts connections within limits, tells WebSocket, JSON lines
//! and HTTP apart by their first bytes, and frames each strictly.
//!
//! ```text
//! listen -> (admission, registry) -> sniff -> http_connection -> Handler
//!                                          |       '-> handshake -> websocket -> Dialogue
//!                                          '-> lines ---------------------------> Dialogue
//! ```
//!
//! Each connection has one thread, which waits on its socket and its outbox at
//! once ([`wait`]). Every wait has a deadline that a slow client cannot extend
//! ([`stream`]), and every buffer a bound.

pub mod admission;
mod body;
mod connection;
pub mod dialogue;
pub mod exchange;
mod forwarded;
mod frames;
mod handshake;
mod head;
mod http_connection;
mod later;
mod lines;
pub mod listen;
mod registry;
mod respond;
mod sniff;
pub mod stream;
pub mod wait;
mod websocket;

#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use crate::config::{AddressPatterns, Config, Settings};
use crate::service::Service;
use admission::{Admissions, Connections};
use dialogue::OpenDialogue;
use exchange::Handler;
use listen::Listener;

/// What a gate is built of.
pub struct GateParts {
    /// Whom WebSocket and JSON lines lead to.
    pub service: Arc<Service>,
    /// Where the limits come from. They are read once for each connection, so
    /// that a change holds for the next one.
    pub settings: Arc<Settings>,
}

/// The way in: opens listeners, whose connections it counts together.
pub struct Gate {
    shared: Arc<Shared>,
    sessions: OpenDialogue,
}

/// What all listeners share.
struct Shared {
    config: Box<dyn Fn() -> Arc<Config> + Send + Sync>,
    admissions: Arc<Admissions>,
}

impl Gate {
    /// A gate before `service`.
    pub fn new(parts: GateParts) -> Gate {
        let GateParts { service, settings } = parts;
        Gate::with(move || settings.current(), dialogue::sessions(service))
    }

    /// A gate that asks `config` for the configuration in force and `sessions`
    /// for dialogues.
    fn with(
        config: impl Fn() -> Arc<Config> + Send + Sync + 'static,
        sessions: OpenDialogue,
    ) -> Gate {
        Gate {
            shared: Arc::new(Shared {
                config: Box::new(config),
                admissions: Arc::default(),
            }),
            sessions,
        }
    }

    /// Serves WebSocket, JSON lines and HTTP on `socket`, to peers that
    /// `allow_from` permits (contract section 5).
    ///
    /// Errors: the socket cannot be used, or no thread or descriptor is left.
    pub fn listen(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        self.open(socket, allow_from, handler, Some(&self.sessions))
    }

    /// Serves only HTTP on `socket`: a port for webhooks alone.
    ///
    /// Errors: as [`Gate::listen`].
    pub fn listen_http(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        self.open(socket, allow_from, handler, None)
    }

    fn open(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
        sessions: Option<&OpenDialogue>,
    ) -> io::Result<Listener> {
        let door = Door {
            allow_from,
            handler,
            sessions: sessions.cloned(),
        };
        Listener::start(&self.shared, door, socket)
    }

    /// The counts of connections, which outlive the gate with its listeners.
    pub fn admissions(&self) -> Arc<Admissions> {
        Arc::clone(&self.shared.admissions)
    }

    /// How many connections are open now, over all listeners.
    pub fn connections(&self) -> Connections {
        self.shared.admissions.open()
    }
}

/// What is behind one listening port.
struct Door {
    allow_from: AddressPatterns,
    handler: Arc<dyn Handler>,
    sessions: Option<OpenDialogue>,
}

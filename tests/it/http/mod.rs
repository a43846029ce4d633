//! The server at its sockets: HTTP, the page, TLS.

pub mod events;
#[cfg(feature = "tls")]
mod household;
mod metrics;
mod own_network;
mod requests;
mod sockets;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_outgoing;
mod web;

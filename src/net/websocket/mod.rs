//! WebSockets (RFC 6455): the handshake, then messages until either side closes.

mod connection;
mod frames;
pub(crate) mod handshake;

pub(crate) use connection::run;

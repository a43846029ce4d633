//! One integration binary: starts the server in process on port 0, or the real
//! binary, and drives it over real sockets.

mod architecture;
mod chat;
mod http;
mod kill;
mod program;
mod roles;
mod sockets;
mod support;
mod transcripts;
#[cfg(feature = "web")]
mod web;
mod webhooks;

//! Connections in and out: listeners within limits, strict framing of HTTP,
//! WebSocket and JSON lines, TLS, dialling, an HTTP client, and child processes.
//!
//! An incoming connection has one thread, which waits on its socket and its
//! outbox at once ([`wait::wait`]). Every wait has a deadline that a slow client
//! cannot extend ([`stream::Stream`]), and every buffer a bound.
//!
//! In: [`listener`] accepts, counts and detects the protocol; `lines`, `websocket`
//! and [`http`] frame it for a [`client_handler::ClientHandler`] or an
//! [`http::Handler`].
//! Out: [`dial::open`] opens WebSockets, [`http_client::HttpClient::exchange`]
//! sends requests, [`process::Process::run`] supervises a child program.

pub mod cancel;
pub mod capacity;
pub mod client_handler;
mod connection;
pub mod dial;
pub mod http;
pub mod http_client;
mod inbox;
mod lines;
pub mod listener;
pub mod outbox;
pub mod peer;
pub mod process;
pub mod relay_links;
mod resolve;
pub mod stream;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tls;
pub mod token_bucket;
pub mod wait;
mod websocket;

#[cfg(test)]
mod tests;

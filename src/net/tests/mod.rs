//! Tests of the listeners over real sockets.

mod http;
#[cfg(feature = "shuttle")]
mod interleavings;
mod lines;
mod listen;
mod pieces;
pub mod support;
mod websocket;

//! Tests of the gate over real sockets.

mod http;
mod lines;
mod listen;
pub mod support;
mod websocket;

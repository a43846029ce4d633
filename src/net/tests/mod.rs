//! Tests of the listeners over real sockets.

mod http;
mod lines;
mod listen;
pub mod support;
mod websocket;

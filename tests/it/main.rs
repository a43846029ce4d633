//! One integration binary: starts the server in process on port 0, or the real
//! binary, and drives it over real sockets.

mod architecture;
mod chat;
mod faults;
mod http;
mod mcp;
mod mcp_http;
mod mcp_peers;
mod memory;
mod memory_cli;
mod permissions;
mod program;
mod roles;
#[path = "../faults/mod.rs"]
mod scenarios;
mod sockets;
mod support;
mod tools;
mod transcripts;
mod webhook_accounts;
mod webhook_command;
mod webhooks;

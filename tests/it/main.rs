//! One integration binary: starts the server in process on port 0, or the real
//! binary, and drives it over real sockets.

mod architecture;
mod chat;
mod examples;
mod faults;
mod http;
mod mcp;
mod mcp_http;
mod mcp_peers;
mod memory;
mod memory_cli;
mod metrics;
mod model_api_peers;
mod models;
mod openai_api;
mod permissions;
mod program;
mod readme;
mod readme_examples;
mod roles;
#[path = "../faults/mod.rs"]
mod scenarios;
mod sockets;
mod support;
mod tools;
mod transcripts;
#[cfg(feature = "web")]
mod web;
mod webhook_accounts;
mod webhook_command;
mod webhooks;

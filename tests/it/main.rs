//! One integration binary: starts the server in process on port 0, or the real
//! binary, and drives it over real sockets.

mod agent;
mod api;
#[path = "../fuzz/mod.rs"]
mod broken_input;
mod cli;
mod faults;
mod fuzz;
mod handbook;
#[path = "../households/mod.rs"]
mod household_steps;
mod households;
mod http;
mod mcp;
mod relay;
#[path = "../faults/mod.rs"]
mod scenarios;
mod server;
mod service;
mod store;
mod telegram;
mod webhook;

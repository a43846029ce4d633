//! Servers of the Model Context Protocol, and Hearth as one.

mod agentdojo_peers;
pub mod api;
mod client;
mod conformance_peers;
mod files;
mod http;
mod leftovers;
mod many_tools;
mod peers;
mod restarts;
mod sse;

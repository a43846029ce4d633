//! One integration binary: starts the server in process on port 0, or the real
//! binary, and drives it over real sockets.

mod approvals_cli;
mod architecture;
mod assistant;
mod attachments;
#[path = "../fuzz/mod.rs"]
mod broken_input;
mod catalogue;
mod chat;
mod clock;
mod completions;
mod container;
mod cut_replies;
mod data;
mod doctor;
mod door;
mod embeddings;
mod examples;
mod faults;
mod folding;
mod forgetting;
#[cfg(feature = "relay")]
mod frozen;
mod fuzz;
mod handbook;
mod handbook_examples;
mod held_commits;
mod home_assistant_peers;
#[path = "../households/mod.rs"]
mod household_steps;
mod households;
mod http;
mod injections;
mod late_replies;
mod library_peers;
mod lists;
mod mcp;
mod mcp_api;
mod mcp_files;
mod mcp_http;
mod mcp_peers;
mod mcp_restarts;
mod mcp_sse;
mod memory;
mod memory_cli;
mod metrics;
mod model_api;
mod model_api_peers;
mod model_files;
mod models;
mod noise;
mod notifications;
mod overflow;
mod own_network;
mod packages;
mod people;
mod people_limits;
mod permissions;
mod privacy;
mod program;
mod program_peers;
mod prompt_cache;
mod recall;
#[cfg(feature = "relay")]
mod relay_end_to_end;
#[cfg(feature = "relay")]
mod relay_link;
#[cfg(feature = "relay")]
mod relay_server;
mod roles;
mod routines;
mod sandbox;
mod scarcity;
#[path = "../faults/mod.rs"]
mod scenarios;
mod schemas;
mod sdk_peers;
mod service;
mod skills;
mod small_machines;
mod sockets;
mod start;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_outgoing;
mod tool_calls;
mod tools;
mod transcripts;
#[cfg(feature = "web")]
mod upgrades;
mod versions;
mod voice;
mod web;
mod web_push;
mod web_push_peers;
mod webhook_accounts;
mod webhook_command;
mod webhooks;

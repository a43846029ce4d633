//! Hearth: an AI assistant server for the home, in one small program with one
//! SQLite file. This page is the map of the code.
//!
//! # The way of one request
//!
//! ```text
//! socket -> net (accept, limits, TLS, protocol detection) -> http | websocket | lines
//!        -> service (authorisation, dispatch) -> store (the turn is committed)
//!        -> workers -> agent turn -> provider, tools
//!        -> store (reply and delivery: one commit) -> hub (events, responses) -> socket
//!                                                  deliveries -> the caller's URL
//! ```
//!
//! A message arrives on a connection's own thread. [`net`] detects by the first
//! bytes whether the client speaks WebSocket, JSON lines or HTTP; a
//! [`service::session::Session`] authenticates the client and parses the command.
//! The message and its turn go to the [`store`]'s writer thread, which commits
//! whatever has queued in one transaction. A worker takes the turn from the queue.
//! The [`agent`] asks the model and runs its tools; each step is on disk before
//! anything with an effect depends on it. The reply, the turn's end and the
//! webhook's callback are one commit. After it, the [`service::hub`] sends the
//! events, and the response goes to the connection's outbox, whose thread sleeps in
//! `poll` on socket and outbox at once.
//!
//! Other requests end at the same queue: an account's [`webhook`], a program that
//! speaks OpenAI's or Ollama's interface ([`api`]), a schedule that is due, and
//! a client whose messages arrive through a `relay`.
//!
//! # Members of the workspace, lowest first
//!
//! A member depends only on those above it in this list; cargo holds that.
//!
//! | member | holds |
//! |---|---|
//! | [`base`] | closed error codes, typed time-ordered ids, injected clock, secrets, calendar, measurement |
//! | [`config`] | the one declaration of every setting, with default and documentation; load, check, save |
//! | [`protocol`] | wire types: envelope, commands, events, relay frames |
//! | [`store`] | one writer thread, a pool of readers; all SQL |
//! | [`net`] | listeners, limits, TLS; framing of HTTP, WebSocket and JSON lines; dialling, HTTP client, child processes |
//! | [`agent`] | model providers, tools, MCP, context, permissions, the turn |
//! | `relay` | the relay, a machine's link to one, and the encryption that the relay cannot read |
//! | this one | [`handbook`], [`catalogue`], [`transfer`], [`service`], [`http`], [`webhook`], [`outgoing`], [`api`], `web`, [`metrics`], [`server`], [`cli`] |
//!
//! # What always holds
//!
//! - No async runtime: blocking sockets, one thread per connection, a fixed
//!   number of workers. Every thread is named, owned and joined.
//! - Every wait has a deadline, every queue and buffer a bound.
//! - What was acknowledged is on disk. `synchronous=FULL` everywhere; group
//!   commit makes it fast.
//! - Effects follow commits: what leaves the process takes a [`store::Durable`].
//! - A turn that waits for a person holds no worker. The decision queues it
//!   again, also after a restart.
//! - Wire types ([`protocol`]) are not domain types ([`store`]'s records).

#[cfg(not(target_os = "linux"))]
compile_error!("Hearth runs on Linux alone: it needs eventfd, ppoll and /proc");

pub mod api;
pub mod catalogue;
pub mod cli;
pub mod handbook;
pub mod http;
pub mod metrics;
pub mod outgoing;
pub mod qr;
pub mod server;
pub mod service;
pub mod telegram;
pub mod transfer;
#[cfg(feature = "web")]
pub mod web;
pub mod webhook;

//! Hearth: an AI assistant server for the home, in one small binary with one
//! SQLite file. This page is the map of the house.
//!
//! # One request's way through the house
//!
//! ```text
//! socket -> gate (accept, TLS, sniff) -> http | websocket | lines -> service (who may do what)
//!        -> store (the turn is on disk) -> workers -> agent turn -> provider, tools
//!        -> store (reply and delivery: one commit) -> hub (events, responses) -> socket
//!                                                  deliveries -> the caller's URL
//! ```
//!
//! A person's message comes in on a connection's own thread. The [`gate`] has
//! told by the first bytes whether it speaks WebSocket, JSON lines or HTTP; a
//! [`service::session::Session`] checks who it is and parses the command. The
//! message and its turn go to the [`store`]'s writer thread, which commits
//! whatever has queued in one transaction; the turn's id goes to the queue, from
//! which a worker takes it. The [`agent`] asks the model and runs its
//! tools, each step on disk before anything with an effect depends on it. The
//! reply, the turn's end and the webhook's callback are one commit; after it,
//! the [`service::hub`] tells the subscribers and the response goes to the
//! connection's outbox, whose thread sleeps in `poll` on socket and outbox at
//! once.
//!
//! The other ways in end at the same queue: an account's [`webhook`], a program
//! that speaks OpenAI's or Ollama's interface ([`model_api`]), a schedule whose
//! time has come, and a client elsewhere, whose frames this machine's link to a
//! `relay` hands to a session of its own.
//!
//! # Rooms, lowest first
//!
//! A room imports only what stands above it in this list; a test holds that.
//!
//! | room | holds |
//! |---|---|
//! | [`error`], [`ids`], [`clock`], [`secret`] | closed error codes, typed time-ordered ids, injected time, secrets that cannot be printed |
//! | [`measure`] | counters and histograms, owned by the rooms that know the numbers |
//! | [`json`], [`threads`] | JSON values written as JSON; starting threads |
//! | [`calendar`] | time zones, the five fields of cron, when something is next |
//! | [`config`] | the one declaration of every setting, with default and documentation; load, check, save |
//! | [`tls`] | certificates and keys: what is trusted, and what the server shows |
//! | [`protocol`] | wire types: envelope, commands, events, relay frames |
//! | [`store`] | one writer thread, a pool of readers; all SQL |
//! | [`agent`] | the turn loop, context, permission, model providers, tools |
//! | [`service`] | sessions, commands, events, approvals, schedules, the queue of turns and its workers |
//! | [`gate`] | sockets: accepting, limits, strict framing of HTTP, WebSocket and JSON lines |
//! | [`dial`] | outgoing WebSockets: to a relay, and those of `hearth chat` |
//! | [`http`], [`webhook`] | routes; incoming accounts, callbacks and their signatures |
//! | `relay` | the relay, a machine's link to one, and the encryption that it cannot read |
//! | [`metrics`] | what is measured, as Prometheus reads it |
//! | [`model_api`] | the assistant behind the interfaces of OpenAI and Ollama |
//! | `web` | the page in the browser and its files, held in the binary |
//! | [`server`] | all of it built from a data directory into one value |
//! | [`cli`] | the subcommands of `hearth` |
//!
//! # What always holds
//!
//! - No async runtime: blocking sockets, one thread per connection, a fixed
//!   number of workers. Every thread is named, owned and joined.
//! - Every wait has a deadline, every queue and buffer a bound.
//! - What was acknowledged is on disk. `synchronous=FULL` everywhere; group
//!   commit makes it fast.
//! - Waiting for a person holds no worker: the turn is put away, and the
//!   decision queues it again, also after a restart.
//! - Wire types ([`protocol`]) are not domain types ([`store`]'s records).

pub mod cli;
pub mod http;
pub mod metrics;
pub mod model_api;
pub mod server;
pub mod service;
#[cfg(feature = "web")]
pub mod web;
pub mod webhook;

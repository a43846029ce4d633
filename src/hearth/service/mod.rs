//! Who may do what: sessions, commands, events, approvals, and the workers that
//! run turns.
//!
//! Every request of a person or a program reaches the one [`Service`]. `state` holds
//! its fields; each of the other files adds its methods for one subject.
//!
//! # The walk of a chat message
//!
//! 1. `receive` of [`session::Session`], on the connection's thread: parses the
//!    message ([`protocol::command::Request::parse`]), checks rate, identity and role.
//! 2. `commands::run`: the one match on the command.
//! 3. `turns`: `chat` reserves a place in the queue and stores the message and its
//!    turn, which are [`store::Provisional`] until the turn ends; the connection's [`caller::Responder`] becomes the turn's
//!    watcher ([`hub::Hub::watch`]); `start` publishes the message and queues the
//!    turn.
//! 4. `workers`: a worker takes it from the queue.
//! 5. `running`: `run_turn` runs [`agent::turn::run`] and publishes its progress
//!    ([`hub::Hub::publish_progress`]); `conclude` commits the turn's end
//!    ([`store::Store::finish_turn`]), then publishes it, now [`store::Durable`], and
//!    notifies the watchers ([`hub::Hub::turn_ended`]).
//! 6. [`caller::Responder::send`] puts the response into the connection's outbox;
//!    `arrange` of the session gives it its place in the order.
//!
//! A webhook's message (`webhooks`), a program's (`program_turns`) and a schedule
//! that is due (`routines`) join at step 3 and differ in who watches: a
//! [`turn_wait::TurnWait`], a [`reply_stream::ReplyStream`], or nobody.

mod accounts;
mod approvals;
mod attachments;
pub mod backup_contents;
pub mod backups;
mod calendars;
pub mod caller;
mod commands;
pub mod connections;
mod conversations;
mod database_copies;
mod embedding;
pub mod event_stream;
mod guesser;
pub mod hub;
pub mod invitations;
mod memories;
pub mod meter;
mod notifications;
mod own_account;
pub mod password;
pub mod people;
mod program_calls;
pub mod program_turns;
pub mod programs;
mod push;
mod queue;
pub mod reply_stream;
mod routines;
mod running;
mod senders;
pub mod session;
pub mod settings;
mod state;
mod throttle;
mod timekeeper;
mod tools;
pub mod transfer;
pub mod turn_wait;
mod turns;
pub mod views;
mod voice;
mod voices;
mod wakes;
mod webhook_accounts;
mod webhook_sample;
mod webhooks;
pub mod workers;

pub use accounts::Login;
pub use senders::Said;
pub use state::Service;
pub use webhooks::{Accepted, WebhookRequest};

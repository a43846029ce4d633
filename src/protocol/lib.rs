//! The wire types: envelopes, commands, records and events. No I/O happens here, and the
//! domain does not use these types: they are converted at the edge.
//!
//! # The walk of a message
//!
//! 1. [`command::Request::parse`] reads a client's text: its `id`
//!    ([`envelope::RequestId::from_member`]) and its [`command::Command`], whose fields
//!    [`fields::Fields`] takes out one by one.
//! 2. [`command::Request::declaration`] says who may send it.
//! 3. [`envelope::success`] or [`envelope::failure`] makes the response's text.
//! 4. [`event::Event::to_text`] makes that of an event.

pub mod attachment;
pub mod command;
pub mod envelope;
pub mod event;
pub mod fields;
pub mod public_key;
pub mod push;
pub mod record;
pub mod registration;
pub mod relay;
pub mod schema;

/// The version of the protocol, as `auth` reports it.
pub const VERSION: u32 = 1;

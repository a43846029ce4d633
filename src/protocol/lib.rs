//! The wire: envelopes, commands and events as types. No I/O happens here, and
//! nothing behind the wire uses these types: they are converted at the edge.

pub mod command;
pub mod envelope;
pub mod event;
pub mod fields;
pub mod public_key;
pub mod registration;
pub mod relay;

/// The version of the protocol, as `auth` reports it.
pub const VERSION: u32 = 1;

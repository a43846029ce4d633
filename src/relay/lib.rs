//! Access from anywhere, through a relay that cannot read the messages (protocol
//! section 6).
//!
//! ```text
//! client --/ws?machine_id=M--> relay <--/ws?machine_id=M&role=machine-- machine (dials out)
//! ```
//!
//! - [`identity`]: the machine's key, from which its machine_id is derived.
//! - [`link`]: [`link::Links::apply`] keeps the machine linked to its relays.
//! - [`noise`]: the encryption between client and machine, which a relay cannot read.
//! - [`server`]: the relay, standalone ([`server::RelayServer::start`]) or part of a
//!   server ([`server::Relay::open`]).

pub mod identity;
pub mod link;
mod machine_key;
pub mod noise;
pub mod server;

//! Reaching home from anywhere, through a relay that cannot read what it
//! carries (protocol section 6).
//!
//! ```text
//! client --/ws?machine_id=M--> relay <--/ws?machine_id=M&role=machine-- machine (dials out)
//! ```
//!
//! [`identity`] is a machine's name and what proves it, and [`link`] keeps it
//! linked to its relays. [`server`] is the relay itself. [`noise`] is what keeps a relay from reading: the
//! handshake between client and machine, and the messages after it.

pub mod identity;
pub mod link;
mod machine_key;
pub mod noise;
pub mod server;

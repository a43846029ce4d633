//! Reaching home from anywhere, through a relay that cannot read what it
//! carries (protocol section 6).
//!
//! ```text
//! client --/ws?machine_id=M--> relay <--/ws?machine_id=M&role=machine-- machine (dials out)
//! ```
//!
//! [`noise`] is what keeps the relay from reading: the handshake between client
//! and machine, and the messages after it. [`server`] is the relay itself.

pub mod noise;
pub mod server;

//! The webhook channel: what arrives for its accounts (contract section 4.3, protocol
//! section 4).

mod format;
mod guard;
pub mod incoming;
mod message;
mod preference;

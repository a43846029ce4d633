//! The webhook channel.

mod accounts;
mod channel;
pub mod format_peers;
mod formats;
mod senders;
mod speakers;

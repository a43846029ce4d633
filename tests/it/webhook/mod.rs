//! The webhook channel.

mod accounts;
mod channel;
mod format_peers;
mod formats;
mod senders;
mod speakers;

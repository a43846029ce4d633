//! The webhook channel.

mod accounts;
mod channel;
mod senders;
mod speakers;

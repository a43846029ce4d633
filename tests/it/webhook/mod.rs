//! The webhook channel.

mod accounts;
mod channel;
mod speakers;

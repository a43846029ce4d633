//! The webhook channel: incoming accounts, callbacks and their signatures
//! (contract section 4.3, protocol section 4).

pub mod deliver;
mod guard;
pub mod incoming;
mod message;
pub mod post;
mod preference;
pub(crate) mod schedule;
pub mod send;
mod signature;
#[cfg(test)]
mod testing;

//! The relay and the link to one.

#[cfg(feature = "relay")]
mod end_to_end;
#[cfg(feature = "relay")]
mod link;
mod noise;
#[cfg(feature = "relay")]
mod server;

//! The data directory: its commands, upgrades and time.

mod clock;
mod data;
#[cfg(feature = "relay")]
mod frozen;
mod held_commits;
#[cfg(feature = "web")]
mod upgrades;

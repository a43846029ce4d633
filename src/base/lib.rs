//! What every other member builds on: closed error codes, typed time-ordered
//! ids, roles, an injected clock, secrets that cannot be printed, time zones and cron,
//! measurement, and named threads. No I/O but random bytes and time-zone files.

pub mod address;
pub mod calendar;
pub mod clock;
#[cfg(feature = "sql")]
mod columns;
pub mod error;
pub mod ids;
pub mod measure;
pub mod role;
pub mod secret;
pub mod sync;
pub mod threads;
pub mod url;

//! The foundation of the other members, without I/O except random bytes,
//! time-zone files and [`key_file`].
//!
//! - [`error::Error`]: a closed code, a sentence for people, and the detail for the log.
//! - [`ids`], [`clock`], [`calendar`]: time-ordered ids, an injected clock, schedules.
//! - [`people`], [`role`]: names of people and audiences, roles.
//! - [`secret::Secret`]: a string that cannot be printed.
//! - [`url::Url`] and [`address::AddressScope`]: the one URL parser, and the one table
//!   of local and other special addresses.
//! - [`measure`], [`sync`]: counters and histograms, locks and threads.
//! - [`nearest`]: what a mistyped word was meant to be.
//! - [`surface`]: where replies are read.
//! - [`visible`]: text that a person must judge, with nothing hidden in it; [`composed`]:
//!   accented letters as one character.

pub mod address;
pub mod calendar;
pub mod clock;
#[cfg(feature = "sql")]
mod columns;
pub mod composed;
pub mod error;
pub mod finish_reason;
pub mod ids;
pub mod key_file;
pub mod measure;
pub mod nearest;
pub mod people;
pub mod role;
pub mod sealed;
pub mod secret;
pub mod surface;
pub mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod url;
pub mod visible;
mod words;

//! The foundation of the other members, without I/O except random bytes,
//! time-zone files, [`files`] and [`key_file`].
//!
//! - [`error::Error`]: a closed code, a sentence for people, and the detail for the log.
//! - [`ids`], [`clock`], [`calendar`]: time-ordered ids, an injected clock, schedules.
//! - [`people`]: names of people and audiences, roles.
//! - [`secret::Secret`]: a string that cannot be printed.
//! - [`url::Url`] and [`address::AddressScope`]: the one URL parser, and the one table
//!   of local and other special addresses.
//! - [`language::Words`]: what people read, in their language.
//! - [`measure`], [`sync`]: counters and histograms, locks and threads.
//! - [`nearest`]: what a mistyped word was meant to be.
//! - [`reply`]: where a reply is read, and why it is not whole.
//! - [`age`], [`gzip`]: encrypted files, and what the program holds compressed.
//! - [`visible`]: text that a person must judge, with nothing hidden in it; [`composed`]:
//!   accented letters as one character.

pub mod address;
pub mod age;
pub mod calendar;
pub mod clock;
#[cfg(feature = "sql")]
mod columns;
pub mod composed;
pub mod error;
pub mod files;
pub mod gzip;
pub mod ids;
pub mod key_file;
pub mod language;
pub mod measure;
pub mod nearest;
pub mod people;
pub mod reply;
pub mod sealed;
pub mod secret;
pub mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod url;
pub mod visible;
mod words;

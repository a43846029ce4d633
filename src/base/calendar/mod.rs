//! Times in the household's time zone: single ones, and recurring ones by the
//! fields of cron or as people say them.

mod cron;
mod phrase;
mod timing;
mod zone;

#[cfg(test)]
mod tests;

pub use cron::Cron;
pub use timing::Timing;
pub use zone::{Zone, month, readable_date};

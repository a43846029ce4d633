//! Times in the household's time zone: single ones, and recurring ones by the five
//! fields of cron.

mod cron;
mod timing;
mod zone;

#[cfg(test)]
mod tests;

pub use cron::Cron;
pub use timing::Timing;
pub use zone::{Zone, month, readable_date};

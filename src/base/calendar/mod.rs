//! Times in the household's time zone: single ones, and recurring ones by the
//! fields of cron, as people say them, or by the rules of iCalendar.

mod cron;
mod phrase;
pub mod recurrence;
mod timing;
mod zone;

#[cfg(test)]
mod tests;

pub use cron::Cron;
pub use recurrence::Recurrence;
pub use timing::Timing;
pub use zone::{Zone, month, readable_date, spoken_stamp, weekday};

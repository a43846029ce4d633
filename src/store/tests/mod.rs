//! The database as the other members use it.

mod approvals;
mod attachments;
mod audiences;
mod clock_step;
mod conversations;
mod data;
mod deliveries;
mod forgotten;
#[cfg(feature = "shuttle")]
mod interleavings;
mod kept_results;
mod lists;
mod memories;
mod notifications;
mod people;
mod plans;
mod schedules;
mod search;
mod search_words;
mod shown;
mod turns;
mod usage;
mod writing;

//! Keeping the database: backups, removal of old data, usage, the clock, idempotency keys.

pub(crate) mod backup;
pub(crate) mod clock_step;
pub(crate) mod counts;
pub(crate) mod idempotency;
pub(crate) mod purge;
pub(crate) mod usage;

//! What was used.

use super::Usage;

/// What usage is summed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// One day (UTC).
    Day,
    /// One calendar month (UTC).
    Month,
}

/// What one model used in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// As 2026-11-21, or 2026-11.
    pub period: String,
    /// Its name at its provider; empty where nobody answered.
    pub model: String,
    /// Turns that ended with it.
    pub turns: u64,
    /// Tokens.
    pub usage: Usage,
}

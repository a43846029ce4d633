//! What leaves the household: deliveries, and what is due.

pub(crate) mod deliveries;
pub(crate) mod due;

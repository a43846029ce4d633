//! Who sees what: viewers, audiences, and what changes when a conversation is shared.

pub(crate) mod askers;
pub(crate) mod audience;
pub(crate) mod sharing;
pub(crate) mod snapshot;
pub(crate) mod viewer;

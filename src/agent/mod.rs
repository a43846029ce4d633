//! The agent: from a person's message to a reply, through model and tools.

pub mod cancel;
pub mod context;
pub mod outbound;
pub mod permission;
pub mod provider;
pub mod tool;
pub mod turn;

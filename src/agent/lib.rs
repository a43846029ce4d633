//! The agent: from a person's message to a reply, through model and tools.

mod assistant;
mod budget;
pub mod context;
pub mod mcp;
pub mod message_text;
pub mod meter;
pub mod model;
mod parallel;
pub mod permission;
pub mod provider;
pub mod repetition;
pub mod tool;
pub mod turn;

pub use assistant::Assistant;

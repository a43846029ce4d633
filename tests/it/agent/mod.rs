//! The assistant: its context, memory, permissions, tools and replies.

mod assistant;
mod cost;
mod cut_replies;
mod embeddings;
pub mod folding;
mod forgetting;
mod injections;
mod late_replies;
pub mod memory;
pub(crate) mod model_files;
mod models;
mod overflow;
mod permissions;
mod prompt_cache;
mod recall;
mod sandbox;
mod search;
mod skills;
mod small_machines;
mod tool_calls;
mod tools;

//! The agent: from a person's message to a reply, through model and tools.
//!
//! A turn goes through these functions:
//!
//! 1. [`Assistant::from_config`] makes provider and tools, once for each
//!    configuration in force.
//! 2. [`turn::run`] runs a turn, from its beginning or from the steps that an
//!    earlier run left on disk.
//! 3. `History::open` reads the past of the conversation and the memories that fit
//!    the message; `History::context` fits them into the model's token budget
//!    ([`prompt::fit::fit`]) and summarises what no longer fits.
//! 4. [`tools::permission::Actor::offered`] chooses the tools that the model may call.
//! 5. [`model::Provider::complete`] asks the model; [`model`] has the walk
//!    through it.
//! 6. `settle_calls` gives each call its result: [`tools::permission::Actor::decide`] allows it,
//!    refuses it or asks the owner, and [`tools::Tool::run`] runs it. A question to
//!    the owner suspends the turn.
//! 7. Steps 3 to 6 repeat until the model answers without calls, repeats itself
//!    (`repetition`) or has used all its rounds.
//!
//! Its modules, lowest first: [`model`], [`skills`], [`tools`], [`mcp`], [`prompt`], [`turn`].

mod assistant;
pub mod mcp;
pub mod model;
mod parallel;
pub mod prompt;
pub mod skills;
pub mod tools;
pub mod turn;

pub use assistant::{Around, Assistant};

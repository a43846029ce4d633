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
//!    ([`context::fit::fit`]) and summarises what no longer fits.
//! 4. [`permission::Actor::offered`] chooses the tools that the model may call.
//! 5. [`model::Provider::complete`] asks the model; [`provider`] has the walk
//!    through it.
//! 6. `settle_calls` gives each call its result: [`permission::Actor::decide`] allows it,
//!    refuses it or asks the owner, and [`tool::Tool::run`] runs it. A question to
//!    the owner suspends the turn.
//! 7. Steps 3 to 6 repeat until the model answers without calls, repeats itself
//!    ([`repetition`]) or has used all its rounds.
//!
//! Its modules, lowest first: [`model`], [`message_text`], [`provider`], [`skills`],
//! [`tool`], [`mcp`], [`context`] (whose `estimate` and `window` are lower than
//! [`provider`]), [`turn`].

mod assistant;
mod budget;
pub mod client_options;
pub mod context;
pub mod mcp;
pub mod message_text;
pub mod meter;
pub mod model;
mod parallel;
pub mod permission;
pub mod plain;
pub mod provider;
pub mod repetition;
pub mod skills;
pub mod text;
pub mod tool;
pub mod turn;

pub use assistant::Assistant;

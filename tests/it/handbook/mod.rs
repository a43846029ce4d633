//! What the documents say, the packages, and the rules of the source.

mod architecture;
mod commands;
mod examples;
mod packages;
mod schemas;
pub mod texts;
mod words;

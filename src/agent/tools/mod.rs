//! Tools: one trait, the built-in ones, and those of the configuration.
//!
//! A tool call passes through these functions:
//!
//! ```text
//! Toolbox::from_config      the tools there are; Actor::offered: what the model may have
//! Offer::after              what it sees of these: all, or what its window has room for
//! check_arguments           the model's JSON against the tool's schema
//! Actor::decide             whether it runs, a person is asked (Wording::of), or it is refused
//! Tool::run                 builtin | files | read_skill | web_fetch | run_command | custom* | mcp
//!   RunLimit::new           its own time limit or the turn's
//!   process::run            programs: net::process;  HttpClient::exchange: requests
//! output::cap_result        the result within bounds
//! ```

mod answer;
mod attached;
mod builtin;
pub mod calendar;
mod custom;
mod custom_http;
mod definition;
mod files;
mod find_tools;
mod function;
mod known_address;
pub mod output;
mod pdf;
pub mod permission;
pub(crate) mod process;
mod read_skill;
mod readable;
mod run_command;
mod schema;
mod template;
#[cfg(test)]
pub(crate) mod testing;
mod toolbox;
mod web_fetch;
pub mod wording;
mod xml;

pub(crate) use attached::text_of;
pub use attached::{ConversationFiles, PdfTexts};
pub use builtin::{MOST_SNOOZE_MINUTES, ScheduleRequest, when_triggered};
pub use custom_http::try_once;
pub use definition::{
    Arguments, Change, Definition, Origin, ResultDetails, Source, Start, Tool, ToolContext,
    cancelled, turn_is_over,
};
pub(crate) use files::Workspace;
pub use files::{READ_FILE, settle};
pub use find_tools::Offer;
pub use known_address::Address;
pub use pdf::{MAX_BYTES as MOST_PDF_BYTES, pdf_obstacle};
pub use read_skill::READ_SKILL;
pub use schema::{check_arguments, parameter_types, takes_address, unknown_tool};
pub use toolbox::Toolbox;
pub(crate) use web_fetch::join;

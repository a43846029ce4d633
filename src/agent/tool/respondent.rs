//! The person of a turn, whom a tool may ask something while it runs.

use std::time::Duration;

use serde_json::{Map, Value};

use base::ids::UserId;
use net::cancel::Cancel;
use protocol::question::Question;

/// A question of a tool that runs.
#[derive(Clone, Copy, Debug)]
pub struct ToolQuestion<'a> {
    /// The tool, as the model called it.
    pub tool: &'a str,
    /// What it was called with, as JSON.
    pub arguments: &'a str,
    /// What it asks.
    pub question: &'a Question,
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// What was asked for, as [`Question::check`] lets it pass.
    Accepted(Map<String, Value>),
    /// They do not want to say.
    Declined,
    /// Neither: it was put away, or nobody answered in time.
    Dismissed,
    /// Nobody was asked, for this reason.
    Unasked(&'static str),
}

/// Whoever began a turn, where they can be asked.
pub trait Respondent: Send + Sync {
    /// Who they are.
    fn person(&self) -> UserId;

    /// Asks, and waits for the answer: no longer than [`Respondent::left`], nor than until the
    /// question is `withdrawn`.
    fn ask(&self, asked: ToolQuestion<'_>, withdrawn: &Cancel) -> Answer;

    /// How long answers have been waited for in this turn: this time is not the tool's.
    fn waited(&self) -> Duration;

    /// How much longer they may be waited for in it.
    fn left(&self) -> Duration;
}

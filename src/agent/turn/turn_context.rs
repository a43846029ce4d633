//! What a run of a turn is given, and what stops it.

use std::path::PathBuf;
use std::time::Instant;

use crate::assistant::Assistant;
use base::clock::Clock;
use base::error::Error;
use config::WebhookAccount;
use net::cancel::Cancel;
use store::{Message, Store, Turn};

/// What one run of a turn needs.
pub struct TurnContext<'a> {
    /// Provider, tools and settings: those of the moment at which the run
    /// began.
    pub assistant: &'a Assistant,
    /// Where the steps go.
    pub store: &'a Store,
    /// Tells the model what time it is.
    pub clock: &'a Clock,
    /// Where programs run that custom tools name.
    pub data_dir: &'a PathBuf,
    /// The turn as its row says.
    pub turn: &'a Turn,
    /// The person's message that the turn answers.
    pub message: &'a Message,
    /// Whether earlier runs may have left steps and approvals.
    pub is_resumed: bool,
    /// The webhook account that asked, which may narrow what is permitted.
    pub account: Option<&'a WebhookAccount>,
    /// When this run's time is up.
    pub deadline: Instant,
    /// Set by whoever stops the turn.
    pub cancel: &'a Cancel,
    /// Whether somebody wants the pieces of text as they come.
    pub is_streamed: &'a dyn Fn() -> bool,
}

/// Why the loop cannot go on.
pub enum Stop {
    /// Of this error.
    Failed(Error),
    /// Somebody stopped the turn.
    Cancelled,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

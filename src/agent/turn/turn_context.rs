//! What a run of a turn is given, and what stops it.

use std::path::PathBuf;
use std::time::Instant;

use crate::assistant::Assistant;
use crate::model::ToolSpec;
use crate::model::client_options::ClientOptions;
use crate::model::fence::{is_of_sender, is_untrusted};
use base::clock::Clock;
use base::error::Error;
use config::WebhookAccount;
use net::cancel::Cancel;
use store::{Message, Purpose, Store, ToolCall, Turn, Usage, Viewer};

/// What one run of a turn needs.
pub struct TurnContext<'a> {
    /// Provider, tools and settings: those of the moment at which the run
    /// began.
    pub assistant: &'a Assistant,
    /// Where the steps go.
    pub store: &'a Store,
    /// Gives the tools the time.
    pub clock: &'a Clock,
    /// The working directory of custom tools' programs.
    pub data_dir: &'a PathBuf,
    /// As it is in the database.
    pub turn: &'a Turn,
    /// The person's message that the turn answers.
    pub message: &'a Message,
    /// Whether earlier runs may have left steps and approvals.
    pub is_resumed: bool,
    /// The webhook account of the message, which may narrow the permissions.
    pub account: Option<&'a WebhookAccount>,
    /// When this run's time is up.
    pub deadline: Instant,
    /// Stops the turn.
    pub cancel: &'a Cancel,
    /// Whether that is because the server stops: the turn continues at the next start.
    pub is_stopping: &'a dyn Fn() -> bool,
    /// The program that asks, if it wants something beyond the household's settings.
    pub program: Option<&'a dyn Program>,
    /// Whether to stream the text.
    pub is_streamed: &'a dyn Fn() -> bool,
}

impl<'a> TurnContext<'a> {
    /// The model to ask: the one that was chosen for the turn or its conversation, that of the
    /// webhook account, or that of the configuration.
    pub fn model(&self) -> &'a String {
        let of_account = || self.account.and_then(|account| account.model.as_ref());
        let chosen = self.turn.wanted_model.as_ref().or_else(of_account);
        chosen.unwrap_or(&self.assistant.config.model)
    }

    /// What its model is asked for.
    pub fn purpose(&self) -> Purpose {
        Purpose::of_channel(&self.turn.channel)
    }

    /// The model that is asked beside the conversation.
    pub fn side_model(&self) -> &'a String {
        let own = self.assistant.config.side_model.as_ref();
        own.unwrap_or_else(|| self.model())
    }

    /// What the model sees: no more than everybody who reads the conversation, and no
    /// more than whoever asks. For a webhook's message that is its caller.
    pub(crate) fn viewer(&self) -> Viewer {
        let turn = self.turn;
        let user = turn.user_id.filter(|_| !is_untrusted(&turn.channel));
        let viewer = Viewer::readers_of(turn.conversation_id, &turn.readers)
            .asked_by(user, turn.account.as_deref());
        match is_of_sender(&turn.channel) {
            true => viewer.without_admin(),
            false => viewer,
        }
    }
}

/// The program behind a turn.
pub trait Program: Sync {
    /// What it wants of the reply; until it `was_called`, that it is a call, too.
    fn options(&self, was_called: bool) -> &ClientOptions;

    /// Its own tools. They stand in for the household's of the same names.
    fn tools(&self) -> &[ToolSpec];

    /// Hands it these calls and waits for what comes back.
    fn run(&self, calls: HandedCalls, deadline: Instant, cancel: &Cancel) -> HandedBack;
}

/// What came back of a program's calls.
#[derive(Clone, Debug, Default)]
pub struct HandedBack {
    /// The result of each call; `None` where there is none by the deadline, or when the turn is
    /// stopped.
    pub results: Vec<Option<String>>,
    /// Whether the program wants nothing more of the turn: it has shown the results itself, or
    /// has gone.
    pub is_last: bool,
}

/// Calls that a program runs, and what the turn has brought until then.
#[derive(Clone, Debug, Default)]
pub struct HandedCalls {
    /// The calls.
    pub calls: Vec<ToolCall>,
    /// All that the model has written.
    pub said: String,
    /// The tokens of all rounds.
    pub usage: Usage,
}

/// Why a run ended early.
pub enum Stop {
    /// Of this error.
    Failed(Error),
    /// Somebody stopped the turn.
    Cancelled,
    /// Its program wants nothing more of it.
    Left,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

//! What the chat client does next.

use serde_json::Value;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this message.
    Send(Value),
    /// Show a piece of the answer as it comes.
    Piece(String),
    /// Show the whole answer.
    Answer(String),
    /// Show a note: a tool call, a hint.
    Note(String),
    /// Show a question to the person and wait for a line.
    Ask(String),
    /// Show the prompt and wait for a line.
    Ready,
    /// End the line on which Ctrl-C or Ctrl-D was pressed.
    Break,
    /// Show what went wrong.
    Problem(String),
    /// Exit, with success or failure.
    Exit { success: bool },
}

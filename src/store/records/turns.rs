//! Turns and what they are made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Delivery, Message};
use crate::clock::Timestamp;
use crate::error::Error;
use crate::ids::{ConversationId, MessageId, TurnId};

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnState {
    Queued,
    Running,
    WaitingApproval,
    Done,
    Failed,
    Cancelled,
}

impl TurnState {
    /// The word for it in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            TurnState::Queued => "queued",
            TurnState::Running => "running",
            TurnState::WaitingApproval => "waiting_approval",
            TurnState::Done => "done",
            TurnState::Failed => "failed",
            TurnState::Cancelled => "cancelled",
        }
    }

    /// The state of a word.
    pub fn parse(word: &str) -> Option<TurnState> {
        [
            TurnState::Queued,
            TurnState::Running,
            TurnState::WaitingApproval,
            TurnState::Done,
            TurnState::Failed,
            TurnState::Cancelled,
        ]
        .into_iter()
        .find(|state| state.as_str() == word)
    }

    /// Whether nothing more will happen to it.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            TurnState::Done | TurnState::Failed | TurnState::Cancelled
        )
    }
}

/// One turn: a person's message and all that leads to its reply.
#[derive(Clone, Debug)]
pub struct Turn {
    pub id: TurnId,
    pub conversation_id: ConversationId,
    pub state: TurnState,
    /// Where the message came from, as [`Conversation::channel`](super::Conversation::channel).
    pub channel: String,
    /// The webhook account that gets the reply.
    pub account: Option<String>,
    /// The caller's own name of the conversation, repeated in the callback.
    pub external_name: Option<String>,
    pub message_id: MessageId,
    /// The reply, once done.
    pub reply_id: Option<MessageId>,
    /// Why it failed.
    pub error: Option<Error>,
    pub created_at: Timestamp,
    /// When a worker first took it: its deadline counts from here.
    pub started_at: Option<Timestamp>,
    /// The model that answered last, or was asked in vain; absent before the first end.
    pub model: Option<String>,
    /// Tokens used so far.
    pub usage: Usage,
}

/// Where a new message goes.
#[derive(Clone, Debug)]
pub enum Target {
    /// A conversation that must exist.
    Existing(ConversationId),
    /// A new conversation.
    New,
    /// The conversation that a webhook account calls by this name; made on
    /// first use. The name is scoped to the account.
    Named { account: String, name: String },
}

/// A key under which a request runs once (within 24 hours).
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    /// Whose key it is: `user:ID` or `webhook:ACCOUNT`.
    pub scope: String,
    pub key: String,
    /// SHA-256 of what was asked: the same key with another request is refused.
    pub request: [u8; 32],
}

/// A message to store and a turn to begin.
#[derive(Clone, Debug)]
pub struct NewTurn {
    pub target: Target,
    pub channel: String,
    pub account: Option<String>,
    pub message: String,
    pub speaker: Option<String>,
    pub idempotency: Option<IdempotencyKey>,
}

/// What came of a [`NewTurn`].
#[derive(Clone, Debug)]
pub enum Begun {
    /// It was stored.
    New { turn: Turn, message: Message },
    /// The idempotency key was used before, for this turn.
    Repeat(Turn),
}

/// One tool call of a model's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of the call; unique within a reply.
    pub id: String,
    pub tool: String,
    /// The arguments as the model wrote them: JSON text that may be broken.
    pub arguments: String,
    /// Members that this provider wants back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

/// Something that happened in a turn before its end, stored before anything
/// with an effect depends on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Step {
    /// The model answered with tool calls (a reply without calls ends the turn).
    Reply {
        text: String,
        calls: Vec<ToolCall>,
        /// Members that this provider wants back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<Value>,
    },
    /// A call is about to run. Without a result after a crash, a tool that is
    /// not read-only is not run again.
    Started { call_id: String },
    /// A call has its result, or was refused.
    Result {
        call_id: String,
        ok: bool,
        content: String,
    },
}

/// An earlier turn as the model sees it again.
#[derive(Clone, Debug)]
pub struct PastTurn {
    /// Where its message came from, as [`Turn::channel`].
    pub channel: String,
    pub message: Message,
    pub steps: Vec<Step>,
    pub reply: Option<Message>,
}

/// Tokens that a turn used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// Part of `input` that the provider had cached.
    pub cached: u64,
}

/// How a turn ends.
#[derive(Clone, Debug)]
pub enum TurnEnd {
    /// With a reply.
    Done { reply: String },
    /// Without one.
    Failed(Error),
    /// A person stopped it.
    Cancelled,
}

/// What the commit of a turn's end made.
#[derive(Clone, Debug)]
pub struct Finished {
    pub turn: Turn,
    pub reply: Option<Message>,
    pub delivery: Option<Delivery>,
}

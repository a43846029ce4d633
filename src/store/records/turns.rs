//! Turns and what they are made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Delivery, Message};
use base::clock::Timestamp;
use base::error::Error;
use base::ids::{ConversationId, MessageId, TurnId, UserId};

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnState {
    /// Waits for a worker, or for an earlier turn of its conversation.
    Queued,
    /// A worker is at it, or was when the server stopped.
    Running,
    /// Put away until the owner has decided about its tool calls.
    WaitingApproval,
    /// It has its reply.
    Done,
    /// It ended with an error.
    Failed,
    /// Somebody stopped it.
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
    /// Rises with the time of the message; orders the turns of a conversation.
    pub id: TurnId,
    /// Where the message was said.
    pub conversation_id: ConversationId,
    /// Durable: what it says after a crash is where the turn goes on.
    pub state: TurnState,
    /// Where the message came from, as [`Conversation::channel`](super::Conversation::channel).
    pub channel: String,
    /// The webhook account that gets the reply.
    pub account: Option<String>,
    /// The caller's own name of the conversation, repeated in the callback.
    pub external_name: Option<String>,
    /// The message that it answers.
    pub message_id: MessageId,
    /// The reply, once done.
    pub reply_id: Option<MessageId>,
    /// Why it failed.
    pub error: Option<Error>,
    /// When the message was accepted.
    pub created_at: Timestamp,
    /// When a worker first took it: its deadline counts from here.
    pub started_at: Option<Timestamp>,
    /// The model that answered last, or was asked in vain; absent before the first end.
    pub model: Option<String>,
    /// Tokens used so far.
    pub usage: Usage,
    /// What the model is to keep to in this turn, beside the system prompt.
    pub instructions: Option<String>,
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
    Named {
        /// The webhook account, whose names are its own.
        account: String,
        /// The caller's name, 1 to 128 characters.
        name: String,
    },
    /// The conversation that ends in what a client tells of it; a new one that
    /// holds it where there is none.
    ReplayedHistory(ReplayedHistory),
}

/// What a client sends that names no conversation and tells the whole past.
#[derive(Clone, Debug)]
pub struct ReplayedHistory {
    /// Whose conversations are looked through.
    pub user_id: UserId,
    /// What was said before, oldest first.
    pub history: Vec<Exchange>,
    /// What the model is to keep to in this turn, beside the system prompt.
    pub instructions: Option<String>,
}

/// A message and its reply, as a client tells them. Neither is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What the user said.
    pub message: String,
    /// What was answered.
    pub reply: String,
}

/// A key under which a request runs once (within 24 hours).
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    /// Whose key it is: `user:ID` or `webhook:ACCOUNT`.
    pub scope: String,
    /// The caller's key, 1 to 255 characters.
    pub key: String,
    /// SHA-256 of what was asked: the same key with another request is refused.
    pub request: [u8; 32],
}

/// A message to store and a turn to begin.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// The conversation.
    pub target: Target,
    /// Where it comes from, as
    /// [`Conversation::channel`](super::Conversation::channel).
    pub channel: String,
    /// The webhook account that gets the reply.
    pub account: Option<String>,
    /// The person's text.
    pub message: String,
    /// Who said it, where known.
    pub speaker: Option<String>,
    /// Set when the request carried a key.
    pub idempotency: Option<IdempotencyKey>,
}

/// What came of a [`NewTurn`].
#[derive(Clone, Debug)]
pub enum Begun {
    /// It was stored.
    New {
        /// The new turn, queued.
        turn: Turn,
        /// The stored message.
        message: Message,
    },
    /// The idempotency key was used before, for this turn.
    Repeat(Turn),
}

/// One tool call of a model's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of the call; unique within a reply.
    pub id: String,
    /// The tool's name as the model wrote it; there may be no such tool.
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
#[serde(tag = "kind", rename_all = "snake_case", try_from = "StepMembers")]
pub enum Step {
    /// The model answered with tool calls (a reply without calls ends the turn).
    Reply {
        /// What the model said before its calls; may be empty.
        text: String,
        /// At least one.
        calls: Vec<ToolCall>,
        /// Members that this provider wants back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<Value>,
    },
    /// A call is about to run. Without a result after a crash, a tool that is
    /// not read-only is not run again.
    Started {
        /// The [`ToolCall::id`].
        call_id: String,
    },
    /// A call has its result, or was refused.
    Result {
        /// The [`ToolCall::id`].
        call_id: String,
        /// False when the tool failed or was refused.
        ok: bool,
        /// What the model is told.
        content: String,
        /// Whether the text was written by somebody outside the household, as
        /// that of web pages is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        outside: bool,
    },
}

/// The members of any [`Step`]: reading one variant after the other would be
/// several times the code.
#[derive(Deserialize)]
struct StepMembers {
    kind: String,
    text: Option<String>,
    calls: Option<Vec<ToolCall>>,
    extra: Option<Value>,
    call_id: Option<String>,
    ok: Option<bool>,
    content: Option<String>,
    #[serde(default)]
    outside: bool,
}

impl TryFrom<StepMembers> for Step {
    type Error = &'static str;

    fn try_from(members: StepMembers) -> Result<Step, &'static str> {
        let missing = "a step lacks a member";
        Ok(match members.kind.as_str() {
            "reply" => Step::Reply {
                text: members.text.ok_or(missing)?,
                calls: members.calls.ok_or(missing)?,
                extra: members.extra,
            },
            "started" => Step::Started {
                call_id: members.call_id.ok_or(missing)?,
            },
            "result" => Step::Result {
                call_id: members.call_id.ok_or(missing)?,
                ok: members.ok.ok_or(missing)?,
                content: members.content.ok_or(missing)?,
                outside: members.outside,
            },
            _ => return Err("a step is of no known kind"),
        })
    }
}

/// An earlier turn as the model sees it again.
#[derive(Clone, Debug)]
pub struct PastTurn {
    /// Which turn it was.
    pub id: TurnId,
    /// Where its message came from, as [`Turn::channel`].
    pub channel: String,
    /// What the person said.
    pub message: Message,
    /// In the order in which they happened.
    pub steps: Vec<Step>,
    /// Absent when the turn failed or was stopped.
    pub reply: Option<Message>,
}

/// What the model is told in place of a conversation's oldest turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The newest turn that it covers.
    pub turn_id: TurnId,
    /// The text.
    pub content: String,
}

/// What is read of a conversation for one turn.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// In place of the oldest turns, once there were too many of them.
    pub summary: Option<Summary>,
    /// The newest turns that the summary does not cover, oldest first.
    pub turns: Vec<PastTurn>,
    /// Whether turns were left out between the summary and `turns`.
    pub has_more: bool,
}

/// Tokens that a turn used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the requests, cached ones included.
    pub input: u64,
    /// Tokens of the replies.
    pub output: u64,
    /// Part of `input` that the provider had cached.
    pub cached: u64,
}

impl Usage {
    /// Adds what another request used.
    pub fn add(&mut self, more: Usage) {
        self.input += more.input;
        self.output += more.output;
        self.cached += more.cached;
    }
}

/// How a turn ends.
#[derive(Clone, Debug)]
pub enum TurnEnd {
    /// With a reply.
    Done {
        /// The model's last words.
        reply: String,
    },
    /// Without one.
    Failed(Error),
    /// A person stopped it.
    Cancelled,
}

/// What the commit of a turn's end made.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The turn in its final state.
    pub turn: Turn,
    /// The stored reply, when there is one.
    pub reply: Option<Message>,
    /// The callback to send, when a webhook account asked.
    pub delivery: Option<Delivery>,
}

//! What the tables hold, as the rest of the house sees it. None of these types
//! goes over the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::ids::{
    ApprovalId, ConversationId, DeliveryId, MemoryId, MessageId, TokenId, TurnId, UserId,
};
use crate::protocol::command::ConversationCursor;

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

impl Role {
    /// The word for it in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }

    /// The role of a word.
    pub fn parse(word: &str) -> Option<Role> {
        [Role::User, Role::Assistant]
            .into_iter()
            .find(|role| role.as_str() == word)
    }
}

/// A conversation.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub id: ConversationId,
    pub title: String,
    /// Where it began: `websocket`, `lines`, `webhook:ACCOUNT`, ...
    pub channel: String,
    /// For a webhook conversation, the caller's own name for it.
    pub external_name: Option<String>,
    pub created_at: Timestamp,
    /// When its newest message was stored.
    pub updated_at: Timestamp,
    pub message_count: u64,
    /// The id of its newest message: orders the list and is its cursor.
    pub latest: MessageId,
}

/// A page of conversations, newest activity first.
#[derive(Clone, Debug)]
pub struct ConversationPage {
    pub conversations: Vec<Conversation>,
    pub next: Option<ConversationCursor>,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: MessageId,
    pub conversation_id: ConversationId,
    pub turn_id: Option<TurnId>,
    pub role: Role,
    pub content: String,
    /// The signed-in user's name, or the webhook's `user_id`.
    pub speaker: Option<String>,
    pub created_at: Timestamp,
}

/// A page of messages, oldest first.
#[derive(Clone, Debug)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    /// Whether older ones exist.
    pub has_more: bool,
}

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
    /// Where the message came from, as [`Conversation::channel`].
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

/// A callback to send, stored in the same commit as the turn's end.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    pub account: String,
    /// The JSON body, exactly as it is sent on every attempt.
    pub body: String,
}

/// What the commit of a turn's end made.
#[derive(Clone, Debug)]
pub struct Finished {
    pub turn: Turn,
    pub reply: Option<Message>,
    pub delivery: Option<Delivery>,
}

/// A question to the owner.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: ApprovalId,
    pub turn_id: TurnId,
    pub conversation_id: ConversationId,
    pub call_id: String,
    pub tool: String,
    /// The arguments as JSON text.
    pub arguments: String,
    /// Why it is asked, in words for a person.
    pub reason: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// Absent while it waits.
    pub decision: Option<Decision>,
}

/// A question to store.
#[derive(Clone, Debug)]
pub struct NewApproval {
    pub call_id: String,
    pub tool: String,
    pub arguments: String,
    pub reason: String,
}

/// The owner's answer, or time's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// A user's name, or `timeout`.
    pub by: String,
}

/// Yes or no, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This call.
    ApprovedOnce,
    /// This tool for the rest of the conversation.
    ApprovedConversation,
    /// This tool from now on.
    ApprovedAlways,
    Denied,
    /// Nobody answered in time: the same as denied.
    Expired,
}

impl Verdict {
    /// The word for it in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::ApprovedOnce => "approved",
            Verdict::ApprovedConversation => "approved_conversation",
            Verdict::ApprovedAlways => "approved_always",
            Verdict::Denied => "denied",
            Verdict::Expired => "expired",
        }
    }

    /// The verdict of a word.
    pub fn parse(word: &str) -> Option<Verdict> {
        [
            Verdict::ApprovedOnce,
            Verdict::ApprovedConversation,
            Verdict::ApprovedAlways,
            Verdict::Denied,
            Verdict::Expired,
        ]
        .into_iter()
        .find(|verdict| verdict.as_str() == word)
    }

    /// Whether the tool may run.
    pub fn is_approval(self) -> bool {
        matches!(
            self,
            Verdict::ApprovedOnce | Verdict::ApprovedConversation | Verdict::ApprovedAlways
        )
    }
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be sent at `next_at`.
    Pending,
    /// An earlier one of its conversation must be over first.
    Held,
    /// The receiver took it.
    Delivered,
    /// Given up; a person may send it again.
    Dead,
}

impl DeliveryState {
    /// The word for it in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Pending => "pending",
            DeliveryState::Held => "held",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
        }
    }

    /// The state of a word.
    pub fn parse(word: &str) -> Option<DeliveryState> {
        [
            DeliveryState::Pending,
            DeliveryState::Held,
            DeliveryState::Delivered,
            DeliveryState::Dead,
        ]
        .into_iter()
        .find(|state| state.as_str() == word)
    }
}

/// A webhook callback with all its attempts.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: DeliveryId,
    pub turn_id: TurnId,
    pub conversation_id: ConversationId,
    pub account: String,
    pub body: String,
    pub state: DeliveryState,
    /// Attempts made so far.
    pub attempts: u32,
    pub created_at: Timestamp,
    /// When the next attempt is due.
    pub next_at: Timestamp,
    /// What the last attempt met, in words.
    pub last_error: Option<String>,
}

/// What came of one attempt at a delivery.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The receiver took it.
    Delivered,
    /// To be tried again at this time.
    Retry { error: String, next_at: Timestamp },
    /// Given up.
    Dead { error: String },
}

/// What a user may do. Each role may do all that the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserRole {
    /// Read.
    Viewer,
    /// And chat.
    User,
    /// And configure, decide, deliver again.
    Admin,
}

impl UserRole {
    /// The word for it everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            UserRole::Viewer => "viewer",
            UserRole::User => "user",
            UserRole::Admin => "admin",
        }
    }

    /// The role of a word.
    pub fn parse(word: &str) -> Option<UserRole> {
        [UserRole::Viewer, UserRole::User, UserRole::Admin]
            .into_iter()
            .find(|role| role.as_str() == word)
    }
}

/// A person with an account.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub name: String,
    pub role: UserRole,
    /// The argon2id hash in PHC form.
    pub password_hash: String,
    pub created_at: Timestamp,
}

/// A session or API token to store. Only its fingerprint is kept.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub user_id: UserId,
    /// What a person calls it; `session` for those of POST /auth.
    pub name: String,
    pub fingerprint: [u8; 32],
    /// Narrows the user's role; never widens it.
    pub role: UserRole,
    pub expires_at: Option<Timestamp>,
}

/// A token as a list shows it.
#[derive(Clone, Debug)]
pub struct Token {
    pub id: TokenId,
    pub user: String,
    pub name: String,
    pub role: UserRole,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// Who presented a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub token_id: TokenId,
    pub user_id: UserId,
    pub user: String,
    /// The lesser of the user's role and the token's.
    pub role: UserRole,
    pub expires_at: Option<Timestamp>,
}

/// Something that the assistant was asked to remember.
#[derive(Clone, Debug)]
pub struct Memory {
    pub id: MemoryId,
    pub content: String,
    /// Who said it.
    pub speaker: Option<String>,
    pub created_at: Timestamp,
}

/// Unfinished work and totals, for `server_info`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub conversations: u64,
    /// Unfinished turns by state.
    pub turns: Vec<(TurnState, u64)>,
    /// Deliveries that are not delivered, by state.
    pub deliveries: Vec<(DeliveryState, u64)>,
    /// Tokens used since the database was made.
    pub usage: Usage,
}

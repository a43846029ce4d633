//! Conversations and messages.

use crate::clock::Timestamp;
use crate::ids::{ConversationId, MessageId, TurnId};
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

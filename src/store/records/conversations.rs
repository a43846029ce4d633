//! Conversations and messages.

use base::clock::Timestamp;
use base::ids::{ConversationId, MessageId, TurnId};
use protocol::command::ConversationCursor;

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A person, or a system that speaks for one.
    User,
    /// The model.
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
    /// Rises with the time at which it was made.
    pub id: ConversationId,
    /// The first message's first line, cut, until somebody renames it.
    pub title: String,
    /// Where it began: `websocket`, `lines`, `webhook:ACCOUNT`, ...
    pub channel: String,
    /// For a webhook conversation, the caller's own name for it.
    pub external_name: Option<String>,
    /// When its first message was stored.
    pub created_at: Timestamp,
    /// When its newest message was stored.
    pub updated_at: Timestamp,
    /// Messages of both roles.
    pub message_count: u64,
    /// The id of its newest message: orders the list and is its cursor.
    pub latest: MessageId,
}

/// A page of conversations, newest activity first.
#[derive(Clone, Debug)]
pub struct ConversationPage {
    /// At most as many as were asked for.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins; `None` on the last.
    pub next: Option<ConversationCursor>,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Rises with time, also across conversations.
    pub id: MessageId,
    /// Where it was said.
    pub conversation_id: ConversationId,
    /// The turn that it began or ended.
    pub turn_id: Option<TurnId>,
    /// Who said it.
    pub role: Role,
    /// The whole text, never cut.
    pub content: String,
    /// The signed-in user's name, or the webhook's `user_id`.
    pub speaker: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// A page of messages, oldest first.
#[derive(Clone, Debug)]
pub struct MessagePage {
    /// At most as many as were asked for.
    pub messages: Vec<Message>,
    /// Whether older ones exist.
    pub has_more: bool,
}

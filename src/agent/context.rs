//! The model's view of a conversation.

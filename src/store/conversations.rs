//! Conversations and their messages.

use super::*;
use crate::ids::{ConversationId, MessageId, TurnId};
use crate::protocol::command::ConversationCursor;

impl Store {
    /// A conversation. Errors: `not_found`.
    pub fn conversation(&self, id: ConversationId) -> Result<Conversation> {
        let _ = id;
        todo!()
    }

    /// A page of conversations, newest activity first.
    pub fn conversations(
        &self,
        limit: usize,
        after: Option<ConversationCursor>,
    ) -> Result<ConversationPage> {
        let _ = (limit, after);
        todo!()
    }

    /// The latest `limit` messages before `before`, oldest first. Errors: `not_found`.
    pub fn messages(
        &self,
        id: ConversationId,
        limit: usize,
        before: Option<MessageId>,
    ) -> Result<MessagePage> {
        let _ = (id, limit, before);
        todo!()
    }

    /// One message. Errors: `not_found`.
    pub fn message(&self, id: MessageId) -> Result<Message> {
        let _ = id;
        todo!()
    }

    /// Gives a conversation a title. Errors: `not_found`.
    pub fn rename_conversation(&self, id: ConversationId, title: &str) -> Result<()> {
        let _ = (id, title);
        todo!()
    }

    /// Deletes a conversation and everything in it, its undelivered callbacks too.
    /// Errors: `not_found`; `invalid_request` while a turn of it is unfinished.
    pub fn delete_conversation(&self, id: ConversationId) -> Result<()> {
        let _ = id;
        todo!()
    }

    /// Messages that hold all words of `query` (the last as a prefix), newest first.
    pub fn search_messages(&self, query: &str, limit: usize) -> Result<Vec<Message>> {
        let _ = (query, limit);
        todo!()
    }

    /// The last `most` finished turns of a conversation before `before`, oldest
    /// first: what the model is shown of the past. Failed and cancelled turns
    /// are left out.
    pub fn past_turns(
        &self,
        id: ConversationId,
        before: TurnId,
        most: usize,
    ) -> Result<Vec<PastTurn>> {
        let _ = (id, before, most);
        todo!()
    }
}

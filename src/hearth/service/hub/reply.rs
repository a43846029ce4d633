//! The response to the message of a turn.

use serde::Serialize;

use super::Person;
use base::error::{Error, Result};
use base::finish_reason::FinishReason;
use base::ids::{ConversationId, MessageId, TurnId};
use store::{Durable, Message, Readers, Turn, TurnState, Usage};

/// The data of the response to `chat`.
///
/// ```
/// use base::error::Result;
/// use hearth::service::hub::Reply;
/// use store::{Durable, Message, Turn};
///
/// fn reply(turn: &Durable<Turn>, message: Durable<Message>) -> Result<Reply> {
///     Reply::new(turn, Some(message))
/// }
/// ```
///
/// ```compile_fail
/// use base::error::Result;
/// use hearth::service::hub::Reply;
/// use store::{Durable, Message, Provisional, Turn};
///
/// fn reply(turn: &Durable<Turn>, message: Provisional<Message>) -> Result<Reply> {
///     Reply::new(turn, Some(message))
/// }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Reply {
    /// `cancelled` when somebody stopped the turn, else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// The reply's text; of a cancelled turn, what was said so far.
    response: String,
    /// Where it was stored.
    conversation_id: ConversationId,
    /// The reply, for `get_messages`; a turn that was cancelled before its first word has
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<MessageId>,
    /// The message that it answers, if others came while it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<MessageId>,
    /// Why it is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<FinishReason>,
    /// The turn that it ended.
    turn_id: TurnId,
    /// Tokens that the turn used.
    #[serde(skip)]
    usage: Usage,
    /// Who saw the conversation when the turn ended.
    #[serde(skip)]
    readers: Readers,
}

impl Reply {
    /// The response to the message of an ended turn, with its reply if it has one.
    ///
    /// # Errors
    /// Why the turn failed.
    pub fn new(turn: &Durable<Turn>, reply: Option<Durable<Message>>) -> Result<Reply> {
        if let Some(error) = &turn.error {
            return Err(error.clone());
        }
        let message_id = reply.as_ref().map(|reply| reply.id);
        let in_reply_to = reply.as_ref().and_then(|reply| reply.in_reply_to);
        let finish_reason = reply.as_ref().and_then(|reply| reply.finish_reason);
        Ok(Reply {
            state: (turn.state == TurnState::Cancelled).then_some(turn.state.as_str()),
            response: match reply {
                Some(reply) => reply.into_inner().content,
                None => turn.said.clone().unwrap_or_default(),
            },
            conversation_id: turn.conversation_id,
            message_id,
            in_reply_to,
            finish_reason,
            turn_id: turn.id,
            usage: turn.usage,
            readers: turn.readers.clone(),
        })
    }

    /// Why it is not whole.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason
    }

    /// Tokens that the turn used.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.response
    }

    /// The same for somebody who waits for it.
    ///
    /// # Errors
    /// `not_found` where they do not see the conversation any longer, as if it had never
    /// been.
    pub(super) fn seen_by(&self, person: Person) -> Result<Reply> {
        match person.may_see(&self.readers) {
            true => Ok(self.clone()),
            false => Err(Error::not_found(format!(
                "there is no conversation {}",
                self.conversation_id
            ))),
        }
    }

    /// `cancelled` when somebody stopped the turn.
    pub fn state(&self) -> Option<&'static str> {
        self.state
    }
}

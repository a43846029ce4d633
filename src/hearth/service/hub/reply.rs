//! The response to the message of a turn.

use serde::Serialize;

use super::Person;
use base::error::{Error, Result};
use protocol::record;
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
    /// What is sent.
    #[serde(flatten)]
    pub data: record::Reply,
    /// Tokens that the turn used.
    #[serde(skip)]
    pub usage: Usage,
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
        let data = record::Reply {
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
        };
        Ok(Reply {
            data,
            usage: turn.usage,
            readers: turn.readers.clone(),
        })
    }

    /// The same for somebody who waits for it.
    ///
    /// # Errors
    /// `not_found` where they do not see the conversation any longer, as if it had never
    /// been.
    pub(super) fn seen_by(&self, person: Person) -> Result<Reply> {
        if person.may_see(&self.readers) {
            Ok(self.clone())
        } else {
            Err(Error::not_found(format!(
                "there is no conversation {}",
                self.data.conversation_id
            )))
        }
    }
}

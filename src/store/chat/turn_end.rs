//! How turns end, and are opened again.

use rusqlite::params;

use crate::chat::approvals;
use crate::chat::messages::{Message, NewMessage, Role, insert_message};
use crate::chat::turns::{Turn, TurnState, find_unfinished};
use crate::chat::versions::recount;
use crate::engine::database::Store;
use crate::engine::durability::Durable;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::files;
use crate::home::notifications::{self, NewNotification};
use crate::home::run_history;
use crate::keep::usage::{self, Purpose, Usage};
use crate::out::deliveries::{self, Delivery, NewDelivery};
use crate::sight::askers;
use base::error::{Error, Result};
use base::ids::{MessageId, TurnId};
use base::reply::FinishReason;

/// How a turn ends.
#[derive(Clone, Debug)]
pub enum TurnEnd {
    /// With a reply.
    Done {
        /// The model's reply.
        reply: String,
        /// Why the reply is not whole.
        finish_reason: Option<FinishReason>,
    },
    /// With an error.
    Failed {
        /// Why.
        error: Error,
        /// What the model had written by then; may be empty.
        said: String,
    },
    /// A person stopped it.
    Cancelled {
        /// What the model had written by then; may be empty.
        said: String,
    },
}

impl TurnEnd {
    /// With an error, before the model had written anything.
    pub fn failed(error: Error) -> TurnEnd {
        TurnEnd::Failed {
            error,
            said: String::new(),
        }
    }
}

/// The outcome of [`Store::finish_turn`](crate::Store::finish_turn).
#[derive(Clone, Debug)]
pub struct Finished {
    /// The turn in its final state.
    pub turn: Turn,
    /// The stored reply, when there is one.
    pub reply: Option<Message>,
    /// The callback to send, if the turn came from a webhook account.
    pub delivery: Option<Delivery>,
}

impl Store {
    /// Ends the turn: stores its state, reply, usage (of `model`, by day), delivery and what
    /// phones are told of it in one commit. Its undecided approvals become `expired`. Where whoever
    /// asked does not see the conversation any longer, it fails with `not_found`
    /// instead: they get no answer, and nothing made for them is kept.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or has ended.
    pub fn finish_turn(
        &self,
        id: TurnId,
        end: TurnEnd,
        usage: Usage,
        model: &str,
        delivery: Option<NewDelivery>,
        notifications: Vec<NewNotification>,
    ) -> Result<Durable<Finished>> {
        let model = model.to_owned();
        self.durable_write(move |write| {
            write.adds_to_the_end();
            let mut turn = find_unfinished(write, id)?;
            let in_reply_to = overtaken(write, &turn)?;
            let lost = askers::lost(write.connection, id, turn.conversation_id)?;
            let end = lost.clone().map_or(end, TurnEnd::failed);
            let reply = end_turn(write, &mut turn, end, in_reply_to)?;
            approvals::expire_undecided(write, id)?;
            let purpose = Purpose::of_channel(&turn.channel);
            usage::add(write, id, usage, (&model, purpose), 1)?;
            turn.usage.add(usage);
            run_history::end_of_turn(write, &turn)?;
            if lost.is_none() {
                notifications::insert(write, notifications)?;
            }
            let delivery = delivery
                .map(|delivery| {
                    let conversation = turn.conversation_id;
                    let files = reply.as_ref().map_or(&[][..], |reply| &reply.attachments);
                    deliveries::insert(write, id, conversation, delivery, lost, in_reply_to, files)
                })
                .transpose()?;
            Ok(Finished {
                turn,
                reply,
                delivery,
            })
        })
    }
}

/// The message of the turn, if it is no longer the newest of its conversation: then
/// the reply has to name it.
fn overtaken(write: &Write<'_>, turn: &Turn) -> Outcome<Option<MessageId>> {
    let newest = write.value(
        "SELECT latest FROM conversations WHERE id = ?",
        params![turn.conversation_id],
    )?;
    Ok((newest != Some(turn.message_id)).then_some(turn.message_id))
}

/// Of a reply that a failure or a person ended.
const INTERRUPTED: Option<FinishReason> = Some(FinishReason::Interrupted);

/// Stores the end of a turn, and its reply.
pub(crate) fn end_turn(
    write: &Write<'_>,
    turn: &mut Turn,
    end: TurnEnd,
    in_reply_to: Option<MessageId>,
) -> Outcome<Option<Message>> {
    let (state, error, text, finish_reason) = match end {
        TurnEnd::Done {
            reply,
            finish_reason,
        } => (TurnState::Done, None, Some(reply), finish_reason),
        TurnEnd::Failed { error, said } => {
            (TurnState::Failed, Some(error), Some(said), INTERRUPTED)
        }
        TurnEnd::Cancelled { said } => (TurnState::Cancelled, None, Some(said), INTERRUPTED),
    };
    // What was said before the end stays, unless nothing was.
    let text = text.filter(|text| state == TurnState::Done || !text.trim().is_empty());
    let mut reply = text
        .map(|text| {
            let new = NewMessage {
                in_reply_to,
                finish_reason,
                ..NewMessage::plain(Role::Assistant, text, None)
            };
            insert_message(write, turn.conversation_id, turn.id, new)
        })
        .transpose()?;
    if let Some(reply) = &mut reply {
        reply.attachments = files::link_brought(write, turn.id, reply.id)?;
    }
    (turn.state, turn.error) = (state, error);
    turn.reply_id = reply.as_ref().map(|reply| reply.id);
    let error = turn.error.as_ref();
    // The next id, so that it stands behind all that was said before.
    let ended: Option<MessageId> = reply.is_none().then(|| write.id());
    write.execute(
        "UPDATE turns
         SET state = ?2, reply_id = ?3, error_code = ?4, error_message = ?5,
             error_status = ?6, error_retry_after = ?7, finished_at = ?8, ended = ?9
         WHERE id = ?1",
        params![
            turn.id,
            turn.state,
            turn.reply_id,
            error.map(Error::code),
            error.map(Error::said),
            error.map(Error::status),
            error.and_then(Error::retry_after),
            write.now,
            ended,
        ],
    )?;
    Ok(reply)
}

/// Queues a turn again that has ended without a whole reply: what was said is said anew.
pub(crate) fn reopen(write: &Write<'_>, turn: &mut Turn) -> Outcome<()> {
    write.execute(
        "UPDATE turns SET state = 'queued', reply_id = NULL, error_code = NULL,
             error_message = NULL, error_status = NULL, error_retry_after = NULL, said = NULL,
             finished_at = NULL, started_at = NULL, ended = NULL WHERE id = ?",
        params![turn.id],
    )?;
    if let Some(reply) = turn.reply_id.take() {
        write.execute(
            "UPDATE attachments SET message_id = NULL WHERE message_id = ?",
            params![reply],
        )?;
        write.execute("DELETE FROM messages WHERE id = ?", params![reply])?;
        recount(write, turn.conversation_id)?;
    }
    (turn.state, turn.error, turn.said) = (TurnState::Queued, None, None);
    Ok(())
}

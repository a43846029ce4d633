//! Turns: begun with their message, looked at, stopped, and answered at their
//! end. How one runs is in `running`.

use serde::Serialize;
use serde_json::Value;

use super::queue::{TurnJob, Withdrawn};
use super::session::{Caller, Responder};
use super::{Service, views};
use base::error::{Code, Error, Result};
use base::ids::{ConversationId, MessageId, TurnId};
use base::secret::sha256;
use protocol::command::Chat;
use protocol::event::{Event, Kind};
use serde_json::json;
use store::{
    Begun, Decision, IdempotencyKey, Message, NewTurn, Target, Turn, TurnEnd, TurnState, Usage,
    UserRole, Verdict,
};

/// What `chat` is answered.
#[derive(Clone, Debug, Serialize)]
pub struct Reply {
    pub response: String,
    pub conversation_id: ConversationId,
    pub message_id: MessageId,
    pub turn_id: TurnId,
}

/// Is told once how a turn ended.
pub type Waiter = Box<dyn FnOnce(&Result<Reply>) + Send>;

impl Service {
    /// Stores a person's message, runs its turn and answers `responder` at its
    /// end. The turn belongs to the server: it goes on when the client leaves.
    pub fn chat(&self, caller: &Caller<'_>, chat: Chat, responder: Responder) {
        let is_streamed = chat.stream;
        let is_admin = caller.identity.role >= UserRole::Admin;
        let begin = |turn: TurnId| {
            if is_streamed {
                self.hub
                    .watch(caller.connection, caller.outbox, is_admin, turn);
            }
        };
        if let Err((error, responder)) = self.begin_chat(caller, chat, responder, begin) {
            responder.send(Err::<(), _>(error));
        }
    }

    fn begin_chat(
        &self,
        caller: &Caller<'_>,
        chat: Chat,
        responder: Responder,
        begin: impl FnOnce(TurnId),
    ) -> Result<(), (Error, Responder)> {
        let conversation = chat.conversation_id;
        let config = self.settings.current();
        let place = match self.queue.reserve(conversation, &config.limits) {
            Ok(place) => place,
            Err(error) => return Err((error, responder)),
        };
        let idempotency = chat.idempotency_key.map(|key| IdempotencyKey {
            scope: format!("user:{}", caller.identity.user_id),
            key,
            request: sha256(
                format!(
                    "{}\n{}",
                    conversation.map_or(0, |id| id.as_i64()),
                    chat.message
                )
                .as_bytes(),
            ),
        });
        let new = NewTurn {
            target: conversation.map_or(Target::New, Target::Existing),
            channel: caller.transport.to_owned(),
            account: None,
            message: chat.message,
            speaker: Some(caller.identity.user.clone()),
            idempotency,
        };
        // Nothing is acknowledged before the turn's end, so its beginning may
        // reach the disk together with it.
        match self.store.begin_turn_deferred(new) {
            Err(error) => Err((error, responder)),
            Ok(Begun::Repeat(turn)) => {
                begin(turn.id);
                self.answer_when_over(turn.id, Box::new(|result| responder.send(result.clone())));
                Ok(())
            }
            Ok(Begun::New { turn, message }) => {
                begin(turn.id);
                let waiter: Waiter = Box::new(|result| responder.send(result.clone()));
                self.waiters().entry(turn.id).or_default().push(waiter);
                self.started(turn, message);
                drop(place);
                Ok(())
            }
        }
    }

    /// A stored turn goes to the workers, and its message to the subscribers.
    pub(super) fn started(&self, turn: Turn, message: Message) {
        log::info!(
            "turn {}: from {} by {}",
            turn.id,
            turn.channel,
            name_of(&message.speaker)
        );
        self.publish(
            &turn,
            Kind::MessageCreated {
                message: views::message(message.clone()),
            },
        );
        self.queue.submit(TurnJob {
            turn: turn.id,
            conversation: turn.conversation_id,
            fresh: Some(Box::new((turn, message))),
        });
    }

    /// Calls `waiter` when the turn is over, which may be now.
    pub(super) fn answer_when_over(&self, id: TurnId, waiter: Waiter) {
        self.waiters().entry(id).or_default().push(waiter);
        // Over before the waiter was there, and so without telling it.
        match self.store.turn(id) {
            Ok(turn) if turn.state.is_final() => self.answer(id, &self.result_of(&turn)),
            _ => {}
        }
    }

    pub(super) fn result_of(&self, turn: &Turn) -> Result<Reply> {
        match (&turn.reply_id, &turn.error) {
            (Some(reply), _) => Ok(reply_of(self.store.message(*reply)?, turn.id)),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err(cancelled()),
        }
    }

    pub(super) fn answer(&self, turn: TurnId, result: &Result<Reply>) {
        let waiters = self.waiters().remove(&turn).unwrap_or_default();
        for waiter in waiters {
            waiter(result);
        }
    }

    /// Tells whoever waits for a turn whose beginning was lost with a failed
    /// commit. Nobody does when it was ended elsewhere.
    pub(super) fn answer_lost(&self, turn: TurnId) {
        if self.waiters().contains_key(&turn) {
            let lost = Error::server("the message could not be stored", format!("{turn} is gone"));
            self.answer(turn, &Err(lost));
        }
    }

    pub(super) fn find_turn(&self, id: TurnId) -> Result<Turn> {
        self.settled(|| self.store.turn(id))
    }

    /// What `read` finds, also when it has not reached the disk yet: a turn is
    /// told to subscribers up to 5 ms before that.
    pub(super) fn settled<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        match read() {
            Err(error) if error.code() == Code::NotFound => {
                self.store.flush()?;
                read()
            }
            found => found,
        }
    }

    /// Stops a turn, whoever began it.
    pub fn cancel(&self, id: TurnId, by: &str) -> Result<Value> {
        let turn = self.find_turn(id)?;
        if turn.state.is_final() {
            return Ok(json!({ "turn_id": id, "state": turn.state.as_str() }));
        }
        log::info!("turn {id}: {by} stops it");
        match self.queue.withdraw(id, turn.conversation_id) {
            Withdrawn::Told => Ok(json!({ "turn_id": id, "state": "cancelling" })),
            Withdrawn::Taken | Withdrawn::Unknown => {
                self.expire_questions_of(id, by)?;
                self.conclude(&turn, TurnEnd::Cancelled, Usage::default(), "");
                Ok(json!({ "turn_id": id, "state": TurnState::Cancelled.as_str() }))
            }
        }
    }

    fn expire_questions_of(&self, id: TurnId, by: &str) -> Result<()> {
        for approval in self.store.approvals_of(id)? {
            if approval.decision.is_none() {
                let decision = Decision {
                    verdict: Verdict::Expired,
                    by: by.to_owned(),
                };
                self.publish_decision(&approval, &decision);
            }
        }
        Ok(())
    }

    /// The data of `get_turn`.
    pub fn turn_view(&self, id: TurnId) -> Result<Value> {
        let turn = self.find_turn(id)?;
        let mut view = json!({
            "turn_id": turn.id,
            "conversation_id": turn.conversation_id,
            "state": turn.state.as_str(),
            "channel": turn.channel,
            "created_at": turn.created_at,
        });
        if let Some(model) = &turn.model {
            view["model"] = json!(model);
            view["tokens"] = views::tokens(turn.usage);
        }
        if let Some(reply) = turn.reply_id {
            let reply = self.store.message(reply)?;
            view["message_id"] = json!(reply.id);
            view["response"] = json!(reply.content);
        }
        if let Some(error) = &turn.error {
            view["code"] = json!(error.code());
            view["error"] = json!(error.message());
        }
        Ok(view)
    }

    pub(super) fn publish(&self, turn: &Turn, kind: Kind) {
        self.hub.publish(Event {
            turn_id: Some(turn.id),
            conversation_id: Some(turn.conversation_id),
            kind,
        });
    }
}

pub(super) fn reply_of(reply: Message, turn_id: TurnId) -> Reply {
    Reply {
        response: reply.content,
        conversation_id: reply.conversation_id,
        message_id: reply.id,
        turn_id,
    }
}

/// What is told of a turn that somebody stopped.
pub(super) fn cancelled() -> Error {
    Error::new(Code::ServerError, "the turn was cancelled")
}

fn name_of(speaker: &Option<String>) -> &str {
    speaker.as_deref().unwrap_or("somebody")
}

/// Waiters by turn.
pub(super) type Waiters = std::collections::HashMap<TurnId, Vec<Waiter>>;

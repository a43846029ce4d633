//! Stores turns with their messages, starts, reads and stops them. `running` runs
//! them.

use serde_json::Value;

use super::caller::{Caller, Responder};
use super::hub::{Reply, TurnEnded, Watch};
use super::queue::{Reservation, TurnJob, Withdrawn};
use super::{Service, views};
use agent::turn::said_so_far;
use base::error::{Code, Error, Result};
use base::ids::TurnId;
use base::secret::sha256;
use protocol::command::Chat;
use protocol::event::{Event, EventKind};
use serde_json::json;
use store::{
    Begun, Decision, IdempotencyKey, Message, NewTurn, Target, Turn, TurnEnd, TurnState, Usage,
    Verdict,
};

/// Whether a message must be on disk before anything else happens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// The caller is about to acknowledge it.
    Committed,
    /// Nothing is acknowledged before the turn ends, so both may be committed
    /// together.
    DeferredUntilTurnEnds,
}

/// A message that was stored, whose turn is still to be started.
pub(super) struct StoredMessage<'a> {
    begun: Begun,
    _place: Reservation<'a>,
}

impl StoredMessage<'_> {
    /// Its turn, or the earlier one of a repeated idempotency key.
    pub fn turn(&self) -> &Turn {
        match &self.begun {
            Begun::New { turn, .. } | Begun::Repeat(turn) => turn,
        }
    }
}

impl Service {
    /// Stores a person's message, starts its turn and answers `responder` at its
    /// end. The turn belongs to the server: it continues when the client leaves.
    pub(super) fn chat(&self, caller: &Caller<'_>, chat: Chat, responder: Responder) {
        let request = format!(
            "{}\n{}",
            chat.conversation_id.map_or(0, |id| id.as_i64()),
            chat.message
        );
        let new = NewTurn {
            target: chat.conversation_id.map_or(Target::New, Target::Existing),
            channel: caller.transport.to_owned(),
            account: None,
            message: chat.message,
            speaker: Some(caller.identity.user.clone()),
            idempotency: chat.idempotency_key.map(|key| IdempotencyKey {
                scope: format!("user:{}", caller.identity.user_id),
                key,
                request: sha256(request.as_bytes()),
            }),
        };
        let stored = match self.store_message(new, Durability::DeferredUntilTurnEnds) {
            Ok(stored) => stored,
            Err(error) => return responder.send(Err::<(), _>(error)),
        };
        let watch = self.hub.watch(stored.turn().id, Box::new(responder));
        if chat.stream {
            let is_admin = caller.is_admin();
            self.hub
                .stream(watch, caller.connection, caller.outbox, is_admin);
        }
        self.start(stored, Some(watch));
    }

    /// Reserves a place in the queue for a message and stores it.
    ///
    /// # Errors
    /// `server_error` 503 (queue full), `rate_limited` (the conversation's queue),
    /// `not_found` (no such conversation), `invalid_request` (422: the idempotency
    /// key was used for another request).
    pub(super) fn store_message(
        &self,
        new: NewTurn,
        durability: Durability,
    ) -> Result<StoredMessage<'_>> {
        let conversation = match &new.target {
            Target::Existing(conversation) => Some(*conversation),
            _ => None,
        };
        let place = self
            .queue
            .reserve(conversation, &self.settings.current().limits)?;
        let begun = match durability {
            Durability::Committed => self.store.begin_turn(new)?,
            Durability::DeferredUntilTurnEnds => self.store.begin_turn_deferred(new)?,
        };
        Ok(StoredMessage {
            begun,
            _place: place,
        })
    }

    /// Starts the turn of a stored message. For a repeated idempotency key whose
    /// earlier turn has ended, `watch` is notified now.
    pub(super) fn start(&self, stored: StoredMessage<'_>, watch: Option<Watch>) {
        match (stored.begun, watch) {
            (Begun::New { turn, message }, _) => self.start_turn(turn, message),
            (Begun::Repeat(turn), Some(watch)) => {
                if let Ok(turn) = self.store.turn(turn.id)
                    && turn.state.is_final()
                    && let Some(watcher) = self.hub.unwatch(watch)
                {
                    watcher.ended(&self.result_of(&turn).into());
                }
            }
            (Begun::Repeat(_), None) => {}
        }
    }

    /// Publishes the message of a stored turn and queues the turn.
    pub(super) fn start_turn(&self, turn: Turn, message: Message) {
        log::info!(
            "turn {}: from {} by {}",
            turn.id,
            turn.channel,
            message.speaker.as_deref().unwrap_or("somebody")
        );
        self.publish(
            &turn,
            EventKind::MessageCreated {
                message: views::message(message.clone()),
            },
        );
        self.queue.submit(TurnJob {
            turn: turn.id,
            conversation: turn.conversation_id,
            fresh: Some(Box::new((turn, message))),
        });
    }

    fn result_of(&self, turn: &Turn) -> Result<Reply> {
        match (&turn.reply_id, &turn.error) {
            (Some(reply), _) => Ok(reply_of(self.store.message(*reply)?, turn.id)),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(cancelled_reply(turn, turn.said.clone().unwrap_or_default())),
        }
    }

    /// Notifies the watchers of a turn whose beginning was lost with a failed
    /// commit. There are none when it was ended elsewhere.
    pub(super) fn turn_lost(&self, turn: TurnId) {
        if self.hub.is_watched(turn) {
            let lost = Error::server("the message could not be stored", format!("{turn} is gone"));
            self.hub.turn_ended(turn, &TurnEnded::from(Err(lost)));
        }
    }

    pub(super) fn find_turn(&self, id: TurnId) -> Result<Turn> {
        self.settled(|| self.store.turn(id))
    }

    /// What `read` finds, even if it has not reached the disk yet: subscribers
    /// learn of a turn up to 5 ms earlier.
    pub(super) fn settled<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        match read() {
            Err(error) if error.code() == Code::NotFound => {
                self.store.flush()?;
                read()
            }
            found => found,
        }
    }

    /// Stops a turn, no matter who began it.
    pub(super) fn cancel(&self, id: TurnId, by: &str) -> Result<Value> {
        let turn = self.find_turn(id)?;
        if turn.state.is_final() {
            return Ok(json!({ "turn_id": id, "state": turn.state.as_str() }));
        }
        log::info!("turn {id}: {by} stops it");
        match self.queue.withdraw(id, turn.conversation_id) {
            Withdrawn::Signalled => Ok(json!({ "turn_id": id, "state": "cancelling" })),
            Withdrawn::Taken | Withdrawn::Unknown => {
                self.expire_approvals_of(id, by)?;
                let said = said_so_far(&self.store.steps(id)?, "");
                self.conclude(&turn, TurnEnd::Cancelled { said }, Usage::default(), "");
                Ok(json!({ "turn_id": id, "state": TurnState::Cancelled.as_str() }))
            }
        }
    }

    fn expire_approvals_of(&self, id: TurnId, by: &str) -> Result<()> {
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
    pub(super) fn turn_view(&self, id: TurnId) -> Result<Value> {
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
        if let Some(said) = &turn.said {
            view["response"] = json!(said);
        }
        if let Some(error) = &turn.error {
            view["code"] = json!(error.code());
            view["error"] = json!(error.message());
        }
        Ok(view)
    }

    pub(super) fn publish(&self, turn: &Turn, kind: EventKind) {
        self.hub.publish(Event {
            turn_id: Some(turn.id),
            conversation_id: Some(turn.conversation_id),
            kind,
        });
    }
}

pub(super) fn reply_of(reply: Message, turn_id: TurnId) -> Reply {
    Reply {
        state: None,
        response: reply.content,
        conversation_id: reply.conversation_id,
        message_id: Some(reply.id),
        turn_id,
    }
}

/// The response to the message of a turn that a person stopped.
pub(super) fn cancelled_reply(turn: &Turn, said: String) -> Reply {
    Reply {
        state: Some(TurnState::Cancelled.as_str()),
        response: said,
        conversation_id: turn.conversation_id,
        message_id: None,
        turn_id: turn.id,
    }
}

/// The error of a turn that a person stopped, for clients and events that know no
/// other end without a reply.
pub(super) fn cancelled() -> Error {
    Error::new(Code::ServerError, "the turn was cancelled")
}

//! Turns that one HTTP request begins and follows: those of clients that speak
//! OpenAI's or Ollama's interface.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::Service;
use super::hub::ConnectionId;
use super::turns::{Reply, Waiter};
use base::error::{Error, Result};
use base::ids::{TurnId, UserId};
use net::outbox::{Close, Item, Outbox};
use store::{Begun, Exchange, IdempotencyKey, Identity, NewTurn, ReplayedHistory, Target};

/// Who asks.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Whose conversations the message may go on with.
    pub user_id: UserId,
    /// The speaker's name for the model.
    pub user: String,
    /// The token that was shown; none where the owner lets a user's programs in
    /// without one.
    pub identity: Option<Identity>,
}

/// A message from a client that sends the whole past with it.
#[derive(Debug)]
pub struct Question {
    /// What was said before, oldest first.
    pub history: Vec<Exchange>,
    /// The message to answer.
    pub message: String,
    /// What the model is to keep to in this turn.
    pub instructions: Option<String>,
    /// The caller's key and a fingerprint of its request.
    pub idempotency: Option<(String, [u8; 32])>,
    /// Where it comes from, as in `Conversation::channel`.
    pub channel: &'static str,
    /// Whether the pieces of the reply are wanted as they come.
    pub stream: bool,
}

/// What was heard of a turn_stream turn.
#[derive(Debug)]
pub enum Heard {
    /// A piece of text.
    Text(String),
    /// The model has called a tool: text that follows is a new beginning.
    ToolCall,
    /// A person has to decide before it goes on.
    AwaitsApproval,
}

/// A turn that is turn_stream. Dropping it leaves the turn as it is.
pub struct TurnStream {
    service: Arc<Service>,
    connection: ConnectionId,
    outbox: Arc<Outbox>,
    end: Arc<Mutex<Option<Result<Reply>>>>,
    turn: TurnId,
}

/// What [`TurnStream::take`] found.
pub struct News {
    /// In the order in which it happened.
    pub heard: Vec<Heard>,
    /// Set once the turn is over; nothing follows.
    pub end: Option<Result<Reply>>,
    /// Set when nothing more may be told: the token was revoked.
    pub is_cut: bool,
}

/// What a follower understands of an event.
#[derive(Deserialize)]
struct Told {
    event: String,
    /// Of a piece of the reply.
    text: Option<String>,
}

impl Service {
    /// Stores a message and begins its turn, which runs like any other. `wake`
    /// is called, from any thread, whenever [`TurnStream::take`] may find news.
    ///
    /// # Errors
    /// `server_error` 503 (queue full), `invalid_request` (422: the
    /// idempotency key was used for another request).
    pub fn follow(
        self: &Arc<Service>,
        asker: &Asker,
        question: Question,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<TurnStream> {
        let config = self.settings.current();
        let place = self.queue.reserve(None, &config.limits)?;
        let outbox = Arc::new(Outbox::new(config.limits.outbox_bytes, wake));
        let end = Arc::new(Mutex::new(None));
        let turn_stream = |turn| TurnStream {
            service: Arc::clone(self),
            connection: self.connections.open(),
            outbox: Arc::clone(&outbox),
            end: Arc::clone(&end),
            turn,
        };
        let is_streamed = question.stream;
        // What was said before is read from the database as soon as the turn runs.
        let is_told = !question.history.is_empty();
        let new = NewTurn {
            target: Target::ReplayedHistory(ReplayedHistory {
                user_id: asker.user_id,
                history: question.history,
                instructions: question.instructions,
            }),
            channel: question.channel.to_owned(),
            account: None,
            message: question.message,
            speaker: Some(asker.user.clone()),
            idempotency: question.idempotency.map(|(key, request)| IdempotencyKey {
                scope: format!("user:{}:{}", asker.user_id, question.channel),
                key,
                request,
            }),
        };
        let begun = match is_told {
            true => self.store.begin_turn(new)?,
            // As with `chat`: nothing is acknowledged before the turn's end.
            false => self.store.begin_turn_deferred(new)?,
        };
        let waiter: Waiter = {
            let (end, outbox) = (Arc::clone(&end), Arc::clone(&outbox));
            Box::new(move |result| {
                *lock(&end) = Some(result.clone());
                outbox.wake();
            })
        };
        match begun {
            Begun::Repeat(turn) => {
                let turn_stream = turn_stream(turn.id);
                turn_stream.attend(asker, is_streamed);
                self.answer_when_over(turn.id, waiter);
                Ok(turn_stream)
            }
            Begun::New { turn, message } => {
                let turn_stream = turn_stream(turn.id);
                turn_stream.attend(asker, is_streamed);
                self.waiters().entry(turn.id).or_default().push(waiter);
                self.started(turn, message);
                drop(place);
                Ok(turn_stream)
            }
        }
    }

    /// The user of this name, for programs that the owner lets in without a
    /// token.
    ///
    /// # Errors
    /// `unauthorized` when there is none, or it may not chat.
    pub fn asker_without_token(&self, name: &str) -> Result<Asker> {
        match self.store.user(name)? {
            Some(user) if user.role >= store::UserRole::User => Ok(Asker {
                user_id: user.id,
                user: user.name,
                identity: None,
            }),
            _ => {
                log::warn!("openai_api.ollama_user: no user {name:?} who may chat");
                Err(Error::unauthorized(
                    "the server's setting openai_api.ollama_user names nobody who may chat",
                ))
            }
        }
    }
}

impl TurnStream {
    fn attend(&self, asker: &Asker, is_streamed: bool) {
        if let Some(identity) = &asker.identity {
            // Revoking the token cuts the response.
            let connections = self.service.connections();
            connections.authenticated(self.connection, identity, &self.outbox);
        }
        if is_streamed {
            // As an admin, to learn that a person is asked; what is asked is
            // not passed on.
            let hub = self.service.hub();
            hub.watch(self.connection, &self.outbox, true, self.turn);
        }
    }

    /// The turn.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// What has happened since the last call.
    pub fn take(&self) -> News {
        // The end is looked at first: whatever the outbox gets comes before it.
        let end = lock(&self.end).take();
        let taken = self.outbox.take();
        let heard = taken.items.iter().filter_map(|item| match item {
            Item::Event(text) => heard(text),
            Item::Replay(_) | Item::Response { .. } | Item::Direct(..) => None,
        });
        News {
            heard: heard.collect(),
            // One that is too slow hears no more pieces, but the end.
            is_cut: taken.close.is_some_and(|close| close != Close::TOO_SLOW),
            end,
        }
    }
}

impl Drop for TurnStream {
    fn drop(&mut self) {
        self.service.hub().leave(self.connection);
        self.service.connections().close(self.connection);
    }
}

fn heard(event: &str) -> Option<Heard> {
    let told: Told = serde_json::from_str(event).ok()?;
    match told.event.as_str() {
        "chat.delta" => told.text.map(Heard::Text),
        "chat.tool_call" => Some(Heard::ToolCall),
        "approval.requested" => Some(Heard::AwaitsApproval),
        _ => None,
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ids::{ApprovalId, MessageId};
    use protocol::event::{Event, Kind};

    #[test]
    fn events_are_understood_as_they_are_sent() {
        let text = |kind| {
            let event = Event {
                turn_id: Some(TurnId::from(1)),
                conversation_id: None,
                kind,
            };
            heard(&event.to_text(1))
        };
        assert!(matches!(
            text(Kind::Delta { text: "hi".into() }),
            Some(Heard::Text(text)) if text == "hi"
        ));
        let call = Kind::ToolCall {
            tool: "clock".into(),
            arguments: serde_json::json!({}),
            call_id: "1".into(),
        };
        assert!(matches!(text(call), Some(Heard::ToolCall)));
        let asked = Kind::ApprovalRequested {
            approval_id: ApprovalId::from(1),
            tool: "clock".into(),
            arguments: serde_json::json!({}),
            reason: "because".into(),
        };
        assert!(matches!(text(asked), Some(Heard::AwaitsApproval)));
        let message_id = MessageId::from(1);
        assert!(text(Kind::Done { message_id }).is_none());
    }
}

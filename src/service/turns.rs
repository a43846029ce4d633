//! Turns from their message to their end: stored, scheduled, run, answered.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::schedule::{TurnJob, Withdrawn};
use super::session::{Caller, Responder};
use super::workers::Stalled;
use super::{Service, views};
use crate::agent::provider::Cancel;
use crate::agent::turn::{self, Outcome, Progress, TurnRun};
use crate::error::{Code, Error, Result};
use crate::ids::{ConversationId, MessageId, TurnId};
use crate::protocol::command::Chat;
use crate::protocol::event::{Event, Kind};
use crate::secret::sha256;
use crate::store::{
    Begun, Decision, Delivery, DeliveryState, IdempotencyKey, Message, NewTurn, Target, Turn,
    TurnEnd, TurnState, Usage, UserRole, Verdict,
};

/// How long a turn that goes on after a restart waits for MCP servers to start:
/// it may have been asked about one of their tools.
const MCP_LIMIT: Duration = Duration::from_secs(15);

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
        let place = match self.schedule.reserve(conversation, &config.limits) {
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
        match self.store.begin_turn_behind(new) {
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
        self.schedule.submit(TurnJob {
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

    fn answer(&self, turn: TurnId, result: &Result<Reply>) {
        let waiters = self.waiters().remove(&turn).unwrap_or_default();
        for waiter in waiters {
            waiter(result);
        }
    }

    /// Tells whoever waits for a turn whose beginning was lost with a failed
    /// commit. Nobody does when it was ended elsewhere.
    fn answer_lost(&self, turn: TurnId) {
        if self.waiters().contains_key(&turn) {
            let lost = Error::server("the message could not be stored", format!("{turn} is gone"));
            self.answer(turn, &Err(lost));
        }
    }

    /// Runs one turn on a worker's thread.
    pub(super) fn run_turn(&self, job: TurnJob, cancel: &Cancel) {
        let (id, conversation) = (job.turn, job.conversation);
        let loaded = match job.fresh {
            Some(fresh) => Ok(Some((fresh.0, fresh.1, false))),
            None => self.load_turn(id),
        };
        let (turn, message, is_resumed) = match loaded {
            Ok(Some(loaded)) => loaded,
            Ok(None) => return self.schedule.turn_ended(id, conversation),
            Err(error) if error.code() == Code::NotFound => {
                // Its beginning was lost with a failed commit.
                self.answer_lost(id);
                return self.schedule.turn_ended(id, conversation);
            }
            Err(error) => {
                self.answer(id, &Err(error));
                return self.stall(Stalled::Run {
                    turn: id,
                    conversation,
                });
            }
        };
        self.store.mark_running(id, self.clock.now());
        let began = Instant::now();
        if is_resumed {
            self.mcp.wait_until_settled(MCP_LIMIT, cancel);
        }
        let assistant = self.assistant();
        let config = &assistant.config;
        let account = turn
            .account
            .as_deref()
            .and_then(|name| config.webhook_account(name));
        let turn_seconds = account
            .and_then(|account| account.timeout_seconds)
            .unwrap_or(config.limits.turn_seconds);
        let run = TurnRun {
            assistant: &assistant,
            store: &self.store,
            clock: &self.clock,
            data_dir: &self.data_dir,
            turn: &turn,
            message: &message,
            is_resumed,
            account,
            deadline: began + Duration::from_secs(turn_seconds),
            cancel,
            is_streamed: &|| self.hub.is_streamed(id),
        };
        let ran = turn::run(&run, &mut |progress| self.report(&turn, progress));
        let took = began.elapsed().as_millis();
        match ran.outcome {
            Outcome::Suspended(approvals) => {
                for approval in &approvals {
                    log::info!("turn {id}: waits for permission: {}", approval.reason);
                    let kind = Kind::ApprovalRequested {
                        approval_id: approval.id,
                        tool: approval.tool.clone(),
                        arguments: views::arguments(&approval.arguments),
                        reason: approval.reason.clone(),
                    };
                    self.publish(&turn, kind);
                }
                self.store.note_usage(id, ran.usage, &ran.model);
                self.schedule.turn_suspended(id, conversation);
            }
            Outcome::Replied(reply) => {
                let (model, usage) = (&ran.model, ran.usage);
                log::info!(
                    "turn {id}: done in {took} ms by {model} ({} tokens in, {} out)",
                    usage.input,
                    usage.output
                );
                self.conclude(&turn, TurnEnd::Done { reply }, ran.usage, &ran.model);
            }
            // It failed for want of a disk, not of an answer.
            Outcome::Failed(error) if !self.store.is_writable() => {
                log::warn!("turn {id}: put off until the database can be written");
                self.answer(id, &Err(error));
                self.stall(Stalled::Run {
                    turn: id,
                    conversation,
                });
            }
            Outcome::Failed(error) => {
                log::warn!("turn {id}: failed after {took} ms: {error}");
                self.conclude(&turn, TurnEnd::Failed(error), ran.usage, &ran.model);
            }
            // Told to stop because the server stops: it is unfinished on disk
            // and goes on at the next start.
            Outcome::Cancelled if self.schedule.is_stopping() => {
                log::info!("turn {id}: put off until the next start");
                self.store.note_usage(id, ran.usage, &ran.model);
                self.schedule.turn_ended(id, conversation);
            }
            Outcome::Cancelled => {
                log::info!("turn {id}: cancelled after {took} ms");
                self.conclude(&turn, TurnEnd::Cancelled, ran.usage, &ran.model);
            }
        }
    }

    /// The turn, its message and whether it may have steps already; nothing
    /// when it is over.
    fn load_turn(&self, id: TurnId) -> Result<Option<(Turn, Message, bool)>> {
        let turn = self.find_turn(id)?;
        if turn.state.is_final() {
            return Ok(None);
        }
        let message = self.store.message(turn.message_id)?;
        let is_resumed = turn.started_at.is_some();
        Ok(Some((turn, message, is_resumed)))
    }

    fn find_turn(&self, id: TurnId) -> Result<Turn> {
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

    fn report(&self, turn: &Turn, progress: Progress<'_>) {
        let kind = match progress {
            Progress::Text(text) => Kind::Delta {
                text: text.to_owned(),
            },
            Progress::ToolCall(call) => Kind::ToolCall {
                tool: call.tool.clone(),
                arguments: views::arguments(&call.arguments),
                call_id: call.id.clone(),
            },
            Progress::ToolResult {
                call_id,
                ok,
                summary,
            } => Kind::ToolResult {
                call_id: call_id.to_owned(),
                ok,
                summary: summary.to_owned(),
            },
        };
        self.publish(turn, kind);
    }

    /// Ends a turn: one commit for its state, reply and callback; then whoever
    /// waits is told, and the conversation's next turn may run.
    pub(super) fn conclude(&self, turn: &Turn, end: TurnEnd, usage: Usage, model: &str) {
        let (delivery, is_awaited) = self.callback_of(turn, &end);
        let failure = match &end {
            TurnEnd::Done { .. } => None,
            TurnEnd::Failed(error) => Some(error.clone()),
            TurnEnd::Cancelled => Some(cancelled()),
        };
        let ending = end.clone();
        let finished = match self.store.finish_turn(turn.id, end, usage, model, delivery) {
            Ok(finished) => finished,
            Err(error) if error.code() == Code::NotFound => {
                // Its beginning was lost with a failed commit, or somebody else
                // ended it and told the waiters.
                self.answer_lost(turn.id);
                return self.schedule.turn_ended(turn.id, turn.conversation_id);
            }
            Err(error) => {
                self.answer(turn.id, &Err(error));
                let turn = Box::new(turn.clone());
                let model = model.to_owned();
                return self.stall(Stalled::Conclude {
                    turn,
                    end: ending,
                    usage,
                    model,
                });
            }
        };
        let is_cancelled = matches!(ending, TurnEnd::Cancelled);
        let took = self.clock.now().since(turn.created_at);
        self.meter.turn_ended(took, &ending);
        let result = match (finished.reply, failure) {
            (Some(reply), _) => {
                self.publish(
                    turn,
                    Kind::MessageCreated {
                        message: views::message(reply.clone()),
                    },
                );
                self.publish(
                    turn,
                    Kind::Done {
                        message_id: reply.id,
                    },
                );
                Ok(reply_of(reply, turn.id))
            }
            (None, failure) => {
                let error = failure.unwrap_or_else(cancelled);
                let kind = Kind::Failed {
                    code: error.code(),
                    error: error.message().to_owned(),
                    cancelled: is_cancelled,
                };
                self.publish(turn, kind);
                Err(error)
            }
        };
        self.answer(turn.id, &result);
        self.schedule.turn_ended(turn.id, turn.conversation_id);
        if let Some(delivery) = finished.delivery {
            self.delivery_changed(&delivery);
            self.answer_requests(turn.id, result, delivery.id, is_awaited);
        }
    }

    /// A delivery was stored or attempted: tells the subscribers, and the
    /// workers when it is due.
    pub fn delivery_changed(&self, delivery: &Delivery) {
        self.meter.delivery_changed(delivery.state);
        self.hub.publish(Event {
            turn_id: Some(delivery.turn_id),
            conversation_id: Some(delivery.conversation_id),
            kind: Kind::DeliveryUpdated {
                delivery_id: delivery.id,
                state: delivery.state.as_str().to_owned(),
                attempts: delivery.attempts,
            },
        });
        let is_due = delivery.next_at <= self.clock.now();
        match delivery.state {
            DeliveryState::Pending if is_due => self.schedule.offer_deliveries([delivery.id]),
            // The conversation's next one may have moved up.
            _ => self.nudge(),
        }
    }

    /// Stops a turn, whoever began it.
    pub fn cancel(&self, id: TurnId, by: &str) -> Result<Value> {
        let turn = self.find_turn(id)?;
        if turn.state.is_final() {
            return Ok(json!({ "turn_id": id, "state": turn.state.as_str() }));
        }
        log::info!("turn {id}: {by} stops it");
        match self.schedule.withdraw(id, turn.conversation_id) {
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

fn reply_of(reply: Message, turn_id: TurnId) -> Reply {
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

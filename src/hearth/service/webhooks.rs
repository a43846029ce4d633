//! Webhook messages as turns: accepted, and answered by a callback or, to a
//! caller that waits, in the response.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Service;
use super::responses::{Answer, Ticket};
use super::turns::{Reply, cancelled};
use base::error::{Error, Result};
use base::ids::{DeliveryId, TurnId};
use base::secret::sha256;
use config::{Limits, WebhookAccount};
use net::token_bucket::TokenBucket;
use protocol::envelope;
use protocol::event::{Event, Kind};
use store::{
    Attempt, Begun, Delivery, DeliveryState, IdempotencyKey, NewDelivery, NewTurn, Target, Turn,
    TurnEnd,
};

/// How long a response may take that stands for a callback, before the callback
/// is sent after all.
const RESPONSE_TIME: Duration = Duration::from_secs(30);

/// What an incoming webhook asks for.
pub struct WebhookRequest {
    /// The text to answer.
    pub message: String,
    /// The speaker's name for the model, chosen by the caller.
    pub user_id: Option<String>,
    /// The caller's own name of the conversation.
    pub conversation_id: Option<String>,
    /// A repeat within 24 hours gets the first answer and begins no second
    /// turn.
    pub idempotency_key: Option<String>,
    /// The raw body, whose fingerprint guards the idempotency key.
    pub body: Vec<u8>,
}

/// What was accepted, durably.
pub struct Accepted<'a> {
    /// The caller's own name, or the id of the new conversation.
    pub conversation_id: String,
    /// The turn that was begun, or the earlier one of a repeated key: for the
    /// caller's records and for `get_turn`.
    pub turn_id: TurnId,
    /// The caller's place to wait for the turn's end, if it wants to and there
    /// was one.
    pub ticket: Option<Ticket<'a>>,
}

impl Service {
    /// Accepts a webhook message: when this returns, it is on disk and its turn
    /// will run and be called back. With `may_wait` there is a ticket to wait
    /// for its end with, if there is room.
    ///
    /// # Errors
    /// `rate_limited` (account's rate),
    /// `server_error` 503 (queue full), `invalid_request` (422: the
    /// idempotency key was used for another body).
    pub fn accept_webhook(
        &self,
        account: &WebhookAccount,
        request: WebhookRequest,
        may_wait: bool,
    ) -> Result<Accepted<'_>> {
        let config = self.settings.current();
        self.check_webhook_rate(&account.name, &config.limits)?;
        let place = self.queue.reserve(None, &config.limits)?;
        let begun = self.store.begin_turn(NewTurn {
            target: match request.conversation_id {
                Some(name) => Target::Named {
                    account: account.name.clone(),
                    name,
                },
                None => Target::New,
            },
            channel: format!("webhook:{}", account.name),
            account: Some(account.name.clone()),
            message: request.message,
            speaker: request.user_id,
            idempotency: request.idempotency_key.map(|key| IdempotencyKey {
                scope: format!("webhook:{}", account.name),
                key,
                request: sha256(&request.body),
            }),
        })?;
        let enroll = |turn: TurnId| {
            may_wait
                .then(|| self.responses.enroll(turn, config.limits.webhook_waiting))
                .flatten()
        };
        let (turn, ticket) = match begun {
            Begun::Repeat(turn) => {
                let ticket = enroll(turn.id);
                if ticket.is_some() {
                    self.tell_if_over(turn.id);
                }
                (turn, ticket)
            }
            Begun::New { turn, message } => {
                // Before the turn can end: its end looks whether anybody waits.
                let ticket = enroll(turn.id);
                self.started(turn.clone(), message);
                drop(place);
                (turn, ticket)
            }
        };
        Ok(Accepted {
            conversation_id: external_name(&turn),
            turn_id: turn.id,
            ticket,
        })
    }

    fn check_webhook_rate(&self, account: &str, limits: &Limits) -> Result<()> {
        let now = Instant::now();
        let mut rates = self
            .webhook_rates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let bucket = rates
            .entry(account.to_owned())
            .or_insert_with(|| TokenBucket::full(limits.webhook_burst, now));
        bucket
            .take(limits.webhook_per_second, limits.webhook_burst, now)
            .map_err(|wait| {
                let most = limits.webhook_per_second;
                Error::rate_limited(
                    format!("more than {most} requests a second for this account"),
                    wait,
                )
            })
    }

    /// Tells the requests that wait for a turn which was over before they came.
    /// Its callback is on its way already.
    fn tell_if_over(&self, id: TurnId) {
        if let Ok(turn) = self.store.turn(id)
            && turn.state.is_final()
        {
            let result = self.result_of(&turn);
            self.responses.settle(
                id,
                &Answer {
                    result,
                    delivery: None,
                },
            );
        }
    }

    /// A response that takes the place of a callback was sent, or its caller
    /// was gone: then the callback is sent now.
    pub fn response_sent(&self, delivery: DeliveryId, reached: bool) {
        let settled = match reached {
            true => self.store.record_attempt(delivery, Attempt::Delivered),
            false => self.store.retry_delivery(delivery),
        };
        match settled {
            Ok(delivery) => {
                let place = if reached {
                    "answered in the response"
                } else {
                    "its caller has gone"
                };
                log::info!(
                    "delivery {} to {:?}: {place}",
                    delivery.id,
                    delivery.account
                );
                self.delivery_changed(&delivery);
            }
            // It stays due, and is sent when its delay is over.
            Err(error) => log::warn!("delivery {delivery}: {error}"),
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
            DeliveryState::Pending if is_due => self.queue.offer_deliveries([delivery.id]),
            // The conversation's next one may have moved up.
            _ => self.nudge(),
        }
    }

    /// The callback that a turn's end owes, and whether a request waits for it:
    /// then the callback leaves it some time.
    pub(super) fn callback_of(&self, turn: &Turn, end: &TurnEnd) -> (Option<NewDelivery>, bool) {
        let is_awaited = self.responses.is_awaited(turn.id);
        let delivery = turn.account.as_ref().map(|account| NewDelivery {
            account: account.clone(),
            body: callback_body(turn, end),
            delay: match is_awaited {
                true => RESPONSE_TIME,
                false => Duration::ZERO,
            },
        });
        (delivery, is_awaited)
    }

    /// Tells the requests that wait for a turn, whose end is on disk.
    /// `is_awaited` is what [`Service::callback_of`] said before that.
    pub(super) fn answer_requests(
        &self,
        turn: TurnId,
        result: Result<Reply>,
        delivery: DeliveryId,
        is_awaited: bool,
    ) {
        let answer = Answer {
            result,
            delivery: is_awaited.then_some(delivery),
        };
        let was_told = self.responses.settle(turn, &answer);
        if is_awaited && !was_told {
            // Everybody has stopped waiting since.
            self.response_sent(delivery, false);
        }
    }
}

/// What the webhook's caller calls the conversation.
fn external_name(turn: &Turn) -> String {
    turn.external_name
        .clone()
        .unwrap_or_else(|| turn.conversation_id.to_string())
}

fn callback_body(turn: &Turn, end: &TurnEnd) -> String {
    let name = external_name(turn);
    match end {
        TurnEnd::Done { reply } => envelope::callback(reply, &name),
        TurnEnd::Failed(error) => envelope::failed_callback(error, &name),
        TurnEnd::Cancelled => envelope::failed_callback(&cancelled(), &name),
    }
}

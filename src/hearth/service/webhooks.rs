//! Webhook messages as turns: accepted, and answered by a callback or, to a
//! caller that waits, in the response.

use std::time::{Duration, Instant};

use super::turn_wait::TurnWait;
use super::{Service, attachments, senders};
use crate::outgoing::telegram;
use base::error::{Error, Result};
use base::ids::{DeliveryId, MessageId, ScheduleId};
use base::language::Words;
use base::people::by_webhook;
use base::reply::Surface;
use base::secret::sha256;
use base::sync::lock;
use config::{Limits, WebhookAccount};
use net::token_bucket::TokenBucket;
use protocol::envelope::{self, Overtaken};
use store::{
    Attempt, Begun, Delivery, DeliveryState, Destination, Durable, IdempotencyKey, IncludedFile,
    NewAttachments, NewDelivery, NewTurn, Outgoing, Provisional, SCHEDULE_CHANNEL, TELEGRAM,
    Target, Turn, TurnEnd, Usage, Viewer,
};

/// How long a response may take that replaces a callback. After that the
/// callback is sent.
const RESPONSE_TIME: Duration = Duration::from_secs(30);

/// What an incoming webhook asks for.
pub struct WebhookRequest {
    /// The text to answer.
    pub message: String,
    /// The name of who speaks, as the caller says.
    pub user_id: Option<String>,
    /// The same to the letter, by which a sender is linked; none where a name was adapted, as
    /// two senders could have the same then.
    pub sender: Option<String>,
    /// The caller's own name for the conversation.
    pub conversation_id: Option<String>,
    /// Its files.
    pub attachments: Vec<IncludedFile>,
    /// A repeat within 24 hours gets the first answer and begins no second
    /// turn.
    pub idempotency_key: Option<String>,
    /// What must be the same in a repeat: the raw body, unless the key comes from what
    /// the sender has signed.
    pub body: Vec<u8>,
}

/// What was accepted, and may be acknowledged.
///
/// ```
/// use hearth::service::Accepted;
/// use store::{Durable, Turn};
///
/// fn accept<'a>(turn: Durable<Turn>) -> Accepted<'a> {
///     Accepted { turn, wait: None }
/// }
/// ```
///
/// ```compile_fail
/// use hearth::service::Accepted;
/// use store::{Provisional, Turn};
///
/// fn accept<'a>(turn: Provisional<Turn>) -> Accepted<'a> {
///     Accepted { turn, wait: None }
/// }
/// ```
pub struct Accepted<'a> {
    /// The turn that was begun, or the earlier one of a repeated key.
    pub turn: Durable<Turn>,
    /// The caller's place to wait for the turn's end, if it wants to and there
    /// was one.
    pub wait: Option<TurnWait<'a>>,
}

impl Accepted<'_> {
    /// The caller's own name for the conversation, or the id of a new one.
    pub fn conversation_id(&self) -> String {
        external_name(&self.turn)
    }
}

impl Service {
    /// Accepts a webhook message: when this returns, it is on disk and its turn
    /// will run and be called back. With `may_wait` the caller also gets a place to
    /// wait for its end, if one is free.
    ///
    /// # Errors
    /// `rate_limited` (account's rate),
    /// `server_error` 503 (queue full), `invalid_request` (422: the
    /// idempotency key was used for another body).
    pub fn accept_webhook(
        &self,
        account: &WebhookAccount,
        limits: &Limits,
        request: WebhookRequest,
        may_wait: bool,
    ) -> Result<Accepted<'_>> {
        self.check_webhook_rate(&account.name, limits)?;
        let channel = format!("webhook:{}", account.name);
        let idempotency = request.idempotency_key.map(|key| IdempotencyKey {
            scope: channel.clone(),
            key,
            request: sha256(&request.body),
            earlier_request: None,
        });
        let sender = request.sender.filter(|_| senders::has_senders(account));
        let mut answer = None;
        let mut person = None;
        if let Some(sender) = sender {
            let is_known = |key| self.store.is_known(key);
            if !idempotency.as_ref().map_or(Ok(false), is_known)? {
                answer = self.try_code(&account.name, &sender, &request.message)?;
            }
            let behind = self.person_behind(&account.name, &sender)?;
            person = behind.map(|person| (person, sender));
        }
        let message = match answer {
            // Nobody else needs the code.
            Some(_) => "/link".to_owned(),
            None => request.message,
        };
        let new = match person {
            Some((person, sender)) => {
                let (name, is_own) = (request.conversation_id, account.trusted);
                senders::turn_of(&person, (&account.name, sender), is_own, name, message)
            }
            None => {
                let target = match request.conversation_id {
                    Some(name) => Target::Named {
                        account: account.name.clone(),
                        name,
                    },
                    None => Target::New,
                };
                let (viewer, audience) = (Viewer::account(&account.name), &account.audience);
                NewTurn {
                    account: Some(account.name.clone()),
                    speaker: (request.user_id).map(|name| by_webhook(&name, &account.name)),
                    ..NewTurn::new(viewer, target, audience.clone(), channel, message)
                }
            }
        };
        let new = NewTurn {
            surface: Some(Surface::Plain),
            is_trusted: account.trusted,
            attachments: NewAttachments::Included(request.attachments, attachments::limits(limits)),
            idempotency,
            ..new
        };
        let _place = self.reserve_place(&new, None)?;
        let begun = self.store.begin_turn(new)?;
        let turn = begun.map_ref(|begun| begun.turn().clone());
        // Before the turn can end: its end checks whether anybody waits.
        let wait = may_wait
            .then(|| {
                let most = limits.webhook_waiting;
                TurnWait::new(&self.hub, &self.waiting_requests, turn.id, most)
            })
            .flatten();
        let begun = begun.into_inner();
        match (answer, &begun) {
            (Some(reply), Begun::New { .. }) => self.answer_at_once(&begun, reply),
            _ => self.start(begun, None, wait.as_ref().map(TurnWait::watch)),
        }
        Ok(Accepted { turn, wait })
    }

    /// Ends a turn that has just begun with this reply, without a model.
    pub(super) fn answer_at_once(&self, begun: &Begun, reply: String) {
        self.reserve_event_numbers();
        self.hub.publish_begin(begun);
        let end = TurnEnd::Done {
            reply,
            finish_reason: None,
        };
        self.end(begun.turn(), end, Usage::default(), "");
    }

    fn check_webhook_rate(&self, account: &str, limits: &Limits) -> Result<()> {
        let now = Instant::now();
        let mut rates = lock(&self.webhook_rates);
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

    /// Records that the response which takes the place of a callback was sent. If
    /// its caller was gone, the callback is sent now.
    pub fn response_sent(&self, delivery: DeliveryId, reached: bool) {
        let recorded = match reached {
            // Its commit may fail: then it stays due, and is sent with the same id.
            true => {
                let recorded = self.store.record_attempt(delivery, Attempt::Delivered);
                recorded.map(Provisional::uncommitted)
            }
            false => self.store.retry_delivery(&Viewer::server(), delivery),
        };
        match recorded {
            Ok(delivery) => {
                let how = if reached {
                    "answered in the response"
                } else {
                    "its caller has gone"
                };
                log::info!("{} to {:?}: {how}", delivery.id, delivery.account);
                self.delivery_changed(&delivery);
            }
            // It stays due, and is sent after its delay.
            Err(error) => log::warn!("{delivery}: {error}"),
        }
    }

    /// Publishes that a delivery was stored or attempted, and has it sent when it
    /// is due.
    pub(super) fn delivery_changed(&self, delivery: &Delivery) {
        self.meter.delivery_changed(delivery.state);
        self.hub.publish_delivery(delivery);
        let is_due = delivery.next_at <= self.clock.now();
        match delivery.state {
            DeliveryState::Pending if is_due => {
                let to = Destination::Account(delivery.account.clone());
                self.offer([(Outgoing::Callback(delivery.id), to)]);
            }
            // The conversation's next one may have moved up.
            _ => self.look_for_due(),
        }
    }

    /// The callback for a turn's end, and whether a request waits for the turn: if
    /// so, the callback is delayed to give the response time.
    pub(super) fn callback_of(&self, turn: &Turn, end: &TurnEnd) -> (Option<NewDelivery>, bool) {
        let is_awaited = self.hub.is_watched(turn.id);
        if let Some(account) = &turn.account
            && turn.channel == SCHEDULE_CHANNEL
            && !self.may_send_to(account, turn.user_id)
        {
            return (None, is_awaited);
        }
        let end = match self.is_severed(turn) {
            true => &TurnEnd::failed(Error::unauthorized("this sender is no longer linked")),
            false => end,
        };
        let mut delivery = callback(&|| self.store.words_of(turn.user_id), turn, end, None);
        if let Some(delivery) = delivery.as_mut().filter(|_| is_awaited) {
            delivery.delay = RESPONSE_TIME;
        }
        (delivery, is_awaited)
    }
}

/// The callback of a turn, which may have told this reminder, if an account gets it.
pub(super) fn callback(
    words: &dyn Fn() -> Words,
    turn: &Turn,
    end: &TurnEnd,
    reminder: Option<ScheduleId>,
) -> Option<NewDelivery> {
    let account = turn.account.as_ref()?;
    if account == TELEGRAM {
        let chat = turn.external_name.as_deref();
        let chat = chat.and_then(senders::chat_of_name)?;
        let words = words();
        let said = senders::said_in_chat(words, end);
        let mut bodies = telegram::messages(words, chat, &said, reminder).into_iter();
        let first = bodies.next().unwrap_or_default();
        return Some(NewDelivery {
            account: telegram::account_of(chat),
            body: Box::new(move |_, _| first),
            more: bodies.collect(),
            of_file: Some(Box::new({
                let chat = chat.to_owned();
                move |file| telegram::file_message(words, &chat, file)
            })),
            delay: Duration::ZERO,
        });
    }
    let (told, end) = (turn.clone(), end.clone());
    Some(NewDelivery {
        account: account.clone(),
        body: Box::new(move |lost, in_reply_to| {
            let end = lost.map_or(end, TurnEnd::failed);
            callback_body(&told, &end, in_reply_to)
        }),
        more: Vec::new(),
        of_file: None,
        delay: Duration::ZERO,
    })
}

/// What the webhook's caller calls the conversation.
fn external_name(turn: &Turn) -> String {
    turn.external_name
        .clone()
        .unwrap_or_else(|| turn.conversation_id.to_string())
}

fn callback_body(turn: &Turn, end: &TurnEnd, in_reply_to: Option<MessageId>) -> String {
    let name = external_name(turn);
    let overtaken = in_reply_to.map(|message| Overtaken {
        in_reply_to: message,
        turn_id: turn.id,
    });
    match end {
        TurnEnd::Done {
            reply,
            finish_reason,
        } => envelope::callback(None, reply, &name, *finish_reason, overtaken),
        TurnEnd::Failed { error, .. } => envelope::failed_callback(error, &name, overtaken),
        TurnEnd::Cancelled { said } => {
            envelope::callback(Some("cancelled"), said, &name, None, overtaken)
        }
    }
}

//! Incoming webhooks (contract section 4.3, protocol section 4).

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::guard::{self, Proof};
use super::{format, message, preference};
use crate::service::hub::TurnEnded;
use crate::service::{Accepted, Service};
use base::error::{Code, Error, Result};
use base::ids::TurnId;
use config::{Channel, Config, WebhookAccount, WebhookFormat};
use net::http::checks;
use net::http::{Admitted, Answer, Head, Request, Response};
use protocol::{attachment, envelope};

/// Answers the paths of webhook accounts, and refuses every other path.
pub struct Incoming {
    service: Arc<Service>,
    port: Option<u16>,
}

/// The answer to an accepted message (protocol section 4).
#[derive(Serialize)]
struct Receipt<'a> {
    conversation_id: &'a str,
    turn_id: TurnId,
    /// The reply, if the caller waited for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// `cancelled` when somebody stopped the turn meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

impl Incoming {
    /// Serves the accounts of the webhook channels that have this `port` in the
    /// configuration; `None` are those that share the `tcp` channels' ports.
    pub fn new(service: Arc<Service>, port: Option<u16>) -> Incoming {
        Incoming { service, port }
    }

    /// Checks a head under this configuration: path, method, secret and media
    /// type.
    ///
    /// # Errors
    /// The response that refuses it.
    pub fn admit<'a>(
        &'a self,
        head: &Head,
        config: &Arc<Config>,
    ) -> Result<Admitted<'a>, Response> {
        let account =
            account_at(config, self.port, head).map_err(|error| Response::error(&error))?;
        checks::method(head, format::methods(account))?;
        let refused = |error| Response::error(&error);
        let proof = guard::check_head(account, head).map_err(refused)?;
        let format = format::of(account, head).map_err(refused)?;
        let (account, config) = (account.clone(), Arc::clone(config));
        Ok(Admitted::new(
            config.limits.webhook_body_bytes,
            move |request| {
                self.accept(&account, &config, &proof, format, request)
                    .unwrap_or_else(|error| Answer::Now(Response::error(&error)))
            },
        ))
    }

    fn accept(
        &self,
        account: &WebhookAccount,
        config: &Config,
        proof: &Proof,
        format: WebhookFormat,
        request: &Request,
    ) -> Result<Answer> {
        let wait = preference::wait(&request.head);
        let now = self.service.clock.now();
        guard::check_body(account, &request.head, proof, &request.body, now)?;
        let (document, files) = format::read(format, request)?;
        if let Some(pointer) = config::misfit(&account.when, &document) {
            log::debug!(
                "webhook account {:?}: ignored an event, {pointer}",
                account.name
            );
            let ignored = json!({ "ignored": true, "pointer": pointer });
            let text = envelope::success(None, ignored);
            return Ok(Answer::Now(Response::json(200, text)));
        }
        // The signature does not cover a key of the header.
        let signed_key = guard::signed_key(proof, &document);
        // A GET request has no body.
        let query = (format == WebhookFormat::Get).then(|| document.to_string().into_bytes());
        let mut parsed = message::parse(request, document, account.map.as_ref())?;
        parsed.body = query.unwrap_or(parsed.body);
        parsed.attachments.extend(files);
        attachment::check_count(parsed.attachments.len())?;
        if let Some(key) = signed_key {
            // A sender that says it is the same event may describe it anew: Stripe counts
            // in it the webhooks that are still to be sent.
            parsed.body = key.clone().into_bytes();
            parsed.idempotency_key = Some(key);
        }
        let accepted =
            self.service
                .accept_webhook(account, &config.limits, parsed, wait.is_some())?;
        Ok(self.answer(accepted, wait))
    }

    /// The response to an accepted message: the turn's reply if the caller waits for
    /// it and it arrives in time, else that the message was accepted.
    fn answer(&self, accepted: Accepted<'_>, wait: Option<Duration>) -> Answer {
        let (turn_id, conversation_id) = (accepted.turn.id, accepted.conversation_id());
        let place = accepted.wait;
        let ended = wait.and_then(|wait| Some((wait, place?.wait(wait)?)));
        let receipt = |message, state| Receipt {
            conversation_id: &conversation_id,
            turn_id,
            message,
            state,
        };
        let Some((wait, TurnEnded { result, delivery })) = ended else {
            return Answer::Now(Response::json(
                202,
                envelope::success(None, receipt(None, None)),
            ));
        };
        let mut response = match &result {
            Ok(reply) => {
                let receipt = receipt(Some(&reply.data.response), reply.data.state);
                Response::json(200, envelope::success(None, receipt))
            }
            Err(error) => Response::json(
                status_of(error),
                envelope::failed_callback(error, &conversation_id, None),
            ),
        };
        let applied = format!("wait={}", wait.as_secs());
        response.add("Preference-Applied", applied);
        let Some(delivery) = delivery else {
            return Answer::Now(response);
        };
        // The id of the callback that this response replaces. If both reach the
        // caller after all, it can recognise them as the same.
        response.add("webhook-id", delivery.to_string());
        let service = Arc::clone(&self.service);
        let confirm = move |reached| service.response_sent(delivery, reached);
        Answer::Confirmed(response, Box::new(confirm))
    }
}

/// The status for a caller whose turn failed. What a model's server said is not said of the
/// caller's request, and is no invitation to send it again.
fn status_of(error: &Error) -> u16 {
    match (error.code(), error.status(), error.retry_after()) {
        (Code::ServerError, 429, None) | (Code::ServerError, 504, _) => error.status(),
        (Code::ServerError, ..) => Code::ServerError.http_status(),
        _ => error.status(),
    }
}

/// The account whose `incoming_path` this is. To the caller, a disabled account
/// does not exist.
fn account_at<'a>(
    config: &'a Config,
    port: Option<u16>,
    head: &Head,
) -> Result<&'a WebhookAccount> {
    let account = config
        .channels
        .iter()
        .filter_map(|channel| match channel {
            Channel::Webhook(webhook) if webhook.port == port => Some(&webhook.accounts),
            _ => None,
        })
        .flatten()
        .find(|account| account.incoming_path == head.path);
    match account {
        Some(account) if account.enabled => return Ok(account),
        Some(account) => log::info!(
            peer:% = head.peer.place();
            "webhook account {:?}: refused a request, it is not enabled",
            account.name
        ),
        None => {}
    }
    Err(Error::not_found("there is nothing at this path"))
}

//! Incoming webhooks (contract section 4.3, protocol section 4).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::guard::Guard;
use super::{message, preference};
use crate::service::hub::TurnEnded;
use crate::service::{Accepted, Service};
use base::error::{Error, Result};
use base::ids::TurnId;
use config::{Channel, Config, WebhookAccount};
use net::client_handler::HandlerFactory;
use net::http::checks;
use net::http::{Handler, Head, RECEIPT, Request, Response};
use protocol::envelope;

/// Answers the paths of webhook accounts, and refuses every other path.
pub struct Incoming {
    service: Arc<Service>,
    port: Option<u16>,
    guard: Guard,
}

/// What the sender of an accepted message is told (protocol section 4).
#[derive(Serialize)]
struct Receipt<'a> {
    conversation_id: &'a str,
    turn_id: TurnId,
    /// The reply, for a caller that waited for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl Incoming {
    /// Serves the accounts of the webhook channels that have this `port` in the
    /// configuration; `None` are those that share the `tcp` channels' ports.
    pub fn new(service: Arc<Service>, port: Option<u16>) -> Incoming {
        Incoming {
            guard: Guard::new(service.clock().clone()),
            service,
            port,
        }
    }

    /// The account of this path, once the head has been judged: method, secret
    /// and media type.
    fn admission<'a>(
        &self,
        config: &'a Config,
        head: &Head,
    ) -> Result<&'a WebhookAccount, Response> {
        let account =
            account_at(config, self.port, &head.path).map_err(|error| Response::error(&error))?;
        checks::method(head, "POST")?;
        self.guard
            .check_head(account, head)
            .and_then(|()| checks::json(head))
            .map_err(|error| Response::error(&error))?;
        Ok(account)
    }

    /// Judges the head again, under the configuration now in force: a path may
    /// have become another account's, or a secret changed, while the body came.
    fn accept(&self, request: &Request) -> Result<Response, Response> {
        let config = self.service.settings().current();
        let account = self.admission(&config, &request.head)?;
        let wait = preference::wait(&request.head);
        self.guard
            .check_body(account, &request.head, &request.body)
            .and_then(|()| message::parse(request, account.map.as_ref()))
            .and_then(|parsed| self.service.accept_webhook(account, parsed, wait.is_some()))
            .map(|accepted| answer(accepted, wait))
            .map_err(|error| Response::error(&error))
    }
}

impl Handler for Incoming {
    fn admit(&self, head: &Head) -> Result<usize, Response> {
        let config = self.service.settings().current();
        self.admission(&config, head)?;
        Ok(config.limits.webhook_body_bytes)
    }

    fn admit_upgrade(&self, _: &Head) -> Result<Option<HandlerFactory>, Response> {
        Err(Response::error(&Error::not_found(
            "WebSocket connections are not taken here",
        )))
    }

    fn handle(&self, request: &Request) -> Response {
        self.accept(request).unwrap_or_else(|refusal| refusal)
    }

    fn sent(&self, receipt: &str, reached: bool) {
        if let Ok(delivery) = receipt.parse() {
            self.service.response_sent(delivery, reached);
        }
    }
}

/// The response to an accepted message: what came of its turn, if the caller
/// waits for that and it comes in time, else that it was accepted.
fn answer(accepted: Accepted<'_>, wait: Option<Duration>) -> Response {
    let Accepted {
        conversation_id,
        turn_id,
        wait: place,
    } = accepted;
    let ended = wait.and_then(|wait| Some((wait, place?.wait(wait)?)));
    let receipt = |message| Receipt {
        conversation_id: &conversation_id,
        turn_id,
        message,
    };
    let Some((wait, TurnEnded { result, delivery })) = ended else {
        return Response::json(202, envelope::success(None, receipt(None)));
    };
    let mut response = match &result {
        Ok(reply) => Response::json(200, envelope::success(None, receipt(Some(&reply.response)))),
        Err(error) => Response::json(
            error.status(),
            envelope::failed_callback(error, &conversation_id),
        ),
    };
    let applied = format!("wait={}", wait.as_secs());
    response
        .headers
        .push(("Preference-Applied", Cow::Owned(applied)));
    // The id of the callback that this response stands for: should both reach
    // the caller after all, it can tell that they are one.
    if let Some(delivery) = delivery {
        response
            .headers
            .push((RECEIPT, Cow::Owned(delivery.to_string())));
    }
    response
}

/// The account whose `incoming_path` this is. One that takes nothing is not
/// there for the caller.
fn account_at<'a>(config: &'a Config, port: Option<u16>, path: &str) -> Result<&'a WebhookAccount> {
    let account = config
        .channels
        .iter()
        .filter_map(|channel| match channel {
            Channel::Webhook(webhook) if webhook.port == port => Some(&webhook.accounts),
            _ => None,
        })
        .flatten()
        .find(|account| account.incoming_path == path);
    match account {
        Some(account) if account.enabled => return Ok(account),
        Some(account) => log::info!(
            "webhook account {:?}: refused a request, it is not enabled",
            account.name
        ),
        None => {}
    }
    Err(Error::not_found("there is nothing at this path"))
}

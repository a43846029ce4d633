//! Incoming webhooks (contract section 4.3, protocol section 4).

use std::sync::Arc;

use serde::Serialize;

use super::throttle::Throttle;
use crate::clock::Timestamp;
use crate::config::{Channel, Config, WebhookAccount};
use crate::error::{Error, Result};
use crate::gate::exchange::{Handler, Head, Request, Response};
use crate::http::demand;
use crate::ids::TurnId;
use crate::protocol::command::{check_idempotency_key, check_message};
use crate::protocol::envelope;
use crate::service::peer::AddressKey;
use crate::service::{Service, WebhookRequest};

/// Most characters of `conversation_id` and `user_id`.
const NAME_CHARACTERS: usize = 128;

/// Answers the paths of webhook accounts, and refuses every other path.
pub struct Incoming {
    service: Arc<Service>,
    port: Option<u16>,
    throttle: Throttle,
}

/// What the sender of an accepted message is told (protocol section 4).
#[derive(Serialize)]
struct Receipt<'a> {
    conversation_id: &'a str,
    turn_id: TurnId,
}

impl Incoming {
    /// Serves the accounts of the webhook channels that have this `port` in the
    /// configuration; `None` are those that share the `tcp` channels' ports.
    pub fn new(service: Arc<Service>, port: Option<u16>) -> Incoming {
        Incoming {
            service,
            port,
            throttle: Throttle::default(),
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
        demand::method(head, "POST")?;
        authenticate(account, head, &self.throttle, self.service.clock().now())
            .and_then(|()| demand::json(head))
            .map_err(|error| Response::error(&error))?;
        Ok(account)
    }

    /// Judges the head again, under the configuration now in force: a path may
    /// have become another account's, or a secret changed, while the body came.
    fn accept(&self, request: &Request) -> Result<Response, Response> {
        let config = self.service.settings().current();
        let account = self.admission(&config, &request.head)?;
        parse(request)
            .and_then(|parsed| self.service.accept_webhook(account, parsed))
            .map(|accepted| {
                let receipt = Receipt {
                    conversation_id: &accepted.conversation_id,
                    turn_id: accepted.turn_id,
                };
                Response::json(202, envelope::success(None, receipt))
            })
            .map_err(|error| Response::error(&error))
    }
}

impl Handler for Incoming {
    fn admit(&self, head: &Head) -> Result<usize, Response> {
        let config = self.service.settings().current();
        self.admission(&config, head)?;
        Ok(config.limits.webhook_body_bytes)
    }

    fn admit_upgrade(&self, _: &Head) -> Result<(), Response> {
        Err(Response::error(&Error::not_found(
            "WebSocket connections are not taken here",
        )))
    }

    fn handle(&self, request: &Request) -> Response {
        self.accept(request).unwrap_or_else(|refusal| refusal)
    }
}

/// The account whose `incoming_path` this is.
fn account_at<'a>(config: &'a Config, port: Option<u16>, path: &str) -> Result<&'a WebhookAccount> {
    config
        .channels
        .iter()
        .filter_map(|channel| match channel {
            Channel::Webhook(webhook) if webhook.port == port => Some(&webhook.accounts),
            _ => None,
        })
        .flatten()
        .find(|account| account.incoming_path == path)
        .ok_or_else(|| Error::not_found("there is nothing at this path"))
}

/// Checks `X-Service-Secret` against the account's secret, if it has one.
///
/// Errors: `invalid_token`; `rate_limited` after too many wrong ones.
fn authenticate(
    account: &WebhookAccount,
    head: &Head,
    throttle: &Throttle,
    now: Timestamp,
) -> Result<()> {
    let Some(secret) = &account.secret else {
        return Ok(());
    };
    let address = AddressKey::of(head.peer.address);
    throttle.check(address, &account.name, now)?;
    let given = head.header("x-service-secret");
    // An empty secret, which would match an empty header, matches nothing.
    if !secret.is_empty() && given.is_some_and(|given| secret.matches(given)) {
        return Ok(());
    }
    throttle.fail(address, &account.name, now);
    log::warn!(
        "webhook account {:?}: refused a request from {} with {} secret",
        account.name,
        head.peer,
        if given.is_some() { "a wrong" } else { "no" },
    );
    Err(Error::invalid_token(
        "the header \"X-Service-Secret\" must have the secret of this webhook account",
    ))
}

/// Reads the body and the idempotency key.
fn parse(request: &Request) -> Result<WebhookRequest> {
    let mut fields = demand::object(&request.body)?;
    let message = fields.string("message")?;
    check_message(&message)?;
    let user_id = fields.optional_string("user_id")?;
    let conversation_id = fields.optional_string("conversation_id")?;
    for (name, value) in [("user_id", &user_id), ("conversation_id", &conversation_id)] {
        if let Some(value) = value {
            check_name(name, value)?;
        }
    }
    let idempotency_key = request.head.header("idempotency-key").map(str::to_owned);
    if let Some(key) = &idempotency_key {
        check_idempotency_key("the header \"Idempotency-Key\"", key)?;
    }
    Ok(WebhookRequest {
        message,
        user_id,
        conversation_id,
        idempotency_key,
        body: request.body.clone(),
    })
}

fn check_name(field: &str, value: &str) -> Result<()> {
    let length = value.chars().count();
    if (1..=NAME_CHARACTERS).contains(&length) && value.chars().all(is_printable) {
        Ok(())
    } else {
        Err(Error::invalid_request(format!(
            "\"{field}\" must have 1 to {NAME_CHARACTERS} printable characters"
        )))
    }
}

/// Whether a character can neither break a line nor turn the text around it:
/// the value is shown to the model and to people as somebody's name.
fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::head;
    use crate::secret::Secret;
    use crate::webhook::testing::account;

    /// Fri, 15 Jan 2027 08:00:00 GMT.
    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    fn request(headers: &[(&str, &str)], body: &str) -> Request {
        Request {
            head: head("POST", "/hook", headers),
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn the_secret_must_be_the_accounts_own() {
        let throttle = Throttle::default();
        for (secret, given, good) in [
            (Some("s3cret"), Some("s3cret"), true),
            (Some("s3cret"), Some("S3cret"), false),
            (Some("s3cret"), Some("s3cret "), false),
            (Some("s3cret"), Some(""), false),
            (Some("s3cret"), None, false),
            (Some(""), Some(""), false),
            (Some(""), None, false),
            (None, None, true),
            (None, Some("anything"), true),
        ] {
            let account = account(secret.map(Secret::new), "http://127.0.0.1:1/");
            let headers: Vec<_> = given
                .map(|given| ("x-service-secret", given))
                .into_iter()
                .collect();
            let result = authenticate(&account, &head("POST", "/hook", &headers), &throttle, now());
            match result {
                Ok(()) => assert!(good, "{secret:?} {given:?}"),
                Err(error) => {
                    assert!(!good, "{secret:?} {given:?}");
                    assert_eq!(error.status(), 401);
                    assert!(!error.message().contains("s3cret"));
                }
            }
        }
    }

    #[test]
    fn a_guesser_is_throttled_whatever_comes_next() {
        let throttle = Throttle::default();
        let account = account(Some(Secret::new("s3cret")), "http://127.0.0.1:1/");
        let attempt = |given| {
            let head = head("POST", "/hook", &[("x-service-secret", given)]);
            authenticate(&account, &head, &throttle, now()).map_err(|error| error.status())
        };
        for _ in 0..20 {
            assert_eq!(attempt("guess"), Err(401));
        }
        assert_eq!(attempt("s3cret"), Err(429));
    }

    #[test]
    fn a_body_has_a_message_and_perhaps_names() {
        let long = "x".repeat(128);
        let parsed = parse(&request(
            &[("idempotency-key", "k1")],
            &format!(r#"{{"message":"hi","user_id":"Änne","conversation_id":"{long}","x":1}}"#),
        ))
        .unwrap();
        assert_eq!(parsed.message, "hi");
        assert_eq!(parsed.user_id.as_deref(), Some("Änne"));
        assert_eq!(parsed.conversation_id, Some(long));
        assert_eq!(parsed.idempotency_key.as_deref(), Some("k1"));
        let bare = parse(&request(&[], r#"{"message":"hi","user_id":null}"#)).unwrap();
        assert_eq!((bare.user_id, bare.conversation_id), (None, None));
    }

    #[test]
    fn what_is_wrong_with_a_body_is_named() {
        let too_long = format!(r#"{{"message":"hi","user_id":"{}"}}"#, "x".repeat(129));
        let too_large = format!(r#"{{"message":"{}"}}"#, "x".repeat(256 * 1024 + 1));
        for (body, status, says) in [
            ("", 400, "not valid JSON"),
            ("[]", 400, "the body must be a JSON object"),
            ("{}", 400, "\"message\" is required"),
            (r#"{"message":7}"#, 400, "\"message\" must be a string"),
            (r#"{"message":" "}"#, 400, "\"message\" must not be empty"),
            (&too_large, 413, "\"message\" has 262145 bytes"),
            (
                r#"{"message":"hi","user_id":7}"#,
                400,
                "\"user_id\" must be a string",
            ),
            (
                r#"{"message":"hi","user_id":""}"#,
                400,
                "\"user_id\" must have 1 to 128",
            ),
            (&too_long, 400, "\"user_id\" must have 1 to 128"),
            (
                r#"{"message":"hi","conversation_id":"a\nb"}"#,
                400,
                "\"conversation_id\" must have 1 to 128 printable",
            ),
            (
                r#"{"message":"hi","user_id":"\u202egnp.exe"}"#,
                400,
                "\"user_id\" must have 1 to 128 printable",
            ),
        ] {
            let error = parse(&request(&[], body)).map(|_| ()).unwrap_err();
            assert_eq!(error.status(), status, "{body:.80}");
            assert!(error.message().contains(says), "{error}");
        }
        for key in [String::new(), "k".repeat(256)] {
            let request = request(&[("idempotency-key", &key)], r#"{"message":"hi"}"#);
            let error = parse(&request).map(|_| ()).unwrap_err();
            assert!(error.message().contains("Idempotency-Key"), "{error}");
        }
    }
}

//! Checks that a request's sender knows the account's secret.
//!
//! Guesses are not throttled: the right secret must pass whatever else comes from its
//! address, and then a wait would slow nobody down. A secret that could be guessed is
//! warned about at the start.

use serde_json::Value;

use crate::outgoing::callback::unix_seconds;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::secret::{Secret, hex};
use config::WebhookAccount;
use net::http::Head;
use net::http::checks::{percent_decoded, query};
use protocol::command::check_idempotency_key;

/// How many seconds the time of a `Stripe-Signature` may differ from the clock: the
/// tolerance of Stripe's own libraries.
const STRIPE_TOLERANCE: u64 = 300;
/// Most signatures of one header that are tried: Stripe sends one for each secret that
/// is valid while one replaces another.
const STRIPE_SIGNATURES: usize = 8;

/// The field of a query that is the secret.
pub const QUERY_SECRET: &str = "secret";

/// How a request shows that its sender knows the secret.
pub enum Proof {
    /// `X-Service-Secret`: the secret itself (contract section 4.3). GitLab sends it as
    /// `X-Gitlab-Token`, Grafana and Alertmanager as a Bearer token, and simple senders, where the
    /// account takes them, in the query.
    Secret(Secret),
    /// `X-Hub-Signature-256`: the HMAC-SHA256 of the body under the secret, as
    /// GitHub, Gitea and Forgejo send it.
    Signature([u8; 32]),
    /// `Stripe-Signature`: a time, and HMAC-SHA256s of the time and the body
    /// (<https://docs.stripe.com/webhooks>, "Verify webhook signatures manually").
    Stripe(String, Vec<[u8; 32]>),
    /// None; where the account has no secret, none is asked for.
    Nothing,
}

impl Proof {
    fn of(account: &WebhookAccount, head: &Head) -> Proof {
        let secrets = ["x-service-secret", "x-gitlab-token"];
        let bearer = || {
            let (scheme, secret) = head.header("authorization")?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(secret)
        };
        if let Some(secret) = secrets
            .iter()
            .find_map(|name| head.header(name))
            .or_else(bearer)
        {
            return Proof::Secret(Secret::new(secret));
        }
        let signed = head
            .header("x-hub-signature-256")
            .and_then(|value| hexadecimal(value.strip_prefix("sha256=")?));
        match (signed, head.header("stripe-signature").and_then(stripe)) {
            (Some(tag), _) => Proof::Signature(tag),
            (None, Some((time, tags))) => Proof::Stripe(time.to_owned(), tags),
            (None, None) => in_query(account, head).map_or(Proof::Nothing, Proof::Secret),
        }
    }
}

/// The secret in the query. A `+` in it is one: people copy a secret as it is.
fn in_query(account: &WebhookAccount, head: &Head) -> Option<Secret> {
    let mut fields = query(head.query.as_deref()).filter(|_| account.has_simple_senders());
    let (_, secret) = fields.find(|(name, _)| *name == QUERY_SECRET)?;
    Some(Secret::new(percent_decoded(secret)))
}

/// The time and the signatures of a `Stripe-Signature`: `t=TIME,v1=HEX,v1=HEX`, with
/// parts of other schemes, which are left out.
fn stripe(value: &str) -> Option<(&str, Vec<[u8; 32]>)> {
    let parts = || {
        value
            .split(',')
            .filter_map(|part| part.trim().split_once('='))
    };
    let (_, time) = parts().find(|(name, _)| *name == "t")?;
    let tags: Vec<_> = parts()
        .filter(|(name, _)| *name == "v1")
        .filter_map(|(_, digits)| hexadecimal(digits))
        .take(STRIPE_SIGNATURES)
        .collect();
    (!tags.is_empty()).then_some((time, tags))
}

/// Checks a head. Compares a secret at once; a signature must be present and is
/// compared once the body has arrived ([`check_body`]).
///
/// # Errors
/// `invalid_token`.
pub fn check_head(account: &WebhookAccount, head: &Head) -> Result<Proof> {
    if account.secret.is_none() {
        return Ok(Proof::Nothing);
    }
    let proof = Proof::of(account, head);
    let is_valid = match &proof {
        Proof::Secret(given) => any(account, |secret| secret.matches(given.expose())),
        Proof::Signature(_) | Proof::Stripe(..) => true,
        Proof::Nothing => false,
    };
    decide(account, head, &proof, is_valid)?;
    Ok(proof)
}

/// Checks the body of a request whose head was accepted with this proof.
///
/// # Errors
/// `invalid_token`.
pub fn check_body(
    account: &WebhookAccount,
    head: &Head,
    proof: &Proof,
    body: &[u8],
    now: Timestamp,
) -> Result<()> {
    match proof {
        Proof::Signature(tag) => {
            let is_valid = any(account, |secret| secret.signed(body, tag));
            decide(account, head, proof, is_valid)
        }
        Proof::Stripe(time, tags) => {
            let signed = [time.as_bytes(), b".", body].concat();
            let is_one = |secret: &Secret| {
                tags.iter()
                    .fold(false, |good, tag| good | secret.signed(&signed, tag))
            };
            decide(account, head, proof, any(account, is_one))?;
            let seconds: Option<i64> = time.parse().ok();
            let is_recent = seconds
                .is_some_and(|seconds| seconds.abs_diff(unix_seconds(now)) <= STRIPE_TOLERANCE);
            if is_recent {
                return Ok(());
            }
            Err(Error::invalid_token(format!(
                "the time of the header \"Stripe-Signature\" is more than \
                 {STRIPE_TOLERANCE} seconds from this server's"
            )))
        }
        Proof::Secret(_) | Proof::Nothing => Ok(()),
    }
}

/// The idempotency key of a signed request: whoever has seen the request could send it
/// again under a key of their own, so only what the signature covers can tell that it is
/// the same. That is the signature, and with Stripe, which signs each attempt again, the
/// event's `id`.
pub fn signed_key(proof: &Proof, document: &Value) -> Option<String> {
    match proof {
        Proof::Signature(tag) => Some(key_of(tag)),
        Proof::Stripe(_, tags) => {
            let id = document["id"].as_str();
            let id = id.filter(|id| check_idempotency_key("id", id).is_ok());
            Some(id.map_or_else(|| key_of(&tags[0]), str::to_owned))
        }
        Proof::Secret(_) | Proof::Nothing => None,
    }
}

fn key_of(tag: &[u8; 32]) -> String {
    format!("sha256={}", hex(tag))
}

fn decide(account: &WebhookAccount, head: &Head, proof: &Proof, is_valid: bool) -> Result<()> {
    if is_valid {
        return Ok(());
    }
    log::warn!(
        peer:% = head.peer.place();
        "webhook account {:?}: refused a request from {} with {}",
        account.name,
        head.peer,
        match proof {
            Proof::Nothing => "no secret, or a signature that cannot be read",
            Proof::Secret(_) => "a wrong secret",
            Proof::Signature(_) | Proof::Stripe(..) => "a signature by another secret",
        },
    );
    let simple = match account.has_simple_senders() {
        true => " (senders that cannot set it write ?secret=... behind the path)",
        false => "",
    };
    Err(Error::invalid_token(format!(
        "the header \"X-Service-Secret\" (or \"X-Gitlab-Token\") must have the secret of this \
         webhook account, or \"X-Hub-Signature-256\" or \"Stripe-Signature\" the body's \
         signature by it{simple}",
    )))
}

/// Whether one of the account's secrets passes. Tries all of them, so that the
/// time does not reveal which one. An empty secret never passes: it would match an
/// empty header.
fn any(account: &WebhookAccount, passes: impl Fn(&Secret) -> bool) -> bool {
    [&account.secret, &account.secret_previous]
        .into_iter()
        .flatten()
        .filter(|secret| !secret.is_empty())
        .fold(false, |good, secret| good | passes(secret))
}

/// The bytes of 64 hexadecimal digits.
fn hexadecimal(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(value(pair[0])? * 16 + value(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::callback::tests::account;
    use net::testing::head;

    /// GitHub's own example ("Validating webhook deliveries", testing section).
    const GITHUB: (&str, &[u8], &str) = (
        "It's a Secret to Everybody",
        b"Hello, World!",
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    );

    fn guarded(secret: Option<&str>, previous: Option<&str>) -> WebhookAccount {
        let mut account = account(secret.map(Secret::new), "http://127.0.0.1:1/");
        account.secret_previous = previous.map(Secret::new);
        account
    }

    /// Returns the idempotency key.
    fn check(account: &WebhookAccount, header: Option<(&str, &str)>) -> Result<Option<String>> {
        let headers: Vec<_> = header.into_iter().collect();
        let head = head("POST", "/hook", &headers);
        check_all(account, &head, GITHUB.1, Timestamp::from_millis(0))
    }

    fn check_all(
        account: &WebhookAccount,
        head: &Head,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<String>> {
        let proof = check_head(account, head)?;
        check_body(account, head, &proof, body, now)?;
        let document = serde_json::from_slice(body).unwrap_or_default();
        Ok(signed_key(&proof, &document))
    }

    #[test]
    fn the_secret_must_be_the_accounts_own() {
        for (secret, previous, given, good) in [
            (Some("s3cret"), None, Some("s3cret"), true),
            (Some("s3cret"), None, Some("S3cret"), false),
            (Some("s3cret"), None, Some("s3cret "), false),
            (Some("s3cret"), None, Some(""), false),
            (Some("s3cret"), None, None, false),
            (Some("s3cret"), Some("old"), Some("old"), true),
            (Some("s3cret"), Some("old"), Some("s3cret"), true),
            (Some("s3cret"), Some("old"), Some("older"), false),
            (Some(""), None, Some(""), false),
            (Some(""), None, None, false),
            (None, None, None, true),
            (None, None, Some("anything"), true),
        ] {
            let account = guarded(secret, previous);
            let header = given.map(|given| ("x-service-secret", given));
            match check(&account, header) {
                Ok(key) => assert!(good && key.is_none(), "{secret:?} {given:?}"),
                Err(error) => {
                    assert!(!good, "{secret:?} {given:?}");
                    assert_eq!(error.status(), 401);
                    assert!(!error.message().contains("s3cret"));
                }
            }
        }
    }

    #[test]
    fn other_systems_send_the_secret_under_names_of_their_own() {
        let account = guarded(Some("s3cret"), None);
        for (name, value, good) in [
            ("x-gitlab-token", "s3cret", true),
            ("x-gitlab-token", "other", false),
            ("authorization", "Bearer s3cret", true),
            // RFC 9110, section 11.1.
            ("authorization", "bearer s3cret", true),
            ("authorization", "BEARER other", false),
            ("authorization", "Bearer other", false),
            ("authorization", "Basic s3cret", false),
        ] {
            assert_eq!(
                check(&account, Some((name, value))).is_ok(),
                good,
                "{value}"
            );
        }
    }

    /// The signature is computed with Python's hmac.
    #[test]
    fn stripes_signature_covers_a_time_and_gives_the_event_as_key() {
        const SIGNED: &str = "da4a28bb1e8ecf97feff14bd141aa183c9cbe6a13dcfb1a2ace8dc472e62593b";
        let zeros = "0".repeat(64);
        let body = br#"{"id":"evt_1","object":"event"}"#;
        let account = guarded(Some("whsec_test"), None);
        for (header, after, good) in [
            (format!("t=1492774577,v1={SIGNED},v0=00"), 0, true),
            (format!("t=1492774577, v1={zeros}, v1={SIGNED}"), 300, true),
            (format!("t=1492774577,v1={SIGNED}"), -300, true),
            (format!("t=1492774577,v1={SIGNED}"), 301, false),
            (format!("t=1492774577,v1={SIGNED}"), -301, false),
            (format!("t=1492774578,v1={SIGNED}"), 0, false),
            (format!("t=1492774577,v0={SIGNED}"), 0, false),
            (format!("t=1492774577,v1={zeros}"), 0, false),
            (format!("v1={SIGNED}"), 0, false),
            ("t=1492774577".to_owned(), 0, false),
        ] {
            let head = head("POST", "/hook", &[("stripe-signature", &header)]);
            let now = Timestamp::from_millis((1_492_774_577 + after) * 1000);
            let checked = check_all(&account, &head, body, now);
            let key = good.then(|| "evt_1".to_owned());
            assert_eq!(checked.ok().flatten(), key, "{header} {after}");
        }
    }

    #[test]
    fn a_signature_of_the_body_is_as_good_as_the_secret() {
        let upper = GITHUB.2.to_uppercase().replace("SHA", "sha");
        for (secret, previous, value, good) in [
            (GITHUB.0, None, GITHUB.2, true),
            (GITHUB.0, None, upper.as_str(), true),
            ("new", Some(GITHUB.0), GITHUB.2, true),
            ("another", None, GITHUB.2, false),
            (GITHUB.0, None, &GITHUB.2[..70], false),
            (GITHUB.0, None, &GITHUB.2[7..], false),
            (GITHUB.0, None, "sha256=", false),
            (GITHUB.0, None, "", false),
        ] {
            let account = guarded(Some(secret), previous);
            let result = check(&account, Some(("x-hub-signature-256", value)));
            // However it is written, it is one key.
            let key = good.then(|| GITHUB.2.to_owned());
            assert_eq!(result.ok().flatten(), key, "{secret} {value}");
        }
    }
}

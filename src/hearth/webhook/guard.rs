//! Checks that a request's sender knows the account's secret.
//!
//! Guesses are not throttled: the right secret must pass whatever else comes from its
//! address, and then a wait would slow nobody down. A secret that could be guessed is
//! warned about at the start.

use std::fmt::Write;

use base::error::{Error, Result};
use base::secret::Secret;
use config::WebhookAccount;
use net::http::Head;

/// How a request shows that its sender knows the secret.
enum Proof<'a> {
    /// `X-Service-Secret`: the secret itself (contract section 4.3).
    Secret(&'a str),
    /// `X-Hub-Signature-256`: the HMAC-SHA256 of the body under the secret, as
    /// GitHub, Gitea and Forgejo send it.
    Signature([u8; 32]),
    Nothing,
}

impl Proof<'_> {
    fn of(head: &Head) -> Proof<'_> {
        if let Some(secret) = head.header("x-service-secret") {
            return Proof::Secret(secret);
        }
        head.header("x-hub-signature-256")
            .and_then(|value| hexadecimal(value.strip_prefix("sha256=")?))
            .map_or(Proof::Nothing, Proof::Signature)
    }
}

/// Checks a head. Compares a secret at once; a signature must be present and is
/// compared once the body has arrived ([`check_body`]).
///
/// # Errors
/// `invalid_token`.
pub fn check_head(account: &WebhookAccount, head: &Head) -> Result<()> {
    match Proof::of(head) {
        _ if account.secret.is_none() => Ok(()),
        Proof::Secret(given) => decide(account, head, any(account, |secret| secret.matches(given))),
        Proof::Signature(_) => Ok(()),
        Proof::Nothing => decide(account, head, false),
    }
}

/// Checks the body of a request whose head was accepted. Returns the signature of a
/// signed one as an idempotency key: whoever has seen the request could send it again,
/// and nothing but the signature tells that it is the same.
///
/// # Errors
/// `invalid_token`.
pub fn check_body(account: &WebhookAccount, head: &Head, body: &[u8]) -> Result<Option<String>> {
    match Proof::of(head) {
        Proof::Signature(tag) if account.secret.is_some() => {
            decide(
                account,
                head,
                any(account, |secret| secret.signed(body, &tag)),
            )?;
            let mut key = String::from("sha256=");
            for byte in tag {
                let _ = write!(key, "{byte:02x}");
            }
            Ok(Some(key))
        }
        _ => Ok(None),
    }
}

fn decide(account: &WebhookAccount, head: &Head, is_valid: bool) -> Result<()> {
    if is_valid {
        return Ok(());
    }
    log::warn!(
        peer:% = head.peer.place();
        "webhook account {:?}: refused a request from {} with {} secret",
        account.name,
        head.peer,
        match Proof::of(head) {
            Proof::Nothing => "no",
            Proof::Secret(_) => "a wrong",
            Proof::Signature(_) => "a signature by another",
        },
    );
    Err(Error::invalid_token(
        "the header \"X-Service-Secret\" must have the secret of this webhook account, or \
         \"X-Hub-Signature-256\" the body's signature by it",
    ))
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
    use crate::webhook::testing::account;
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
        check_head(account, &head)?;
        check_body(account, &head, GITHUB.1)
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

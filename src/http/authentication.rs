//! POST and DELETE /auth, and the bearer token of other requests.

use serde::Serialize;

use super::demand;
use crate::error::{Error, Result};
use crate::gate::exchange::{Head, Request, Response};
use crate::protocol::envelope;
use crate::secret::Secret;
use crate::service::Service;

/// The session token result (contract section 2).
#[derive(Serialize)]
struct SessionToken<'a> {
    token: &'a str,
    /// Seconds.
    expires_in: u64,
}

/// What DELETE /auth answers.
#[derive(Serialize)]
struct Revoked {
    revoked: bool,
}

/// POST /auth: a session token for a username and password.
///
/// Errors: `invalid_request`, `invalid_token`, `rate_limited`.
pub fn log_in(service: &Service, request: &Request) -> Result<Response> {
    let mut fields = demand::object(&request.body)?;
    let username = fields.string("username")?;
    let password = Secret::new(fields.string("password")?);
    let login = service.log_in(&request.head.peer, &username, &password)?;
    let result = SessionToken {
        token: login.token.expose(),
        expires_in: login.expires_in.as_secs(),
    };
    Ok(Response::json(200, envelope::success(None, result)))
}

/// DELETE /auth: revokes the bearer token.
///
/// Errors: `invalid_token`.
pub fn log_out(service: &Service, head: &Head) -> Result<Response> {
    service.log_out(&bearer(head)?)?;
    Ok(Response::json(
        200,
        envelope::success(None, Revoked { revoked: true }),
    ))
}

/// The token of `Authorization: Bearer <token>` (RFC 6750 section 2.1).
///
/// Errors: `invalid_token` when there is none.
pub fn bearer(head: &Head) -> Result<Secret> {
    head.header("authorization")
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .filter(|token| !token.is_empty())
        .map(Secret::new)
        .ok_or_else(|| {
            Error::invalid_token("the request must have \"Authorization: Bearer <token>\"")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::head;

    #[test]
    fn a_bearer_token_is_what_follows_the_scheme() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("BEARER  abc ", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic abc", None),
            ("abc", None),
            ("", None),
        ] {
            let head = head("DELETE", "/auth", &[("authorization", value)]);
            let found = bearer(&head);
            assert_eq!(found.as_ref().ok().map(Secret::expose), token, "{value:?}");
        }
        let error = bearer(&head("DELETE", "/auth", &[])).unwrap_err();
        assert_eq!(error.status(), 401);
    }
}

//! POST and DELETE /auth, and the bearer token of other requests.

use serde_json::json;

use crate::service::Service;
use base::error::Result;
use base::secret::Secret;
use net::http::checks::{self, bearer};
use net::http::{Head, Request, Response};
use protocol::envelope;

/// POST /auth: a session token for a username and password.
///
/// # Errors
/// `invalid_request`, `invalid_token`, `rate_limited`.
pub fn log_in(service: &Service, request: &Request) -> Result<Response> {
    let mut fields = checks::object(&request.body)?;
    let username = fields.string("username")?;
    let password = Secret::new(fields.string("password")?);
    let login = service.log_in(&request.head.peer, &username, &password)?;
    // The session token result (contract section 2).
    let result = json!({
        "token": login.token.expose(),
        "expires_in": login.expires_in.as_secs(),
    });
    Ok(Response::json(200, envelope::success(None, result)))
}

/// DELETE /auth: revokes the bearer token.
///
/// # Errors
/// `invalid_token`.
pub fn log_out(service: &Service, head: &Head) -> Result<Response> {
    service.log_out(&bearer(head)?)?;
    let result = json!({"revoked": true});
    Ok(Response::json(200, envelope::success(None, result)))
}

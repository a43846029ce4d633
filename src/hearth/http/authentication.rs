//! POST and DELETE /auth, and the bearer token of other requests.

use serde_json::{Value, json};

use super::extension::Context;
use crate::service::{Login, Service, views};
use base::error::Result;
use base::language::Words;
use base::secret::Secret;
use net::http::checks::{self, bearer};
use net::http::{Answer, Head, Response};
use net::peer::Peer;
use protocol::envelope;
use protocol::fields::Fields;

/// Logs in (POST) or out (DELETE).
///
/// # Errors
/// `invalid_request`, `invalid_token`, `rate_limited`.
pub fn answer(context: &Context<'_>) -> Result<Answer> {
    let (service, request) = (context.service, context.request);
    Ok(Answer::Now(match request.head.method.as_str() {
        "DELETE" => log_out(service, &request.head)?,
        _ => {
            let mut fields = checks::object(&request.body)?;
            let language = fields.optional_string("language")?;
            let words = language.map_or(Words::ENGLISH, |language| Words::of(&language));
            log_in(service, &request.head.peer, fields).map_err(|error| error.in_words(words))?
        }
    }))
}

/// POST /auth: a session token for a username and password, or for the secret of a link
/// and the password that its person has chosen. For the secret alone: whose it is.
fn log_in(service: &Service, peer: &Peer, mut fields: Fields) -> Result<Response> {
    if let Some(secret) = fields.optional_string("invitation")? {
        let password = fields.optional_string("password")?.map(Secret::new);
        return accept(service, peer, &Secret::new(secret), password);
    }
    let username = fields.string("username")?;
    let password = Secret::new(fields.string("password")?);
    let login = service.log_in(peer, &username, &password)?;
    Ok(Response::json(
        200,
        envelope::success(None, session(&login)),
    ))
}

/// The session token result (contract section 2).
fn session(login: &Login) -> Value {
    json!({
        "token": login.token.expose(),
        "expires_in": login.expires_in.as_secs(),
    })
}

fn accept(
    service: &Service,
    peer: &Peer,
    secret: &Secret,
    password: Option<Secret>,
) -> Result<Response> {
    let result = match password {
        None => json!(views::invitation(&service.invited(peer, secret)?)),
        Some(password) => {
            let (user, login) = service.accept_invitation(peer, secret, &password)?;
            let mut result = session(&login);
            result["user"] = json!(user.name);
            result
        }
    };
    Ok(Response::json(200, envelope::success(None, result)))
}

/// DELETE /auth: revokes the bearer token.
fn log_out(service: &Service, head: &Head) -> Result<Response> {
    service.log_out(&bearer(head)?)?;
    let result = json!({"revoked": true});
    Ok(Response::json(200, envelope::success(None, result)))
}

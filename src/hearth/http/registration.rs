//! POST /ws/register: a machine's name on relays.

use super::extension::Context;
use base::error::{Error, Result};
use net::http::checks::{self, bearer, own_address};
use net::http::{Answer, Response};
use protocol::registration::{Registration, registered};
use store::UserRole;

/// Registers a machine for relay connectivity.
///
/// # Errors
/// `invalid_token`; `unauthorized` below the role `user`; `invalid_request`.
pub fn register(context: &Context<'_>) -> Result<Answer> {
    let (service, request) = (context.service, context.request);
    let relay = context.extensions.relay.as_ref();
    if let Some(relay) = relay.filter(|relay| relay.takes(&request.head)) {
        return relay.register(request).map(Answer::Now);
    }
    let identity = service.identify(&bearer(&request.head)?)?;
    if identity.role < UserRole::User {
        return Err(Error::unauthorized(format!(
            "registering a machine requires the role {:?}; this token has {:?}",
            UserRole::User.as_str(),
            identity.role.as_str()
        )));
    }
    let machine = Registration::parse(checks::object(&request.body)?)?;
    // Before anything is stored: a request that cannot be answered changes nothing.
    let relay_address = match context.config.relays().next() {
        Some(relay) => relay.url.clone(),
        None => own_address(&request.head)?,
    };
    let machine_id = service.register_machine(&identity, &machine.name, &machine.public_key)?;
    let registered = registered(&machine_id, &relay_address);
    Ok(Answer::Now(Response::json(200, registered)))
}

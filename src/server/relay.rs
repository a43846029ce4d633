//! The relay that a server may be, and the links to those of others.

use std::sync::Arc;

use super::StartError;
use crate::config::Config;
use crate::error::Error;
use crate::http::Relay;
use crate::relay::server::{self, Rules, Token};

pub use crate::relay::link::Links;

/// The relay that this server is for other machines too, if it is one.
///
/// Errors: it has no token, or a short one.
pub fn open(config: &Config) -> Result<Option<Arc<dyn Relay>>, StartError> {
    if !config.relay.enabled {
        return Ok(None);
    }
    let token = config.relay.token().ok_or_else(|| {
        Error::invalid_request(
            "\"relay.enabled\" is set, but neither \"relay.auth_token\" nor the environment variable \
             AUTH_TOKEN; `hearth relay --show-token` makes a good one",
        )
    })?;
    let relay = server::Relay::new(Token::new(token)?, Rules::under(&config.limits));
    Ok(Some(relay))
}

//! The HTTP requests of commands that ask a server for one thing.

use std::time::Duration;

use ureq::http::Response;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body, Error};

use crate::agent::outbound::base_config;
use crate::tls::Trust;
use crate::tls::connector::connect_with;

/// Largest answer that is read, in bytes.
const ANSWER_BYTES: u64 = 1 << 20;

/// Asks servers that `trust` accepts; each exchange may take `limit`.
pub fn agent(trust: Trust, limit: Duration) -> Agent {
    let config = base_config().timeout_global(Some(limit)).build();
    Agent::with_parts(config, connect_with(trust), DefaultResolver::default())
}

/// The text of an answer.
///
/// Errors: it breaks off, is not UTF-8, or is longer than 1 MiB.
pub fn text(mut answer: Response<Body>) -> Result<String, Error> {
    answer
        .body_mut()
        .with_config()
        .limit(ANSWER_BYTES)
        .read_to_string()
}

//! Whether the configured relays can be reached from here.

use std::time::Duration;

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::http;
use crate::server::check_relay;
use base::url::Url;
use config::{Config, RelayChannel, Settings};
use net::tls::Trust;

/// Time limit of a relay's answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks each for its health; any answer shows that it is reachable.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let mut found: Vec<Diagnosis> = config.relays().map(|relay| ask(relay, &trust)).collect();
    found.extend(own(&config, &installation.option));
    found
}

/// Whether the server can start as a relay, if relay.enabled is set.
fn own(config: &Config, option: &str) -> Option<Diagnosis> {
    config.relay.enabled.then(|| match check_relay(config) {
        Ok(()) => Diagnosis::ok("the server is also a relay"),
        Err(error) => Diagnosis::problem(error.to_string())
            .advise(format!("hearth config set{option} relay.auth_token -"))
            .advise(format!("or hearth config unset{option} relay.enabled")),
    })
}

fn ask(relay: &RelayChannel, trust: &Trust) -> Diagnosis {
    let name = &relay.name;
    let Ok(url) = Url::parse(&relay.url) else {
        let text = format!("{name} has an invalid url");
        return Diagnosis::problem(text).advise(format!("correct the url of channel {name}"));
    };
    let server = &url.authority;
    let health = url.http("/health").text();
    match http::send(trust, "GET", &health, &[], None, LIMIT) {
        Ok(_) => Diagnosis::ok(format!("{name} answers at {server}")),
        Err(error) => Diagnosis::problem(format!("{name} ({server}): {error}"))
            .advise("check that it is running, and that this machine can reach the internet")
            .advise(format!("correct the url of channel {name}")),
    }
}

//! Whether the relays of the configuration can be reached from here.

use std::time::{Duration, Instant};

use super::{Diagnosis, Scene};
use crate::agent::cancel::Cancel;
use crate::agent::outbound::{Answer, Outbound, OutboundError, Outgoing};
use crate::config::{Channel, RelayChannel};
use crate::tls::Trust;

/// How long a relay may take to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks each for its health; any answer at all shows that it is there.
pub fn check(scene: &Scene<'_>) -> Vec<Diagnosis> {
    let config = scene.settings.current();
    let relays = config.channels.iter().filter_map(|channel| match channel {
        Channel::Relay(relay) => Some(relay),
        _ => None,
    });
    let trust = Trust::new(config.tls.ca_file.as_deref());
    relays.map(|relay| ask(relay, &trust)).collect()
}

fn ask(relay: &RelayChannel, trust: &Trust) -> Diagnosis {
    const CHECK: &str = "relay";
    let (name, url) = (&relay.name, &relay.url);
    // ws becomes http, and wss https.
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let scheme = if url.starts_with("wss") {
        "https"
    } else {
        "http"
    };
    let outgoing = Outgoing {
        method: "GET",
        url: &format!("{scheme}://{authority}/health"),
        headers: &[],
        body: None,
        deadline: Instant::now() + LIMIT,
        cancel: &Cancel::default(),
    };
    let answered: Result<u16, OutboundError> = Outbound::new()
        .trusting(trust.clone())
        .exchange(&outgoing, |answer: &mut Answer| Ok(answer.status()));
    match answered {
        Ok(_) => Diagnosis::ok(CHECK, format!("relay {name} answers at {authority}")),
        Err(error) => Diagnosis::problem(CHECK, format!("relay {name} ({authority}): {error}"))
            .advise("see whether it runs, and whether this machine reaches the internet")
            .advise(format!("correct the url of channel {name}")),
    }
}

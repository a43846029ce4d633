//! Whether the relays of the configuration can be reached from here.

use std::time::{Duration, Instant};

use super::diagnosis::{Diagnosis, Installation};
use config::{Channel, Config, RelayChannel, Settings};
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, ClientResponse, HttpClient};
use net::tls::Trust;

const CHECK: &str = "relay";

/// How long a relay may take to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks each for its health; any answer at all shows that it is there.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    let relays = config.channels.iter().filter_map(|channel| match channel {
        Channel::Relay(relay) => Some(relay),
        _ => None,
    });
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let mut found: Vec<Diagnosis> = relays.map(|relay| ask(relay, &trust)).collect();
    found.extend(own(&config, &installation.option));
    found
}

/// Whether the server can start as a relay, where it is to be one.
#[cfg(feature = "relay")]
fn own(config: &Config, option: &str) -> Option<Diagnosis> {
    use relay::server::Token;

    if !config.relay.enabled {
        return None;
    }
    let problem = match config.relay.token().map(Token::new) {
        Some(Ok(_)) => {
            return Some(Diagnosis::ok(
                CHECK,
                "the server is a relay, too".to_owned(),
            ));
        }
        Some(Err(error)) => error.to_string(),
        None => "the server is to be a relay, and has no AUTH_TOKEN: it does not start".to_owned(),
    };
    let advice = format!("hearth config set{option} relay.auth_token -");
    Some(
        Diagnosis::problem(CHECK, problem)
            .advise("hearth relay --show-token")
            .advise(advice),
    )
}

#[cfg(not(feature = "relay"))]
fn own(config: &Config, option: &str) -> Option<Diagnosis> {
    let problem = "this program was built without the relay, and relay.enabled is set";
    config.relay.enabled.then(|| {
        Diagnosis::problem(CHECK, problem.to_owned())
            .advise(format!("hearth config set{option} relay.enabled false"))
    })
}

fn ask(relay: &RelayChannel, trust: &Trust) -> Diagnosis {
    let (name, url) = (&relay.name, &relay.url);
    // ws becomes http, and wss https.
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let scheme = if url.starts_with("wss") {
        "https"
    } else {
        "http"
    };
    let outgoing = ClientRequest {
        method: "GET",
        url: &format!("{scheme}://{authority}/health"),
        headers: &[],
        body: None,
        deadline: Instant::now() + LIMIT,
        cancel: &Cancel::default(),
    };
    let answered: Result<u16, ClientError> = HttpClient::new()
        .trusting(trust.clone())
        .exchange(&outgoing, |answer: &mut ClientResponse| Ok(answer.status()));
    match answered {
        Ok(_) => Diagnosis::ok(CHECK, format!("relay {name} answers at {authority}")),
        Err(error) => Diagnosis::problem(CHECK, format!("relay {name} ({authority}): {error}"))
            .advise("see whether it runs, and whether this machine reaches the internet")
            .advise(format!("correct the url of channel {name}")),
    }
}

//! Whether this machine can be linked to its relays.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::{Diagnosis, Level, Scene};
use crate::config::{Channel, RelayChannel};
use crate::dial::Address;

/// How long one address may take to accept.
const LIMIT: Duration = Duration::from_secs(5);

/// Tries to reach each relay, and looks after the machine's key.
pub fn check(scene: &Scene<'_>) -> Vec<Diagnosis> {
    let config = scene.settings.current();
    let mut found: Vec<Diagnosis> = config
        .channels
        .iter()
        .filter_map(|channel| match channel {
            Channel::Relay(relay) => Some(reach(relay)),
            _ => None,
        })
        .collect();
    if !found.is_empty() {
        found.extend(key(scene));
    }
    found
}

fn diagnosis(level: Level, text: String, advice: Vec<String>) -> Diagnosis {
    Diagnosis {
        check: "relays",
        level,
        text,
        advice,
    }
}

fn reach(relay: &RelayChannel) -> Diagnosis {
    let name = &relay.name;
    let address = match Address::parse(&relay.url) {
        Ok(address) => address,
        Err(error) => return diagnosis(Level::Problem, format!("relay {name}: {error}"), vec![]),
    };
    if relay.auth_token.is_none() {
        return diagnosis(
            Level::Problem,
            format!("relay {name} ({address}) has no \"auth_token\""),
            vec!["Set it to the AUTH_TOKEN that the relay was started with".to_owned()],
        );
    }
    let candidates = (address.host.as_str(), address.port).to_socket_addrs();
    let tried = candidates.and_then(|mut candidates| {
        let first: Option<SocketAddr> = candidates.next();
        let first = first.ok_or(std::io::ErrorKind::AddrNotAvailable)?;
        TcpStream::connect_timeout(&first, LIMIT)
    });
    match tried {
        Ok(_) => diagnosis(
            Level::Ok,
            format!("relay {name} is there ({address})"),
            vec![],
        ),
        Err(error) => diagnosis(
            Level::Problem,
            format!("relay {name} ({address}) cannot be reached: {error}"),
            vec!["Is the relay running, and does a firewall let its port through?".to_owned()],
        ),
    }
}

#[cfg(feature = "relay")]
fn key(scene: &Scene<'_>) -> Option<Diagnosis> {
    use crate::relay::identity::{Identity, warning};

    let data_dir = scene.settings.path().parent()?;
    if let Some(text) = warning(data_dir) {
        return Some(diagnosis(Level::Warning, text, vec![]));
    }
    match Identity::load(data_dir) {
        Ok(Some(identity)) => Some(diagnosis(
            Level::Ok,
            format!("the machine id is {}", identity.machine_id),
            vec![],
        )),
        // The next start makes it.
        Ok(None) => None,
        Err(error) => Some(diagnosis(Level::Problem, error.to_string(), vec![])),
    }
}

#[cfg(not(feature = "relay"))]
fn key(_: &Scene<'_>) -> Option<Diagnosis> {
    Some(diagnosis(
        Level::Problem,
        "this hearth was built without relays (the feature \"relay\")".to_owned(),
        vec![],
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;

    use serde_json::json;

    use crate::cli::tests::TemporaryDirectory;

    #[test]
    fn a_relay_that_cannot_be_used_is_a_problem() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = format!("ws://{}/ws", listener.local_addr().unwrap());
        let closed = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let gone = format!("ws://{closed}/ws");
        let token = "x".repeat(32);
        for (channel, code, says) in [
            (
                json!({"url": there, "auth_token": token}),
                0,
                "relay far is there",
            ),
            (
                json!({"url": gone, "auth_token": token}),
                1,
                "cannot be reached",
            ),
            (json!({"url": there}), 1, "has no \"auth_token\""),
        ] {
            let root = TemporaryDirectory::new();
            let mut channel = channel;
            channel["type"] = json!("websocket");
            let config = json!({"channels": {"far": channel}});
            fs::write(root.data_directory().config(), config.to_string()).unwrap();
            let ran = root.run("doctor", "");
            assert_eq!(ran.code, code, "{}", ran.output);
            assert!(ran.output.contains(says), "{}", ran.output);
        }
    }
}

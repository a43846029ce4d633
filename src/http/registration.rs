//! POST /ws/register: a machine's name on relays.

use serde::Serialize;

use super::authentication::bearer;
use super::authority::Authority;
use super::demand;
use crate::config::{Channel, Config};
use crate::error::{Error, Result};
use crate::gate::exchange::{Head, Request, Response};
use crate::gate::forwarded;
use crate::ids::MachineId;
use crate::protocol::envelope;
use crate::protocol::public_key::PublicKey;
use crate::service::Service;
use crate::store::UserRole;

/// Most characters of a machine's name (protocol section 3).
const NAME_CHARACTERS: usize = 64;

/// The machine registration result (contract section 2).
#[derive(Serialize)]
struct Registration<'a> {
    machine_id: &'a str,
    relay_url: String,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    /// 1 to 64 characters.
    pub name: String,
    /// From which its machine_id follows.
    pub public_key: PublicKey,
}

/// Registers a machine for relay connectivity.
///
/// Errors: `invalid_token`; `unauthorized` below the role `user`; `invalid_request`.
pub fn register(service: &Service, config: &Config, request: &Request) -> Result<Response> {
    let identity = service.identify(&bearer(&request.head)?)?;
    if identity.role < UserRole::User {
        return Err(Error::unauthorized(format!(
            "registering a machine takes the role {:?}; this token has {:?}",
            UserRole::User.as_str(),
            identity.role.as_str()
        )));
    }
    let machine = Machine::parse(&request.body)?;
    // Before anything is stored: a request that cannot be answered changes nothing.
    let relay_address = relay_address(config, &request.head)?;
    let machine_id = service.register_machine(&identity, &machine.name, &machine.public_key)?;
    Ok(registered(&machine_id, &relay_address))
}

/// The answer to a registration with the relay at `relay_address`.
pub fn registered(machine_id: &MachineId, relay_address: &str) -> Response {
    let result = Registration {
        machine_id: machine_id.as_str(),
        relay_url: with_machine_id(relay_address, machine_id),
    };
    Response::json(200, envelope::success(None, result))
}

impl Machine {
    /// Reads a request's body.
    ///
    /// Errors: `invalid_request`.
    pub fn parse(body: &[u8]) -> Result<Machine> {
        let mut fields = demand::object(body)?;
        let name = fields.string("machine_name")?;
        let public_key = fields.string("public_key")?;
        let length = name.chars().count();
        if !(1..=NAME_CHARACTERS).contains(&length)
            || name.trim().is_empty()
            || name.chars().any(char::is_control)
        {
            return Err(Error::invalid_request(format!(
                "\"machine_name\" must have 1 to {NAME_CHARACTERS} characters, without control characters and not only white space"
            )));
        }
        Ok(Machine {
            name,
            public_key: PublicKey::parse("public_key", &public_key)?,
        })
    }
}

/// Where clients reach the machine: the first relay's address, else our own
/// /ws as the caller reached us.
fn relay_address(config: &Config, head: &Head) -> Result<String> {
    let relay = config.channels.iter().find_map(|channel| match channel {
        Channel::Relay(relay) => Some(relay),
        _ => None,
    });
    match relay {
        Some(relay) => Ok(relay.url.clone()),
        None => own_address(head),
    }
}

/// Our own /ws as the caller reached it, through trusted proxies.
///
/// Errors: `invalid_request` without a usable `Host`.
pub fn own_address(head: &Head) -> Result<String> {
    let host = head
        .header(forwarded::HOST)
        .or_else(|| head.header("host"))
        .and_then(Authority::parse)
        .ok_or_else(|| {
            Error::invalid_request(
                "the request must have a Host header with the name or address of this server",
            )
        })?;
    let scheme = if head.peer.secure { "wss" } else { "ws" };
    Ok(format!("{scheme}://{host}/ws"))
}

fn with_machine_id(address: &str, machine_id: &MachineId) -> String {
    let address = address.split('#').next().unwrap_or(address);
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}machine_id={machine_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::head;

    /// The public key of Alice in RFC 7748 section 6.1.
    const ALICE: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    fn body(name: &str, key: &str) -> Vec<u8> {
        serde_json::json!({"machine_name": name, "public_key": key})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let short = "A".repeat(40);
        let long = "A".repeat(44);
        for text in ["", "nope", &short, &long, &ALICE[1..], &format!(" {ALICE}")] {
            let error = Machine::parse(&body("pi", text)).unwrap_err();
            assert_eq!(error.status(), 400);
            assert!(error.message().contains("\"public_key\""), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_short_and_printable() {
        for (name, good) in [
            ("pi", true),
            ("Küche ♨", true),
            (&"ü".repeat(64), true),
            (&"x".repeat(65), false),
            ("", false),
            ("   ", false),
            ("a\nb", false),
        ] {
            assert_eq!(Machine::parse(&body(name, ALICE)).is_ok(), good, "{name:?}");
        }
    }

    #[test]
    fn the_address_is_the_one_that_the_caller_used() {
        for (host, secure, address) in [
            ("192.168.1.5:5000", false, Some("ws://192.168.1.5:5000/ws")),
            ("home.example", true, Some("wss://home.example/ws")),
            ("[fd00::1]:5000", false, Some("ws://[fd00::1]:5000/ws")),
            ("", false, None),
            ("evil/?x", false, None),
        ] {
            let mut head = head("POST", "/ws/register", &[("host", host)]);
            head.peer.secure = secure;
            assert_eq!(own_address(&head).ok().as_deref(), address, "{host:?}");
        }
        let no_host = head("POST", "/ws/register", &[]);
        assert_eq!(own_address(&no_host).unwrap_err().status(), 400);
    }

    #[test]
    fn a_machine_is_named_in_the_query() {
        let id = PublicKey::parse("public_key", ALICE).unwrap().machine_id();
        for (address, url) in [
            (
                "wss://relay.example/ws",
                format!("wss://relay.example/ws?machine_id={id}"),
            ),
            (
                "wss://r.example/ws?a=1",
                format!("wss://r.example/ws?a=1&machine_id={id}"),
            ),
            (
                "wss://r.example/ws#top",
                format!("wss://r.example/ws?machine_id={id}"),
            ),
        ] {
            assert_eq!(with_machine_id(address, &id), url);
        }
    }
}

//! POST /ws/register: a machine's name on relays.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::agreement;
use ring::rand::SystemRandom;
use serde::Serialize;

use super::authentication::bearer;
use super::authority::Authority;
use super::demand;
use crate::config::{Channel, Config};
use crate::error::{Error, Result};
use crate::gate::exchange::{Head, Request, Response};
use crate::ids::MachineId;
use crate::protocol::envelope;
use crate::service::Service;
use crate::store::UserRole;

/// Most characters of a machine's name (protocol section 3).
const NAME_CHARACTERS: usize = 64;
/// Bytes of an X25519 public key (RFC 7748 section 5).
const KEY_BYTES: usize = 32;
/// Standard base64 whose padding may be left out.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The machine registration result (contract section 2).
#[derive(Serialize)]
struct Registration<'a> {
    machine_id: &'a str,
    relay_url: String,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Machine {
    name: String,
    public_key: [u8; KEY_BYTES],
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
    let result = Registration {
        machine_id: machine_id.as_str(),
        relay_url: with_machine_id(&relay_address, &machine_id),
    };
    Ok(Response::json(200, envelope::success(None, result)))
}

impl Machine {
    fn parse(body: &[u8]) -> Result<Machine> {
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
            public_key: parse_key(&public_key)?,
        })
    }
}

/// Reads the base64 text of an X25519 public key: standard or URL-safe
/// alphabet, padded or not.
fn parse_key(text: &str) -> Result<[u8; KEY_BYTES]> {
    let standard: String = text
        .chars()
        .map(|letter| match letter {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    let key: [u8; KEY_BYTES] = LENIENT
        .decode(standard)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| {
            Error::invalid_request(format!(
                "\"public_key\" must be the base64 of the {KEY_BYTES} bytes of an X25519 public key"
            ))
        })?;
    if is_low_order(&key)? {
        return Err(Error::invalid_request(
            "\"public_key\" is not a usable X25519 public key: it is a point of low order",
        ));
    }
    Ok(key)
}

/// Whether every agreement with this key gives the same all-zero secret
/// (RFC 7748 section 6.1), so that anybody could speak for its machine. Private
/// keys are multiples of the cofactor, so one agreement tells for all.
fn is_low_order(public_key: &[u8; KEY_BYTES]) -> Result<bool> {
    let private_key =
        agreement::EphemeralPrivateKey::generate(&agreement::X25519, &SystemRandom::new())
            .map_err(|_| {
                Error::server(
                    "the public key could not be checked",
                    "the operating system gave no random bytes",
                )
            })?;
    let peer = agreement::UnparsedPublicKey::new(&agreement::X25519, public_key);
    Ok(agreement::agree_ephemeral(private_key, &peer, |_| ()).is_err())
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

fn own_address(head: &Head) -> Result<String> {
    let host = head
        .header("host")
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
    fn a_key_may_be_written_in_either_alphabet() {
        let key = parse_key(ALICE).unwrap();
        assert_eq!(key[..4], [0x85, 0x20, 0xf0, 0x09]);
        for same in [
            ALICE.trim_end_matches('='),
            &ALICE.replace('/', "_"),
            ALICE.replace('/', "_").trim_end_matches('='),
        ] {
            assert_eq!(parse_key(same).unwrap(), key, "{same}");
        }
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
    fn points_of_low_order_are_refused() {
        // All of them: of order 1, 2, 4 and 8, canonical or not. The top bit
        // is ignored by X25519 (RFC 7748 section 5).
        let order_8 = [
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        ];
        let mut points: Vec<[u8; 32]> = order_8
            .iter()
            .map(|hex| {
                std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            })
            .collect();
        points.push([0; 32]);
        points.push(std::array::from_fn(|at| u8::from(at == 0)));
        for first in [0xec, 0xed, 0xee] {
            let mut point = [0xff; 32];
            (point[0], point[31]) = (first, 0x7f);
            points.push(point);
        }
        for mut point in points {
            assert!(is_low_order(&point).unwrap(), "{point:x?}");
            point[31] |= 0x80;
            assert!(is_low_order(&point).unwrap(), "{point:x?}");
        }
        let error = parse_key(&LENIENT.encode([0; 32])).unwrap_err();
        assert!(error.message().contains("low order"), "{error}");
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
        let id = MachineId::of_public_key(&parse_key(ALICE).unwrap());
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

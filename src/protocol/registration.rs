//! POST /ws/register (contract section 4.2, protocol section 3): a machine's name
//! and key, and the response.

use base::error::{Error, Result};
use base::ids::MachineId;
use serde_json::json;

use crate::envelope;
use crate::fields::Fields;
use crate::public_key::PublicKey;

/// Most characters of a machine's name (protocol section 3).
const NAME_CHARACTERS: usize = 64;

/// A machine's request to be registered.
#[derive(Debug, PartialEq, Eq)]
pub struct Registration {
    /// 1 to 64 characters.
    pub name: String,
    /// Its machine_id is derived from this.
    pub public_key: PublicKey,
}

impl Registration {
    /// Reads a request's members.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn parse(mut fields: Fields) -> Result<Registration> {
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
        Ok(Registration {
            name,
            public_key: PublicKey::parse("public_key", &public_key)?,
        })
    }
}

/// The envelope that answers a registration (contract section 2) with the relay at `relay_address`.
pub fn registered(machine_id: &MachineId, relay_address: &str) -> String {
    let relay_url = with_machine_id(relay_address, machine_id);
    let result = json!({ "machine_id": machine_id.as_str(), "relay_url": relay_url });
    envelope::success(None, result)
}

fn with_machine_id(address: &str, machine_id: &MachineId) -> String {
    let address = address.split('#').next().unwrap_or(address);
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}machine_id={machine_id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The public key of Alice in RFC 7748 section 6.1.
    const ALICE: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    fn body(name: &str, key: &str) -> Fields {
        let text = serde_json::json!({"machine_name": name, "public_key": key}).to_string();
        Fields::parse(&text).unwrap()
    }

    #[test]
    fn malformed_keys_are_refused() {
        let short = "A".repeat(40);
        let long = "A".repeat(44);
        for text in ["", "nope", &short, &long, &ALICE[1..], &format!(" {ALICE}")] {
            let error = Registration::parse(body("pi", text)).unwrap_err();
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
            assert_eq!(
                Registration::parse(body(name, ALICE)).is_ok(),
                good,
                "{name:?}"
            );
        }
    }

    #[test]
    fn the_query_names_the_machine() {
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

//! WebSockets at /ws: which machine the query names, and the refusals.

use super::extension::Relay;
use base::error::Error;
use base::ids::MachineId;
use net::client_handler::HandlerFactory;
use net::http::checks;
use net::http::{Head, Response};

/// Where a WebSocket that names `/ws?machine_id=` leads: to this server (none),
/// or another machine through `relay`, if the server is a relay too.
///
/// Everything else in the query is ignored. Above all a credential there opens
/// nothing: addresses end up in logs and histories, so the first message must
/// carry it (contract section 3).
///
/// # Errors
/// `not_found` for another machine, and for a machine that takes this
/// server for a relay (`role=machine`); what the relay refuses.
pub fn lead(
    head: &Head,
    target: Target,
    relay: Option<&dyn Relay>,
) -> Result<Option<HandlerFactory>, Response> {
    match (target, relay) {
        (Target::Us, _) => Ok(None),
        (_, Some(relay)) => relay.open(head).map(Some),
        (Target::RelayByMachine, None) => Err(Response::error(&Error::not_found(
            "this server is not a relay, so no machine can link to it",
        ))),
        (Target::Other, None) => Err(Response::error(&Error::not_found(
            "no machine of this machine_id can be reached here",
        ))),
    }
}

/// Whether the address names a machine.
pub fn names_machine(head: &Head) -> bool {
    checks::query(head.query.as_deref()).any(|(name, _)| name == "machine_id")
}

/// The target of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This server.
    Us,
    /// Another machine.
    Other,
    /// This server as the relay of the machine that asks.
    RelayByMachine,
}

impl Target {
    /// The one that the query names.
    pub fn by(query: Option<&str>, own: Option<&MachineId>) -> Target {
        let mut target = Target::Us;
        for (name, value) in checks::query(query) {
            match name {
                "role" if value == "machine" => return Target::RelayByMachine,
                "machine_id" if own.is_none_or(|own| own.as_str() != value) => {
                    target = Target::Other;
                }
                _ => {}
            }
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;
    use net::testing::head;

    #[test]
    fn only_this_machine_may_be_named() {
        let own = MachineId::of_public_key(&[9; 32]);
        let other = MachineId::of_public_key(&[8; 32]);
        let table = "
            -                                      | Us
                                                   | Us
            color=red&&x                           | Us
            token=abc                              | Us
            machine_id=OWN                         | Us
            a=b&machine_id=OWN&role=client         | Us
            machine_id=OTHER                       | Other
            machine_id=OWN&machine_id=OTHER        | Other
            machine_id=OWN&role=machine            | RelayByMachine
            machine_id=                            | Other
            machine_id                             | Other
        ";
        for [query, target] in rows(table) {
            let query = query.replace("OWN", own.as_str());
            let query = query.replace("OTHER", other.as_str());
            let query = Some(query.as_str()).filter(|query| *query != "-");
            let found = Target::by(query, Some(&own));
            assert_eq!(format!("{found:?}"), target, "{query:?}");
        }
        let head = head("GET", "/ws", &[]);
        assert!(lead(&head, Target::Us, None).is_ok());
        let refused = lead(&head, Target::Other, None).err().unwrap();
        assert_eq!(refused.status, 404);
    }
}

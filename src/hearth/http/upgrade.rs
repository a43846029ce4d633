//! What leads to a WebSocket at /ws: which machine the query of its address
//! means, and what a plain request is told.

use super::extension::Relay;
use base::error::Error;
use base::ids::MachineId;
use net::client_handler::HandlerFactory;
use net::http::checks;
use net::http::{Head, Response};

/// Whom a WebSocket leads to that names `/ws?machine_id=`: this server (none),
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
    own: Option<&MachineId>,
    relay: Option<&dyn Relay>,
) -> Result<Option<HandlerFactory>, Response> {
    match (Meant::by(head.query.as_deref(), own), relay) {
        (Meant::Us, _) => Ok(None),
        (_, Some(relay)) => relay.open(head).map(Some),
        (Meant::RelayByMachine, None) => Err(Response::error(&Error::not_found(
            "this server is not a relay, so no machine can link to it",
        ))),
        (Meant::Other, None) => Err(Response::error(&Error::not_found(
            "no machine of this machine_id can be reached here",
        ))),
    }
}

/// Whether a WebSocket is meant for a machine that links to a relay, or that a
/// relay leads to, rather than for this server.
pub fn is_for_relay(head: &Head, own: Option<&MachineId>) -> bool {
    Meant::by(head.query.as_deref(), own) != Meant::Us
}

/// Whether the address names a machine.
pub fn names_machine(head: &Head) -> bool {
    checks::query(head.query.as_deref()).any(|(name, _)| name == "machine_id")
}

/// Who is meant by a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meant {
    Us,
    Other,
    RelayByMachine,
}

impl Meant {
    fn by(query: Option<&str>, own: Option<&MachineId>) -> Meant {
        let mut meant = Meant::Us;
        for (name, value) in checks::query(query) {
            match name {
                "role" if value == "machine" => return Meant::RelayByMachine,
                "machine_id" if own.is_none_or(|own| own.as_str() != value) => {
                    meant = Meant::Other;
                }
                _ => {}
            }
        }
        meant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::testing::head;

    #[test]
    fn only_this_machine_may_be_named() {
        let own = MachineId::of_public_key(&[9; 32]);
        let other = MachineId::of_public_key(&[8; 32]);
        for (query, meant) in [
            (None, Meant::Us),
            (Some(String::new()), Meant::Us),
            (Some("color=red&&x".to_owned()), Meant::Us),
            (Some("token=abc".to_owned()), Meant::Us),
            (Some(format!("machine_id={own}")), Meant::Us),
            (Some(format!("a=b&machine_id={own}&role=client")), Meant::Us),
            (Some(format!("machine_id={other}")), Meant::Other),
            (
                Some(format!("machine_id={own}&machine_id={other}")),
                Meant::Other,
            ),
            (
                Some(format!("machine_id={own}&role=machine")),
                Meant::RelayByMachine,
            ),
            (Some("machine_id=".to_owned()), Meant::Other),
            (Some("machine_id".to_owned()), Meant::Other),
        ] {
            assert_eq!(Meant::by(query.as_deref(), Some(&own)), meant, "{query:?}");
        }
        let mut head = head("GET", "/ws", &[]);
        head.query = Some(format!("machine_id={own}"));
        assert!(lead(&head, Some(&own), None).is_ok());
        let refused = lead(&head, None, None).err().unwrap();
        assert_eq!(refused.status, 404);
    }
}

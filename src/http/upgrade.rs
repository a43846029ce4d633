//! The query of a WebSocket's address: which machine is meant.

use crate::error::{Error, Result};
use crate::ids::MachineId;

/// Checks that `/ws?machine_id=` names this server, if it names any.
///
/// Everything else in the query is ignored. Above all a credential there opens
/// nothing: addresses end up in logs and histories, so the first message must
/// carry it (contract section 3).
///
/// Errors: `not_found` for another machine, and for a machine that takes this
/// server for a relay (`role=machine`).
pub fn check(query: Option<&str>, own: Option<&MachineId>) -> Result<()> {
    for (name, value) in query.unwrap_or_default().split('&').map(split_pair) {
        match name {
            "role" if value == "machine" => {
                return Err(Error::not_found(
                    "this server is not a relay, so no machine can link to it",
                ));
            }
            "machine_id" if own.is_none_or(|own| own.as_str() != value) => {
                return Err(Error::not_found(
                    "no machine of this machine_id can be reached here",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Nothing is decoded: the names and values that count hold no character that
/// would have to be escaped.
fn split_pair(pair: &str) -> (&str, &str) {
    pair.split_once('=').unwrap_or((pair, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_may_be_named() {
        let own = MachineId::of_public_key(&[9; 32]);
        let other = MachineId::of_public_key(&[8; 32]);
        for (query, good) in [
            (None, true),
            (Some(String::new()), true),
            (Some("color=red&&x".to_owned()), true),
            (Some("token=abc".to_owned()), true),
            (Some(format!("machine_id={own}")), true),
            (Some(format!("a=b&machine_id={own}&role=client")), true),
            (Some(format!("machine_id={other}")), false),
            (Some(format!("machine_id={own}&machine_id={other}")), false),
            (Some(format!("machine_id={own}&role=machine")), false),
            (Some("machine_id=".to_owned()), false),
            (Some("machine_id".to_owned()), false),
        ] {
            let result = check(query.as_deref(), Some(&own));
            assert_eq!(result.is_ok(), good, "{query:?}");
        }
        let unnamed = check(Some(&format!("machine_id={own}")), None);
        assert_eq!(unnamed.unwrap_err().status(), 404);
    }
}

//! Finds the client behind a reverse proxy (protocol section 3). Only trusted
//! proxies are believed: each hop appends the address that it saw to
//! `X-Forwarded-For`, so the list is reliable from its end up to and including the
//! first address that is not a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use super::message::Head;
use crate::peer::Peer;
use config::AddressPatterns;

/// The client of a request that came over the socket of the trusted proxy
/// `proxy`.
pub fn client(head: &Head, proxy: Peer, trusted: &AddressPatterns) -> Peer {
    let mut address = proxy.address;
    let hops = head
        .headers
        .iter()
        .rev()
        .filter(|(name, _)| name == "x-forwarded-for")
        .flat_map(|(_, value)| value.rsplit(','));
    for hop in hops {
        let Some(hop) = parse(hop.trim()) else {
            // No proxy of ours wrote such a list: nothing in it can be believed.
            address = proxy.address;
            break;
        };
        address = hop;
        if !trusted.allows(hop) {
            break;
        }
    }
    let secure = match head.header("x-forwarded-proto") {
        Some(value) => value
            .rsplit(',')
            .next()
            .is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https")),
        None => proxy.secure,
    };
    Peer {
        address,
        secure,
        relay: None,
        is_local: false,
    }
}

/// The name by which a client reached a trusted proxy, where that differs from
/// `Host`.
pub const HOST: &str = "x-forwarded-host";

/// The path that a trusted proxy has stripped.
pub const PREFIX: &str = "x-forwarded-prefix";

/// Removes the headers that only a trusted proxy may send.
pub fn forget(head: &mut Head) {
    head.headers
        .retain(|(name, _)| name != HOST && name != PREFIX);
}

/// An address as proxies write it: plain, in brackets, or with a port.
fn parse(hop: &str) -> Option<IpAddr> {
    let plain = hop
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(hop);
    plain
        .parse()
        .or_else(|_| hop.parse().map(|address: SocketAddr| address.ip()))
        .ok()
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::patterns;

    #[test]
    fn the_client_is_the_last_hop_that_is_not_a_trusted_proxy() {
        for (forwarded, client_address) in [
            (&[][..], "10.0.0.1"),
            (&["203.0.113.9"], "203.0.113.9"),
            (&["203.0.113.9:4711"], "203.0.113.9"),
            (&["[2001:db8::1]:443"], "2001:db8::1"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["::ffff:203.0.113.9"], "203.0.113.9"),
            // The client's own claim comes first and is ignored.
            (&["192.168.1.1, 203.0.113.9"], "203.0.113.9"),
            (&["192.168.1.1", "203.0.113.9"], "203.0.113.9"),
            (&["203.0.113.9, 10.0.0.2"], "203.0.113.9"),
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            // One that cannot be read makes all of it worthless.
            (&["203.0.113.9, unknown, 10.0.0.2"], "10.0.0.1"),
            (&["unknown, 10.0.0.2"], "10.0.0.1"),
            (&["203.0.113.9, "], "10.0.0.1"),
            (&["203.0.113.9, unknown"], "10.0.0.1"),
            (&["203.0.113.9", "unknown"], "10.0.0.1"),
            (&["203.0.113.9", ""], "10.0.0.1"),
            (&["203.0.113.9, \u{fffd}"], "10.0.0.1"),
            (&["203.0.113.9, 10.0.0.2:port"], "10.0.0.1"),
            // Nothing before the client is read.
            (&["unknown, 203.0.113.9"], "203.0.113.9"),
        ] {
            let head = Head {
                method: "GET".into(),
                path: "/".into(),
                query: None,
                headers: forwarded
                    .iter()
                    .map(|value| ("x-forwarded-for".into(), (*value).to_owned()))
                    .chain([("x-forwarded-proto".into(), "https".into())])
                    .collect(),
                peer: Peer {
                    address: "10.0.0.1".parse().unwrap(),
                    secure: false,
                    relay: None,
                    is_local: false,
                },
            };
            let found = client(&head, head.peer.clone(), &patterns(&[("10.0.0.0", 8)]));
            assert_eq!(found.address.to_string(), client_address, "{forwarded:?}");
            assert!(found.secure);
        }
    }
}

//! Where a request comes from.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// The other end of a connection, behind any trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, with IPv4-mapped IPv6 made plain IPv4.
    pub address: IpAddr,
    /// Whether the client's leg is encrypted (TLS here or at a trusted proxy).
    pub secure: bool,
    /// The relay that it comes through, which reported the fields above.
    pub relay: Option<Arc<str>>,
}

/// What limits and throttles are counted by: an IPv4 address, or the /64 of an
/// IPv6 address, which is what one household or one attacker usually holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(IpAddr);

impl AddressKey {
    /// The key of an address.
    pub fn of(address: IpAddr) -> AddressKey {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                AddressKey(IpAddr::V6(Ipv6Addr::from(network)))
            }
            address => AddressKey(address),
        }
    }
}

/// What failed sign-ins are counted by. A relay may report false addresses, so it
/// can neither use up the attempts of an address on the home's own network nor get
/// more attempts by inventing addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ThrottleKey {
    /// An address, as reported by one relay or by the socket.
    Address(Option<Arc<str>>, AddressKey),
    /// All clients of a relay.
    Relay(Arc<str>),
}

impl Peer {
    /// Throttle keys for failed sign-ins, each with a multiplier of the free
    /// attempts.
    pub fn throttle_keys(&self) -> Vec<(ThrottleKey, u32)> {
        let address = ThrottleKey::Address(self.relay.clone(), AddressKey::of(self.address));
        let relay = self.relay.clone().map(ThrottleKey::Relay);
        std::iter::once((address, 1))
            .chain(relay.map(|relay| (relay, RELAY_SHARE)))
            .collect()
    }
}

/// How many times the failures of one address a relay may have: a whole family
/// comes through it.
const RELAY_SHARE: u32 = 8;

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.relay {
            None => self.address.fmt(f),
            Some(relay) => write!(f, "{} by {relay}", self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_of_ipv6_counts_as_one() {
        let key = |text: &str| AddressKey::of(text.parse().unwrap());
        assert_eq!(key("2001:db8:1:2::3"), key("2001:db8:1:2:ffff::"));
        assert_ne!(key("2001:db8:1:2::3"), key("2001:db8:1:3::3"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    }
}

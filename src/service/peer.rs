//! Where a request comes from.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The other end of a connection, behind any trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, with IPv4-mapped IPv6 made plain IPv4.
    pub address: IpAddr,
    /// Whether the client's leg is encrypted (TLS here or at a trusted proxy).
    pub secure: bool,
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

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
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

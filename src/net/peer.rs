//! Where a request comes from.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use base::address::AddressScope;

/// The other end of a connection, behind any trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, with IPv4-mapped IPv6 made plain IPv4.
    pub address: IpAddr,
    /// Whether the client's leg is encrypted (TLS here or at a trusted proxy).
    pub secure: bool,
    /// The relay that it comes through, which reported the fields above.
    pub relay: Option<Arc<str>>,
    /// Whether it came over a socket of this machine's file system, as the server's own
    /// user or root. A connection over loopback did not.
    pub is_local: bool,
}

/// What limits and throttles are counted by: an address, or the /64 of an IPv6 address
/// of the internet, which is what one household or one attacker usually holds. The
/// devices of this network count each by itself: one must not lock out the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressKey(IpAddr);

/// The IPv6 addresses of this machine, in hexadecimal, one a line (proc_net(5)).
const OWN_ADDRESSES: &str = "/proc/self/net/if_inet6";

impl AddressKey {
    /// The key of an address.
    pub fn of(address: IpAddr) -> AddressKey {
        // Read each time: a provider may assign a new network any day.
        AddressKey::beside(address, || {
            fs::read_to_string(OWN_ADDRESSES).unwrap_or_default()
        })
    }

    fn beside(address: IpAddr, own_addresses: impl FnOnce() -> String) -> AddressKey {
        let address = address.to_canonical();
        let IpAddr::V6(v6) = address else {
            return AddressKey(address);
        };
        let network = u128::from(v6) >> 64;
        let is_own_network = |line: &str| {
            let prefix = line.get(..16).map(|text| u128::from_str_radix(text, 16));
            prefix == Some(Ok(network))
        };
        if AddressScope::of(address).is_local() || own_addresses().lines().any(is_own_network) {
            AddressKey(address)
        } else {
            AddressKey(Ipv6Addr::from(network << 64).into())
        }
    }
}

impl Peer {
    /// Where it is, as limits and throttles count it: its address, and the relay that
    /// reports it. Lines in the log that a client causes name it as `peer`, so that
    /// they are limited.
    pub fn place(&self) -> String {
        let address = AddressKey::of(self.address);
        match &self.relay {
            None => address.to_string(),
            Some(relay) => format!("{address} by {relay}"),
        }
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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
    fn a_network_of_the_internet_counts_as_one_and_a_device_at_home_as_itself() {
        let own = "\
            00000000000000000000000000000001 01 80 10 80       lo\n\
            20010db8000100020000000000000005 02 40 00 00     eth0\n\
            fe800000000000000000000000000005 02 40 20 80     eth0\n";
        let key = |text: &str| AddressKey::beside(text.parse().unwrap(), || own.to_owned());
        for (one, other, same) in [
            ("2001:db8:9:2::3", "2001:db8:9:2:ffff::", true),
            ("2001:db8:9:2::3", "2001:db8:9:3::3", false),
            // On link: the network of one of our own addresses.
            ("2001:db8:1:2::3", "2001:db8:1:2::4", false),
            ("2001:db8:1:2::3", "2001:db8:1:2::3", true),
            ("2001:db8:1:3::3", "2001:db8:1:3::4", true),
            // Unique local, link-local, loopback.
            ("fd12:3456::1", "fd12:3456::2", false),
            ("fe80::1", "fe80::2", false),
            ("::1", "::2", false),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            assert_eq!(key(one) == key(other), same, "{one} {other}");
        }
    }
}

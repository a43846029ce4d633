//! Which IP addresses and host names are local: the one table that connection
//! filters, proxy rules and the guard of outgoing requests share.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What an address is for, by IANA's registries of special-purpose addresses
/// (RFC 6890 and its successors). Its text completes "this is ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressScope {
    /// This machine, as a source alone: `0.0.0.0/8` and `::`.
    Unspecified,
    /// This machine.
    Loopback,
    /// A private network (RFC 1918, RFC 4193).
    Private,
    /// One network segment (RFC 3927, RFC 4291).
    LinkLocal,
    /// Shared address space (RFC 6598), which overlay networks use too.
    Shared,
    /// A group of receivers.
    Multicast,
    /// Documentation, benchmarks, tunnels, and what is not assigned.
    Reserved,
    /// The internet.
    Public,
}

use AddressScope::{
    LinkLocal, Loopback, Multicast, Private, Public, Reserved, Shared, Unspecified,
};

/// The first network that contains an address decides. For IPv6, only what is
/// global unicast is public.
const NETWORKS: [(IpNet, AddressScope); 27] = [
    (v4([0, 0, 0, 0], 8), Unspecified),
    (v4([127, 0, 0, 0], 8), Loopback),
    (v4([10, 0, 0, 0], 8), Private),
    (v4([172, 16, 0, 0], 12), Private),
    (v4([192, 168, 0, 0], 16), Private),
    (v4([169, 254, 0, 0], 16), LinkLocal),
    (v4([100, 64, 0, 0], 10), Shared),
    (v4([192, 0, 0, 0], 24), Reserved),
    (v4([192, 0, 2, 0], 24), Reserved),
    (v4([192, 88, 99, 0], 24), Reserved),
    (v4([198, 18, 0, 0], 15), Reserved),
    (v4([198, 51, 100, 0], 24), Reserved),
    (v4([203, 0, 113, 0], 24), Reserved),
    (v4([224, 0, 0, 0], 4), Multicast),
    (v4([240, 0, 0, 0], 4), Reserved),
    (v4([0, 0, 0, 0], 0), Public),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Unspecified),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Loopback),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Private),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), LinkLocal),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Multicast),
    // Teredo, ORCHID and the like; documentation; 6to4, which contains an
    // IPv4 address.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Reserved),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Reserved),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), Reserved),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Reserved),
    (v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), Public),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 0), Reserved),
    // IPv4-mapped addresses and NAT64 (RFC 6052) never get here.
];

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix))
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> IpNet {
    let address = Ipv6Addr::new(a, b, c, d, e, f, g, h);
    IpNet::V6(Ipv6Net::new_assert(address, prefix))
}

impl AddressScope {
    /// The scope of an address; of an IPv4-mapped or NAT64 address (RFC 6052),
    /// that of the IPv4 address inside.
    pub fn of(address: IpAddr) -> AddressScope {
        let address = embedded(address).unwrap_or(address);
        let network = NETWORKS
            .iter()
            .find(|(network, _)| network.contains(&address));
        network.map_or(Reserved, |(_, scope)| *scope)
    }

    /// This machine or a private network, an overlay network included.
    pub fn is_local(self) -> bool {
        matches!(self, Unspecified | Loopback | Private | LinkLocal | Shared)
    }
}

fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = address.octets();
            Some(Ipv4Addr::new(a, b, c, d).into())
        }
        _ => None,
    }
}

/// Loopback, private and link-local networks: a household and nobody else.
pub fn private_networks() -> impl Iterator<Item = IpNet> {
    NETWORKS
        .iter()
        .filter(|(_, scope)| matches!(scope, Loopback | Private | LinkLocal))
        .map(|(network, _)| *network)
}

/// Whether a host name is one of a private network. Names count by their form,
/// without a lookup: one label (`nas`), and the suffixes that are reserved for
/// private networks (RFC 6761, RFC 6762, RFC 8375, ICANN's `.internal`) or usual
/// there.
pub fn is_local_name(name: &str) -> bool {
    const SUFFIXES: [&str; 5] = [".localhost", ".local", ".home.arpa", ".lan", ".internal"];
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    !name.contains('.') || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// [`AddressScope::is_local`] for an address, [`is_local_name`] for a name; an
/// IPv6 address may have brackets.
pub fn is_local_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse() {
        Ok(address) => AddressScope::of(address).is_local(),
        Err(_) => is_local_name(host),
    }
}

impl fmt::Display for AddressScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unspecified | Loopback => "this machine",
            Private => "a private address",
            LinkLocal => "a link-local address",
            Shared => "a provider's or overlay network's private address",
            Multicast => "a multicast address",
            Reserved => "an address reserved for other uses",
            Public => "a public address",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rows;

    #[test]
    fn an_address_has_a_scope() {
        let table = "
            Unspecified | 0.0.0.0 0.1.2.3 ::
            Loopback    | 127.0.0.1 127.255.0.1 ::1 ::ffff:127.0.0.1 64:ff9b::127.0.0.1
            Private     | 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12::1
            Private     | ::ffff:10.0.0.1 64:ff9b::10.0.0.1
            LinkLocal   | 169.254.169.254 fe80::1 febf::1 ::ffff:169.254.169.254
            Shared      | 100.64.0.1 100.127.255.255
            Multicast   | 224.0.0.251 239.255.255.250 ff02::1
            Reserved    | 192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1
            Reserved    | 203.0.113.1 240.0.0.1 255.255.255.255 ::127.0.0.1 ::8.8.8.8
            Reserved    | 64:ff9b:1::8.8.8.8 100::1 2001::1 2001:10::1 2001:20::1 2001:db8::1
            Reserved    | 2002:7f00:1::1 2002:808:808::1 3fff::1 4000::1 5f00::1 fec0::1
            Public      | 1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1
            Public      | 192.0.1.1 192.167.0.1 198.17.0.1 223.255.255.255 ::ffff:8.8.8.8
            Public      | 64:ff9b::8.8.8.8 2606:4700:4700::1111 2a00:1450:4001::1
            Public      | 2001:4860:4860::8888
        ";
        for [scope, addresses] in rows(table) {
            for address in addresses.split(' ') {
                let found = AddressScope::of(address.parse().unwrap());
                assert_eq!(format!("{found:?}"), scope, "{address}");
            }
        }
    }

    #[test]
    fn a_host_is_local_by_its_address_or_the_form_of_its_name() {
        for (host, local) in [
            ("localhost", true),
            ("nas", true),
            ("NAS.local", true),
            ("llm.home.arpa.", true),
            ("printer.lan", true),
            ("db.internal", true),
            ("api.openai.com", false),
            ("local.example", false),
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("192.168.1.20", true),
            ("169.254.9.9", true),
            ("100.100.1.1", true),
            ("0.0.0.0", true),
            ("[::1]", true),
            ("::ffff:192.168.1.20", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("8.8.8.8", false),
            ("172.32.0.1", false),
            ("100.128.0.1", false),
            ("[2606:4700::1]", false),
        ] {
            assert_eq!(is_local_host(host), local, "{host}");
        }
    }
}

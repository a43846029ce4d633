//! Tells what is on the public internet from what is on this machine, in the
//! server, or nowhere: a model must not be led to the latter by a web page.
//!
//! The lists are those of IANA's registries of special-purpose addresses
//! (RFC 6890 and its successors). For IPv6 the rule is turned round: only what
//! is global unicast is public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Says why an address is not on the public internet, in a word or two; nothing
/// when it is.
pub fn why_not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

fn of_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0, ..) => Some("this machine"),
        (127, ..) => Some("this machine"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("a private address"),
        (100, 64..=127, _) => Some("a provider's or overlay network's private address"),
        (169, 254, _) => Some("a link-local address"),
        (192, 0, 0 | 2) | (198, 51, 100) | (203, 0, 113) | (198, 18..=19, _) | (192, 88, 99) => {
            Some("an address reserved for other uses")
        }
        (224..=239, ..) => Some("a multicast address"),
        (240..=255, ..) => Some("an address reserved for other uses"),
        _ => None,
    }
}

fn of_v6(address: Ipv6Addr) -> Option<&'static str> {
    let words = address.segments();
    let embedded = || {
        let [.., a, b, c, d] = address.octets();
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match words {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some("this machine"),
        // IPv4-mapped, and NAT64 (RFC 6052): they lead to the IPv4 address inside.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        // 6to4 and Teredo lead to whatever IPv4 address stands in them; ORCHID,
        // documentation.
        [0x2002, ..] | [0x2001, 0..=0x01ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Some("an address reserved for other uses")
        }
        [0x2000..=0x3fff, ..] => None,
        _ => Some("an address reserved for other uses"),
    }
}

/// Whether a public address is this machine's own, or that of another device on
/// its own network: with IPv6, and on servers without a router, the server itself
/// has public addresses. Nothing is sent.
pub fn is_at_home(address: IpAddr) -> bool {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // "Connecting" a datagram socket only asks the system for the way there.
    let way = UdpSocket::bind(SocketAddr::new(unspecified, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    match (way.map(|way| way.ip()), address) {
        (Ok(IpAddr::V6(ours)), IpAddr::V6(theirs)) => {
            ours.segments()[..4] == theirs.segments()[..4]
        }
        (Ok(ours), theirs) => ours == theirs,
        // No way there: dialling it will say so.
        (Err(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.251",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(
                why_not_public(address.parse().unwrap()).is_some(),
                "{address}"
            );
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
        ] {
            assert_eq!(why_not_public(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn the_machine_knows_its_own_address() {
        assert!(is_at_home("127.0.0.1".parse().unwrap()));
    }
}

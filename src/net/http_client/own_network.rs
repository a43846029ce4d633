//! Which public addresses are on this machine's own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Whether a public address is this machine's own, or that of another device on
/// its own network: with IPv6, or without a router, those are public too. Nothing
/// is sent.
pub fn is_own_network(address: IpAddr) -> bool {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // "Connecting" a datagram socket only asks the system for a route.
    let route = UdpSocket::bind(SocketAddr::new(unspecified, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    match (route.map(|local| local.ip()), address) {
        (Ok(IpAddr::V6(ours)), IpAddr::V6(theirs)) => {
            ours.segments()[..4] == theirs.segments()[..4]
        }
        (Ok(ours), theirs) => ours == theirs,
        // No route: dialling it will fail with the reason.
        (Err(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_its_own_address() {
        assert!(is_own_network("127.0.0.1".parse().unwrap()));
    }
}

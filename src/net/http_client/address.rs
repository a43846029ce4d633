//! Tells addresses of the server from those of the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a host is this machine or on a private network: such addresses are
/// never reached through a proxy.
///
/// Names count by their form, without asking anybody: one label (`nas`), and the
/// endings that are reserved for private networks (RFC 6761, 6762, 8375) or
/// usual there.
pub fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse() {
        Ok(IpAddr::V4(address)) => is_local_v4(address),
        Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => is_local_v4(address),
            None => is_local_v6(address),
        },
        Err(_) => is_local_name(host),
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    // 100.64.0.0/10 (RFC 6598) is what overlay networks between one's own
    // machines use.
    let [a, b, ..] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
        || (a == 100 && (64..128).contains(&b))
}

fn is_local_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
}

fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let endings = [".localhost", ".local", ".home.arpa", ".lan", ".internal"];
    !host.contains('.') || endings.iter().any(|ending| host.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn the_house_is_told_from_the_internet() {
        for host in [
            "localhost",
            "nas",
            "NAS.local",
            "llm.home.arpa.",
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.20",
            "169.254.9.9",
            "100.100.1.1",
            "[::1]",
            "::ffff:192.168.1.20",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "api.openai.com",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "[2606:4700::1]",
            "local.example",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}

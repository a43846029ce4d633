//! The names and addresses under which this machine may be reached.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::cli::serve::outgoing_address;
use base::address::AddressScope;

/// Maximum number of names in a certificate.
const MOST_NAMES: usize = 100;

/// The names and addresses of this machine: its host name, also with `.local`
/// (multicast DNS), `localhost`, and every address that is not link-local.
pub fn of_this_machine() -> Vec<String> {
    let mut names = names_of_host(&host());
    names.push("localhost".to_owned());
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    // A sandbox may hide these files; the outgoing address is known anyway.
    addresses.extend(read("/proc/net/fib_trie", local_ipv4));
    addresses.extend(read("/proc/net/if_inet6", local_ipv6));
    addresses.extend(outgoing_address());
    names.extend(
        addresses
            .into_iter()
            .filter(|address| !address.is_unspecified())
            .map(|address| address.to_string()),
    );
    names
}

/// What this machine calls itself.
pub fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

/// The names that people type: those of its host name, and the address by which it reaches
/// its network.
pub fn usual() -> Vec<String> {
    let mut names = names_of_host(&host());
    names.extend(outgoing_address().map(|address| address.to_string()));
    names
}

/// Whether the authority of a home may vouch for a name. All names below it are its own then,
/// so one without a dot would be a whole part of the internet: whoever calls their machine
/// `dev` does not own `.dev`. An address of the internet may be somebody else's tomorrow.
pub fn is_of_home(name: &str) -> bool {
    match name.parse() {
        Ok(address) => matches!(
            AddressScope::of(address),
            AddressScope::Private | AddressScope::Loopback
        ),
        Err(_) => name == "localhost" || name.contains('.') && !name.starts_with('*'),
    }
}

/// A host name as it is, its first label, and that label with `.local`.
fn names_of_host(host: &str) -> Vec<String> {
    let label = host.split('.').next().unwrap_or_default();
    [host.to_owned(), label.to_owned(), format!("{label}.local")]
        .iter()
        .filter_map(|name| normalised(name))
        .collect()
}

/// A DNS name in lower case, or an address as it is usually written. None when
/// it is neither.
pub fn normalised(name: &str) -> Option<String> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let name = name.to_ascii_lowercase();
    let plain = name.strip_prefix("*.").unwrap_or(&name);
    let is_label = |label: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    (name.len() <= 253 && plain.split('.').all(is_label)).then_some(name)
}

/// Keeps the first occurrence of each name.
pub fn deduplicate(names: &mut Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.truncate(MOST_NAMES);
}

fn read(path: &str, parse: fn(&str) -> Vec<IpAddr>) -> Vec<IpAddr> {
    fs::read_to_string(path)
        .map(|text| parse(&text))
        .unwrap_or_default()
}

/// Addresses of this machine in the kernel's table of routes: a line with the
/// address, and below it one that says `/32 host LOCAL`.
fn local_ipv4(table: &str) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let mut last = None;
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            addresses.extend(last.take().map(IpAddr::V4));
        }
    }
    addresses
}

/// Addresses in the kernel's list: 32 hexadecimal digits, the interface's
/// number, and so on. Link-local ones are skipped, as nobody types them.
fn local_ipv6(list: &str) -> Vec<IpAddr> {
    list.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter_map(|digits| u128::from_str_radix(digits, 16).ok())
        .map(Ipv6Addr::from_bits)
        .filter(|address| !address.is_unicast_link_local())
        .map(IpAddr::V6)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_for_certificates() {
        for (name, normal) in [
            ("Pi", Some("pi")),
            ("pi.Example", Some("pi.example")),
            ("*.home.example", Some("*.home.example")),
            ("192.0.2.7", Some("192.0.2.7")),
            ("2001:DB8:0::7", Some("2001:db8::7")),
            ("my_pi", None),
            ("-pi", None),
            ("", None),
            ("a..b", None),
            ("a b", None),
            ("http://pi", None),
        ] {
            assert_eq!(normalised(name).as_deref(), normal, "{name:?}");
        }
        assert_eq!(names_of_host("Pi.lan"), ["pi.lan", "pi", "pi.local"]);
        assert_eq!(names_of_host("my_pi"), [""; 0]);
    }

    #[test]
    fn the_lists_of_the_kernel_are_parsed() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 192.0.2.0\n        /24 link UNICAST\n     \
                     |-- 192.0.2.7\n        /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\n";
        let expected: IpAddr = "192.0.2.7".parse().unwrap();
        assert_eq!(local_ipv4(table), [expected]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\n\
                    fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n\
                    20010db8000000000000000000000007 04 40 00 82     eth0\n";
        let shown: Vec<String> = local_ipv6(list).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["::1", "2001:db8::7"]);
    }
}

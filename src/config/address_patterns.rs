//! Address patterns: who may connect (`allow_from`), and which proxies are
//! trusted (`trusted_proxies`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Serialize, Serializer};

use base::address::private_networks;
use base::error::{Error, Result};

/// A list of address patterns: `<a>.<b>.<c>.*` (contract section 2,
/// `allow_from`), and as extensions exact addresses, networks and `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPatterns(pub(crate) Vec<IpNet>);

impl AddressPatterns {
    /// Reads a list of patterns.
    ///
    /// # Errors
    /// `invalid_request` naming the first string that is not a pattern, and the
    /// accepted forms.
    pub fn parse(patterns: &[&str]) -> Result<AddressPatterns> {
        let mut networks = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            match *pattern {
                "*" => networks.extend(AddressPatterns::all().0),
                pattern => networks.push(network(pattern).ok_or_else(|| {
                    Error::invalid_request(format!(
                        "{pattern:?} is not an address pattern; it must be <a>.<b>.<c>.*, one \
                         IPv4 or IPv6 address, a network such as 10.0.0.0/8 or fd00::/8, or *"
                    ))
                })?),
            }
        }
        Ok(AddressPatterns(networks))
    }

    /// Loopback, private and link-local addresses.
    pub fn private() -> AddressPatterns {
        AddressPatterns(private_networks().collect())
    }

    /// Every address.
    pub fn all() -> AddressPatterns {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0);
        let v6 = Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0);
        AddressPatterns(vec![v4.into(), v6.into()])
    }

    /// Whether an address matches one of the patterns. An IPv4-mapped address
    /// (`::ffff:192.0.2.1`) is treated as IPv4.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Whether no address matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn network(pattern: &str) -> Option<IpNet> {
    if let Some(start) = pattern.strip_suffix(".*") {
        let address: Ipv4Addr = format!("{start}.0").parse().ok()?;
        return Ipv4Net::new(address, 24).ok().map(IpNet::V4);
    }
    if let Ok(address) = pattern.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }
    // Clients are compared in their canonical family, so a mapped network must
    // be IPv4 too or it would never match.
    match pattern.parse().ok()? {
        IpNet::V6(mapped) if mapped.prefix_len() >= 96 => match mapped.addr().to_ipv4_mapped() {
            Some(plain) => Ipv4Net::new(plain, mapped.prefix_len() - 96)
                .ok()
                .map(IpNet::V4),
            None => Some(mapped.into()),
        },
        network => Some(network),
    }
}

impl Serialize for AddressPatterns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|network| {
            if network.prefix_len() == network.max_prefix_len() {
                network.addr().to_string()
            } else {
                network.to_string()
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_they_say() {
        for (patterns, address, fits) in [
            (&["192.168.1.*"][..], "192.168.1.0", true),
            (&["192.168.1.*"], "192.168.1.255", true),
            (&["192.168.1.*"], "192.168.2.1", false),
            (&["192.168.1.*"], "::ffff:192.168.1.7", true),
            (&["192.168.1.*"], "::ffff:192.168.2.7", false),
            (&["192.168.1.7"], "192.168.1.7", true),
            (&["192.168.1.7"], "192.168.1.8", false),
            (&["::ffff:192.168.1.7"], "192.168.1.7", true),
            (&["::ffff:192.168.1.0/120"], "192.168.1.9", true),
            (&["::ffff:192.168.1.0/120"], "192.168.2.9", false),
            (&["10.0.0.0/8"], "10.255.0.1", true),
            (&["10.0.0.0/8"], "11.0.0.1", false),
            (&["10.0.0.9/8"], "10.1.2.3", true),
            (&["10.0.0.1/32"], "10.0.0.2", false),
            (&["0.0.0.0/0"], "203.0.113.9", true),
            (&["0.0.0.0/0"], "2001:db8::1", false),
            (&["fd00::/8"], "fd12::1", true),
            (&["fd00::/8"], "fe80::1", false),
            (&["2001:db8::1"], "2001:db8::1", true),
            (&["2001:db8::1"], "2001:db8::2", false),
            (&["*"], "203.0.113.9", true),
            (&["*"], "2001:db8::1", true),
            (&["*"], "::ffff:203.0.113.9", true),
            (&["10.0.0.1", "10.0.0.3"], "10.0.0.3", true),
            (&[], "127.0.0.1", false),
        ] {
            let parsed = AddressPatterns::parse(patterns).unwrap();
            let address = address.parse().unwrap();
            assert_eq!(parsed.allows(address), fits, "{patterns:?} {address}");
        }
    }

    #[test]
    fn private_is_the_household() {
        for (address, inside) in [
            ("127.8.8.8", true),
            ("::1", true),
            ("10.1.2.3", true),
            ("172.31.255.255", true),
            ("192.168.99.1", true),
            ("169.254.1.1", true),
            ("fe80::1", true),
            ("fd00::1", true),
            ("::ffff:192.168.1.1", true),
            ("172.32.0.1", false),
            ("::ffff:8.8.8.8", false),
            ("2001:db8::1", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
        ] {
            let allowed = AddressPatterns::private().allows(address.parse().unwrap());
            assert_eq!(allowed, inside, "{address}");
        }
        assert!(!AddressPatterns::default().allows("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        let bad = "*.* 192.168.* 192.*.1.* 192.168.1.*.* 192.168.1.1* 192.168.1.256 10.0.0.0/33 \
                   10.0.0.0/ 10.0.0.0/+8 10.0.0.0/-1 fd00::/129 fe80::1%eth0 localhost fd00::*";
        for bad in bad.split(' ').chain(["", " 10.0.0.1"]) {
            let error = AddressPatterns::parse(&["10.0.0.1", bad]).unwrap_err();
            assert!(
                error.message().starts_with(&format!("{bad:?} is not")),
                "{error}"
            );
            assert!(error.message().contains("<a>.<b>.<c>.*"), "{error}");
        }
    }
}

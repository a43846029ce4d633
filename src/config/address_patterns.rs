//! Address patterns: who may connect (`allow_from`), and which proxies are
//! believed (`trusted_proxies`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Serialize, Serializer};

use base::error::{Error, Result};

/// A list of address patterns: `<a>.<b>.<c>.*` (contract section 2,
/// `allow_from`), and as extensions exact addresses, CIDR and `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPatterns(pub(crate) Vec<AddressPattern>);

/// One pattern: an address and how many of its leading bits must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

/// Loopback, private (RFC 1918, RFC 4193) and link-local (RFC 3927, RFC 4291)
/// addresses: a household and nobody else.
const PRIVATE: [&str; 8] = [
    "127.0.0.0/8",
    "::1",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
    "169.254.0.0/16",
    "fe80::/10",
];

impl AddressPatterns {
    /// Reads a list of patterns.
    ///
    /// # Errors
    /// `invalid_request` naming the first pattern that is none, and the
    /// accepted forms.
    pub fn parse(patterns: &[&str]) -> Result<AddressPatterns> {
        let mut parsed = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            AddressPattern::parse_into(pattern, &mut parsed)?;
        }
        Ok(AddressPatterns(parsed))
    }

    /// Loopback, private and link-local addresses.
    pub fn private() -> AddressPatterns {
        AddressPatterns::parse(&PRIVATE).expect("the private addresses are patterns")
    }

    /// Every address.
    pub fn all() -> AddressPatterns {
        AddressPatterns::parse(&["*"]).expect("the star is a pattern")
    }

    /// No address at all.
    pub fn none() -> AddressPatterns {
        AddressPatterns(Vec::new())
    }

    /// Whether an address fits one of the patterns. An IPv4 address that came
    /// in the clothes of IPv6 (`::ffff:192.0.2.1`) is treated as IPv4.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|pattern| pattern.fits(address))
    }

    /// Whether no address fits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl AddressPattern {
    /// `*` stands for both families, which takes two patterns.
    fn parse_into(text: &str, parsed: &mut Vec<AddressPattern>) -> Result<()> {
        let (v4, v6) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
        if text == "*" {
            let everyone = [IpAddr::from(v4), IpAddr::from(v6)];
            parsed.extend(everyone.map(|address| AddressPattern { address, prefix: 0 }));
            return Ok(());
        }
        parsed.push(AddressPattern::parse(text).ok_or_else(|| {
            Error::invalid_request(format!(
                "{text:?} is not an address pattern; it must be <a>.<b>.<c>.*, one IPv4 or IPv6 \
                 address, a network such as 10.0.0.0/8 or fd00::/8, or *"
            ))
        })?);
        Ok(())
    }

    fn parse(text: &str) -> Option<AddressPattern> {
        if let Some(network) = text.strip_suffix(".*") {
            return Some(AddressPattern {
                address: format!("{network}.0").parse::<Ipv4Addr>().ok()?.into(),
                prefix: 24,
            });
        }
        let Some((address, prefix)) = text.split_once('/') else {
            let address = text.parse::<IpAddr>().ok()?.to_canonical();
            let prefix = bits(address);
            return Some(AddressPattern { address, prefix });
        };
        let address: IpAddr = address.parse().ok()?;
        let digits = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: u8 = prefix.parse().ok().filter(|_| digits)?;
        if prefix > bits(address) {
            return None;
        }
        // Peers are compared in their canonical family, so a mapped network
        // must be IPv4 too or it would never fit.
        match (address.to_canonical(), address) {
            (IpAddr::V4(plain), IpAddr::V6(_)) if prefix >= 96 => Some(AddressPattern {
                address: plain.into(),
                prefix: prefix - 96,
            }),
            _ => Some(AddressPattern { address, prefix }),
        }
    }

    fn fits(&self, address: IpAddr) -> bool {
        let differing = match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (u32::from(ours) ^ u32::from(theirs)).leading_zeros()
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                (u128::from(ours) ^ u128::from(theirs)).leading_zeros()
            }
            _ => return false,
        };
        differing >= u32::from(self.prefix)
    }
}

/// How many bits an address of this family has.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == bits(self.address) {
            self.address.fmt(f)
        } else {
            write!(f, "{}/{}", self.address, self.prefix)
        }
    }
}

impl Serialize for AddressPatterns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(AddressPattern::to_string))
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
            ("127.0.0.1", true),
            ("127.8.8.8", true),
            ("::1", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("172.31.255.255", true),
            ("172.32.0.1", false),
            ("192.168.99.1", true),
            ("169.254.1.1", true),
            ("fe80::1", true),
            ("fd00::1", true),
            ("::ffff:192.168.1.1", true),
            ("::ffff:8.8.8.8", false),
            ("8.8.8.8", false),
            ("2001:db8::1", false),
            ("100.64.0.1", false),
        ] {
            let allowed = AddressPatterns::private().allows(address.parse().unwrap());
            assert_eq!(allowed, inside, "{address}");
        }
        assert!(!AddressPatterns::none().allows("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        for bad in [
            "",
            "*.*",
            "192.168.*",
            "192.*.1.*",
            "192.168.1.*.*",
            "192.168.1.1*",
            "192.168.1.256",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "fd00::/129",
            "fe80::1%eth0",
            "localhost",
            " 10.0.0.1",
            "fd00::*",
        ] {
            let error = AddressPatterns::parse(&["10.0.0.1", bad]).unwrap_err();
            assert!(
                error.message().starts_with(&format!("{bad:?} is not")),
                "{error}"
            );
            assert!(error.message().contains("<a>.<b>.<c>.*"), "{error}");
        }
    }
}

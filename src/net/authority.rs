//! The host and port of a `Host` header or of an origin.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `host[:port]` (RFC 3986 section 3.2, without user information). Two of them
/// are equal when they name the same host, in whatever case and with or
/// without the root's trailing dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Whom it names.
    pub host: Host,
    /// The port, if it is given.
    pub port: Option<u16>,
}

/// A host by address or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// By address.
    Address(IpAddr),
    /// By name, in lower case, without a trailing dot.
    Name(String),
}

impl Authority {
    /// Reads `host`, `host:port`, `[v6]` or `[v6]:port`. Anything that a
    /// browser would not send is `None`.
    pub fn parse(text: &str) -> Option<Authority> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (Host::Address(IpAddr::V6(address)), port)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                (Host::parse(&text[..end])?, &text[end..])
            }
        };
        let port = match port.strip_prefix(':') {
            // Digits only: `parse` alone would take a plus sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            None if port.is_empty() => None,
            _ => return None,
        };
        Some(Authority { host, port })
    }
}

impl Host {
    /// Reads an IPv4 address or a name.
    fn parse(text: &str) -> Option<Host> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Host::Address(IpAddr::V4(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let valid = !name.is_empty()
            && name.len() <= 253
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        valid.then(|| Host::Name(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Host::Address(address) => address.fmt(f)?,
            Host::Name(name) => f.write_str(name)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_sends_is_read_and_written_back() {
        for (text, canonical) in [
            ("192.168.1.5", Some("192.168.1.5")),
            ("192.168.1.5:5000", Some("192.168.1.5:5000")),
            ("[::1]:5000", Some("[::1]:5000")),
            ("[FD00:0::1]", Some("[fd00::1]")),
            ("Hearth.LOCAL.", Some("hearth.local")),
            ("hearth.local.:80", Some("hearth.local:80")),
            ("", None),
            (".", None),
            (":5000", None),
            ("host:", None),
            ("host:+5", None),
            ("host:65536", None),
            ("host:5:6", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]5000", None),
            ("[hearth.local]", None),
            ("evil.example/.local", None),
            ("user@hearth.local", None),
            ("evil.example\\.local", None),
            ("hearth local", None),
        ] {
            assert_eq!(
                Authority::parse(text).map(|authority| authority.to_string()),
                canonical.map(str::to_owned),
                "{text:?}"
            );
        }
    }
}

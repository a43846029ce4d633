//! The parts of a URL that the configuration cares about (RFC 3986, section 3).

/// A URL taken apart; slices of its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebAddress<'t> {
    pub scheme: &'t str,
    /// `user:password`, where given.
    pub user: Option<&'t str>,
    /// Host name or address; an IPv6 address without its brackets.
    pub host: &'t str,
    pub port: Option<u16>,
    /// Path, query and fragment.
    pub rest: &'t str,
}

impl<'t> WebAddress<'t> {
    /// Takes an absolute URL apart; none when it has no scheme or host, a
    /// malformed port, or a character that must be escaped.
    pub fn parse(text: &'t str) -> Option<WebAddress<'t>> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let (scheme, after) = text.split_once("://")?;
        let (authority, rest) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
        let (user, host_and_port) = match authority.rsplit_once('@') {
            Some((user, after)) => (Some(user), after),
            None => (None, authority),
        };
        let (host, port) = if let Some(inside) = host_and_port.strip_prefix('[') {
            let (host, after) = inside.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            match after {
                "" => (host, None),
                _ => (host, Some(after.strip_prefix(':')?)),
            }
        } else {
            match host_and_port.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (host_and_port, None),
            }
        };
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
        if host.is_empty() || !host.bytes().all(named) {
            return None;
        }
        Some(WebAddress {
            scheme,
            user,
            host,
            port: match port {
                Some(port) => Some(port.parse().ok().filter(|port| *port > 0)?),
                None => None,
            },
            rest,
        })
    }

    /// `scheme://host:port`.
    pub fn origin(&self) -> String {
        let bracket = self.host.contains(':');
        let mut text = format!("{}://", self.scheme);
        text.push_str(if bracket { "[" } else { "" });
        text.push_str(&self.host.to_ascii_lowercase());
        text.push_str(if bracket { "]" } else { "" });
        if let Some(port) = self.port {
            text.push_str(&format!(":{port}"));
        }
        text
    }

    /// Whether it leads no further than the local network, as far as its text
    /// tells: an address that is not global, or a name that only a household knows.
    pub fn is_local(&self) -> bool {
        let host = self.host.to_ascii_lowercase();
        match host.parse() {
            Ok(address) => super::AddressPatterns::private().allows(address),
            Err(_) => {
                !host.contains('.')
                    || [".local", ".lan", ".home.arpa", ".localhost", ".internal"]
                        .iter()
                        .any(|end| host.ends_with(end))
            }
        }
    }
}

/// A URL without what may be secret in it: user and password, and the query.
pub(super) fn masked(text: &str) -> String {
    let Some(address) = WebAddress::parse(text) else {
        return MASK.to_owned();
    };
    let user = if address.user.is_some() { "***@" } else { "" };
    let origin = address.origin().replacen("://", &format!("://{user}"), 1);
    match address.rest.find(['?', '#']) {
        Some(end) => format!("{origin}{}?{MASK}", &address.rest[..end]),
        None => format!("{origin}{}", address.rest),
    }
}

/// What is shown in the place of a secret.
pub(super) const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_parts() {
        let address = WebAddress::parse("https://me:pw@Example.org:8443/a?b").unwrap();
        assert_eq!(
            (address.user, address.host, address.port, address.rest),
            (Some("me:pw"), "Example.org", Some(8443), "/a?b")
        );
        let address = WebAddress::parse("http://[fd00::1]:80").unwrap();
        assert_eq!(address.origin(), "http://[fd00::1]:80");
        assert_eq!(
            WebAddress::parse("wss://relay.example/ws").unwrap().rest,
            "/ws"
        );
        for bad in [
            "",
            "x",
            "http://",
            "http:///a",
            "http://a:b",
            "http://a:0",
            "http://a b",
            "//a",
            "http://[x]/",
            "http://ä.example",
            "http://{host}/",
        ] {
            assert_eq!(WebAddress::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_may_be_secret_is_masked() {
        for (text, shown) in [
            ("http://a/v1", "http://a/v1"),
            ("https://me:pw@a/v1?key=1", "https://***@a/v1?***"),
            ("nonsense me:pw@", "***"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn a_household_is_local() {
        for (text, local) in [
            ("http://localhost:1/", true),
            ("http://192.168.1.4/", true),
            ("http://[fd00::1]/", true),
            ("http://nas.local", true),
            ("http://nas", true),
            ("http://example.org", false),
            ("http://8.8.8.8", false),
        ] {
            assert_eq!(WebAddress::parse(text).unwrap().is_local(), local, "{text}");
        }
    }
}

//! Where a WebSocket is.

use std::fmt;

use tungstenite::http::Uri;

use super::error::DialError;

/// A WebSocket's address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Whether it is reached over TLS (`wss://`).
    pub secure: bool,
    /// A name or an IP address, IPv6 without its brackets.
    pub host: String,
    /// As given, or the scheme's own.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Address {
    /// Reads a `ws://` or `wss://` URL.
    pub fn parse(url: &str) -> Result<Address, DialError> {
        let malformed = || DialError::Malformed(without_query(url).to_owned());
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        let secure = match uri.scheme_str() {
            Some("wss") => true,
            Some("ws") => false,
            _ => return Err(malformed()),
        };
        let authority = uri.authority().ok_or_else(malformed)?;
        let host = authority.host().trim_matches(['[', ']']);
        let is_bare = authority.as_str() == authority.host();
        // A port that is none is passed over in silence by the parser.
        let has_bad_port = !is_bare && authority.port_u16().is_none();
        if host.is_empty() || has_bad_port || authority.as_str().contains('@') {
            return Err(malformed());
        }
        let port = authority
            .port()
            .map_or(usual_port(secure), |port| port.as_u16());
        Ok(Address {
            secure,
            host: host.to_owned(),
            port,
            path: match uri.path_and_query().map_or("/", |path| path.as_str()) {
                path if path.starts_with('/') => path.to_owned(),
                query => format!("/{query}"),
            },
        })
    }

    /// The whole URL.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin("ws"), self.path)
    }

    /// The URL of another path of the same server, for plain HTTP requests.
    pub fn http(&self, path: &str) -> String {
        format!("{}{path}", self.origin("http"))
    }

    /// The URL without its query, as it may be shown.
    pub fn shown(&self) -> String {
        without_query(&self.url()).to_owned()
    }

    /// The same address with one more parameter in its query. Neither name nor
    /// value may hold what would have to be escaped.
    pub fn with_parameter(&self, name: &str, value: &str) -> Address {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        Address {
            path: format!("{}{separator}{name}={value}", self.path),
            ..self.clone()
        }
    }

    /// A parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.path.split_once('?')?;
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Scheme, host and, unless it is the scheme's own, port.
    fn origin(&self, scheme: &str) -> String {
        let secure = if self.secure { "s" } else { "" };
        let authority = self.to_string();
        let usual = format!(":{}", usual_port(self.secure));
        let authority = match self.port == usual_port(self.secure) {
            true => authority.trim_end_matches(&usual),
            false => &authority,
        };
        format!("{scheme}{secure}://{authority}")
    }
}

/// Host and port as a URL has them (RFC 3986, section 3.2.2); `host` is a name
/// or an IP address, IPv6 without its brackets.
pub fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

fn usual_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// Host and port.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&authority(&self.host, self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_parts() {
        for (url, whole) in [
            ("ws://h/ws", Some("ws://h/ws")),
            ("wss://h/ws", Some("wss://h/ws")),
            ("wss://h:81", Some("wss://h:81/")),
            ("ws://h?machine_id=m", Some("ws://h/?machine_id=m")),
            ("ws://[2001:db8::1]:81/ws", Some("ws://[2001:db8::1]:81/ws")),
            ("http://h/ws", None),
            ("h/ws", None),
            ("ws://user@h/ws", None),
            ("ws:///ws", None),
            ("ws://h:port/ws", None),
            ("ws://h/\r\n", None),
        ] {
            let parsed = Address::parse(url).ok().map(|address| address.url());
            assert_eq!(parsed.as_deref(), whole, "{url}");
        }
    }

    #[test]
    fn parameters_are_added_and_found() {
        let address = Address::parse("wss://h/ws?a=1").unwrap();
        let named = address.with_parameter("machine_id", "m");
        assert_eq!(named.url(), "wss://h/ws?a=1&machine_id=m");
        assert_eq!(named.parameter("machine_id"), Some("m"));
        assert_eq!(named.parameter("machine"), None);
        assert_eq!(named.shown(), "wss://h/ws");
        assert_eq!(named.http("/register"), "https://h/register");
    }
}

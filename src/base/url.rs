//! URLs of HTTP and WebSocket servers (RFC 3986): the one parser for what people,
//! settings, headers and pages contain. By hand, because the crate `http` accepts
//! ports that are not numbers and knows neither redaction nor default ports.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::address::{AddressScope, is_local_name};

/// What is shown in the place of a secret.
pub const MASK: &str = "***";

/// An absolute URL, taken apart; the fragment is dropped.
///
/// Its `Display` and `Debug` leave out what may be secret: user and query.
/// [`Url::text`] is the whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// In lower case.
    pub scheme: String,
    /// `user:password`, where given.
    pub user: Option<String>,
    /// Host, and port where given.
    pub authority: Authority,
    /// Empty, or begins with a slash.
    pub path: String,
    /// Without the question mark.
    pub query: Option<String>,
}

/// Why a text is not a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// A space, a control character, or one that is not ASCII.
    Characters,
    /// No `scheme://` at its beginning.
    Scheme,
    /// No host, or none that could be; or a malformed port.
    Authority,
}

impl Url {
    /// Reads an absolute URL, whatever its scheme.
    ///
    /// # Errors
    /// The first part that is missing or malformed.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Characters);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
            return Err(UrlError::Scheme);
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query.to_owned())),
            None => (rest, None),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user.to_owned()), authority),
            None => (None, authority),
        };
        Ok(Url {
            scheme: scheme.to_ascii_lowercase(),
            user,
            authority: Authority::parse(authority)
                .filter(|authority| authority.port != Some(0))
                .ok_or(UrlError::Authority)?,
            path: path.to_owned(),
            query,
        })
    }

    /// Whether it is reached over TLS (`https` and `wss`).
    pub fn is_secure(&self) -> bool {
        matches!(self.scheme.as_str(), "https" | "wss")
    }

    /// The port, or the scheme's default.
    pub fn port(&self) -> u16 {
        let default = if self.is_secure() { 443 } else { 80 };
        self.authority.port.unwrap_or(default)
    }

    /// `scheme://host`, with the port where it is given.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// What a request asks for: the path, at least `/`, and the query.
    pub fn path_and_query(&self) -> String {
        let path = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        match &self.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        }
    }

    /// The whole URL, with what may be secret.
    pub fn text(&self) -> String {
        self.with_parts(self.user.as_deref(), self.query.as_deref())
    }

    /// The URL of another path of the same server over HTTP: `https` for `wss`.
    pub fn http(&self, path: &str) -> Url {
        Url {
            scheme: if self.is_secure() { "https" } else { "http" }.to_owned(),
            path: path.to_owned(),
            query: None,
            ..self.clone()
        }
    }

    /// The same URL with one more parameter in its query. Neither name nor value
    /// may hold what would have to be escaped.
    pub fn with_parameter(&self, name: &str, value: &str) -> Url {
        let before = self.query.as_ref().map(|query| format!("{query}&"));
        Url {
            query: Some(format!("{}{name}={value}", before.unwrap_or_default())),
            ..self.clone()
        }
    }

    /// A parameter of the query, as it is written there.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .as_ref()?
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    fn with_parts(&self, user: Option<&str>, query: Option<&str>) -> String {
        let (user, at) = user.map_or(("", ""), |user| (user, "@"));
        let (mark, query) = query.map_or(("", ""), |query| ("?", query));
        let (scheme, authority, path) = (&self.scheme, &self.authority, &self.path);
        format!("{scheme}://{user}{at}{authority}{path}{mark}{query}")
    }
}

/// With [`MASK`] in place of user and query.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|_| MASK);
        let query = self.query.as_ref().map(|_| MASK);
        f.write_str(&self.with_parts(user, query))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text with all bytes but those that are kept written as in `%20` (RFC 3986, section 2.1).
pub fn percent_encode(text: impl AsRef<[u8]>, is_kept: impl Fn(u8) -> bool) -> String {
    let bytes = text.as_ref();
    let mut encoded = String::with_capacity(bytes.len());
    for &byte in bytes {
        if is_kept(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// A URL as it may be shown: without user and query, and what is not a URL as
/// [`MASK`] alone.
pub fn masked(text: &str) -> String {
    Url::parse(text).map_or_else(|_| MASK.to_owned(), |url| url.to_string())
}

/// A URL as it may be shown where its path may be secret too: chat services put
/// their secret into the path of a webhook's URL.
pub fn host_only(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.path.len() > 1 || url.query.is_some() => format!("{}/{MASK}", url.origin()),
        Ok(url) => url.origin(),
        Err(_) => MASK.to_owned(),
    }
}

/// Whether what is sent to a URL crosses the internet unencrypted.
pub fn is_exposed(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| !url.is_secure() && !url.authority.host.is_local())
}

/// `host[:port]`, as in a URL or a `Host` header. Two of them are equal when they
/// name the same host, in whatever case and with or without the root's trailing
/// dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, if it is given.
    pub port: Option<u16>,
}

/// A host by address or by name. Its text is without brackets, for a resolver.
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
    /// Reads an address, without brackets, or a name.
    pub fn parse(text: &str) -> Option<Host> {
        if let Ok(address) = text.parse() {
            return Some(Host::Address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let valid = !name.is_empty()
            && name.len() <= 253
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        valid.then(|| Host::Name(name.to_ascii_lowercase()))
    }

    /// Whether it is this machine or on a private network, as far as its text
    /// tells.
    pub fn is_local(&self) -> bool {
        match self {
            Host::Address(address) => AddressScope::of(*address).is_local(),
            Host::Name(name) => is_local_name(name),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            host => host.fmt(f)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(address) => address.fmt(f),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlError::Characters => "it holds a space or a character that is not ASCII",
            UrlError::Scheme => "it does not begin with a scheme such as https://",
            UrlError::Authority => "its host or port is missing or malformed",
        })
    }
}

impl std::error::Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_parts() {
        let url = Url::parse("HTTPS://me:pw@Example.org:8443/a?b=1&c#d").unwrap();
        assert_eq!(
            (url.scheme.as_str(), url.user.as_deref()),
            ("https", Some("me:pw"))
        );
        assert_eq!(url.origin(), "https://example.org:8443");
        assert_eq!(
            (url.path.as_str(), url.query.as_deref()),
            ("/a", Some("b=1&c"))
        );
        assert_eq!((url.is_secure(), url.port()), (true, 8443));
        assert_eq!(url.text(), "https://me:pw@example.org:8443/a?b=1&c");
        assert_eq!(
            format!("{url} {url:?}"),
            "https://***@example.org:8443/a?*** https://***@example.org:8443/a?***"
        );
        for (text, host, port, asked) in [
            ("http://[FD00::1]", "fd00::1", 80, "/"),
            ("ws://h:81/ws", "h", 81, "/ws"),
            ("wss://h?machine_id=m", "h", 443, "/?machine_id=m"),
            ("http://10.0.0.1/a/b", "10.0.0.1", 80, "/a/b"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(url.text(), text.to_ascii_lowercase());
            assert_eq!(url.authority.host.to_string(), host);
            assert_eq!((url.port(), url.path_and_query().as_str()), (port, asked));
        }
    }

    #[test]
    fn what_is_not_a_url_is_refused() {
        for (text, error) in [
            ("", UrlError::Scheme),
            ("x", UrlError::Scheme),
            ("h/ws", UrlError::Scheme),
            ("//a", UrlError::Scheme),
            ("/x?u=http://a", UrlError::Scheme),
            ("http://", UrlError::Authority),
            ("http:///a", UrlError::Authority),
            ("http://a:b", UrlError::Authority),
            ("http://a:0", UrlError::Authority),
            ("http://a:", UrlError::Authority),
            ("http://a:65536", UrlError::Authority),
            ("http://[x]/", UrlError::Authority),
            ("http://[::1", UrlError::Authority),
            ("http://::1/", UrlError::Authority),
            ("http://{host}/", UrlError::Authority),
            ("http://a b", UrlError::Characters),
            ("ws://h/\r\n", UrlError::Characters),
            ("http://ä.example", UrlError::Characters),
        ] {
            assert_eq!(Url::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn what_may_be_secret_is_masked() {
        for (text, shown) in [
            ("http://a/v1", "http://a/v1"),
            ("https://me:pw@a/v1?key=1", "https://***@a/v1?***"),
            ("postgres://me:pw@db/hearth", "postgres://***@db/hearth"),
            ("nonsense me:pw@", "***"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn parameters_are_added_and_found() {
        let url = Url::parse("wss://h/ws?a=1").unwrap();
        let named = url.with_parameter("machine_id", "m");
        assert_eq!(named.text(), "wss://h/ws?a=1&machine_id=m");
        assert_eq!(named.parameter("machine_id"), Some("m"));
        assert_eq!(named.parameter("machine"), None);
        assert_eq!(named.http("/register").text(), "https://h/register");
        let first = Url::parse("ws://h").unwrap().with_parameter("a", "1");
        assert_eq!(first.text(), "ws://h?a=1");
    }

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
            let url = Url::parse(text).unwrap();
            assert_eq!(url.authority.host.is_local(), local, "{text}");
        }
    }
}

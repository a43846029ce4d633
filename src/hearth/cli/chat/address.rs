//! Where a server is: `ws://HOST:PORT/ws` or `wss://`, or less of it.

use std::fmt;
use std::io::{self, ErrorKind};

use crate::cli::context::Failure;
use config::DEFAULT_PORT;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address, IPv6 without its brackets.
    pub host: String,
    pub port: u16,
    /// Whether it is reached with TLS.
    pub secure: bool,
    /// Path and query of the WebSocket.
    path: String,
}

impl Address {
    /// A server at its usual path, with TLS or without.
    pub fn new(host: impl Into<String>, port: u16, secure: bool) -> Address {
        Address {
            host: host.into(),
            port,
            secure,
            path: "/ws".to_owned(),
        }
    }

    /// Reads what a person wrote: a ws(s) or http(s) URL, or a host with or without
    /// a port. A missing path is `/ws`.
    pub fn parse(text: &str) -> Result<Address, Failure> {
        let wrong = || {
            Failure::failed(format!(
                "{text:?} is no address of a server; it looks like ws://HOST:PORT/ws"
            ))
        };
        let (rest, default_port, secure) = match text.split_once("://") {
            None => (text, DEFAULT_PORT, false),
            Some(("ws" | "http", rest)) => (rest, 80, false),
            Some(("wss" | "https", rest)) => (rest, 443, true),
            Some(_) => return Err(wrong()),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']').ok_or_else(wrong)?;
                match port.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if port.is_empty() => (host, None),
                    None => return Err(wrong()),
                }
            }
            None => match authority.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => return Err(wrong()),
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None => default_port,
        };
        let printable = text.chars().all(|character| character.is_ascii_graphic());
        if host.is_empty() || host.contains('@') || !printable {
            return Err(wrong());
        }
        let path = match path {
            "" | "/" => "/ws".to_owned(),
            path if path.starts_with('?') => format!("/ws{path}"),
            path => path.to_owned(),
        };
        Ok(Address {
            host: host.to_owned(),
            port,
            secure,
            path,
        })
    }

    /// The URL of the WebSocket.
    pub fn websocket(&self) -> String {
        let scheme = if self.secure { "wss" } else { "ws" };
        format!("{scheme}://{self}{}", self.path)
    }

    /// The URL of POST and DELETE /auth.
    pub fn auth(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{self}/auth")
    }

    /// The machine that is meant, when the server is a relay.
    pub fn machine_id(&self) -> Option<&str> {
        let (_, query) = self.path.split_once('?')?;
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix("machine_id="))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Why a server could not be reached, and what to do if it is not trusted.
pub fn unreachable(address: &Address, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::TimedOut => Failure::failed(format!(
            "{address} cannot be reached: it did not answer in time"
        )),
        ErrorKind::InvalidData if address.secure => Failure::failed(format!(
            "{address} cannot be trusted: {error}; if the certificate is your own, name its file, \
             or that of its authority, with --ca-file"
        )),
        _ => Failure::failed(format!("{address} cannot be reached: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_out_what_is_usual() {
        for (text, url) in [
            ("ws://pi.local:5000/ws", Some("ws://pi.local:5000/ws")),
            ("ws://pi.local/ws", Some("ws://pi.local:80/ws")),
            ("http://pi.local:5000", Some("ws://pi.local:5000/ws")),
            ("http://pi.local:5000/", Some("ws://pi.local:5000/ws")),
            ("pi.local", Some("ws://pi.local:5000/ws")),
            ("pi.local:81", Some("ws://pi.local:81/ws")),
            (
                "192.0.2.1:81/hearth/ws",
                Some("ws://192.0.2.1:81/hearth/ws"),
            ),
            ("ws://[2001:db8::1]:81/ws", Some("ws://[2001:db8::1]:81/ws")),
            ("[::1]", Some("ws://[::1]:5000/ws")),
            (
                "ws://relay:81/ws?machine_id=m",
                Some("ws://relay:81/ws?machine_id=m"),
            ),
            (
                "ws://relay:81?machine_id=m",
                Some("ws://relay:81/ws?machine_id=m"),
            ),
            ("::1", None),
            ("ws://", None),
            ("ws://:5000", None),
            ("ws://host:port", None),
            ("ws://user@host", None),
            ("ws://host\r\nX: y/", None),
            ("ftp://host", None),
            ("[::1", None),
            ("wss://pi.local", Some("wss://pi.local:443/ws")),
            ("https://pi.local:5000", Some("wss://pi.local:5000/ws")),
            ("wss://", None),
        ] {
            let parsed = Address::parse(text).ok().map(|address| address.websocket());
            assert_eq!(parsed.as_deref(), url, "{text:?}");
        }
    }
}

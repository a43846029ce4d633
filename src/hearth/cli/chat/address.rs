//! The server's URL, as far as a person has to write it.

use std::io::{self, ErrorKind};

use crate::cli::context::CliError;
use base::url::{Authority, Url};
use config::DEFAULT_PORT;

/// The WebSocket URL of a server that listens at `authority`.
pub fn websocket_url(authority: Authority, is_secure: bool) -> Url {
    Url {
        scheme: if is_secure { "wss" } else { "ws" }.to_owned(),
        user: None,
        authority,
        path: "/ws".to_owned(),
        query: None,
    }
}

/// Reads a ws(s) or http(s) URL, or a host with or without a port, as a WebSocket
/// URL with its port. What ends with `/` is the address of the page, and `ws` is below it.
///
/// # Errors
///
/// It is none of them.
pub fn parse(text: &str) -> Result<Url, CliError> {
    let wrong = || {
        CliError::failed(format!(
            "{text:?} is not the address of a server, such as ws://HOST:PORT/ws"
        ))
    };
    let url = if text.contains("://") {
        Url::parse(text)
    } else {
        Url::parse(&format!("ws://{text}")).map(|mut url| {
            url.authority.port.get_or_insert(DEFAULT_PORT);
            url
        })
    };
    let mut url = url.map_err(|_| wrong())?;
    let is_known = matches!(url.scheme.as_str(), "ws" | "wss" | "http" | "https");
    if !is_known || url.user.is_some() {
        return Err(wrong());
    }
    url.authority.port = Some(url.port());
    if url.path.is_empty() || url.path.ends_with('/') {
        url.path = format!("{}/ws", url.path.trim_end_matches('/'));
    }
    Ok(Url {
        scheme: if url.is_secure() { "wss" } else { "ws" }.to_owned(),
        ..url
    })
}

/// Why a server could not be reached, and what to do if it is not trusted.
pub fn unreachable(url: &Url, error: &io::Error) -> CliError {
    let server = &url.authority;
    match error.kind() {
        ErrorKind::ConnectionRefused => not_running(url),
        ErrorKind::TimedOut => CliError::failed(format!(
            "{server} cannot be reached: it did not answer in time"
        )),
        ErrorKind::InvalidData if url.is_secure() => untrusted(url, &error.to_string()),
        _ => CliError::failed(format!("{server} cannot be reached: {error}")),
    }
}

/// Nothing listens at the server's address.
pub fn not_running(url: &Url) -> CliError {
    CliError::failed(format!(
        "no server answers at {}: start it with `hearth serve`",
        url.authority
    ))
}

/// The server's certificate is not trusted.
pub fn untrusted(url: &Url, reason: &str) -> CliError {
    CliError::failed(format!(
        "{} cannot be trusted: {reason}; if the certificate is your own, give its file, or that \
         of its authority, with --ca-file",
        url.authority
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn usual_parts_of_an_address_may_be_omitted() {
        let table = "
            ws://pi.local:5000/ws         | ws://pi.local:5000/ws
            ws://pi.local/ws              | ws://pi.local:80/ws
            http://pi.local:5000          | ws://pi.local:5000/ws
            http://pi.local:5000/         | ws://pi.local:5000/ws
            pi.local                      | ws://pi.local:5000/ws
            pi.local:81                   | ws://pi.local:81/ws
            192.0.2.1:81/hearth/ws        | ws://192.0.2.1:81/hearth/ws
            https://pi.local/hearth/      | wss://pi.local:443/hearth/ws
            ws://[2001:db8::1]:81/ws      | ws://[2001:db8::1]:81/ws
            [::1]                         | ws://[::1]:5000/ws
            ws://relay:81/ws?machine_id=m | ws://relay:81/ws?machine_id=m
            ws://relay:81?machine_id=m    | ws://relay:81/ws?machine_id=m
            wss://pi.local                | wss://pi.local:443/ws
            https://pi.local:5000         | wss://pi.local:5000/ws
            ::1                           | -
            ws://                         | -
            ws://:5000                    | -
            ws://host:port                | -
            ws://user@host                | -
            ws://host\\r\\nX: y/            | -
            ftp://host                    | -
            [::1                          | -
            wss://                        | -
        ";
        for [text, url] in rows(table) {
            let text = &text.replace("\\r\\n", "\r\n");
            let url = Some(url).filter(|url| *url != "-");
            let parsed = parse(text).ok().map(|url| url.text());
            assert_eq!(parsed.as_deref(), url, "{text:?}");
        }
    }
}

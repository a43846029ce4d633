//! Checks a WebSocket upgrade (RFC 6455 section 4.2).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tungstenite::handshake::derive_accept_key;

use crate::http::checks::upgrade_required;
use crate::http::head::{Framing, ParsedHead};
use crate::http::message::{Head, Response};
use base::error::Error;

/// Where WebSockets are (contract section 4.1).
pub const PATH: &str = "/ws";

/// The subprotocol that our own page names, because a browser that names any
/// wants one of them confirmed (protocol section 6).
const SUBPROTOCOL: &str = "hearth.v1";

/// Whether a request asks for a WebSocket. Other upgrades (`h2c`) are ignored,
/// as RFC 9110 section 7.8 permits.
pub fn is_upgrade(head: &Head) -> bool {
    head.path == PATH && has_token(head, "upgrade", "websocket")
}

/// The `101` response to a valid handshake, or why there is none: 426 for
/// another version of the protocol, else 400.
pub fn check(parsed: &ParsedHead) -> Result<Response, Response> {
    let head = &parsed.head;
    let wrong = |what: &str| Response::error(&Error::invalid_request(what));
    if head.method != "GET" || parsed.is_head || !parsed.is_current {
        return Err(wrong("a WebSocket is opened with GET and HTTP/1.1"));
    }
    if parsed.framing != Framing::Length(0) {
        return Err(wrong("a WebSocket handshake has no body"));
    }
    if !has_token(head, "connection", "upgrade") {
        return Err(wrong(
            "a WebSocket handshake has the header \"Connection: Upgrade\"",
        ));
    }
    if head.header("sec-websocket-version") != Some("13") {
        let mut response = upgrade_required();
        response.add("Sec-WebSocket-Version", "13");
        return Err(response);
    }
    let mut keys = values(head, "sec-websocket-key");
    let key = match (keys.next(), keys.next()) {
        (Some(key), None) if STANDARD.decode(key).is_ok_and(|key| key.len() == 16) => key,
        _ => {
            return Err(wrong("Sec-WebSocket-Key must be 16 bytes in base64, once"));
        }
    };
    let accept = derive_accept_key(key.as_bytes());
    let mut headers = vec![("Sec-WebSocket-Accept", Cow::Owned(accept))];
    if has_token(head, "sec-websocket-protocol", SUBPROTOCOL) {
        headers.push(("Sec-WebSocket-Protocol", Cow::Borrowed(SUBPROTOCOL)));
    }
    Ok(Response {
        headers,
        ..Response::empty(101)
    })
}

fn values<'a>(head: &'a Head, name: &'a str) -> impl Iterator<Item = &'a str> {
    head.headers
        .iter()
        .filter(move |(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

fn has_token(head: &Head, name: &str, token: &str) -> bool {
    values(head, name)
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(token))
}

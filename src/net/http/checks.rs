//! Checks that handlers share: method, media type, JSON body, bearer token.

use base::error::{Error, Result};
use base::secret::Secret;

use super::forwarded;
use super::message::{Head, Response};
use base::url::Authority;
use protocol::fields::Fields;

/// Demands one of the methods in `allowed`, which is the value of `Allow`
/// (RFC 9110 section 10.2.1): methods in capitals, separated by `, `.
///
/// # Errors
/// `invalid_request` with HTTP 405 and `Allow`.
pub fn method(head: &Head, allowed: &'static str) -> Result<(), Response> {
    method_or(head, allowed, Response::error)
}

/// [`method`] with a response of the caller's own form.
///
/// # Errors
/// `invalid_request` with HTTP 405 and `Allow`, as `refusal` makes it.
pub fn method_or(
    head: &Head,
    allowed: &'static str,
    refusal: impl FnOnce(&Error) -> Response,
) -> Result<(), Response> {
    if allowed.split(", ").any(|method| method == head.method) {
        return Ok(());
    }
    let shown: String = head.method.chars().take(32).collect();
    let error = Error::invalid_request(format!(
        "{} accepts only {}, not {shown:?}",
        head.path,
        allowed.replace(", ", " and ")
    ))
    .with_status(405);
    let mut response = refusal(&error);
    response.add("Allow", allowed);
    Err(response)
}

/// Whether a reverse proxy has passed the request on. It may then come from anywhere,
/// whatever address its connection has.
pub fn is_forwarded(head: &Head) -> bool {
    [
        "forwarded",
        "x-forwarded-for",
        forwarded::HOST,
        "x-real-ip",
        "via",
    ]
    .iter()
    .any(|name| head.header(name).is_some())
}

/// Demands `Content-Type: application/json`, with any parameters.
///
/// # Errors
/// `invalid_request` with HTTP 415.
pub fn json(head: &Head) -> Result<()> {
    let media_type = head.header("content-type").unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(
            Error::invalid_request("the request must have \"Content-Type: application/json\"")
                .with_status(415),
        )
    }
}

/// Reads a body that must be one JSON object.
///
/// # Errors
/// `invalid_request`.
pub fn object(body: &[u8]) -> Result<Fields> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Error::invalid_request("the body is not valid JSON: it is not UTF-8"))?;
    Fields::parse_as("the body", text)
}

/// The names and values of a query.
pub fn query(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    query.unwrap_or_default().split('&').map(split_pair)
}

/// Nothing is decoded: the names and values in use need no escapes.
fn split_pair(pair: &str) -> (&str, &str) {
    pair.split_once('=').unwrap_or((pair, ""))
}

/// The text without its percent-encoding; what is not a code stays.
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The token of `Authorization: Bearer <token>` (RFC 6750 section 2.1).
///
/// # Errors
/// `invalid_token` when there is none.
pub fn bearer(head: &Head) -> Result<Secret> {
    head.header("authorization")
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .filter(|token| !token.is_empty())
        .map(Secret::new)
        .ok_or_else(|| {
            Error::invalid_token("the request must have \"Authorization: Bearer <token>\"")
        })
}

/// The answer to a request of /ws that is not an upgrade to our version of the
/// WebSocket protocol (RFC 9110 section 15.5.22).
pub fn upgrade_required() -> Response {
    Response::error(
        &Error::invalid_request("/ws takes WebSocket connections of protocol version 13")
            .with_status(426),
    )
}

/// The URL of our own /ws as the caller reached us, through trusted proxies.
///
/// # Errors
/// `invalid_request` without a usable `Host`, and for a prefix that is no path.
pub fn own_address(head: &Head) -> Result<String> {
    let host = head
        .header(forwarded::HOST)
        .or_else(|| head.header("host"))
        .and_then(Authority::parse)
        .ok_or_else(|| {
            Error::invalid_request(
                "the request must have a Host header with the name or address of this server",
            )
        })?;
    let scheme = if head.peer.secure { "wss" } else { "ws" };
    let prefix = head.header(forwarded::PREFIX).unwrap_or_default();
    let prefix = prefix.trim_end_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~%".contains(&byte);
    if !(prefix.is_empty() || prefix.starts_with('/')) || !prefix.bytes().all(is_plain) {
        return Err(Error::invalid_request(
            "the proxy's X-Forwarded-Prefix must be a path, such as /hearth",
        ));
    }
    Ok(format!("{scheme}://{host}{prefix}/ws"))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::testing::head;

    #[test]
    fn names_are_decoded() {
        for (encoded, expected) in [
            ("Ada Lovelace", "Ada Lovelace"),
            ("J%C3%BCrgen", "Jürgen"),
            ("100%", "100%"),
            ("%zz%41", "%zzA"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(percent_decoded(encoded), expected);
        }
    }

    #[test]
    fn a_wrong_method_is_answered_with_the_right_ones() {
        assert!(method(&head("HEAD", "/health", &[]), "GET, HEAD").is_ok());
        for wrong in ["POST", "get", "GET, HEAD", ""] {
            let response = method(&head(wrong, "/health", &[]), "GET, HEAD").unwrap_err();
            assert_eq!(response.status, 405, "{wrong:?}");
            assert!(
                response
                    .headers
                    .contains(&("Allow", Cow::Borrowed("GET, HEAD")))
            );
        }
    }

    #[test]
    fn json_may_have_parameters() {
        for (media_type, good) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json ;charset=utf-8", true),
            ("application/jsonp", false),
            ("text/plain", false),
            ("text/plain, application/json", false),
            ("application/x-www-form-urlencoded", false),
            ("", false),
        ] {
            let head = head("POST", "/auth", &[("content-type", media_type)]);
            assert_eq!(json(&head).is_ok(), good, "{media_type:?}");
        }
        assert_eq!(json(&head("POST", "/auth", &[])).unwrap_err().status(), 415);
    }

    #[test]
    fn a_body_is_one_json_object() {
        for (body, says) in [
            (&b"[]"[..], "the body must be a JSON object, not an array"),
            (b"", "the body is not valid JSON: it ends too early"),
            (b"{\"a\":\"\xff\"}", "not UTF-8"),
            (b"{} {}", "the body is not valid JSON: something follows"),
        ] {
            let error = object(body).unwrap_err();
            assert_eq!(error.status(), 400);
            assert!(error.message().contains(says), "{error}");
        }
        assert!(object(b" {} \n").is_ok());
    }

    #[test]
    fn a_bearer_token_is_what_follows_the_scheme() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("BEARER  abc ", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic abc", None),
            ("abc", None),
            ("", None),
        ] {
            let head = head("DELETE", "/auth", &[("authorization", value)]);
            let found = bearer(&head);
            assert_eq!(found.as_ref().ok().map(Secret::expose), token, "{value:?}");
        }
        let error = bearer(&head("DELETE", "/auth", &[])).unwrap_err();
        assert_eq!(error.status(), 401);
    }

    #[test]
    fn the_address_is_the_one_that_the_caller_used() {
        for (host, secure, address) in [
            ("192.168.1.5:5000", false, Some("ws://192.168.1.5:5000/ws")),
            ("home.example", true, Some("wss://home.example/ws")),
            ("[fd00::1]:5000", false, Some("ws://[fd00::1]:5000/ws")),
            ("", false, None),
            ("evil/?x", false, None),
        ] {
            let mut head = head("POST", "/ws/register", &[("host", host)]);
            head.peer.secure = secure;
            assert_eq!(own_address(&head).ok().as_deref(), address, "{host:?}");
        }
        for (prefix, address) in [
            ("/hearth", Some("ws://home.example/hearth/ws")),
            ("/a/b/", Some("ws://home.example/a/b/ws")),
            ("/", Some("ws://home.example/ws")),
            ("hearth", None),
            ("/hearth?x", None),
            ("/a b", None),
        ] {
            let headers = [("host", "home.example"), ("x-forwarded-prefix", prefix)];
            let head = head("POST", "/ws/register", &headers);
            assert_eq!(own_address(&head).ok().as_deref(), address, "{prefix:?}");
        }
        let no_host = head("POST", "/ws/register", &[]);
        assert_eq!(own_address(&no_host).unwrap_err().status(), 400);
    }
}

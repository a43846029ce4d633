//! Parses the head of an HTTP/1.1 request, strictly (RFC 9112).
//!
//! Refuses everything ambiguous: a proxy in front of us may read it differently,
//! which is how requests are smuggled.

use std::mem::MaybeUninit;

use crate::peer::Peer;
use base::error::{Error, Result};
use base::url::{Authority, Url};
use config::Limits;

use super::message::Head;

/// Headers that fit on the stack; a higher `head_count` costs an allocation.
const USUAL_HEADERS: usize = 64;

/// How the body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A number of bytes; 0 when there is no body.
    Length(u64),
    /// The chunked transfer coding (RFC 9112 section 7.1).
    Chunked,
}

/// The head, and what the connection itself needs from it.
#[derive(Debug)]
pub struct ParsedHead {
    /// HEAD is already turned into GET here.
    pub head: Head,
    pub framing: Framing,
    /// The response's body is not sent.
    pub is_head: bool,
    /// HTTP/1.1, not 1.0.
    pub is_current: bool,
    /// Whether the client wants the connection kept.
    pub keep_alive: bool,
    /// The client waits for `100 Continue` before it sends its body.
    pub expects_continue: bool,
}

/// Parses what has arrived. `None` while the head is incomplete, else the head
/// and its length in bytes. `peer` goes into the head as it is.
///
/// # Errors
/// With the fitting HTTP status. The connection must then be closed, because
/// it is unknown where the next request begins.
// Inlined, its array would stay on the stack during every handler's call and
// cost each connection another page.
#[inline(never)]
pub fn parse(bytes: &[u8], limits: &Limits, peer: Peer) -> Result<Option<(ParsedHead, usize)>> {
    if let Some(b'\r' | b'\n') = bytes.first() {
        return Err(Error::invalid_request("an empty line is not a request"));
    }
    let mut usual = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut more;
    let headers = if limits.head_count <= USUAL_HEADERS {
        &mut usual[..limits.head_count]
    } else {
        more = vec![MaybeUninit::uninit(); limits.head_count];
        &mut more[..]
    };
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => {
            check_newlines(bytes)?;
            return match bytes.len() < limits.head_bytes {
                true => Ok(None),
                false => Err(too_long(bytes)),
            };
        }
        Err(error) => return Err(refusal(error, bytes)),
    };
    if length > limits.head_bytes {
        return Err(too_long(&bytes[..length]));
    }
    check_newlines(&bytes[..length])?;

    let method = request.method.unwrap_or_default();
    let target = request.path.unwrap_or_default();
    let is_current = request.version == Some(1);
    let mut parsed = ParsedHead {
        head: Head {
            method: method.to_owned(),
            path: String::new(),
            query: None,
            headers: request
                .headers
                .iter()
                .map(|header| {
                    let value = String::from_utf8_lossy(header.value).into_owned();
                    (header.name.to_ascii_lowercase(), value)
                })
                .collect(),
            peer,
        },
        framing: Framing::Length(0),
        is_head: method == "HEAD",
        is_current,
        keep_alive: is_current,
        expects_continue: false,
    };
    parsed.read_semantics(request.headers)?;
    set_target(&mut parsed.head, target)?;
    Ok(Some((parsed, length)))
}

/// Reads the request target (RFC 9112 section 3.2): a path, `*` in OPTIONS, or an
/// absolute URL, whose host replaces that of the `Host` header.
fn set_target(head: &mut Head, target: &str) -> Result<()> {
    let malformed = || {
        Error::invalid_request("the request target must be a path that begins with \"/\", or a URL")
    };
    if !target.is_ascii() || target.contains('#') {
        return Err(malformed());
    }
    if target.starts_with('/') || (target == "*" && head.method == "OPTIONS") {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        head.path = path.to_owned();
        head.query = query;
        return Ok(());
    }
    let url = Url::parse(target)
        .ok()
        .filter(|url| matches!(url.scheme.as_str(), "http" | "https") && url.user.is_none())
        .ok_or_else(malformed)?;
    head.headers.retain(|(name, _)| name != "host");
    head.headers
        .push(("host".to_owned(), url.authority.to_string()));
    head.path = match url.path.as_str() {
        "" => "/".to_owned(),
        _ => url.path,
    };
    head.query = url.query;
    Ok(())
}

/// Headers of which a request may have only one value. Two parties that each read
/// another one would disagree about the sender or the body.
const SINGLE: [&str; 6] = [
    "content-type",
    "authorization",
    "x-service-secret",
    "x-hub-signature-256",
    "idempotency-key",
    "x-hearth-user",
];

impl ParsedHead {
    /// Reads what the headers say about the connection and the body.
    fn read_semantics(&mut self, headers: &[httparse::Header<'_>]) -> Result<()> {
        let mut hosts = 0;
        let mut length = None;
        let mut chunked = false;
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("host") {
                hosts += 1;
                check_host(header.value)?;
            } else if is("content-length") {
                // Refused even if both agree: something is broken.
                if length.replace(content_length(header.value)?).is_some() {
                    return Err(Error::invalid_request("two Content-Length headers"));
                }
            } else if is("transfer-encoding") {
                if chunked || !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Error::invalid_request(
                        "Transfer-Encoding must be exactly \"chunked\"",
                    ));
                }
                chunked = true;
            } else if is("connection") {
                for option in header.value.split(|&byte| byte == b',') {
                    match option.trim_ascii() {
                        option if option.eq_ignore_ascii_case(b"close") => {
                            self.keep_alive = false;
                            // Close wins over keep-alive, in any order.
                            break;
                        }
                        option if option.eq_ignore_ascii_case(b"keep-alive") => {
                            self.keep_alive = true;
                        }
                        _ => {}
                    }
                }
            } else if is("expect") {
                if !header.value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Error::invalid_request(
                        "the only expectation that can be met is \"100-continue\"",
                    )
                    .with_status(417));
                }
                // A client of HTTP/1.0 cannot be waiting (RFC 9110 section 10.1.1).
                self.expects_continue = self.is_current;
            } else if SINGLE.into_iter().any(is)
                && headers
                    .iter()
                    .any(|other| is(other.name) && other.value != header.value)
            {
                return Err(Error::invalid_request(format!(
                    "two different {} headers",
                    header.name
                )));
            }
        }
        if hosts > 1 || (hosts == 0 && self.is_current) {
            return Err(Error::invalid_request(
                "an HTTP/1.1 request must have exactly one Host header",
            ));
        }
        self.framing = match (length, chunked) {
            (Some(_), true) => {
                return Err(Error::invalid_request(
                    "Content-Length and Transfer-Encoding exclude each other",
                ));
            }
            (None, true) if !self.is_current => {
                return Err(Error::invalid_request("HTTP/1.0 has no Transfer-Encoding"));
            }
            (None, true) => Framing::Chunked,
            (length, false) => Framing::Length(length.unwrap_or(0)),
        };
        Ok(())
    }
}

/// Digits only: `+5`, `5, 5` and an empty value are not lengths.
fn content_length(value: &[u8]) -> Result<u64> {
    let digits = std::str::from_utf8(value)
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| Error::invalid_request("Content-Length is not a length"))
}

/// A host and, if given, a port, which may be empty (RFC 3986 section 3.2), without user
/// information, which HTTP does not allow here.
fn check_host(value: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(value).ok();
    let authority = text.and_then(|text| Authority::parse(text.strip_suffix(':').unwrap_or(text)));
    match authority {
        Some(_) => Ok(()),
        None => Err(Error::invalid_request("the Host header is not a host")),
    }
}

/// Refuses a line that ends in LF alone, which the parser accepts.
pub fn check_newlines(bytes: &[u8]) -> Result<()> {
    let mut before = 0;
    for &byte in bytes {
        if byte == b'\n' && before != b'\r' {
            return Err(Error::invalid_request("a line must end in CR LF"));
        }
        before = byte;
    }
    Ok(())
}

fn too_long(bytes: &[u8]) -> Error {
    match bytes.contains(&b'\n') {
        true => Error::invalid_request("the request's head is too long").with_status(431),
        false => Error::invalid_request("the request line is too long").with_status(414),
    }
}

fn refusal(error: httparse::Error, bytes: &[u8]) -> Error {
    match error {
        httparse::Error::TooManyHeaders => {
            Error::invalid_request("the request has too many headers").with_status(431)
        }
        httparse::Error::Version if names_another_version(bytes) => {
            Error::invalid_request("only HTTP/1.1 and HTTP/1.0 are spoken here").with_status(505)
        }
        error => Error::invalid_request(format!(
            "this is not an HTTP request: {}",
            match error {
                httparse::Error::HeaderName => "a header has an invalid name",
                httparse::Error::HeaderValue => "a header has an invalid value",
                httparse::Error::NewLine => "a line ends wrongly",
                httparse::Error::Version => "the request line has no valid version",
                _ => "the request line has an invalid character",
            }
        )),
    }
}

/// Whether the first line ends in a version of HTTP that is not ours.
fn names_another_version(bytes: &[u8]) -> bool {
    let line = bytes
        .split(|&byte| byte == b'\r')
        .next()
        .unwrap_or_default();
    let word = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    word.strip_prefix(b"HTTP/").is_some_and(|version| {
        !matches!(version, b"" | b"1.0" | b"1.1")
            && version
                .iter()
                .all(|byte| byte.is_ascii_digit() || *byte == b'.')
    })
}

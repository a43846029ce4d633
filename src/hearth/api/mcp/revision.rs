//! Which revision of the protocol a request is of, and what it demands of the request.

use serde_json::{Value, json};

use super::message::{Fault, INVALID_PARAMS, Request, Revision};

use net::http::Head;
use protocol::attachment::decode;

/// The header that names the revision.
pub const HEADER: &str = "mcp-protocol-version";
/// The newest, without handshake and session.
pub const STATELESS: &str = "2026-07-28";
/// Those that begin with `initialize`, newest first.
pub const HANDSHAKES: [&str; 4] = [NEWEST_HANDSHAKE, "2025-06-18", BATCHES, "2024-11-05"];
/// The newest of these.
pub const NEWEST_HANDSHAKE: &str = "2025-11-25";
/// The one that takes several messages in one body, and is meant where no header names one.
pub const BATCHES: &str = "2025-03-26";

/// Codes of the revision 2026-07-28.
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Checks the header that names the revision, if there is one.
///
/// # Errors
/// It names none that this server knows.
pub fn check_header(head: &Head) -> Result<(), Fault> {
    match head.header(HEADER) {
        Some(named) if named != STATELESS && !HANDSHAKES.contains(&named) => Err(unknown(named)),
        _ => Ok(()),
    }
}

/// The revision of a request.
///
/// # Errors
/// The server does not know it, or what it demands is missing.
pub fn of(head: &Head, request: &Request) -> Result<Revision, Fault> {
    let named = head.header(HEADER);
    if named != Some(STATELESS) && request.meta(META_VERSION).is_none() {
        check_header(head)?;
        let known = HANDSHAKES.iter().find(|known| Some(**known) == named);
        return Ok(Revision::Handshake(known.unwrap_or(&BATCHES)));
    }
    let missing = [META_VERSION, META_CAPABILITIES]
        .into_iter()
        .find(|name| request.meta(name).is_none());
    if let Some(name) = missing {
        let why = format!("\"params._meta\" must have {name:?}");
        return Err(Fault::new(INVALID_PARAMS, why));
    }
    let version = request.meta(META_VERSION).and_then(Value::as_str);
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.filter(|_| request.method == "tools/call");
    for (header, expected) in [
        (HEADER, version),
        ("mcp-method", Some(request.method.as_str())),
        ("mcp-name", name),
    ] {
        let is_needed = header != "mcp-name" || name.is_some();
        let sent = head.header(header).map(decoded);
        if is_needed && (expected.is_none() || sent.flatten().as_deref() != expected) {
            let why = format!("the header {header} must say what the message says");
            return Err(Fault::new(HEADER_MISMATCH, why));
        }
    }
    match version {
        Some(STATELESS) => Ok(Revision::Stateless),
        other => Err(unknown(other.unwrap_or_default())),
    }
}

fn unknown(named: &str) -> Fault {
    let named: String = named.chars().take(100).collect();
    let known: Vec<&str> = [STATELESS].into_iter().chain(HANDSHAKES).collect();
    Fault::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        .with_data(json!({"supported": known, "requested": named}))
}

/// The text of a header, which may be in base64: `=?base64?...?=`.
fn decoded(text: &str) -> Option<String> {
    let coded = text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match coded {
        None => Some(text.to_owned()),
        Some(coded) => String::from_utf8(decode(coded)?).ok(),
    }
}

//! Receives the replies of a webhook account (its `outgoing_url`): checks who
//! sent them, drops repeats and prints the rest.
//!
//!     DOORBELL_SECRET=... cargo run --example webhook_receiver -- 127.0.0.1:9000
//!
//! Then, with examples/config/webhook.json and the same DOORBELL_SECRET:
//!
//!     curl http://127.0.0.1:5000/webhook/doorbell -H 'Content-Type: application/json' \
//!          -H "X-Service-Secret: $DOORBELL_SECRET" -d '{"message": "Somebody is at the door."}'
//!
//! tiny_http's server is good enough behind a firewall, not on the open internet.

use std::collections::VecDeque;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::Value;
use tiny_http::{Request, Response, Server};

/// Seconds by which a delivery's time may differ from ours: older ones may be
/// copies that somebody recorded.
const TOLERANCE: u64 = 5 * 60;
/// Deliveries that are remembered to drop their repeats.
const REMEMBERED: usize = 10_000;
/// Largest body that is read.
const BODY_BYTES: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or("127.0.0.1:9000".to_owned());
    let secret = std::env::var("DOORBELL_SECRET").map_err(|_| "set DOORBELL_SECRET")?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let server = Server::http(&address)?;
    println!("waiting for replies on http://{address}");

    let mut seen = VecDeque::new();
    for mut request in server.incoming_requests() {
        let status = receive(&mut request, &key, &mut seen);
        // 2xx ends the delivery; after anything else the server tries again.
        request.respond(Response::empty(status))?;
    }
    Ok(())
}

fn receive(request: &mut Request, key: &hmac::Key, seen: &mut VecDeque<String>) -> u16 {
    let header = |name: &'static str| {
        let found = request
            .headers()
            .iter()
            .find(|header| header.field.equiv(name));
        found
            .map(|header| header.value.as_str().to_owned())
            .unwrap_or_default()
    };
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let signatures = header("webhook-signature");

    let mut body = Vec::new();
    match request
        .as_reader()
        .take(BODY_BYTES + 1)
        .read_to_end(&mut body)
    {
        Ok(count) if count as u64 <= BODY_BYTES => {}
        _ => return 413,
    }
    if !is_signed(key, &id, &timestamp, &body, &signatures) || !is_recent(&timestamp) {
        return 401;
    }
    // A repeat carries the same id: it was received, only our answer got lost.
    if seen.contains(&id) {
        return 200;
    }
    let Ok(reply) = serde_json::from_slice::<Value>(&body) else {
        return 400;
    };
    let conversation = reply["conversation_id"].as_str().unwrap_or_default();
    match reply["message"].as_str() {
        Some(message) => println!("[{conversation}] {message}"),
        None => println!("[{conversation}] failed: {}", reply["error"]),
    }
    seen.push_back(id);
    if seen.len() > REMEMBERED {
        seen.pop_front();
    }
    204
}

/// Whether one of the `v1` signatures is ours (Standard Webhooks): HMAC-SHA256
/// over `id.timestamp.body`, in base64. `hmac::verify` compares in constant time.
fn is_signed(key: &hmac::Key, id: &str, timestamp: &str, body: &[u8], signatures: &str) -> bool {
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    signatures
        .split_whitespace()
        .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
        .any(|signature| hmac::verify(key, &signed, &signature).is_ok())
}

fn is_recent(timestamp: &str) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    timestamp
        .parse::<u64>()
        .is_ok_and(|sent| now.abs_diff(sent) <= TOLERANCE)
}

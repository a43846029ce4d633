//! The request of a client before encryption: the machine's public key.

use serde_json::json;

use protocol::envelope::{self, RequestId};
use protocol::public_key::PublicKey;

/// Longest request for the machine's key, in bytes. Longer texts are not parsed.
const REQUEST_BYTES: usize = 512;

/// The answer to `{"type":"machine_key"}`; none to any other text.
pub(super) fn answer(text: &str, key: impl FnOnce() -> PublicKey) -> Option<String> {
    if text.len() > REQUEST_BYTES || !text.contains("machine_key") {
        return None;
    }
    let request: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    if request["type"] != "machine_key" {
        return None;
    }
    Some(match RequestId::from_member(request.get("id")) {
        Ok(id) => {
            let public_key = key().to_base64();
            envelope::success(id.as_ref(), json!({"public_key": public_key}))
        }
        Err(error) => envelope::failure(None, &error),
    })
}

//! What a browser says of itself so that a push service can tell it something: the
//! members of `PushSubscription` in the Push API.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};

use crate::fields::Fields;
use base::error::{Error, Result};
use base::secret::Secret;
use base::url::Url;

/// Longest address of a browser at its push service, in bytes.
const ENDPOINT_BYTES: usize = 2_048;

/// base64url whose padding may be there.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A browser, as `push_subscribe` names it.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Where messages to it are posted. Whoever knows it reaches the browser.
    pub endpoint: Url,
    /// Its P-256 public key, uncompressed (RFC 8291 section 3.1): 65 bytes.
    pub public_key: Vec<u8>,
    /// What it shares with whoever tells it something: 16 bytes in base64url.
    pub secret: Secret,
}

impl Subscription {
    /// Reads the member `name`. What else browsers say in it is ignored.
    ///
    /// # Errors
    /// `invalid_request` when a part is absent or something else.
    pub fn read(fields: &mut Fields, name: &str) -> Result<Subscription> {
        let members = fields.object(name);
        fields.restrict(name, "required", json!(["endpoint", "keys"]));
        let members = members?;
        let keys = members.get("keys").and_then(Value::as_object);
        let key = |member: &str, bytes: usize| {
            let decoded = keys.and_then(|keys| keys.get(member)?.as_str());
            let decoded = decoded.and_then(|text| LENIENT.decode(text).ok());
            decoded.filter(|key| key.len() == bytes).ok_or_else(|| {
                Error::invalid_request(format!(
                    "\"{name}.keys.{member}\" must be {bytes} bytes in base64url"
                ))
            })
        };
        Ok(Subscription {
            endpoint: endpoint_of(&members, name)?,
            public_key: key("p256dh", 65)?,
            secret: Secret::new(encode(&key("auth", 16)?)),
        })
    }
}

fn endpoint_of(members: &Map<String, Value>, name: &str) -> Result<Url> {
    let endpoint = members.get("endpoint").and_then(Value::as_str);
    let endpoint = endpoint.filter(|text| text.len() <= ENDPOINT_BYTES);
    let endpoint = endpoint.and_then(|text| Url::parse(text).ok());
    endpoint.ok_or_else(|| {
        Error::invalid_request(format!(
            "\"{name}.endpoint\" must be a URL of at most {ENDPOINT_BYTES} bytes"
        ))
    })
}

/// The base64url of a key, without padding.
pub fn encode(key: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// The bytes of a key in base64url.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_browser_names_its_address_and_keys() {
        let (public_key, secret) = (encode(&[4; 65]), encode(&[9; 16]));
        let read = |subscription: Value| {
            let message = json!({ "subscription": subscription }).to_string();
            Subscription::read(&mut Fields::parse(&message).unwrap(), "subscription")
        };
        // As Chrome has it.
        let found = read(json!({
            "endpoint": "https://fcm.googleapis.com/fcm/send/a:b",
            "expirationTime": null,
            "keys": { "p256dh": format!("{public_key}="), "auth": secret },
        }));
        let found = found.unwrap();
        assert_eq!(
            found.endpoint.text(),
            "https://fcm.googleapis.com/fcm/send/a:b"
        );
        assert_eq!(
            (found.public_key, found.secret.expose()),
            (vec![4; 65], &*secret)
        );
        let keys = json!({ "p256dh": public_key, "auth": secret });
        for (subscription, wrong) in [
            (json!({ "keys": keys }), "subscription.endpoint"),
            (
                json!({ "endpoint": "push", "keys": keys }),
                "subscription.endpoint",
            ),
            (
                json!({ "endpoint": format!("https://a/{}", "x".repeat(2_048)), "keys": keys }),
                "2048",
            ),
            (json!({ "endpoint": "https://a/" }), "keys.p256dh"),
            (
                json!({ "endpoint": "https://a/", "keys": { "p256dh": secret, "auth": secret } }),
                "keys.p256dh",
            ),
            (
                json!({ "endpoint": "https://a/", "keys": { "p256dh": public_key, "auth": "!" } }),
                "keys.auth",
            ),
        ] {
            let error = read(subscription.clone()).unwrap_err();
            assert!(error.message().contains(wrong), "{subscription}: {error}");
        }
    }
}

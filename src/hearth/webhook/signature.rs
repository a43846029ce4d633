//! Signs callbacks as Standard Webhooks requires
//! (<https://github.com/standard-webhooks/standard-webhooks>, "Signature scheme").

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use base::clock::Timestamp;
use base::secret::{Secret, hmac_sha256};

/// What a secret in the standard's own form begins with; base64 follows.
const PREFIX: &str = "whsec_";

/// The value of `webhook-timestamp`: seconds since 1970.
pub fn unix_seconds(now: Timestamp) -> i64 {
    now.as_millis().div_euclid(1000)
}

/// The value of `webhook-signature`: for each secret, `v1,` and the base64 of
/// the HMAC-SHA256 of `id.timestamp.body`. There are two secrets while one replaces
/// the other. `timestamp` is in seconds since 1970.
pub fn sign<'a>(
    secrets: impl IntoIterator<Item = &'a Secret>,
    id: &str,
    timestamp: i64,
    body: &str,
) -> String {
    let signed = format!("{id}.{timestamp}.{body}");
    let signatures: Vec<String> = secrets
        .into_iter()
        .map(|secret| {
            let tag = hmac_sha256(&key(secret), signed.as_bytes());
            format!("v1,{}", STANDARD.encode(tag))
        })
        .collect();
    signatures.join(" ")
}

/// The key of a secret: its decoded base64 if it has the standard's own form, else
/// the bytes of its text.
fn key(secret: &Secret) -> Vec<u8> {
    let text = secret.expose();
    text.strip_prefix(PREFIX)
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn signatures_are_those_of_the_standard() {
        // The first is the vector of the standard's own libraries, the others are computed
        // with Python's hmac.
        let table = r#"
            whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw | msg_p5jXN8AQM9LWM0D4loKWxJek | 1614265330 | {"test": 2432232314} | v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
            correct horse battery staple | dlv_0000000000001 | 1800000000 | {"message":"hi","conversation_id":"a"} | v1,huDL1+dEvQV38fsjiEBwpDR5SjKjoo5MnL2hJhYzhRA=
            whsec_not base64! | dlv_0000000000001 | 1800000000 | {} | v1,h3tG0nr6XiCkYjVqae7rjrQKzkk7NNs+vDAwJ+0ryA0=
        "#;
        for [secret, id, timestamp, body, signature] in rows(table) {
            let (secret, timestamp) = (Secret::new(secret), timestamp.parse().unwrap());
            assert_eq!(sign([&secret], id, timestamp, body), signature);
            let both = sign([&Secret::new("new"), &secret], id, timestamp, body);
            assert_eq!(both.split(' ').nth(1), Some(signature));
        }
    }

    #[test]
    fn the_timestamp_is_in_whole_seconds() {
        for (millis, seconds) in [(0, 0), (1_999, 1), (1_614_265_330_000, 1_614_265_330)] {
            assert_eq!(unix_seconds(Timestamp::from_millis(millis)), seconds);
        }
    }
}
